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
