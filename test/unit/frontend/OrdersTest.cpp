//===- OrdersTest.cpp - the schedules of examples/ -------------------------===//

#include "Harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

using namespace dualpipe;
using namespace dualpipe::frontend;

namespace {

const std::string kExamples = std::string(DUALPIPE_SOURCE_DIR) + "/examples/";
const std::string kOrders = std::string(DUALPIPE_SOURCE_DIR) + "/test/reference/orders/";

Outcome compileExample(const std::string &name, Options options) {
  return compilePath(kExamples + name, options);
}

/// Every (stage, micro-batch) forward once and backward once, on the rank of its placement.
void expectComplete(const Schedule &schedule) {
  std::map<std::pair<uint32_t, uint32_t>, int> forward, backward;
  for (uint32_t rank = 0; rank < schedule.numRanks; ++rank) {
    const RankOrder &order = schedule.ranks[rank];
    for (size_t i = 0; i < order.size(); ++i) {
      const Pipeline &pipeline = schedule.pipelines[schedule.findPipeline(order.microbatch[i])];
      EXPECT_EQ(pipeline.getRank(order.stage[i]), rank);
      auto key = std::pair(order.stage[i], order.microbatch[i]);
      // A full backward counts as both halves.
      if (order.kind[i] == OpKind::Forward)
        ++forward[key];
      else
        backward[key] += order.kind[i] == OpKind::Backward ? 2 : 1;
    }
  }
  size_t expected = 0;
  for (const Pipeline &pipeline : schedule.pipelines)
    expected += size_t(pipeline.numStages) * pipeline.numMicrobatches;
  EXPECT_EQ(forward.size(), expected);
  EXPECT_EQ(backward.size(), schedule.training ? expected : 0);
  for (const auto &[key, count] : forward)
    EXPECT_EQ(count, 1);
  for (const auto &[key, count] : backward)
    EXPECT_EQ(count, 2);
}

TEST(Orders, DualPipeEqualsThePublishedOrders) {
  for (auto [ranks, microbatches] : {std::pair(4u, 10u), std::pair(8u, 20u)}) {
    Outcome run = compileExample("dualpipe.pipe", sized(ranks, microbatches));
    ASSERT_TRUE(run.ok) << run.findings;
    EXPECT_EQ(formatOrders(run.schedule), readFile(kOrders + "dualpipe-r" + std::to_string(ranks) +
                                                   "-m" + std::to_string(microbatches) + ".csv"));
  }
}

TEST(Orders, DualPipeVEqualsThePublishedOrder) {
  Outcome run = compileExample("dualpipev.pipe", sized(4, 10));
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(formatOrders(run.schedule), readFile(kOrders + "dualpipev-r4-m10.csv"));
}

TEST(Orders, DualPipeVOnOneRank) {
  Outcome run = compileExample("dualpipev.pipe", sized(1, 2));
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(formatOrders(run.schedule), "0F0,1F0,0F1,1B0,(1F1;0B0)OVERLAP_F_B,1B1,0I1,0W1\n");
}

TEST(Orders, OneFOneB) {
  Outcome run = compileExample("1f1b.pipe", sized(3, 4));
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(formatOrders(run.schedule), "0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3\n"
                                        "1F0,1F1,1B0,1F2,1B1,1F3,1B2,1B3\n"
                                        "2F0,2B0,2F1,2B1,2F2,2B2,2F3,2B3\n");
}

TEST(Orders, OneFOneBWithFewerMicrobatchesThanRanks) {
  Outcome run = compileExample("1f1b.pipe", sized(4, 1));
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(formatOrders(run.schedule), "0F0,0B0\n1F0,1B0\n2F0,2B0\n3F0,3B0\n");
}

TEST(Orders, AreCompleteForManySizes) {
  auto check = [](const char *name, uint32_t ranks, uint32_t microbatches) {
    SCOPED_TRACE(std::string(name) + " " + std::to_string(ranks) + " x " +
                 std::to_string(microbatches));
    Options options = sized(ranks, microbatches);
    Outcome run = compileExample(name, options);
    ASSERT_TRUE(run.ok) << run.findings;
    expectComplete(run.schedule);
    options.forwardOnly = true;
    run = compileExample(name, options);
    ASSERT_TRUE(run.ok) << run.findings;
    expectComplete(run.schedule);
  };
  for (uint32_t ranks : {2, 4, 6, 8, 12, 16})
    for (uint32_t microbatches : {2 * ranks, 2 * ranks + 2, 4 * ranks})
      check("dualpipe.pipe", ranks, microbatches);
  for (uint32_t ranks : {1, 2, 3, 4, 5, 8})
    for (uint32_t microbatches : {2 * ranks, 2 * ranks + 1, 4 * ranks})
      check("dualpipev.pipe", ranks, microbatches);
  for (uint32_t ranks : {1, 2, 5})
    for (uint32_t microbatches : {1, 2, 3, 7})
      check("1f1b.pipe", ranks, microbatches);
}

TEST(Orders, NumbersStagesAndMicrobatchesOverTheSchedule) {
  Outcome run = compileExample("dualpipe.pipe", sized(4, 10));
  ASSERT_TRUE(run.ok) << run.findings;
  const Schedule &schedule = run.schedule;
  EXPECT_EQ(schedule.name, "dualpipe");
  EXPECT_EQ(schedule.numRanks, 4u);
  EXPECT_EQ(schedule.numMicrobatches, 10u);
  EXPECT_EQ(schedule.numStages, 4u);
  ASSERT_EQ(schedule.pipelines.size(), 2u);
  EXPECT_EQ(schedule.pipelines[1].name, "up");
  EXPECT_EQ(schedule.pipelines[1].firstStage, 0u);
  EXPECT_EQ(schedule.pipelines[1].firstMicrobatch, 5u);
  EXPECT_EQ(schedule.pipelines[1].placement, (std::vector<uint32_t>{3, 2, 1, 0}));
}

TEST(Orders, NamePhasesInTheOrderOfTheText) {
  Outcome run = compileExample("dualpipe.pipe", sized(4, 8));
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(run.schedule.phaseNames,
            (std::vector<std::string>{"warm-up", "fill", "zero bubble", "steady", "ebb", "drain",
                                      "weights"}));
  // Rank 1 is in the middle and has neither warm-up nor ebb.
  const RankOrder &order = run.schedule.ranks[1];
  std::vector<std::pair<uint32_t, uint32_t>> phases;
  for (const RankOrder::Phase &phase : order.phases)
    phases.emplace_back(phase.name, phase.begin);
  EXPECT_EQ(phases, (std::vector<std::pair<uint32_t, uint32_t>>{{1, 0}, {3, 4}, {5, 12}, {6, 16}}));
}

TEST(Orders, EveryOpHasItsPlace) {
  Outcome run = compileExample("dualpipev.pipe", sized(2, 4));
  ASSERT_TRUE(run.ok) << run.findings;
  const Schedule &schedule = run.schedule;
  EXPECT_EQ(schedule.files,
            (std::vector<std::string>{kExamples + "dualpipev.pipe", kExamples + "dualpipe.pipe"}));
  EXPECT_EQ(schedule.locations[0], schedule.loc);
  std::string text = readFile(kExamples + "dualpipe.pipe");
  for (uint32_t rank = 0; rank < 2; ++rank) {
    for (size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      SourceLoc loc = schedule.getLoc(rank, i);
      ASSERT_EQ(loc.file, 1u);
      size_t line = 0;
      for (uint32_t k = 1; k < loc.line; ++k)
        line = text.find('\n', line) + 1;
      // A split `bwd` stands for the input half too.
      std::string keyword = getKeyword(schedule.ranks[rank].kind[i]);
      std::string word = text.substr(line + loc.column - 1, keyword.size());
      EXPECT_EQ(keyword == "bwd_input" ? word.substr(0, 3) : word,
                keyword == "bwd_input" ? "bwd" : keyword);
    }
  }
}

TEST(Orders, AreTheSameTwice) {
  for (const char *name : {"dualpipe.pipe", "dualpipev.pipe", "1f1b.pipe"}) {
    Outcome first = compileExample(name, sized(16, 64));
    Outcome second = compileExample(name, sized(16, 64));
    ASSERT_TRUE(first.ok && second.ok) << first.findings;
    EXPECT_EQ(formatOrders(first.schedule), formatOrders(second.schedule));
    for (size_t rank = 0; rank < 16; ++rank) {
      EXPECT_EQ(first.schedule.ranks[rank].loc, second.schedule.ranks[rank].loc);
      EXPECT_EQ(first.schedule.ranks[rank].group, second.schedule.ranks[rank].group);
    }
  }
}

TEST(Orders, WrongSizesSayTheRuleAndTheNearestLegalOnes) {
  Outcome run = compileExample("dualpipe.pipe", sized(7, 20));
  EXPECT_NE(run.findings.find("error: schedule 'dualpipe' needs an even number of ranks, got 7\n"),
            std::string::npos)
      << run.findings;
  EXPECT_NE(
      run.findings.find("note: nearest legal number of ranks: 6 or 8 (with 20 micro-batches)"),
      std::string::npos)
      << run.findings;
  EXPECT_EQ(run.numErrors, 1u);

  run = compileExample("dualpipe.pipe", sized(8, 15));
  EXPECT_NE(run.findings.find("needs an even number of micro-batches, at least 16, got 15"),
            std::string::npos)
      << run.findings;
  EXPECT_NE(run.findings.find("nearest legal number of micro-batches: 16 (with 8 ranks)"),
            std::string::npos)
      << run.findings;

  // Neither size alone can be mended.
  run = compileExample("dualpipe.pipe", sized(7, 13));
  EXPECT_EQ(run.numErrors, 2u);
  EXPECT_NE(run.findings.find("nearest legal sizes: 6 ranks with 14 micro-batches"),
            std::string::npos)
      << run.findings;
}

} // namespace
