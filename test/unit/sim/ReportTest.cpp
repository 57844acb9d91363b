//===- ReportTest.cpp - what reports say ------------------------------------===//

#include "Compiled.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::test;
using testing::HasSubstr;

namespace {

std::string getText(const char *name, Size size, const std::string &costs) {
  Compiled compiled = compileExample(name, size);
  return printText(predict(compiled.program, costs), compiled.program);
}

Ticks countSlots(const runtime::Prediction &prediction) {
  Ticks sum = 0;
  for (const runtime::RankBubble &bubble : prediction.bubbles)
    sum += bubble.slots;
  return sum;
}

TEST(Report, Text) { EXPECT_EQ(getText("1f1b", {2, 4}, ""), "?"); }

TEST(Report, SaysWhatPairsDo) {
  EXPECT_THAT(getText("dualpipe", {4, 8}, ""),
              HasSubstr("fused pairs: joint, they start when the inputs of all members are there, "
                        "and all results are there at the end; a pair takes the sum of its "
                        "members\n"));
  EXPECT_THAT(getText("dualpipe", {4, 8}, "fused=2.5,start=separate"),
              HasSubstr("fused pairs: separate, each member starts when its own inputs are there, "
                        "and its result is there after its own time\n"));
}

TEST(Report, SaysThatNoRankWaits) {
  EXPECT_THAT(getText("gpipe", {1, 4}, ""),
              HasSubstr("no rank waits between its first and its last op\n"));
}

TEST(Report, PartsOfTheBubbleAddUp) {
  for (const Entry &entry : getLibrary())
    for (const char *costs : {"", "transfer=0.5", "occupancy=3,reduce=2,step=1"}) {
      SCOPED_TRACE(testing::Message() << entry.name << " " << costs);
      runtime::Prediction prediction = predict(compileExample(entry.name, {4, 8}).program, costs);
      for (const runtime::RankBubble &bubble : prediction.bubbles) {
        EXPECT_EQ(bubble.pairs, 0);
        EXPECT_EQ(bubble.total, bubble.warmUp + bubble.drain + bubble.slots + bubble.reductions +
                                    bubble.getPeers());
      }
    }
}

/// Nothing on the path waits, so its parts are the whole time.
TEST(Report, CriticalPathIsTheMakespan) {
  for (const Entry &entry : getLibrary())
    for (const char *costs :
         {"", "transfer=0.5", "occupancy=2,transfer=1", "reduce=2,step=1", "start=separate"}) {
      SCOPED_TRACE(testing::Message() << entry.name << " " << costs);
      runtime::Prediction prediction = predict(compileExample(entry.name, {4, 8}).program, costs);
      Ticks sum = 0;
      for (const runtime::PathShare &share : prediction.criticalPath)
        sum += share.time;
      EXPECT_EQ(sum, prediction.makespan);
    }
}

TEST(Report, CriticalPathOf1F1BByHand) {
  runtime::Prediction prediction = predict(compileExample("1f1b", {2, 4}).program, "transfer=0.25");
  using runtime::PathKind;
  auto get = [&](PathKind kind) { return prediction.criticalPath[size_t(kind)]; };
  // Rank 0 forwards once, rank 1 works without a gap, rank 0 goes back once.
  EXPECT_EQ(print(get(PathKind::Fwd).time), "5");
  EXPECT_EQ(get(PathKind::Fwd).commands, 5u);
  EXPECT_EQ(print(get(PathKind::Bwd).time), "10");
  EXPECT_EQ(print(get(PathKind::Transfer).time), "0.5");
}

TEST(Report, TellsWhyARankWaits) {
  runtime::Prediction prediction = predict(compileExample("1f1b", {2, 4}).program, "");
  ASSERT_FALSE(prediction.waits.empty());
  const runtime::RankWait &wait = prediction.waits.front();
  EXPECT_EQ(wait.cause, runtime::WaitCause::Peer);
  EXPECT_EQ(wait.command.rank, 0u);
  EXPECT_EQ(wait.peer, 1u);
  EXPECT_EQ(wait.blame.rank, 1u);
  EXPECT_EQ(prediction.bubbles[0].peers.size(), 1u);
}

TEST(Report, TellsThatAReductionIsWaitedFor) {
  Compiled compiled = compileExample("dualpipe", {4, 8});
  runtime::Prediction prediction = predict(compiled.program, "reduce=5,step=1");
  for (const runtime::RankBubble &bubble : prediction.bubbles)
    EXPECT_GT(bubble.reductions, 0);
  EXPECT_THAT(printText(prediction, compiled.program), HasSubstr("for a reduction"));
}

/// Transfers as long as two forwards, and no slot beyond the peak.
TEST(Report, TellsThatASlotIsWaitedFor) {
  Schedule schedule = Example("dualpipe").instantiate({8, 20});
  Compiled tight = compile(schedule, 0), usual = compile(schedule, 1);
  EXPECT_EQ(countSlots(predict(usual.program, "transfer=2")), 0);
  runtime::Prediction prediction = predict(tight.program, "transfer=2");
  EXPECT_GT(countSlots(prediction), 0);
  EXPECT_THAT(printText(prediction, tight.program), HasSubstr(", for a slot"));
}

TEST(Report, ComparesInOneTable) {
  std::vector<runtime::Prediction> predictions;
  for (const char *name : {"1f1b", "zb-h1", "dualpipe"})
    predictions.push_back(predict(compileExample(name, {4, 8}).program, ""));
  EXPECT_EQ(printComparison(predictions), "?");
}

TEST(Report, IsMostlyBubble) {
  EXPECT_TRUE(predict(compileExample("gpipe", {4, 2}).program, "").isMostlyBubble());
  EXPECT_FALSE(predict(compileExample("gpipe", {4, 3}).program, "").isMostlyBubble());
}

TEST(Report, Json) {
  Compiled compiled = compileExample("1f1b", {2, 4});
  EXPECT_EQ(printJson(predict(compiled.program, ""), compiled.program), "?");
}

} // namespace
