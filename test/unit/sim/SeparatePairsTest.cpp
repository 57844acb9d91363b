//===- SeparatePairsTest.cpp - pairs whose members start separately ---------===//

#include "Compiled.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

constexpr const char *kTimes = "fwd=1,bwd_input=1,bwd_weight=1,fused=3,start=";

TEST(SeparatePairs, DualPipeWithBothAtTheirOwnSpeed) {
  Compiled compiled = compileExample("dualpipe", {8, 20});
  runtime::Prediction joint = predict(compiled.program, std::string(kTimes) + "joint");
  runtime::Prediction separate = predict(compiled.program, std::string(kTimes) + "separate");
  EXPECT_EQ(print(joint.makespan), "66");
  EXPECT_EQ(print(separate.makespan), "63");
  for (const runtime::RankBubble &bubble : separate.bubbles)
    EXPECT_EQ(print(bubble.total), "3");
}

std::string getMakespan(const program::Program &program, const std::string &text) {
  return print(predict(program, "fwd=1,bwd_input=1,bwd_weight=1,fused=3" + text).makespan);
}

/// A joint start, and results at times of their own.
TEST(PairsWithOffsets, LieBetweenTheOtherForms) {
  Compiled compiled = compileExample("dualpipe", {8, 20});
  const auto run = [&](const char *text) { return getMakespan(compiled.program, text); };
  EXPECT_EQ(run(",forward_done=3,backward_done=3"), "66");
  EXPECT_EQ(run(",forward_done=9"), "66") << "never later than the pair itself";
  runtime::Prediction early =
      predict(compiled.program, std::string(kTimes) + "joint,forward_done=1,backward_done=2");
  EXPECT_LT(early.makespan, Costs::kTicksPerUnit * 66);
  EXPECT_GE(early.makespan, Costs::kTicksPerUnit * 63);
  EXPECT_NE(runtime::printText(early, compiled.program)
                .find("forwards have their results 1 after that, backwards 2 after that, none "
                      "later than the pair ends"),
            std::string::npos);
  EXPECT_NE(
      runtime::printJson(early, compiled.program).find("\"pair_start\": \"joint, results apart\""),
      std::string::npos);
  EXPECT_FALSE(early.formula);
  EXPECT_NE(
      runtime::printText(predict(compiled.program, std::string(kTimes) + "joint,backward_done=2"),
                         compiled.program)
          .find("forwards have their results at the end, backwards 2 after that"),
      std::string::npos);
}

/// Without pairs there is nothing to be done earlier.
TEST(PairsWithOffsets, ChangeNothingWithoutPairs) {
  for (const char *name : {"1f1b", "zb-h1", "zbv"}) {
    Compiled compiled = compileExample(name, {4, 8});
    EXPECT_EQ(predict(compiled.program, "transfer=0.5,forward_done=0.5").makespan,
              predict(compiled.program, "transfer=0.5").makespan)
        << name;
  }
}

/// A schedule without pairs has nothing to start separately.
TEST(SeparatePairs, ChangeNothingWithoutPairs) {
  for (const char *name : {"1f1b", "zb-h1", "interleaved", "zbv"})
    for (const char *transfer : {"0", "0.5", "2"}) {
      Compiled compiled = compileExample(name, {4, 8});
      const std::string costs = std::string("transfer=") + transfer;
      runtime::Prediction joint = predict(compiled.program, costs);
      runtime::Prediction separate = predict(compiled.program, costs + ",start=separate");
      EXPECT_EQ(joint.makespan, separate.makespan) << name;
      for (size_t rank = 0; rank != joint.ranks.size(); ++rank)
        EXPECT_EQ(joint.bubbles[rank].total, separate.bubbles[rank].total) << name;
    }
}

TEST(SeparatePairs, NeverTakeLonger) {
  for (Size size : {Size{2, 4}, Size{4, 10}, Size{6, 14}, Size{8, 20}})
    for (const char *name : {"dualpipe", "dualpipev"})
      for (const char *costs :
           {"transfer=0", "transfer=1.5", "fwd=2,bwd_input=1", "bwd_weight=3"}) {
        Compiled compiled = compileExample(name, size);
        EXPECT_LE(predict(compiled.program, std::string(costs) + ",start=separate").makespan,
                  predict(compiled.program, costs).makespan)
            << name << " " << size << " " << costs;
      }
}

} // namespace
