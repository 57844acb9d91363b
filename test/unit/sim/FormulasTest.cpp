//===- FormulasTest.cpp - DualPipe and DualPipeV follow their formula -------===//
//
// Inside the domain of the formula the worst rank idles exactly as published and
// holds PP + 1 activations; outside it no formula is given, and the program takes the
// as-soon-as-possible time of its order.
//
//===----------------------------------------------------------------------===//

#include "Compiled.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

struct Times {
  int64_t fwd, input, weight, fused;

  std::string print() const {
    return fmt::format("fwd={},bwd_input={},bwd_weight={},fused={}", fwd, input, weight, fused);
  }
  int64_t getGroup(const RankOrder &order, size_t begin, size_t end) const {
    if (end - begin > 1)
      return fused;
    return OpTimes{fwd, input, weight}.get(order.kind[begin]);
  }
};

constexpr Times kInside[] = {{1, 1, 1, 3}, {2, 2, 1, 5}, {2, 2, 2, 5}, {3, 3, 1, 6}, {5, 5, 3, 11}};
constexpr Times kOutside[] = {{1, 1, 2, 4}, {2, 1, 1, 4}, {1, 2, 1, 4}, {2, 3, 4, 7}, {3, 1, 2, 5}};

struct Family {
  const char *name;
  uint32_t stagesPerRank;
  std::vector<Size> sizes;
};

const Family kFamilies[] = {
    {"dualpipe", 1, {{2, 4},   {2, 6},   {2, 12},  {4, 8},   {4, 10},  {4, 16},  {6, 12},
                     {6, 14},  {6, 20},  {8, 16},  {8, 20},  {8, 40},  {10, 20}, {10, 24},
                     {12, 24}, {12, 26}, {14, 28}, {14, 32}, {16, 32}, {16, 40}}},
    {"dualpipev", 2, {{1, 2},  {1, 5},  {2, 4},  {2, 5},  {2, 9},  {3, 6},  {3, 7},
                      {3, 11}, {4, 8},  {4, 10}, {4, 13}, {5, 10}, {5, 12}, {6, 12},
                      {6, 15}, {7, 14}, {7, 16}, {8, 16}, {8, 20}, {8, 31}}},
};

void expectFormula(const Family &family, Size size, const program::Program &program,
                   const Times &times) {
  SCOPED_TRACE(testing::Message() << family.name << " " << size << " " << times.print());
  runtime::Prediction prediction = predict(program, times.print());
  const int64_t stages = int64_t(size.ranks) * family.stagesPerRank;
  const int64_t bwd = times.input + times.weight;
  const int64_t bubble = (stages / 2 - 1) * (times.fused + bwd - 3 * times.weight);
  EXPECT_EQ(prediction.getWorstBubble(), bubble * Costs::kTicksPerUnit);
  EXPECT_EQ(prediction.getPeakActivations(), stages + 1);
  ASSERT_TRUE(prediction.formula);
  EXPECT_EQ(prediction.formula->bubble, bubble * Costs::kTicksPerUnit);
  EXPECT_EQ(prediction.formula->activations, stages + 1);
}

void expectOrderTime(const Compiled &compiled, const Times &times) {
  runtime::Prediction prediction = predict(compiled.program, times.print());
  EXPECT_FALSE(prediction.formula);
  AsapCosts costs;
  costs.group = [&](uint32_t rank, size_t begin, size_t end) {
    return times.getGroup(compiled.schedule.ranks[rank], begin, end);
  };
  AsapResult asap = runAsSoonAsPossible(compiled.schedule, costs);
  EXPECT_EQ(prediction.makespan, asap.makespan * Costs::kTicksPerUnit);
}

TEST(Formulas, OfDualPipeInsideTheirDomain) {
  for (const Family &family : kFamilies) {
    ASSERT_GE(family.sizes.size(), 20u);
    for (Size size : family.sizes) {
      Compiled compiled = compileExample(family.name, size);
      for (const Times &times : kInside)
        expectFormula(family, size, compiled.program, times);
    }
  }
}

TEST(Formulas, OfDualPipeOutsideTheirDomain) {
  for (const Family &family : kFamilies)
    for (size_t i = 0; i < family.sizes.size(); i += 3) {
      Compiled compiled = compileExample(family.name, family.sizes[i]);
      for (const Times &times : kOutside) {
        SCOPED_TRACE(testing::Message()
                     << family.name << " " << family.sizes[i] << " " << times.print());
        expectOrderTime(compiled, times);
      }
    }
}

TEST(Formulas, Of1F1BAndZbH1) {
  for (Size size : {Size{2, 4}, Size{4, 8}, Size{5, 5}, Size{8, 20}, Size{16, 48}})
    for (const char *name : {"1f1b", "zb-h1"}) {
      SCOPED_TRACE(testing::Message() << name << " " << size);
      runtime::Prediction prediction =
          predict(compileExample(name, size).program, "fwd=3,bwd_input=4,bwd_weight=2");
      ASSERT_TRUE(prediction.formula);
      EXPECT_EQ(prediction.getWorstBubble(), prediction.formula->bubble);
      EXPECT_EQ(prediction.getPeakActivations(), prediction.formula->activations);
    }
}

/// Each of these leaves the domain in one way.
TEST(Formulas, AreLeftOutOutsideTheirDomain) {
  Compiled dualpipe = compileExample("dualpipe", {4, 8});
  EXPECT_TRUE(predict(dualpipe.program, "").formula);
  for (const char *costs : {"transfer=0.1", "occupancy=0.1", "reduce=1", "step=1", "start=separate",
                            "fwd[2]=2", "fwd=2", "bwd_weight=2", "bwd=3", "fused=4"})
    EXPECT_FALSE(predict(dualpipe.program, costs).formula) << costs;
  EXPECT_FALSE(predict(compileExample("1f1b", {4, 3}).program, "").formula);
  EXPECT_FALSE(predict(compileExample("gpipe", {4, 8}).program, "").formula);
  EXPECT_FALSE(
      predict(compileExample("dualpipe", {4, 8}, {.forwardOnly = true}).program, "").formula);
}

} // namespace
