//===- SharedResourcesTest.cpp - ranks that share cores or links ------------===//

#include "test/unit/runtime/TestPrograms.h"

#include "dualpipe/Runtime/Prediction.h"
#include "runtime/sim/Cores.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::runtime;
using namespace dualpipe::test;

namespace {

Simulation run(const Program &program, const std::string &text) {
  Result<SimulationCosts> costs = SimulationCosts::parse(text);
  EXPECT_TRUE(costs.ok()) << costs.message();
  Result<Simulation> result = simulate(program, *costs, /*keepTimes=*/true);
  EXPECT_TRUE(result.ok()) << result.message();
  return result.ok() ? std::move(*result) : Simulation();
}

std::vector<Program> buildPrograms() {
  return {buildPipelines({.numRanks = 1}), buildPipelines({.numRanks = 4, .numMicrobatches = 8}),
          buildPipelines({.numRanks = 3, .numMicrobatches = 6, .splitBackward = true}),
          buildPipelines({.numRanks = 4, .numMicrobatches = 12, .mirrored = true}),
          buildPipelines({.numRanks = 3, .numMicrobatches = 6, .vShaped = true})};
}

//===----------------------------------------------------------------------===//
// Processor sharing by hand
//===----------------------------------------------------------------------===//

/// Ends in the order in which they come, as "stream at time".
std::vector<std::pair<uint32_t, Ticks>> drain(Cores &cores) {
  std::vector<std::pair<uint32_t, Ticks>> ends;
  while (!cores.isIdle()) {
    const Ticks now = cores.getNextEnd();
    uint32_t stream = 0;
    while (cores.takeEnded(now, stream))
      ends.emplace_back(stream, now);
  }
  return ends;
}

using Ends = std::vector<std::pair<uint32_t, Ticks>>;

TEST(Cores, TwoOnOneCore) {
  Cores cores(1);
  cores.add(0, 20, 7);
  cores.add(0, 40, 8);
  EXPECT_EQ(drain(cores), (Ends{{7, 40}, {8, 60}}));
}

TEST(Cores, ThreeOnTwoCores) {
  Cores cores(2);
  for (uint32_t stream = 0; stream != 3; ++stream)
    cores.add(0, 20, stream);
  EXPECT_EQ(drain(cores), (Ends{{0, 30}, {1, 30}, {2, 30}}));
}

/// The first has 20 of 40 left when the second comes, which takes 10 twice as long.
TEST(Cores, OneComesLater) {
  Cores cores(1);
  cores.add(0, 40, 1);
  cores.add(20, 10, 2);
  EXPECT_EQ(drain(cores), (Ends{{2, 40}, {1, 50}}));
}

TEST(Cores, EnoughCoresChangeNothing) {
  Cores cores(3);
  cores.add(5, 40, 1);
  cores.add(6, 10, 2);
  cores.add(7, 1, 3);
  EXPECT_EQ(drain(cores), (Ends{{3, 8}, {2, 16}, {1, 45}}));
}

/// 1/3 of a tick is not to be had: the end is rounded up.
TEST(Cores, EndsAreWholeTicks) {
  Cores cores(2);
  for (uint32_t stream = 0; stream != 3; ++stream)
    cores.add(0, 1, stream);
  EXPECT_EQ(cores.getNextEnd(), 2);
}

//===----------------------------------------------------------------------===//
// Whole programs
//===----------------------------------------------------------------------===//

/// The two simulators are two algorithms for one meaning.
TEST(SharedCores, EnoughForAllGiveTheTimesWithout) {
  for (const Program &program : buildPrograms())
    for (const std::string costs :
         {"fwd=1,bwd=2", "fwd=1.5,bwd_input=2,bwd_weight=0.75,transfer=0.25,step=1,reduce=3",
          "fwd=1,transfer=0.5,occupancy=0.75,load_input=0.5,load_labels=0.25",
          "fwd[0]=4,bwd=3,occupancy=2"}) {
      const Simulation without = run(program, costs);
      const Simulation with = run(program, costs + ",cores=64");
      EXPECT_EQ(with.makespan, without.makespan);
      for (size_t rank = 0; rank != program.ranks.size(); ++rank) {
        EXPECT_EQ(with.ranks[rank].busy, without.ranks[rank].busy);
        EXPECT_EQ(with.ranks[rank].contended, 0);
        EXPECT_EQ(with.ranks[rank].sends, without.ranks[rank].sends);
        EXPECT_EQ(with.ranks[rank].peakActivations, without.ranks[rank].peakActivations);
        EXPECT_EQ(with.ranks[rank].deepestWeightQueue, without.ranks[rank].deepestWeightQueue);
        for (size_t i = 0; i != program.ranks[rank].commands.size(); ++i) {
          EXPECT_EQ(with.commands[rank][i].start, without.commands[rank][i].start);
          EXPECT_EQ(with.commands[rank][i].end, without.commands[rank][i].end);
        }
      }
    }
}

/// With free links some rank can always compute, so one core is never idle.
TEST(SharedCores, OneCoreDoesAllTheWork) {
  for (const Program &program : buildPrograms()) {
    const Simulation result = run(program, "fwd=1,bwd_input=1.25,bwd_weight=0.5,cores=1");
    Ticks work = 0;
    for (const RankTimes &rank : result.ranks)
      work += rank.busy;
    // An end is at most a tick late for each compute.
    EXPECT_GE(result.makespan, work);
    EXPECT_LE(result.makespan, work + 1000);
  }
}

TEST(SharedCores, NodesHaveCoresOfTheirOwn) {
  const Program program = buildPipelines({.numRanks = 4, .numMicrobatches = 8});
  const Ticks shared = run(program, "fwd=1,bwd=2,cores=1").makespan;
  const Ticks two = run(program, "fwd=1,bwd=2,cores=1,node=2").makespan;
  EXPECT_EQ(run(program, "fwd=1,bwd=2,cores=1,node=1").makespan,
            run(program, "fwd=1,bwd=2").makespan);
  EXPECT_LT(two, shared);
  EXPECT_GT(two, run(program, "fwd=1,bwd=2").makespan);
}

/// What a bubble is lost to is said, and the parts add up.
TEST(SharedCores, TimeWithoutACoreIsACause) {
  const Program program = buildPipelines({.numRanks = 4, .numMicrobatches = 8});
  Result<Prediction> prediction = predict(program, *SimulationCosts::parse("fwd=1,bwd=2,cores=2"));
  ASSERT_TRUE(prediction.ok()) << prediction.message();
  for (const RankBubble &bubble : prediction->bubbles) {
    EXPECT_GT(bubble.cores, 0);
    EXPECT_EQ(bubble.pairs, 0);
    EXPECT_EQ(bubble.total, bubble.warmUp + bubble.drain + bubble.slots + bubble.reductions +
                                bubble.cores + bubble.getPeers());
  }
  const std::string text = printText(*prediction, program);
  EXPECT_NE(text.find("pairs  cores  activations"), std::string::npos) << text;
}

/// A compute that only waits needs no core.
TEST(SharedCores, WaitingNeedsNoCore) {
  const Program program = buildPipelines({.numRanks = 3, .numMicrobatches = 6});
  SimulationCosts costs = *SimulationCosts::parse("fwd=1,bwd=2,cores=1");
  for (uint32_t stage = 0; stage != 3; ++stage)
    for (Function function : {Function::Forward, Function::Backward})
      costs.components[{function, stage, 0}].cpu = 0;
  Result<Simulation> waiting = simulate(program, costs);
  ASSERT_TRUE(waiting.ok()) << waiting.message();
  EXPECT_EQ(waiting->makespan, run(program, "fwd=1,bwd=2").makespan);
  // Half a unit on the core, then the rest without it: rank 0 is never alone for long.
  for (auto &[key, cost] : costs.components)
    cost.cpu = Costs::kTicksPerUnit / 2;
  Result<Simulation> half = simulate(program, costs);
  ASSERT_TRUE(half.ok()) << half.message();
  EXPECT_GT(half->makespan, waiting->makespan);
  EXPECT_LT(half->makespan, run(program, "fwd=1,bwd=2,cores=1").makespan);
}

/// Transfers between two nodes never overlap on a shared link.
TEST(SharedLinks, OneTransferAtATime) {
  const Program program = buildPipelines({.numRanks = 4, .numMicrobatches = 12, .mirrored = true});
  const std::string costs = "fwd=1,bwd=2,occupancy=0.75,transfer=0.5,node=2";
  const Simulation shared = run(program, costs + ",links=shared");
  std::map<bool, std::vector<Ticks>> starts; // by direction
  for (const RankProgram &rank : program.ranks)
    for (size_t i = 0; i != rank.commands.size(); ++i) {
      if (rank.commands[i].op != CommandOp::Send)
        continue;
      const Channel &channel =
          program.shared.channels[rank.transfers[rank.commands[i].arg].channel];
      if (channel.source / 2 != channel.destination / 2)
        starts[channel.source < channel.destination].push_back(shared.commands[rank.rank][i].start);
    }
  ASSERT_EQ(starts.size(), 2u);
  for (auto &[direction, times] : starts) {
    ASSERT_EQ(times.size(), 12u);
    std::sort(times.begin(), times.end());
    for (size_t i = 1; i != times.size(); ++i)
      EXPECT_GE(times[i] - times[i - 1], Costs::kTicksPerUnit * 3 / 4);
  }
  EXPECT_GE(shared.makespan, run(program, costs).makespan);
}

/// A pipeline uses each link for one channel: sharing changes nothing.
TEST(SharedLinks, OfOneChannelAreItsOwn) {
  const Program program = buildPipelines({.numRanks = 4, .numMicrobatches = 8});
  const std::string costs = "fwd=1,bwd=2,occupancy=1.5,transfer=0.5,node=2";
  EXPECT_EQ(run(program, costs + ",links=shared").makespan, run(program, costs).makespan);
}

TEST(SharedResources, Errors) {
  const Program program = buildPipelines({});
  const auto getError = [&](const std::string &text) {
    Result<Simulation> result = simulate(program, *SimulationCosts::parse(text));
    return result ? "none" : result.message();
  };
  const std::string jointly =
      "costs 'cores' and 'links=shared' apply only to pairs that start and end jointly, expected "
      "no forward_done, no backward_done and start=joint";
  EXPECT_EQ(getError("cores=2,start=separate"), jointly);
  EXPECT_EQ(getError("links=shared,forward_done=1"), jointly);
  EXPECT_EQ(getError("start=separate,backward_done=1"),
            "costs 'forward_done' and 'backward_done' do not apply with start=separate, where each "
            "result is there after its own time");
  Program stuck = buildPipelines({});
  std::erase_if(stuck.ranks[1].commands,
                [](const Command &command) { return command.op == CommandOp::Recv; });
  Result<Simulation> result = simulate(stuck, *SimulationCosts::parse("cores=1"));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.message().find("the program cannot finish, it stands at rank 0, command "), 0u)
      << result.message();
}

} // namespace
