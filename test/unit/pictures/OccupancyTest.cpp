//===- OccupancyTest.cpp - what a rank holds, over time ---------------------===//

#include "runtime/pictures/Occupancy.h"
#include "test/unit/runtime/TestPrograms.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::runtime;
using namespace dualpipe::test;

namespace {

Program makeProgram() {
  return buildPipelines(
      {.numRanks = 4, .numMicrobatches = 8, .splitBackward = true, .mirrored = true});
}

Simulation run(const Program &program, const char *costs) {
  Result<Simulation> simulation =
      simulate(program, *SimulationCosts::parse(costs), /*keepTimes=*/true);
  EXPECT_TRUE(simulation.ok()) << simulation.message();
  return std::move(*simulation);
}

TEST(Occupancy, HasThePeaksOfTheRunAndEndsEmpty) {
  const Program program = makeProgram();
  const Simulation simulation = run(program, "fwd=1,bwd_input=1.5,transfer=0.25");
  for (const RankProgram &rank : program.ranks) {
    uint32_t peak = 0;
    const auto curve = measureOccupancy(rank, program.shared, simulation.commands[rank.rank]);
    ASSERT_FALSE(curve.empty());
    for (const Occupancy &now : curve)
      peak = std::max(peak, now.activations);
    EXPECT_EQ(peak, simulation.ranks[rank.rank].peakActivations);
    EXPECT_EQ(curve.back().activations, 0u);
    for (uint32_t count : curve.back().slots)
      EXPECT_EQ(count, 0u);
  }
}

TEST(Occupancy, TimesGrowAndNoKindHasMoreThanItsSlots) {
  const Program program = makeProgram();
  const Simulation simulation = run(program, "fwd=2,transfer=3,occupancy=0.5");
  for (const RankProgram &rank : program.ranks) {
    std::array<uint32_t, kNumSlotKinds> slots{};
    for (const SlotClass &slotClass : rank.slotClasses)
      slots[unsigned(slotClass.kind)] += slotClass.count;
    Ticks last = -1;
    for (const Occupancy &now :
         measureOccupancy(rank, program.shared, simulation.commands[rank.rank])) {
      EXPECT_GT(now.time, last);
      last = now.time;
      for (unsigned kind = 0; kind != kNumSlotKinds; ++kind)
        EXPECT_LE(now.slots[kind], slots[kind]);
    }
  }
}

TEST(Occupancy, BytesAreThoseOfTheSlots) {
  const Program program = makeProgram();
  const Simulation simulation = run(program, "");
  const auto size = [](SlotKind kind, uint32_t) { return uint64_t(100 + unsigned(kind)); };
  const auto curve =
      measureOccupancy(program.ranks[1], program.shared, simulation.commands[1], size);
  for (const Occupancy &now : curve)
    for (unsigned kind = 0; kind != kNumSlotKinds; ++kind)
      EXPECT_EQ(now.bytes[kind], now.slots[kind] * uint64_t(100 + kind));
}

/// A step that nothing takes time in still ends empty.
TEST(Occupancy, WhatTakesNoTime) {
  const Program program = makeProgram();
  const std::vector<CommandTime> still(program.ranks[0].commands.size());
  const auto curve = measureOccupancy(program.ranks[0], program.shared, still);
  ASSERT_EQ(curve.size(), 1u);
  EXPECT_EQ(curve[0].activations, 0u);
  for (uint32_t count : curve[0].slots)
    EXPECT_EQ(count, 0u);
}

} // namespace
