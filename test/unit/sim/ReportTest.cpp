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

/// Without the folder that the tests were built in.
std::string dropFolder(std::string text) {
  const std::string folder = std::string(DUALPIPE_SOURCE_DIR) + "/";
  for (size_t at = text.find(folder); at != text.npos; at = text.find(folder))
    text.erase(at, folder.size());
  return text;
}

TEST(Report, Text) {
  EXPECT_EQ(dropFolder(getText("1f1b", {2, 4}, "")),
            R"(one_f_one_b: 2 ranks, 2 stages, 4 micro-batches
costs: fwd 1, bwd_input 1, bwd_weight 1, transfer 0, start joint
makespan 15, ideal 12; worst rank's bubble: 3 (20.0 %); rate 0.2000
published for 1F1B: bubble (PP - 1)(F + B) = 3, here 3; activations PP = 2, here 2

rank  busy  bubble     %  warm-up  drain  peers  slots  reduce  pairs  activations  weights  sends  peers by rank
   0    12       3  20.0        0      0      3      0       0      0            2        0      4  1: 3
   1    12       3  20.0        1      2      0      0       0      0            1        0      4

critical path: 5 in 5 fwd, 10 in 5 bwd
longest waits:
  2 at 2: rank 0, bwd stage 0 mb 0, for rank 1, bwd stage 1 mb 0 (examples/1f1b.pipe:27:52)
  1 at 12: rank 0, bwd stage 0 mb 3, for rank 1, bwd stage 1 mb 3 (examples/1f1b.pipe:28:42)
)");
}

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
    for (const char *costs : {"", "transfer=0.5", "occupancy=2,transfer=1", "reduce=2",
                              "reduce=2,step=1", "start=separate"}) {
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
  // Rank 0 runs F0, rank 1 F0 B0, rank 0 B0 F2, rank 1 F2 B2 F3 B3, rank 0 B3.
  EXPECT_EQ(print(get(PathKind::Fwd).time), "5");
  EXPECT_EQ(get(PathKind::Fwd).commands, 5u);
  EXPECT_EQ(print(get(PathKind::Bwd).time), "10");
  EXPECT_EQ(print(get(PathKind::Transfer).time), "1");
  EXPECT_EQ(get(PathKind::Transfer).commands, 4u);
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
  unsigned numFound = 0;
  for (const char *name : {"1f1b", "gpipe", "zb-h1", "interleaved", "dualpipe", "dualpipev"}) {
    Schedule schedule = Example(name).instantiate({4, 8});
    Compiled tight = compile(schedule, 0);
    runtime::Prediction prediction = predict(tight.program, "transfer=2");
    EXPECT_GE(countSlots(prediction),
              countSlots(predict(compile(schedule, 1).program, "transfer=2")));
    for (const runtime::RankWait &wait : prediction.waits)
      if (wait.cause == runtime::WaitCause::Slot) {
        ++numFound;
        EXPECT_THAT(printText(prediction, tight.program), HasSubstr(", for a slot"));
      }
  }
  EXPECT_GT(numFound, 0u);
}

TEST(Report, ComparesInOneTable) {
  std::vector<runtime::Prediction> predictions;
  for (const char *name : {"1f1b", "zb-h1", "dualpipe"})
    predictions.push_back(predict(compileExample(name, {4, 8}).program, ""));
  EXPECT_EQ(
      printComparison(predictions),
      R"(makespan  ideal  bubble     %    rate  activations  weights  sends  ranks  stages  micro-batches  schedule
      33     24       9  27.3  0.2727            4        0     48      4       4              8  one_f_one_b
      27     24       3  11.1  0.1111            4        4     48      4       4              8  zb_h1
      26     24       2   7.7  0.0769            5        2     48      4       4              8  dualpipe
)");
}

TEST(Report, IsMostlyBubble) {
  EXPECT_TRUE(predict(compileExample("gpipe", {4, 2}).program, "").isMostlyBubble());
  EXPECT_FALSE(predict(compileExample("gpipe", {4, 3}).program, "").isMostlyBubble());
}

TEST(Report, Json) {
  Compiled compiled = compileExample("1f1b", {2, 4});
  EXPECT_EQ(dropFolder(printJson(predict(compiled.program, ""), compiled.program)), R"json({
  "schedule": "one_f_one_b",
  "params": {},
  "ranks": 2,
  "stages": 2,
  "microbatches": 4,
  "costs": {"fwd": 1, "bwd_input": 1, "bwd_weight": 1, "transfer": 0, "start": "joint"},
  "cost_option": null,
  "pair_start": "joint",
  "makespan": 15,
  "ideal": 12,
  "bubble": {
    "per_rank": [3, 3],
    "percent_per_rank": [20.0000, 20.0000],
    "max": 3,
    "rate": 0.200000
  },
  "causes": [
    {"warm_up": 0, "drain": 0, "slots": 0, "reductions": 0, "pairs": 0, "cores": 0, "peers": [{"rank": 1, "time": 3}]},
    {"warm_up": 1, "drain": 2, "slots": 0, "reductions": 0, "pairs": 0, "cores": 0, "peers": []}
  ],
  "formula": {"name": "1F1B", "bubble": 3, "bubble_formula": "(PP - 1)(F + B)", "activations": 2, "activations_formula": "PP"},
  "busy": [12, 12],
  "peak_activations": [2, 1],
  "weight_queue": [0, 0],
  "sends": [4, 4],
  "memory": null,
  "critical_path": {"fwd": {"commands": 5, "time": 5}, "bwd": {"commands": 5, "time": 10}, "bwd_input": {"commands": 0, "time": 0}, "bwd_weight": {"commands": 0, "time": 0}, "fused": {"commands": 0, "time": 0}, "transfer": {"commands": 2, "time": 0}, "reduce": {"commands": 0, "time": 0}, "step": {"commands": 0, "time": 0}},
  "longest_waits": [
    {"time": 2, "begin": 2, "rank": 0, "op": "bwd", "stage": 0, "microbatch": 0, "cause": "peer", "peer": 1, "place": "examples/1f1b.pipe:27:52"},
    {"time": 1, "begin": 12, "rank": 0, "op": "bwd", "stage": 0, "microbatch": 3, "cause": "peer", "peer": 1, "place": "examples/1f1b.pipe:28:42"}
  ]
}
)json");
}

TEST(Report, JsonEscapesNames) {
  Compiled compiled = compileExample("1f1b", {2, 4});
  compiled.program.shared.schedule = "a\"b\\c\nd";
  EXPECT_THAT(printJson(predict(compiled.program, ""), compiled.program),
              HasSubstr(R"("schedule": "a\"b\\c\u000ad",)"));
}

} // namespace
