//===- PublishedTest.cpp - values and orders that were published ------------===//
//
// Makespan, idle time, peak activations, deepest queue of weight halves and sends for
// F = I = W = 1, B = 2 and free transfers; the bubble rates of the Zero Bubble paper with
// its profiled times; an order that a search gave.
//
//===----------------------------------------------------------------------===//

#include "Library.h"

#include "dualpipe/Target/TorchCsv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

using Counts = std::vector<unsigned>;

AsapResult measureExample(const char *name, Size size) {
  return measure(Example(name).instantiate(size));
}

void expectTimes(const AsapResult &result, int64_t makespan, int64_t idle) {
  EXPECT_EQ(result.makespan, makespan);
  for (int64_t busy : result.busy)
    EXPECT_EQ(result.makespan - busy, idle);
}

TEST(Published, GPipe) {
  AsapResult result = measureExample("gpipe", {4, 8});
  expectTimes(result, 33, 9);
  EXPECT_EQ(result.peak, Counts(4, 8));
  EXPECT_EQ(result.deepestQueue, Counts(4, 0));
  EXPECT_EQ(result.sends, (Counts{8, 16, 16, 8}));
}

TEST(Published, ZbH1) {
  AsapResult result = measureExample("zb-h1", {4, 8});
  expectTimes(result, 27, 3);
  EXPECT_EQ(result.peak, Counts(4, 4));
  EXPECT_EQ(result.deepestQueue, (Counts{1, 2, 3, 4}));
  EXPECT_EQ(result.sends, (Counts{8, 16, 16, 8}));
}

/// Two chunks, so every time counts half: 13.5 and 1.5.
TEST(Published, Interleaved) {
  AsapResult result = measureExample("interleaved", {2, 4});
  expectTimes(result, 27, 3);
  EXPECT_EQ(result.peak, (Counts{5, 3}));
  EXPECT_EQ(result.sends, (Counts{12, 12}));
}

/// The search finds 51 with no rank waiting within its own span; the rules take as long.
TEST(Published, Zbv) {
  AsapResult result = measureExample("zbv", {4, 8});
  expectTimes(result, 51, 3);
  EXPECT_EQ(result.peak, Counts(4, 8));
  EXPECT_EQ(result.sends, (Counts{16, 32, 32, 16}));
}

TEST(Published, VHalf) {
  AsapResult result = measureExample("v-half", {4, 8});
  expectTimes(result, 53, 5);
  EXPECT_EQ(result.peak, Counts(4, 6));
  EXPECT_EQ(result.sends, (Counts{16, 32, 32, 16}));
}

TEST(Published, VMin) {
  AsapResult result = measureExample("v-min", {4, 8});
  expectTimes(result, 59, 11);
  EXPECT_EQ(result.peak, Counts(4, 4));
  EXPECT_EQ(result.sends, (Counts{16, 32, 32, 16}));
}

TEST(Published, ZbH1IsTheOrderThatTheSearchFinds) {
  std::ifstream file(DUALPIPE_SOURCE_DIR "/test/reference/orders/peer-zb1p-r4-m8.csv");
  std::stringstream expected;
  expected << file.rdbuf();
  ASSERT_FALSE(expected.str().empty());
  EXPECT_EQ(printTorchCsv(Example("zb-h1").instantiate({4, 8})), expected.str());
}

//===----------------------------------------------------------------------===//
// Bubble rates of arXiv 2401.10241
//===----------------------------------------------------------------------===//

struct ProfiledModel {
  Size size;
  OpTimes times; ///< in microseconds
  int64_t latency;
  double oneFOneB, zbH1, zbH2; ///< published rates
};

/// The longest span of a rank against the work for all micro-batches.
double getBubbleRate(const char *name, const ProfiledModel &model) {
  AsapResult result = measure(Example(name).instantiate(model.size), model.times, model.latency);
  double cost = double(*std::max_element(result.span.begin(), result.span.end()));
  int64_t work = model.times.fwd + model.times.bwdInput + model.times.bwdWeight;
  return (cost - double(model.size.microbatches * work)) / cost;
}

TEST(Published, BubbleRatesOfTheZeroBubblePaper) {
  const ProfiledModel models[] = {
      {{8, 24}, {18522, 18086, 9337}, 601, 0.2431, 0.1585, 0.1083},
      {{8, 32}, {18513, 18086, 9331}, 626, 0.1985, 0.1242, 0.0837},
      {{8, 64}, {18546, 18097, 9321}, 762, 0.1240, 0.0674, 0.0444},
      {{16, 48}, {11347, 11248, 8132}, 377, 0.2552, 0.1397, 0.0672},
      {{16, 64}, {11307, 11254, 8101}, 379, 0.2082, 0.1088, 0.0516},
      {{16, 128}, {11325, 11308, 8109}, 378, 0.1251, 0.0576, 0.0266},
  };
  auto toFourPlaces = [](double rate) { return std::round(rate * 10000) / 10000; };
  for (const ProfiledModel &model : models) {
    SCOPED_TRACE(testing::Message() << model.size);
    EXPECT_DOUBLE_EQ(toFourPlaces(getBubbleRate("1f1b", model)), model.oneFOneB);
    EXPECT_DOUBLE_EQ(toFourPlaces(getBubbleRate("zb-h1", model)), model.zbH1);
    EXPECT_DOUBLE_EQ(toFourPlaces(getBubbleRate("zb-h2", model)), model.zbH2);
  }
}

} // namespace
