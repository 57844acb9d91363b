//===- FormulasTest.cpp - bubbles and peaks in closed form ------------------===//
//
// For F = I = W = 1 and B = 2, at every legal size that a formula covers: those of
// the authors, and those that docs/schedules.md states for what the authors give no
// formula for. The bubble is the longest that a rank idles; it counts in units of a
// stage, so the parts of a rank multiply it.
//
//===----------------------------------------------------------------------===//

#include "Library.h"

#include <gtest/gtest.h>

#include <functional>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

using Counts = std::vector<unsigned>;

/// Calls `expect` with what every legal size up to 16 ranks and 48 micro-batches gives.
void forEverySize(const char *name, int64_t value,
                  const std::function<void(Size, const AsapResult &)> &expect) {
  const Entry &entry = findEntry(name);
  Example example(name);
  Example::Options options;
  if (entry.param)
    options.value = value;
  for (Size size{1, 1}; size.ranks <= 16; ++size.ranks)
    for (size.microbatches = 1; size.microbatches <= 48; ++size.microbatches) {
      if (!entry.isLegal(size, value))
        continue;
      SCOPED_TRACE(testing::Message() << name << " " << value << " " << size);
      expect(size, measure(example.instantiate(size, options)));
      if (testing::Test::HasFailure())
        return;
    }
}

/// (P - 1)(F + B)
int64_t bubbleOf1F1B(Size size) { return int64_t(size.ranks - 1) * 3; }

TEST(Formulas, GPipe) {
  forEverySize("gpipe", 0, [](Size size, const AsapResult &result) {
    EXPECT_EQ(getMostIdle(result), bubbleOf1F1B(size));
    EXPECT_EQ(result.peak, Counts(size.ranks, size.microbatches));
  });
}

TEST(Formulas, OneFOneB) {
  forEverySize("1f1b", 0, [](Size size, const AsapResult &result) {
    EXPECT_EQ(getMostIdle(result), bubbleOf1F1B(size));
    for (uint32_t rank = 0; rank != size.ranks; ++rank)
      EXPECT_EQ(result.peak[rank], std::min(size.microbatches, size.ranks - rank));
  });
}

TEST(Formulas, Eager1F1B) {
  forEverySize("eager-1f1b", 0, [](Size size, const AsapResult &result) {
    EXPECT_EQ(getMostIdle(result), bubbleOf1F1B(size));
    for (uint32_t rank = 0; rank != size.ranks; ++rank)
      EXPECT_EQ(result.peak[rank], std::min(size.microbatches, 2 * (size.ranks - rank) - 1));
  });
}

/// What the forwards are early for: transfers that take as long as a forward cost 1F1B two
/// of them for every turn around the ranks, here only at the ends.
TEST(Formulas, Eager1F1BHidesTransfers) {
  Size size{4, 40};
  OpTimes times;
  AsapResult eager = measure(Example("eager-1f1b").instantiate(size), times, 1);
  AsapResult plain = measure(Example("1f1b").instantiate(size), times, 1);
  EXPECT_EQ(getMostIdle(eager), bubbleOf1F1B(size) + 2 * 3);
  EXPECT_GT(getMostIdle(plain), 2 * getMostIdle(eager));
}

TEST(Formulas, InterleavedDividesTheBubbleByTheChunks) {
  for (int64_t chunks : {1, 2, 3, 4})
    forEverySize("interleaved", chunks, [](Size size, const AsapResult &result) {
      if (size.microbatches >= size.ranks) {
        EXPECT_EQ(getMostIdle(result), bubbleOf1F1B(size));
      }
    });
}

TEST(Formulas, LoopedBreadthFirst) {
  for (int64_t chunks : {1, 2, 3, 4})
    forEverySize("looped-bfs", chunks, [&](Size size, const AsapResult &result) {
      if (size.microbatches >= size.ranks) {
        EXPECT_EQ(getMostIdle(result), bubbleOf1F1B(size));
      }
      EXPECT_EQ(result.peak, Counts(size.ranks, unsigned(chunks) * size.microbatches));
    });
}

TEST(Formulas, Seq1F1B) {
  for (uint32_t slices : {1, 2, 3, 4})
    forEverySize("seq1f1b", slices, [&](Size size, const AsapResult &result) {
      EXPECT_EQ(getMostIdle(result), bubbleOf1F1B(size));
      for (uint32_t rank = 0; rank != size.ranks; ++rank)
        EXPECT_EQ(result.peak[rank], std::min(size.microbatches, size.ranks - rank + slices - 1));
    });
}

/// (P - 1)(F + B - 2W), in the memory of 1F1B.
TEST(Formulas, ZbH1) {
  forEverySize("zb-h1", 0, [](Size size, const AsapResult &result) {
    if (size.microbatches < size.ranks)
      return;
    EXPECT_EQ(getMostIdle(result), int64_t(size.ranks) - 1);
    EXPECT_EQ(result.peak, Counts(size.ranks, size.ranks));
  });
}

/// The bubble of every set of times up to 3 in the domain of the formula.
void forTimesInDomain(const char *name, Size size, bool (*isInDomain)(const OpTimes &),
                      const std::function<int64_t(const OpTimes &)> &bubble) {
  Schedule schedule = Example(name).instantiate(size);
  OpTimes times;
  for (times.fwd = 1; times.fwd <= 3; ++times.fwd)
    for (times.bwdInput = 1; times.bwdInput <= 3; ++times.bwdInput)
      for (times.bwdWeight = 1; times.bwdWeight <= 3; ++times.bwdWeight) {
        if (!isInDomain(times))
          continue;
        EXPECT_EQ(getMostIdle(measure(schedule, times)), bubble(times))
            << name << " " << size << " " << times.fwd << times.bwdInput << times.bwdWeight;
      }
}

/// (P - 1)(F + B - 2W). The last rank idles (P - 1)F before it starts, which is more where a weight
/// half is longer than an input half.
TEST(Formulas, ZbH1WhereWeightHalvesAreTheShortest) {
  for (Size size : {Size{2, 4}, Size{4, 8}, Size{8, 20}, Size{16, 48}})
    forTimesInDomain(
        "zb-h1", size,
        [](const OpTimes &times) { return times.bwdWeight <= std::min(times.fwd, times.bwdInput); },
        [&](const OpTimes &times) {
          return (size.ranks - 1) * (times.fwd + times.bwdInput - times.bwdWeight);
        });
}

/// (PP / 2 - 1)(F&B + B - 3W), and PP + 1 activations.
TEST(Formulas, DualPipe) {
  forEverySize("dualpipe", 0, [](Size size, const AsapResult &result) {
    EXPECT_EQ(getMostIdle(result), 2 * int64_t(size.ranks / 2 - 1));
    EXPECT_EQ(result.peak, Counts(size.ranks, size.ranks + 1));
  });
  forEverySize("dualpipev", 0, [](Size size, const AsapResult &result) {
    EXPECT_EQ(getMostIdle(result), 2 * int64_t(size.ranks - 1));
    EXPECT_EQ(result.peak, Counts(size.ranks, 2 * size.ranks + 1));
  });
}

TEST(Formulas, DualPipeWhereForwardsAndInputHalvesTakeAsLongAndWeightHalvesNoLonger) {
  auto isInDomain = [](const OpTimes &times) {
    return times.fwd == times.bwdInput && times.bwdWeight <= times.fwd;
  };
  auto bubble = [](const OpTimes &times) {
    return times.fwd + 2 * times.bwdInput - times.bwdWeight;
  };
  for (uint32_t half : {1, 2, 4, 8}) {
    auto all = [&](const OpTimes &times) { return (half - 1) * bubble(times); };
    forTimesInDomain("dualpipe", {2 * half, 6 * half}, isInDomain, all);
    forTimesInDomain("dualpipev", {half, 3 * half}, isInDomain, all);
  }
}

/// No rank waits between its first and its last op; 2P - 1 activations.
TEST(Formulas, ZbH2) {
  forEverySize("zb-h2", 0, [](Size size, const AsapResult &result) {
    if (size.microbatches < 2 * size.ranks - 1)
      return;
    EXPECT_EQ(result.span, result.busy);
    EXPECT_EQ(result.peak, Counts(size.ranks, 2 * size.ranks - 1));
  });
}

/// P micro-batches in two halves. The last rank starts P - 1 after the first.
TEST(Formulas, Zbv) {
  forEverySize("zbv", 0, [](Size size, const AsapResult &result) {
    EXPECT_LE(getHighestPeak(result), 2 * size.ranks);
    if (size.microbatches < 2 * size.ranks - 1)
      return;
    EXPECT_EQ(getMostIdle(result), int64_t(size.ranks) - 1);
    EXPECT_EQ(result.peak, Counts(size.ranks, 2 * size.ranks));
  });
}

/// (P + 2) div 2 micro-batches in two halves; the bubble is that of the next even P.
TEST(Formulas, VHalf) {
  forEverySize("v-half", 0, [](Size size, const AsapResult &result) {
    EXPECT_LE(getHighestPeak(result), 2 * ((size.ranks + 2) / 2));
    if (size.ranks < 3 || size.microbatches < 2 * size.ranks)
      return;
    EXPECT_EQ(getMostIdle(result), 6 * int64_t((size.ranks + 1) / 2) - 7);
    EXPECT_EQ(getHighestPeak(result), 2 * ((size.ranks + 2) / 2));
  });
}

/// (P + 4) div 3 micro-batches in two halves.
TEST(Formulas, VMin) {
  forEverySize("v-min", 0, [](Size size, const AsapResult &result) {
    EXPECT_LE(getHighestPeak(result), 2 * ((size.ranks + 4) / 3));
    if (size.ranks < 3 || size.microbatches < size.ranks)
      return;
    EXPECT_EQ(getMostIdle(result), 4 * int64_t(size.ranks) - 5 - (size.ranks % 3 == 0 ? 2 : 0));
    EXPECT_EQ(getHighestPeak(result), 2 * ((size.ranks + 4) / 3));
  });
}

/// Between P - P / 2k + 1 and P activations. For one unit of P micro-batches twice what is
/// missing to fill the ranks, and half of that for each further unit.
TEST(Formulas, Chimera) {
  for (uint32_t pairs : {1, 2, 3, 4})
    forEverySize("chimera", pairs, [&](Size size, const AsapResult &result) {
      uint32_t perPair = size.ranks / pairs;
      EXPECT_LE(getHighestPeak(result), size.ranks);
      if (size.microbatches >= size.ranks) {
        EXPECT_EQ(getHighestPeak(result), size.ranks);
        EXPECT_GE(*std::min_element(result.peak.begin(), result.peak.end()),
                  size.ranks - perPair / 2 + 1);
      }
      if (size.microbatches % size.ranks == 0) {
        EXPECT_EQ(getMostIdle(result), int64_t(perPair - 2) * (1 + size.microbatches / size.ranks));
      }
    });
}

/// P micro-batches in flight. For one unit 4(P - 1) whatever the number of chunks, and half
/// of that for each further unit.
TEST(Formulas, Hanayo) {
  for (uint32_t chunks : {2, 3, 4})
    forEverySize("hanayo", chunks, [&](Size size, const AsapResult &result) {
      EXPECT_EQ(getHighestPeak(result), chunks * std::min(size.microbatches, size.ranks));
      if (size.microbatches % size.ranks == 0) {
        EXPECT_EQ(getMostIdle(result),
                  2 * int64_t(size.ranks - 1) * (1 + size.microbatches / size.ranks));
      }
    });
}

} // namespace
