//===- OrderTimesTest.cpp - the simulation against the order tables ---------===//
//
// Every schedule of the library, simulated from its program, takes the time that an
// independent walk over its order tables finds: also with transfers that cost latency
// or keep their channel, and with times that differ from stage to stage. Where a link
// carries any number of transfers at once, each op starts when its inputs and its rank
// allow, no slot holds it up; the first of each rank as soon as a micro-batch can reach
// it. (Slow links fill the slots of what is to be sent: ops may then start later.)
//
//===----------------------------------------------------------------------===//

#include "Compiled.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

class OrderTimes : public testing::TestWithParam<Entry> {};

constexpr Size kSizes[] = {{1, 2}, {2, 4}, {3, 7}, {4, 8}, {4, 12}, {6, 14}, {8, 16}};

/// In hundredths of a unit, so that both sides count in whole numbers.
struct Case {
  OpTimes times;
  int64_t latency = 0;
  bool occupies = false;
};
constexpr Case kCases[] = {{{200, 200, 200}},
                           {{200, 310, 90}},
                           {{200, 310, 90}, 100},
                           {{200, 200, 200}, 100, true},
                           {{200, 200, 200}, 400, true},
                           {{400, 200, 200}, 150, true}};

std::string printCosts(const Case &test) {
  auto units = [](int64_t hundredths) {
    return fmt::format("{}.{:02}", hundredths / 100, hundredths % 100);
  };
  return fmt::format("fwd={},bwd_input={},bwd_weight={},{}={}", units(test.times.fwd),
                     units(test.times.bwdInput), units(test.times.bwdWeight),
                     test.occupies ? "occupancy" : "transfer", units(test.latency));
}

constexpr int64_t kScale = Costs::kTicksPerUnit / 100;

/// The starts of a rank's computes; a pair is one.
std::vector<int64_t> getStarts(const program::RankProgram &rank,
                               const std::vector<runtime::CommandTime> &times) {
  std::vector<int64_t> starts;
  for (size_t i = 0; i != rank.commands.size(); ++i) {
    const program::Command &command = rank.commands[i];
    if (command.op == program::CommandOp::Pair) {
      starts.push_back(times[i].start / kScale);
      i += command.arg;
    } else if (command.op == program::CommandOp::Launch) {
      program::Function function = rank.launches[command.arg].function;
      if (function != program::Function::LoadInput && function != program::Function::LoadLabels)
        starts.push_back(times[i].start / kScale);
    }
  }
  return starts;
}

/// The shortest way of a micro-batch to a stage of the rank: forwards upstream, and transfers.
int64_t getShortestWay(const Schedule &schedule, uint32_t rank, const Case &test) {
  int64_t shortest = std::numeric_limits<int64_t>::max();
  for (const Pipeline &pipeline : schedule.pipelines) {
    int64_t way = 0;
    for (uint32_t at = 0; at != pipeline.numStages; ++at) {
      if (pipeline.placement[at] == rank)
        shortest = std::min(shortest, way);
      way += test.times.fwd;
      if (at + 1 != pipeline.numStages && pipeline.placement[at] != pipeline.placement[at + 1])
        way += test.latency;
    }
  }
  return shortest;
}

void expectEarliest(const Compiled &compiled, const Case &test, const AsapResult &asap) {
  Result<runtime::SimulationCosts> costs = runtime::SimulationCosts::parse(printCosts(test));
  ASSERT_TRUE(costs) << costs.message();
  Result<runtime::Simulation> simulation = simulate(compiled.program, *costs, /*keepTimes=*/true);
  ASSERT_TRUE(simulation) << simulation.message();
  for (uint32_t rank = 0; rank != compiled.schedule.numRanks; ++rank) {
    SCOPED_TRACE(testing::Message() << "rank " << rank);
    std::vector<int64_t> starts =
        getStarts(compiled.program.ranks[rank], simulation->commands[rank]);
    EXPECT_EQ(starts, asap.starts[rank]);
    ASSERT_FALSE(starts.empty());
    EXPECT_LE(starts.front(), getShortestWay(compiled.schedule, rank, test));
  }
}

void expectSame(const Compiled &compiled, const Case &test) {
  SCOPED_TRACE(printCosts(test));
  runtime::Prediction prediction = predict(compiled.program, printCosts(test));
  AsapResult asap = measure(compiled.schedule, test.times, test.latency, test.occupies);
  if (!test.occupies)
    expectEarliest(compiled, test, asap);
  EXPECT_EQ(prediction.makespan, asap.makespan * kScale);
  for (size_t rank = 0; rank != prediction.ranks.size(); ++rank) {
    const runtime::RankTimes &times = prediction.ranks[rank];
    EXPECT_EQ(times.busy, asap.busy[rank] * kScale);
    EXPECT_EQ(times.peakActivations, asap.peak[rank]);
    EXPECT_EQ(times.deepestWeightQueue, asap.deepestQueue[rank]);
    EXPECT_EQ(times.sends, asap.sends[rank]);
    EXPECT_EQ(prediction.bubbles[rank].pairs, 0) << "the parts of the bubble add up";
  }
}

TEST_P(OrderTimes, EveryCost) {
  const Entry &entry = GetParam();
  for (int64_t value : entry.values)
    for (Size size : kSizes) {
      if (!entry.isLegal(size, value))
        continue;
      SCOPED_TRACE(testing::Message() << size << " with " << value);
      Example::Options options;
      if (entry.param)
        options.value = value;
      Compiled compiled = compileExample(entry.name, size, options);
      for (const Case &test : kCases)
        expectSame(compiled, test);
    }
}

/// With times that differ from stage to stage.
TEST_P(OrderTimes, TimesOfStages) {
  if (!GetParam().isLegal({4, 8}, GetParam().values.front()))
    return;
  Compiled compiled = compileExample(GetParam().name, {4, 8});
  auto timeOf = [](OpKind kind, uint32_t stage) {
    const int64_t halves[] = {2 + stage % 3, 1 + stage % 2};
    if (kind == OpKind::Forward)
      return int64_t(1 + (stage * 7) % 4);
    if (kind == OpKind::Backward)
      return halves[0] + halves[1];
    return halves[kind == OpKind::BackwardWeight];
  };
  std::string costs;
  for (uint32_t stage = 0; stage != compiled.schedule.numStages; ++stage)
    for (OpKind kind : {OpKind::Forward, OpKind::BackwardInput, OpKind::BackwardWeight})
      costs += fmt::format("{}{}[{}]={}", costs.empty() ? "" : ",", getKeyword(kind), stage,
                           timeOf(kind, stage));
  AsapCosts asap;
  asap.group = [&](uint32_t rank, size_t begin, size_t end) {
    const RankOrder &order = compiled.schedule.ranks[rank];
    int64_t sum = 0;
    for (size_t op = begin; op != end; ++op)
      sum += timeOf(order.kind[op], order.stage[op]);
    return sum;
  };
  EXPECT_EQ(predict(compiled.program, costs).makespan,
            runAsSoonAsPossible(compiled.schedule, asap).makespan * Costs::kTicksPerUnit);
}

TEST_P(OrderTimes, ForwardOnly) {
  for (Size size : {Size{2, 4}, Size{4, 8}}) {
    if (!GetParam().isLegal(size, GetParam().values.front()))
      continue;
    Compiled compiled = compileExample(GetParam().name, size, {.forwardOnly = true});
    runtime::Prediction prediction = predict(compiled.program, "transfer=0.5");
    AsapResult asap = measure(compiled.schedule, {2, 2, 2}, 1);
    EXPECT_EQ(2 * prediction.makespan, asap.makespan * Costs::kTicksPerUnit);
    EXPECT_EQ(prediction.getPeakActivations(), 1u);
  }
}

INSTANTIATE_TEST_SUITE_P(Library, OrderTimes, testing::ValuesIn(getLibrary()),
                         [](const auto &info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace
