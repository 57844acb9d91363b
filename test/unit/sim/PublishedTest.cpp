//===- PublishedTest.cpp - programs take the published times ----------------===//
//
// The published values, from the programs that would run: makespan, idle time, peak
// activations, deepest queue of weight halves and sends; the bubble rates of the Zero
// Bubble paper with its profiled times.
//
//===----------------------------------------------------------------------===//

#include "Compiled.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

using Counts = std::vector<uint64_t>;

struct Golden {
  const char *name; ///< of a file of examples/, or of an order
  Size size;
  const char *makespan, *idle;
  Counts activations, weights, sends;
  const char *costs = "fwd=1,bwd_input=1,bwd_weight=1,fused=3,transfer=0";
};

const Counts kSends8x20 = {20, 40, 40, 40, 40, 40, 40, 20};
const char *const kHalfTimes = "fwd=0.5,bwd_input=0.5,bwd_weight=0.5";

const Golden kGolden[] = {
    {"gpipe", {4, 8}, "33", "9", Counts(4, 8), Counts(4, 0), {8, 16, 16, 8}},
    {"1f1b", {2, 4}, "15", "3", {2, 1}, Counts(2, 0), {4, 4}},
    {"1f1b", {4, 8}, "33", "9", {4, 3, 2, 1}, Counts(4, 0), {8, 16, 16, 8}},
    {"1f1b", {8, 20}, "81", "21", {8, 7, 6, 5, 4, 3, 2, 1}, Counts(8, 0), kSends8x20},
    {"zb-h1", {4, 8}, "27", "3", Counts(4, 4), {1, 2, 3, 4}, {8, 16, 16, 8}},
    {"interleaved", {2, 4}, "13.5", "1.5", {5, 3}, Counts(2, 0), {12, 12}, kHalfTimes},
    {"dualpipe", {2, 4}, "12", "0", Counts(2, 3), {1, 1}, {4, 4}},
    {"dualpipe", {4, 8}, "26", "2", Counts(4, 5), {1, 2, 2, 1}, {8, 16, 16, 8}},
    {"dualpipe", {8, 20}, "66", "6", Counts(8, 9), {1, 2, 3, 4, 4, 3, 2, 1}, kSends8x20},
    {"dualpipev", {4, 10}, "66", "6", Counts(4, 9), {1, 2, 3, 4}, {20, 40, 40, 20}},
    {"peer-zb1p-r4-m8.csv", {4, 8}, "27", "3", Counts(4, 4), {1, 2, 3, 4}, {8, 16, 16, 8}},
    {"peer-zbv-r4-m8.csv", {4, 8}, "51", "3", Counts(4, 8), {2, 4, 6, 8}, {16, 32, 32, 16}},
    {"peer-vhalf-r4-m8.csv", {4, 8}, "53", "5", Counts(4, 6), {2, 3, 4, 4}, {16, 32, 32, 16}},
    {"peer-vmin-r4-m8.csv", {4, 8}, "59", "11", Counts(4, 4), {2, 2, 1, 2}, {16, 32, 32, 16}},
};

Compiled compile(const Golden &golden) {
  const bool isOrder = std::string(golden.name).ends_with(".csv");
  return isOrder ? compileOrder(golden.name) : compileExample(golden.name, golden.size);
}

TEST(Published, Golden) {
  for (const Golden &golden : kGolden) {
    SCOPED_TRACE(testing::Message() << golden.name << " " << golden.size);
    runtime::Prediction prediction = predict(compile(golden).program, golden.costs);
    EXPECT_EQ(print(prediction.makespan), golden.makespan);
    for (const runtime::RankBubble &bubble : prediction.bubbles)
      EXPECT_EQ(print(bubble.total), golden.idle);
    ASSERT_EQ(prediction.ranks.size(), golden.size.ranks);
    for (size_t rank = 0; rank != prediction.ranks.size(); ++rank) {
      EXPECT_EQ(prediction.ranks[rank].peakActivations, golden.activations[rank]) << rank;
      EXPECT_EQ(prediction.ranks[rank].deepestWeightQueue, golden.weights[rank]) << rank;
      EXPECT_EQ(prediction.ranks[rank].sends, golden.sends[rank]) << rank;
    }
  }
}

TEST(Published, NoRankOfTheSearchedZbvWaitsWithinItsOwnSpan) {
  runtime::Prediction prediction =
      predict(compileOrder("peer-zbv-r4-m8.csv").program, "fwd=1,bwd_input=1,bwd_weight=1");
  EXPECT_TRUE(prediction.waits.empty());
}

struct ProfiledModel {
  Size size;
  const char *costs; ///< in milliseconds
  const char *oneFOneB, *zbH1, *zbH2;
};

const ProfiledModel kModels[] = {
    {{8, 24},
     "fwd=18.522,bwd_input=18.086,bwd_weight=9.337,transfer=0.601",
     "0.2431",
     "0.1585",
     "0.1083"},
    {{8, 32},
     "fwd=18.513,bwd_input=18.086,bwd_weight=9.331,transfer=0.626",
     "0.1985",
     "0.1242",
     "0.0837"},
    {{8, 64},
     "fwd=18.546,bwd_input=18.097,bwd_weight=9.321,transfer=0.762",
     "0.1240",
     "0.0674",
     "0.0444"},
    {{16, 48},
     "fwd=11.347,bwd_input=11.248,bwd_weight=8.132,transfer=0.377",
     "0.2552",
     "0.1397",
     "0.0672"},
    {{16, 64},
     "fwd=11.307,bwd_input=11.254,bwd_weight=8.101,transfer=0.379",
     "0.2082",
     "0.1088",
     "0.0516"},
    {{16, 128},
     "fwd=11.325,bwd_input=11.308,bwd_weight=8.109,transfer=0.378",
     "0.1251",
     "0.0576",
     "0.0266"},
};

std::string getRate(const char *name, const ProfiledModel &model) {
  char text[16];
  const double rate = predict(compileExample(name, model.size).program, model.costs).getRate();
  std::snprintf(text, sizeof(text), "%.4f", rate);
  return text;
}

TEST(Published, BubbleRatesOfTheZeroBubblePaper) {
  for (const ProfiledModel &model : kModels) {
    SCOPED_TRACE(testing::Message() << model.size);
    EXPECT_EQ(getRate("1f1b", model), model.oneFOneB);
    EXPECT_EQ(getRate("zb-h1", model), model.zbH1);
    EXPECT_EQ(getRate("zb-h2", model), model.zbH2);
  }
}

} // namespace
