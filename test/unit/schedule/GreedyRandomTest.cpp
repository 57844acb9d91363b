//===- GreedyRandomTest.cpp - rules at random, against the slow way ----------===//

#include "RulesBuilder.h"
#include "test/support/SlowGreedy.h"

#include <gtest/gtest.h>
#include <random>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

/// Random problems, the same on every machine: `std::mt19937` is specified, the
/// distributions of the library are not.
class Dice {
public:
  explicit Dice(uint32_t seed) : engine(seed) {}
  uint32_t operator()(uint32_t sides) { return engine() % sides; }

  Schedule makeSchedule();
  Costs makeCosts(const Schedule &schedule);
  GreedyRules makeRules(const Schedule &schedule);

private:
  std::vector<uint32_t> makePlacement(uint32_t ranks);
  std::vector<ChunkRef> someOf(const std::vector<ChunkRef> &chunks);
  Member makeMember(const std::vector<ChunkRef> &chunks) {
    return {OpKind((*this)(4)), someOf(chunks)};
  }
  RankRules makeRankRules(const std::vector<ChunkRef> &chunks);

  std::mt19937 engine;
};

std::vector<uint32_t> Dice::makePlacement(uint32_t ranks) {
  std::vector<uint32_t> placement(ranks * (1 + (*this)(2)));
  uint32_t kind = (*this)(4);
  for (uint32_t s = 0; s != placement.size(); ++s)
    placement[s] = kind == 0   ? s % ranks
                   : kind == 1 ? ranks - 1 - s % ranks
                   : kind == 2 ? (s < ranks ? s : 2 * ranks - 1 - s)
                               : (*this)(ranks);
  return placement;
}

Schedule Dice::makeSchedule() {
  uint32_t ranks = 1 + (*this)(4), first = 1 + (*this)(4), second = 1 + (*this)(3);
  std::vector<uint32_t> placement = makePlacement(ranks);
  std::vector<Pipeline> pipelines{makePipeline("a", placement, 0, first)};
  if ((*this)(2)) {
    // Shared weights: the same stages, placed otherwise.
    std::reverse(placement.begin(), placement.end());
    pipelines.push_back(makePipeline("b", placement, first, second));
  }
  Schedule schedule = test::makeSchedule(pipelines, std::vector<std::string>(ranks));
  schedule.locations.resize(10);
  if ((*this)(3) == 0) {
    schedule.memory.limit.resize(ranks);
    for (std::optional<int64_t> &limit : schedule.memory.limit)
      if ((*this)(3))
        limit = 2 + (*this)(8);
    for (uint32_t s = 0; s != schedule.numStages; ++s) {
      schedule.memory.activation.push_back((*this)(3));
      schedule.memory.context.push_back((*this)(2));
    }
  }
  return schedule;
}

Costs Dice::makeCosts(const Schedule &schedule) {
  Costs costs;
  for (OpCost &cost : costs.ops) {
    if ((*this)(2))
      cost.common = 1 + (*this)(3);
    for (uint32_t s = 0; s != schedule.numStages; ++s)
      if ((*this)(4) == 0)
        cost.ofStage[s] = 1 + (*this)(3);
    if (!cost.common)
      cost.common = 2;
  }
  costs.transfer = (*this)(3);
  if ((*this)(2))
    costs.fused = 1 + (*this)(5);
  return costs;
}

std::vector<ChunkRef> Dice::someOf(const std::vector<ChunkRef> &chunks) {
  std::vector<ChunkRef> some;
  for (ChunkRef chunk : chunks)
    if ((*this)(4))
      some.insert((*this)(2) ? some.begin() : some.end(), chunk);
  return some;
}

RankRules Dice::makeRankRules(const std::vector<ChunkRef> &chunks) {
  RankRules rules;
  bool split = (*this)(2);
  uint32_t loc = 1;
  for (uint32_t i = (*this)(3); i-- > 0;) {
    Choice fused{{makeMember(chunks), makeMember(chunks)}, loc++};
    if ((*this)(5) == 0)
      fused.members.push_back(makeMember(chunks));
    rules.choices.push_back(fused);
  }
  std::vector<OpKind> kinds{OpKind::Forward, split ? OpKind::BackwardInput : OpKind::Backward};
  if (split || (*this)(2))
    kinds.push_back(OpKind::BackwardWeight);
  for (size_t i = kinds.size(); i-- > 0;)
    std::swap(kinds[i], kinds[(*this)(uint32_t(i) + 1)]);
  for (OpKind kind : kinds)
    if ((*this)(12))
      rules.choices.push_back({{{kind, (*this)(4) ? chunks : someOf(chunks)}}, loc++});
  for (uint32_t i = (*this)(3); i-- > 0;) {
    static constexpr std::pair<OpKind, OpKind> spans[] = {
        {OpKind::Forward, OpKind::Backward},        {OpKind::Forward, OpKind::BackwardInput},
        {OpKind::Forward, OpKind::BackwardWeight},  {OpKind::BackwardInput, OpKind::BackwardWeight},
        {OpKind::Backward, OpKind::BackwardWeight}, {OpKind::Backward, OpKind::Backward}};
    auto [from, to] = spans[(*this)(6)];
    rules.limits.push_back({from, to, someOf(chunks), 1 + int64_t((*this)(5)), {}});
  }
  if ((*this)(5) == 0)
    rules.stops.push_back({makeMember(chunks), int64_t((*this)(4))});
  return rules;
}

GreedyRules Dice::makeRules(const Schedule &schedule) {
  GreedyRules rules;
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank)
    rules.ranks.push_back(makeRankRules(chunksOf(schedule, rank)));
  return rules;
}

/// Leaves the first ops of each order, so that rules start from the middle.
void truncate(Schedule &schedule, Dice &dice) {
  for (RankOrder &order : schedule.ranks) {
    size_t keep = dice(uint32_t(order.size()) + 1);
    RankOrder kept;
    for (size_t op = 0; op < keep; op = order.groupEnd(op))
      for (size_t i = op; i != order.groupEnd(op); ++i)
        kept.push(order.kind[i], order.stage[i], order.microbatch[i], order.group[i], order.loc[i]);
    order = kept;
  }
}

/// Runs both on copies of `schedule`, compares, and leaves the result.
bool compare(Schedule &schedule, const GreedyRules &rules, const Costs &costs) {
  Schedule slow = schedule;
  DiagnosticSink sink;
  bool finished = extendGreedily(schedule, rules, costs, sink);
  EXPECT_EQ(finished, !sink.hasErrors());
  EXPECT_EQ(finished, SlowGreedy(slow, rules, costs).run()) << print(sink);
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    EXPECT_EQ(orderText(schedule, rank), orderText(slow, rank)) << "on rank " << rank;
    EXPECT_EQ(schedule.ranks[rank].loc, slow.ranks[rank].loc);
    EXPECT_EQ(schedule.ranks[rank].group, slow.ranks[rank].group);
  }
  return finished;
}

TEST(GreedyRandom, AgreesWithTheSlowWay) {
  constexpr uint32_t numProblems = 1500;
  uint32_t numFinished = 0, numOps = 0;
  for (uint32_t seed = 0; seed != numProblems && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Dice dice(seed);
    Schedule schedule = dice.makeSchedule();
    Costs costs = dice.makeCosts(schedule);
    numFinished += compare(schedule, dice.makeRules(schedule), costs);
    if (dice(2))
      truncate(schedule, dice);
    compare(schedule, dice.makeRules(schedule), costs);
    numOps += uint32_t(schedule.getNumOps());
  }
  // The problems are worth something: neither all stuck nor all free, and of some size.
  EXPECT_GT(numFinished, numProblems / 4);
  EXPECT_LT(numFinished, numProblems * 9 / 10);
  EXPECT_GT(numOps, numProblems * 5);
}

} // namespace
