//===- GoldenTest.cpp - makespan, idle time and memory of the examples ------===//
//
// The published values for F = I = W = 1, B = 2, a pair 3, free transfers:
// makespan, idle time per rank, peak activations, deepest queue of weight
// halves and number of sends.
//
//===----------------------------------------------------------------------===//

#include "test/support/AsSoonAsPossible.h"
#include "test/support/CompileExample.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

using Counts = std::vector<unsigned>;

AsapResult measure(const CompiledExample &example) {
  AsapCosts costs;
  costs.group = [&](uint32_t rank, size_t begin, size_t end) {
    static constexpr int64_t times[] = {1, 2, 1, 1};
    int64_t sum = 0;
    for (size_t op = begin; op != end; ++op)
      sum += times[size_t(example.schedule.ranks[rank].kind[op])];
    return sum;
  };
  return runAsSoonAsPossible(example.schedule, costs);
}

void expectGolden(const char *name, uint32_t ranks, uint32_t microbatches, int64_t makespan,
                  int64_t idle, const Counts &peak, const Counts &queue, const Counts &sends) {
  SCOPED_TRACE(testing::Message() << name << " " << ranks << " x " << microbatches);
  CompiledExample example(name, ranks, microbatches);
  AsapResult result = measure(example);
  EXPECT_EQ(result.makespan, makespan);
  for (int64_t busy : result.busy)
    EXPECT_EQ(makespan - busy, idle);
  EXPECT_EQ(result.peak, peak);
  EXPECT_EQ(result.deepestQueue, queue);
  EXPECT_EQ(result.sends, sends);
  EXPECT_EQ(example.timeline.getMakespan(), makespan * Costs::kTicksPerUnit);
}

/// Saved slots of each rank: the peak of activations, allocated exactly (P4).
Counts savedSlots(const CompiledExample &example) {
  Counts counts;
  for (const program::RankProgram &rank : example.program.ranks)
    for (const program::SlotClass &slots : rank.slotClasses)
      if (slots.kind == program::SlotKind::Saved)
        counts.push_back(slots.count);
  return counts;
}

TEST(Golden, OneFOneB) {
  expectGolden("1f1b", 2, 4, 15, 3, {2, 1}, {0, 0}, {4, 4});
  expectGolden("1f1b", 4, 8, 33, 9, {4, 3, 2, 1}, {0, 0, 0, 0}, {8, 16, 16, 8});
  expectGolden("1f1b", 8, 20, 81, 21, {8, 7, 6, 5, 4, 3, 2, 1}, Counts(8, 0),
               {20, 40, 40, 40, 40, 40, 40, 20});
}

TEST(Golden, DualPipe) {
  expectGolden("dualpipe", 2, 4, 12, 0, {3, 3}, {1, 1}, {4, 4});
  expectGolden("dualpipe", 4, 8, 26, 2, Counts(4, 5), {1, 2, 2, 1}, {8, 16, 16, 8});
  expectGolden("dualpipe", 8, 20, 66, 6, Counts(8, 9), {1, 2, 3, 4, 4, 3, 2, 1},
               {20, 40, 40, 40, 40, 40, 40, 20});
}

TEST(Golden, DualPipeV) {
  expectGolden("dualpipev", 4, 10, 66, 6, Counts(4, 9), {1, 2, 3, 4}, {20, 40, 40, 20});
}

TEST(Golden, SavedSlotsAreThePeakOfTheActivations) {
  EXPECT_EQ(savedSlots(CompiledExample("dualpipe", 8, 20)), Counts(8, 9));
  EXPECT_EQ(savedSlots(CompiledExample("dualpipev", 4, 10)), Counts(4, 9));
  EXPECT_EQ(savedSlots(CompiledExample("1f1b", 4, 8)), (Counts{4, 3, 2, 1}));
}

TEST(Golden, DualPipeActivationsAndBubbleFollowTheFormulas) {
  for (uint32_t ranks : {2u, 4u, 6u, 8u, 12u, 16u}) {
    CompiledExample example("dualpipe", ranks, 2 * ranks + 4);
    AsapResult result = measure(example);
    // (PP/2 - 1)(F&B + B - 3W) with F&B = 3, B = 2, W = 1; PP + 1 activations.
    int64_t most = 0;
    for (int64_t busy : result.busy)
      most = std::max(most, result.makespan - busy);
    EXPECT_EQ(most, (int64_t(ranks) / 2 - 1) * 2);
    EXPECT_EQ(result.peak, Counts(ranks, ranks + 1));
  }
}

} // namespace
