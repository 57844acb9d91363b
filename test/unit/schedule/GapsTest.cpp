//===- GapsTest.cpp - weight halves where a rank would wait -------------------===//

#include "dualpipe/Schedule/Gaps.h"
#include "RulesBuilder.h"
#include "dualpipe/Schedule/Checker.h"
#include "dualpipe/Schedule/Timeline.h"

#include <gtest/gtest.h>
#include <random>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

constexpr uint32_t kPlace = 1;

/// Takes every weight half out of the orders.
std::vector<FloatingHalf> takeHalves(Schedule &schedule) {
  std::vector<FloatingHalf> halves;
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    RankOrder rest, &order = schedule.ranks[rank];
    for (size_t op = 0; op != order.size(); ++op)
      if (order.kind[op] == OpKind::BackwardWeight)
        halves.push_back({rank, order.stage[op], order.microbatch[op], kPlace});
      else
        rest.push(order.kind[op], order.stage[op], order.microbatch[op], order.group[op],
                  order.loc[op]);
    order = rest;
  }
  return halves;
}

std::string fill(Schedule schedule, const char *costs = "") {
  std::vector<FloatingHalf> halves = takeHalves(schedule);
  placeInGaps(schedule, halves, *Costs::parse(costs));
  std::string text;
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank)
    text += orderText(schedule, rank) + "\n";
  return text;
}

Schedule makeTwoRanks() {
  return makeSchedule(
      {makePipeline("main", {0, 1}, 0, 3)},
      {"0F0 0F1 0I0 0F2 0I1 0I2 0W0 0W1 0W2", "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1W1 1W2"});
}

TEST(Gaps, HalvesGoWhereARankWaits) {
  //   rank 0  F0 F1 .  I0 F2 I1 w0 I2         two gaps, the second filled
  //   rank 1  .  F0 I0 F1 I1 F2 I2
  EXPECT_EQ(fill(makeTwoRanks()), "0F0 0F1 0I0 0F2 0I1 0W0 0I2 0W1 0W2\n"
                                  "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1W1 1W2\n");
}

TEST(Gaps, AHalfThatIsTooLongWaitsForTheEnd) {
  EXPECT_EQ(fill(makeTwoRanks(), "bwd_weight=1.000001"), "0F0 0F1 0I0 0F2 0I1 0I2 0W0 0W1 0W2\n"
                                                         "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1W1 1W2\n");
  EXPECT_EQ(fill(makeTwoRanks(), "bwd_weight=0.5"), "0F0 0F1 0I0 0F2 0I1 0W0 0W1 0I2 0W2\n"
                                                    "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1W1 1W2\n");
}

TEST(Gaps, AYoungerHalfThatFitsGoesFirst) {
  // Rank 0 holds stages 0 and 3; the half of stage 3 is the oldest, but too long for the gap.
  Schedule schedule = makeSchedule({makePipeline("v", {0, 1, 1, 0}, 0, 1)},
                                   {"0F0 3F0 3I0 0I0 3W0 0W0", "1F0 2F0 2I0 1I0 2W0 1W0"});
  EXPECT_EQ(fill(schedule, "bwd_weight[3]=2"),
            "0F0 3F0 3I0 3W0 0I0 0W0\n1F0 2F0 2I0 1I0 2W0 1W0\n");
  Schedule second = makeSchedule({makePipeline("v", {0, 1, 1, 0}, 0, 2)},
                                 {"0F0 0F1 3F0 3I0 0I0 3F1 3I1 0I1 3W0 0W0 3W1 0W1",
                                  "1F0 2F0 2I0 1I0 1F1 2F1 2I1 1I1 2W0 2W1 1W0 1W1"});
  EXPECT_EQ(fill(second, "bwd_weight[3]=9"), "0F0 0F1 3F0 3I0 0I0 0W0 3F1 3I1 0I1 3W0 3W1 0W1\n"
                                             "1F0 2F0 2I0 1I0 1F1 2F1 2W0 1W0 2I1 1I1 2W1 1W1\n");
}

TEST(Gaps, PhasesStayWithTheirOps) {
  Schedule schedule = makeTwoRanks();
  std::vector<FloatingHalf> halves = takeHalves(schedule);
  schedule.ranks[0].phases = {{4, 0}, {5, 3}};
  for (FloatingHalf &half : halves)
    half.phase = half.microbatch == 2 ? 5 : ~0u;
  placeInGaps(schedule, halves, {});
  ASSERT_EQ(orderText(schedule, 0), "0F0 0F1 0I0 0F2 0I1 0W0 0I2 0W1 0W2");
  std::string phases;
  for (RankOrder::Phase phase : schedule.ranks[0].phases)
    phases += std::to_string(int32_t(phase.name)) + "@" + std::to_string(phase.begin) + " ";
  EXPECT_EQ(phases, "4@0 5@3 -1@5 5@6 -1@7 5@8 ");
}

TEST(Gaps, WhatHasNoInputHalfGoesToTheEnd) {
  Schedule schedule = makeSchedule({makePipeline("main", {0}, 0, 2)}, {"0F0 0F1 0I1 0B0"});
  placeInGaps(schedule, {{0, 0, 0, 1}, {0, 0, 1, 1}}, {});
  EXPECT_EQ(orderText(schedule, 0), "0F0 0F1 0I1 0B0 0W1 0W0");
}

TEST(Gaps, OrdersThatWaitForEachOtherStayAsTheyAre) {
  Schedule schedule =
      makeSchedule({makePipeline("main", {0, 1}, 0, 1)}, {"0I0 0F0 0W0", "1F0 1I0 1W0"});
  std::string text = fill(schedule);
  EXPECT_EQ(text, "0I0 0F0 0W0\n1F0 1I0 1W0\n");
}

/// A valid order with split backwards: a random walk over what is ready.
Schedule makeRandom(std::mt19937 &engine) {
  uint32_t ranks = 1 + engine() % 4, microbatches = 1 + engine() % 5;
  std::vector<uint32_t> placement(ranks * (1 + engine() % 2));
  for (uint32_t s = 0; s != placement.size(); ++s)
    placement[s] = engine() % 2 ? s % ranks : engine() % ranks;
  Schedule schedule = makeSchedule({makePipeline("main", placement, 0, microbatches)},
                                   std::vector<std::string>(ranks));
  schedule.locations.resize(2);
  // How far each (stage, micro-batch) is: 0 nothing, 1 forward, 2 input half, 3 both.
  std::vector<std::vector<int>> at(placement.size(), std::vector<int>(microbatches));
  for (size_t left = placement.size() * microbatches * 3; left != 0;) {
    uint32_t s = engine() % placement.size(), mb = engine() % microbatches;
    int &here = at[s][mb];
    bool last = s + 1 == placement.size();
    bool ready = here == 0   ? s == 0 || at[s - 1][mb] >= 1
                 : here == 1 ? last || at[s + 1][mb] >= 2
                             : here == 2;
    if (!ready)
      continue;
    static constexpr OpKind kinds[] = {OpKind::Forward, OpKind::BackwardInput,
                                       OpKind::BackwardWeight};
    schedule.ranks[placement[s]].push(kinds[here++], s, mb, RankOrder::kAlone, 0);
    --left;
  }
  return schedule;
}

using Starts = std::vector<std::vector<Ticks>>;

/// When each op starts that is no weight half, rank by rank in order.
Starts startsOfOthers(const Schedule &schedule, const OpIndex &index, const Costs &costs) {
  Timeline timeline(index, costs);
  Starts starts(schedule.numRanks);
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank)
    for (size_t op = 0; op != schedule.ranks[rank].size(); ++op)
      if (schedule.ranks[rank].kind[op] != OpKind::BackwardWeight)
        starts[rank].push_back(timeline.getStart(rank, op));
  return starts;
}

TEST(Gaps, NothingStartsLaterThanItWouldWithout) {
  std::mt19937 engine(7);
  size_t numMoved = 0;
  for (int round = 0; round != 400; ++round) {
    Schedule schedule = makeRandom(engine);
    Costs costs;
    for (OpCost &cost : costs.ops)
      cost.common = 1 + engine() % 4;
    costs.of(OpKind::BackwardWeight).ofStage[engine() % schedule.numStages] = 1 + engine() % 4;
    costs.transfer = engine() % 3;

    // The same schedule with full backwards of the time of an input half has no halves.
    Schedule without = schedule;
    std::vector<FloatingHalf> halves = takeHalves(without);
    Schedule filled = without;
    placeInGaps(filled, halves, costs);
    for (RankOrder &order : without.ranks)
      for (OpKind &kind : order.kind)
        kind = kind == OpKind::BackwardInput ? OpKind::Backward : kind;
    Costs alone = costs;
    alone.of(OpKind::Backward) = costs.of(OpKind::BackwardInput);

    DiagnosticSink sink;
    OpIndex index = checkSchedule(filled, sink), indexWithout = checkSchedule(without, sink);
    ASSERT_FALSE(sink.hasErrors()) << print(sink);
    EXPECT_EQ(startsOfOthers(filled, index, costs), startsOfOthers(without, indexWithout, alone));
    for (const RankOrder &order : filled.ranks)
      for (size_t op = 0; op + 1 < order.size(); ++op)
        numMoved += order.kind[op] == OpKind::BackwardWeight &&
                    order.kind[op + 1] != OpKind::BackwardWeight;
  }
  EXPECT_GT(numMoved, 400u); // gaps were filled, and often
}

} // namespace
