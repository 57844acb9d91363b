//===- LosesNothingTest.cpp - the program takes what its order allows -------===//
//
// Channels, receive order and spare slots are chosen so that the stream program
// takes exactly the as-soon-as-possible time of its order: for transfers that
// cost nothing, half a forward or two forwards, when the times differ from the
// planned ones, and with one transfer or many under way on a channel.
//
//===----------------------------------------------------------------------===//

#include "test/support/AsSoonAsPossible.h"
#include "test/support/CompileExample.h"
#include "test/support/ProgramWalk.h"

#include <gtest/gtest.h>

#include <random>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

/// Times of the four kinds of op on each rank; a pair takes the sum.
struct Times {
  std::vector<std::array<int64_t, 4>> byRank;

  int64_t get(uint32_t rank, OpKind kind) const { return byRank[rank][size_t(kind)]; }
};

constexpr int64_t kForward = 100;

/// Free transfers, half a forward and two forwards.
std::array<int64_t, 3> latenciesOf(int64_t forward) { return {0, forward / 2, 2 * forward}; }

/// F = I = W = 1, B = 2 on every rank: what the compiler plans with.
Times plannedTimes(uint32_t ranks) {
  return {std::vector<std::array<int64_t, 4>>(ranks, {kForward, 2 * kForward, kForward, kForward})};
}

std::array<int64_t, 4> randomTimes(std::mt19937 &random) {
  std::uniform_int_distribution<int64_t> time(kForward / 2, 2 * kForward);
  int64_t forward = time(random), input = time(random), weight = time(random);
  return {forward, input + weight, input, weight};
}

/// Other proportions than planned, the same on every rank.
Times evenTimes(uint32_t ranks, unsigned seed) {
  std::mt19937 random(seed);
  return {std::vector<std::array<int64_t, 4>>(ranks, randomTimes(random))};
}

/// Other proportions on every rank: one may be four times as fast as its neighbour.
Times unevenTimes(uint32_t ranks, unsigned seed) {
  std::mt19937 random(seed);
  Times times;
  for (uint32_t rank = 0; rank != ranks; ++rank)
    times.byRank.push_back(randomTimes(random));
  return times;
}

void expectNothingLost(const CompiledExample &example, const Times &times, int64_t latency,
                       bool occupies) {
  AsapCosts best;
  best.latency = latency;
  best.latencyOccupiesChannel = occupies;
  best.group = [&](uint32_t rank, size_t begin, size_t end) {
    int64_t sum = 0;
    for (size_t op = begin; op != end; ++op)
      sum += times.get(rank, example.schedule.ranks[rank].kind[op]);
    return sum;
  };
  WalkCosts walk;
  walk.latency = latency;
  walk.latencyOccupiesChannel = occupies;
  walk.compute = [&](uint32_t rank, const program::Launch *first, size_t count) {
    int64_t sum = 0;
    for (size_t i = 0; i != count; ++i)
      sum += times.get(rank, toKind(first[i].function));
    return sum;
  };
  WalkResult walked = ProgramWalk(example.program, walk).run();
  EXPECT_EQ(walked.stuck, "");
  EXPECT_EQ(walked.makespan, runAsSoonAsPossible(example.schedule, best).makespan);
}

struct Size {
  const char *schedule;
  uint32_t ranks, microbatches;
};

class LosesNothing : public testing::TestWithParam<Size> {};

TEST_P(LosesNothing, InTheAsSoonAsPossibleTime) {
  auto [schedule, ranks, microbatches] = GetParam();
  CompiledExample example(schedule, ranks, microbatches);
  for (int64_t latency : latenciesOf(kForward))
    for (bool occupies : {false, true}) {
      SCOPED_TRACE(testing::Message() << "latency " << latency << " occupies " << occupies);
      expectNothingLost(example, plannedTimes(ranks), latency, occupies);
    }
}

constexpr unsigned kSeeds = 100;

TEST_P(LosesNothing, AlsoWhenTimesDifferFromThePlannedOnes) {
  auto [schedule, ranks, microbatches] = GetParam();
  CompiledExample example(schedule, ranks, microbatches);
  for (unsigned seed = 0; seed != kSeeds; ++seed)
    for (int64_t latency : latenciesOf(evenTimes(ranks, seed).get(0, OpKind::Forward))) {
      SCOPED_TRACE(testing::Message() << "latency " << latency << " seed " << seed);
      expectNothingLost(example, evenTimes(ranks, seed), latency, false);
    }
}

TEST_P(LosesNothing, AlsoWhenRanksDifferInSpeed) {
  auto [schedule, ranks, microbatches] = GetParam();
  CompiledExample example(schedule, ranks, microbatches);
  for (unsigned seed = 0; seed != kSeeds; ++seed)
    for (int64_t latency : latenciesOf(kForward)) {
      SCOPED_TRACE(testing::Message() << "latency " << latency << " seed " << seed);
      expectNothingLost(example, unevenTimes(ranks, seed), latency, false);
    }
}

INSTANTIATE_TEST_SUITE_P(Schedules, LosesNothing,
                         testing::Values(Size{"dualpipe", 2, 4}, Size{"dualpipe", 4, 10},
                                         Size{"dualpipe", 8, 20}, Size{"dualpipe", 12, 24},
                                         Size{"dualpipe", 16, 64}, Size{"dualpipev", 1, 4},
                                         Size{"dualpipev", 2, 6}, Size{"dualpipev", 4, 10},
                                         Size{"dualpipev", 5, 12}, Size{"dualpipev", 8, 32},
                                         Size{"1f1b", 4, 8}, Size{"1f1b", 8, 20}),
                         [](const auto &info) {
                           return std::string(info.param.schedule) + "_" +
                                  std::to_string(info.param.ranks) + "_" +
                                  std::to_string(info.param.microbatches);
                         });

} // namespace
