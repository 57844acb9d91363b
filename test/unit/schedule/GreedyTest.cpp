//===- GreedyTest.cpp - orders by rules ---------------------------------------===//

#include "dualpipe/Schedule/Greedy.h"
#include "RulesBuilder.h"
#include "dualpipe/Schedule/Checker.h"
#include "test/support/AsSoonAsPossible.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

constexpr OpKind F = OpKind::Forward, B = OpKind::Backward, I = OpKind::BackwardInput,
                 W = OpKind::BackwardWeight;

/// Runs the rules, which must not get stuck.
void extend(Schedule &schedule, const GreedyRules &rules, const Costs &costs = {}) {
  DiagnosticSink sink;
  EXPECT_TRUE(extendGreedily(schedule, rules, costs, sink)) << print(sink);
  EXPECT_TRUE(sink.diagnostics().empty());
}

/// Runs the rules, which must fail.
std::string failure(Schedule schedule, GreedyRules rules, const Costs &costs = {}) {
  DiagnosticSink sink;
  rules.loc = {0, 1, 1};
  EXPECT_FALSE(extendGreedily(schedule, rules, costs, sink));
  return print(sink);
}

AsapResult measure(const Schedule &schedule) {
  DiagnosticSink sink;
  checkSchedule(schedule, sink);
  EXPECT_FALSE(sink.hasErrors()) << print(sink);
  AsapCosts costs;
  costs.group = [&](uint32_t rank, size_t begin, size_t end) {
    return Costs().getGroup(schedule.ranks[rank], begin, end) / Costs::kTicksPerUnit;
  };
  return runAsSoonAsPossible(schedule, costs);
}

//===----------------------------------------------------------------------===//
// Published schedules by their rules
//===----------------------------------------------------------------------===//

Schedule oneFOneB(uint32_t ranks, uint32_t microbatches) {
  Schedule schedule = makeLine(ranks, microbatches);
  GreedyRules rules = prefer(schedule, {B, F});
  limit(schedule, rules, F, B, [&](uint32_t rank) { return ranks - rank; });
  extend(schedule, rules);
  return schedule;
}

TEST(Greedy, OneFOneBIsTheOrderOfTheProgram) {
  for (uint32_t ranks = 1; ranks <= 16; ++ranks)
    for (uint32_t microbatches = 1; microbatches <= 48; ++microbatches) {
      Schedule schedule = oneFOneB(ranks, microbatches);
      for (uint32_t rank = 0; rank != ranks; ++rank) {
        uint32_t ahead = std::min(ranks - 1 - rank, microbatches);
        RankOrder expected;
        for (uint32_t mb = 0; mb != microbatches + ahead; ++mb) {
          if (mb < microbatches)
            expected.push(F, rank, mb, RankOrder::kAlone, 1);
          if (mb >= ahead)
            expected.push(B, rank, mb - ahead, RankOrder::kAlone, 1);
        }
        ASSERT_EQ(schedule.ranks[rank].kind, expected.kind)
            << "rank " << rank << " of " << ranks << " x " << microbatches;
        ASSERT_EQ(schedule.ranks[rank].microbatch, expected.microbatch);
        ASSERT_EQ(schedule.ranks[rank].loc, expected.loc);
      }
    }
}

TEST(Greedy, ZeroBubbleH1HasThePublishedTimeAndMemory) {
  for (auto [ranks, microbatches] : {std::pair(4u, 8u), {8u, 20u}, {16u, 48u}}) {
    Schedule schedule = makeLine(ranks, microbatches);
    GreedyRules rules = prefer(schedule, {F, I, W});
    limit(schedule, rules, F, I, [&, n = ranks](uint32_t rank) { return n - rank; });
    limit(schedule, rules, F, W, [&, n = ranks](uint32_t) { return n; });
    extend(schedule, rules);
    AsapResult result = measure(schedule);
    EXPECT_EQ(result.makespan, 3 * microbatches + ranks - 1);
    EXPECT_EQ(result.peak, std::vector<unsigned>(ranks, ranks));
  }
}

TEST(Greedy, IsFastEnough) {
  // 64 x 512: about 65,000 ops. The bound is loose, it holds in a debug build too.
  auto begin = std::chrono::steady_clock::now();
  Schedule schedule = oneFOneB(64, 512);
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(schedule.getNumOps(), 2u * 64 * 512);
  EXPECT_LT(seconds.count(), 5.0);
  RecordProperty("seconds", std::to_string(seconds.count()));
}

//===----------------------------------------------------------------------===//
// What the rules mean
//===----------------------------------------------------------------------===//

TEST(Greedy, TakesTheFirstChoiceThatIsReady) {
  Schedule schedule = makeLine(1, 2);
  extend(schedule, prefer(schedule, {W, F, I}));
  EXPECT_EQ(orderText(schedule, 0), "0F0 0F1 0I0 0W0 0I1 0W1");
}

TEST(Greedy, CountsMicrobatchesWithinTheirPipeline) {
  // Two pipelines on one rank take turns, the first chunk first.
  Schedule schedule =
      makeSchedule({makePipeline("down", {0}, 0, 2), makePipeline("up", {0}, 2, 2)}, {""});
  schedule.locations.push_back({0, 2, 3});
  extend(schedule, prefer(schedule, {F, B}));
  EXPECT_EQ(orderText(schedule, 0), "0F0 0F2 0F1 0F3 0B0 0B2 0B1 0B3");
}

TEST(Greedy, TakesAPairOnlyWhenBothAreReady) {
  Schedule schedule = makeLine(1, 3);
  std::vector<ChunkRef> all = chunksOf(schedule, 0);
  GreedyRules rules;
  rules.ranks.push_back({{{{{F, all}, {B, all}}, 1}, {{{F, all}}, 1}, {{{B, all}}, 1}}, {}, {}});
  extend(schedule, rules);
  EXPECT_EQ(orderText(schedule, 0), "0F0 (0F1;0B0) (0F2;0B1) 0B2");
  EXPECT_EQ(schedule.ranks[0].group[1], 0u);
  EXPECT_EQ(schedule.ranks[0].group[3], 1u);
}

TEST(Greedy, AGroupCountsWholeAgainstALimit) {
  // The backward of the pair frees its activation only at the end: no pair fits.
  Schedule schedule = makeLine(1, 3);
  std::vector<ChunkRef> all = chunksOf(schedule, 0);
  GreedyRules rules;
  rules.ranks.push_back({{{{{F, all}, {B, all}}, 1}, {{{F, all}}, 1}, {{{B, all}}, 1}}, {}, {}});
  limit(schedule, rules, F, B, [](uint32_t) { return 1; });
  extend(schedule, rules);
  EXPECT_EQ(orderText(schedule, 0), "0F0 0B0 0F1 0B1 0F2 0B2");
}

TEST(Greedy, GoesOnWhereAProgramEnds) {
  // Rank 1's fixed backward needs nothing of the rules; the fixed forward of rank 1 waits
  // for one that the rules take on rank 0.
  Schedule schedule = makeSchedule({makePipeline("main", {0, 1}, 0, 3)}, {"0F1", "1F1 1F0 1I0"});
  schedule.locations.push_back({0, 2, 3});
  extend(schedule, prefer(schedule, {B, F, W}));
  EXPECT_EQ(orderText(schedule, 0), "0F1 0F0 0F2 0B0 0B1 0B2");
  EXPECT_EQ(orderText(schedule, 1), "1F1 1F0 1I0 1B1 1F2 1B2 1W0");
}

TEST(Greedy, StopsWhereItIsTold) {
  Schedule schedule = makeSchedule({makePipeline("main", {0, 1}, 0, 4)}, {"0F0", ""});
  schedule.locations.push_back({0, 2, 3});
  GreedyRules rules = prefer(schedule, {B, F});
  for (uint32_t rank : {0u, 1u})
    rules.ranks[rank].stops.push_back({{F, chunksOf(schedule, rank)}, 2 + int64_t(rank)});
  extend(schedule, rules);
  EXPECT_EQ(orderText(schedule, 0), "0F0 0F1"); // the fixed one counts
  EXPECT_EQ(orderText(schedule, 1), "1F0 1B0 1F1 1B1");
  extend(schedule, prefer(schedule, {B, F}));
  DiagnosticSink sink;
  checkSchedule(schedule, sink);
  EXPECT_FALSE(sink.hasErrors()) << print(sink);
}

TEST(Greedy, KeepsTheMemoryLimit) {
  Schedule schedule = makeLine(2, 4);
  schedule.memory.activation = {3, 1};
  schedule.memory.context = {1, 0};
  schedule.memory.limit = {7, std::nullopt};
  extend(schedule, prefer(schedule, {F, I, W}));
  EXPECT_EQ(orderText(schedule, 0), "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0F3 0I2 0W2 0I3 0W3");
}

TEST(Greedy, UsesTheCostsOfEachStage) {
  Schedule schedule = makeLine(2, 2);
  GreedyRules rules = prefer(schedule, {B, F});
  extend(schedule, rules, *Costs::parse("fwd[0]=4,fwd[1]=1,bwd=1"));
  EXPECT_EQ(orderText(schedule, 1), "1F0 1B0 1F1 1B1");
  Schedule other = makeLine(2, 2);
  extend(other, rules, *Costs::parse("fwd[0]=1,fwd[1]=1,bwd=1,bwd[1]=1,transfer=3"));
  EXPECT_EQ(orderText(other, 0), "0F0 0F1 0B0 0B1");
}

//===----------------------------------------------------------------------===//
// Rules that cannot work
//===----------------------------------------------------------------------===//

TEST(Greedy, SaysWhichLimitHoldsARankBack) {
  Schedule schedule = makeLine(3, 2);
  GreedyRules rules = prefer(schedule, {B, F});
  limit(schedule, rules, F, B, [](uint32_t rank) { return rank == 1 ? 0 : 2; });
  EXPECT_EQ(failure(schedule, rules),
            "1:1: the rules of 'greedy' get stuck: no rank can go on\n"
            "  2:3: rank 0: bwd of stage 0, micro-batch 0 waits for the input gradient of stage 1 "
            "from rank 1\n"
            "  3:5: rank 1: fwd of stage 1, micro-batch 0 is held back by the limit fwd..bwd <= 0\n"
            "  2:3: rank 2: bwd of stage 2, micro-batch 0 waits for its forward\n");
}

TEST(Greedy, SaysThatMemoryHoldsARankBack) {
  Schedule schedule = makeLine(1, 2);
  schedule.memory.limit = {0};
  schedule.memory.loc = {0, 7, 7};
  EXPECT_EQ(failure(schedule, prefer(schedule, {F, B})),
            "1:1: the rules of 'greedy' get stuck: no rank can go on\n"
            "  7:7: rank 0: with fwd of stage 0, micro-batch 0 it would hold 1 units, the memory "
            "limit is 0\n");
}

TEST(Greedy, SaysWhatAFixedOpWaitsFor) {
  Schedule schedule =
      makeSchedule({makePipeline("main", {0, 1}, 0, 1)}, {"0F0 0W0", "1F0 (1B0;1W0)"});
  schedule.locations.push_back({0, 9, 9});
  GreedyRules rules = prefer(schedule, {B, F});
  EXPECT_EQ(failure(schedule, rules),
            "1:1: what earlier sections state cannot finish under these rules\n"
            "  1:5: rank 0: bwd_weight of stage 0, micro-batch 0 of an earlier section waits for "
            "its input half\n"
            "  2:10: rank 1: bwd_weight of stage 1, micro-batch 0 of an earlier section waits for "
            "its input half\n");
  Schedule crossed = makeSchedule({makePipeline("main", {0, 1}, 0, 1)}, {"0B0 0F0", "1F0"});
  crossed.locations.push_back({0, 9, 9});
  EXPECT_EQ(failure(crossed, prefer(crossed, {B, F})),
            "1:1: what earlier sections state cannot finish under these rules\n"
            "  1:1: rank 0: bwd of stage 0, micro-batch 0 of an earlier section waits for its "
            "forward\n"
            "  2:1: rank 1: fwd of stage 1, micro-batch 0 of an earlier section waits for the "
            "output of stage 0 from rank 0\n");
}

TEST(Greedy, ShowsABoundedNumberOfRanks) {
  Schedule schedule = makeLine(12, 1);
  GreedyRules rules = prefer(schedule, {F, B});
  limit(schedule, rules, F, B, [](uint32_t) { return 0; });
  std::string text = failure(schedule, rules);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
  EXPECT_NE(text.find("  1:1: 4 more ranks cannot go on\n"), text.npos) << text;
}

TEST(Greedy, RejectsALimitThatRunsBackwards) {
  Schedule schedule = makeLine(2, 1);
  GreedyRules rules = prefer(schedule, {F, B});
  limit(schedule, rules, W, I, [](uint32_t) { return 1; });
  EXPECT_EQ(failure(schedule, rules), "3:5: this limit is on bwd_weight..bwd_input, expected it to "
                                      "begin with the op that runs first\n");
}

TEST(Greedy, RejectsCostsThatDoNotFitATimeline) {
  Schedule schedule = makeLine(2, 2000);
  EXPECT_EQ(failure(schedule, prefer(schedule, {F, B}), *Costs::parse("fwd=999999999")),
            "1:1: the costs to plan with: 12000 ops of up to 999999999 and transfers of 0 are too "
            "long to plan with, expected times in a larger unit\n");
}

TEST(Greedy, LeavesToLaterSectionsWhatNoChoiceNames) {
  Schedule schedule = makeLine(2, 2);
  GreedyRules forwards = prefer(schedule, {F});
  forwards.ranks[0].stops.push_back({{F, chunksOf(schedule, 0)}, 1});
  extend(schedule, forwards); // rank 1 waits for micro-batch 1, which rank 0 leaves
  EXPECT_EQ(orderText(schedule, 1), "1F0");
}

} // namespace
