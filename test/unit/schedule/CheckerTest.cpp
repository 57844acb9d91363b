//===- CheckerTest.cpp - each invariant of a schedule, broken once ----------===//

#include "dualpipe/Schedule/Checker.h"
#include "test/support/OrderText.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::test;
using testing::HasSubstr;

namespace {

/// Two ranks, one stage each, two micro-batches.
Schedule twoRanks(const std::vector<std::string> &lines) {
  return makeSchedule({makePipeline("main", {0, 1}, 0, 2)}, lines);
}

std::vector<Diagnostic> check(const Schedule &schedule) {
  DiagnosticSink sink;
  checkSchedule(schedule, sink);
  return sink.diagnostics();
}

/// The messages, one a line, so that a failing test shows them all.
std::string messages(const Schedule &schedule) {
  std::string text;
  for (const Diagnostic &diagnostic : check(schedule))
    text += diagnostic.message + "\n";
  return text;
}

TEST(Checker, AcceptsACorrectSchedule) {
  EXPECT_EQ(messages(twoRanks({"0F0 0F1 0B0 0I1 0W1", "1F0 1B0 1F1 1B1"})), "");
}

TEST(Checker, S1ForwardMissing) {
  EXPECT_EQ(messages(twoRanks({"0F0 0F1 0B0 0B1", "1F0 1B0 1B1"})),
            "S1: rank 1 never runs the forward of stage 1, micro-batch 1 (pipeline 'main')\n");
}

TEST(Checker, S1ForwardTwiceNamesBothPlaces) {
  std::vector<Diagnostic> found = check(twoRanks({"0F0 0F1 0F0 0B0 0B1", "1F0 1B0 1F1 1B1"}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].message,
            "S1: rank 0: fwd of stage 0, micro-batch 0 computes its forward a second time");
  EXPECT_EQ(found[0].loc.column, 9u);
  ASSERT_EQ(found[0].notes.size(), 1u);
  EXPECT_EQ(found[0].notes[0].loc.column, 1u);
  EXPECT_EQ(found[0].notes[0].message, "computed by fwd of stage 0, micro-batch 0 here");
}

TEST(Checker, S1WrongRank) {
  EXPECT_THAT(messages(twoRanks({"0F0 0F1 1F0 0B0 0B1", "1F1 1B0 1B1"})),
              HasSubstr("S1: rank 0: fwd of stage 1, micro-batch 0 belongs on rank 1\n"));
  std::vector<Diagnostic> found = check(twoRanks({"0F0 0F1 1F0 0B0 0B1", "1F1 1B0 1B1"}));
  EXPECT_EQ(found[0].notes.at(0).message, "'main' places its stages here");
}

TEST(Checker, S1UnknownStageOrMicrobatch) {
  EXPECT_THAT(messages(twoRanks({"0F0 0F1 0F7 0B0 0B1", "1F0 1B0 1F1 1B1"})),
              HasSubstr("S1: rank 0: no pipeline has both stage 0 and micro-batch 7\n"));
  EXPECT_THAT(messages(twoRanks({"0F0 0F1 9F1 0B0 0B1", "1F0 1B0 1F1 1B1"})),
              HasSubstr("S1: rank 0: no pipeline has both stage 9 and micro-batch 1\n"));
}

TEST(Checker, S2BackwardMissing) {
  EXPECT_EQ(messages(twoRanks({"0F0 0F1 0B0", "1F0 1B0 1F1 1B1"})),
            "S2: rank 0 never runs the backward of stage 0, micro-batch 1 (pipeline 'main')\n");
}

TEST(Checker, S2HalfMissing) {
  EXPECT_THAT(messages(twoRanks({"0F0 0F1 0B0 0I1", "1F0 1B0 1F1 1B1"})),
              HasSubstr("S2: rank 0 never runs the weight half of the backward of stage 0, "
                        "micro-batch 1"));
  EXPECT_THAT(messages(twoRanks({"0F0 0F1 0B0 0W1", "1F0 1B0 1F1 1B1"})),
              HasSubstr("S2: rank 0 never runs the input half of the backward of stage 0, "
                        "micro-batch 1"));
}

TEST(Checker, S2BackwardTwiceIsOneFinding) {
  EXPECT_EQ(
      messages(twoRanks({"0F0 0F1 0B0 0B1 0B1", "1F0 1B0 1F1 1B1"})),
      "S2: rank 0: bwd of stage 0, micro-batch 1 computes its input gradient a second time\n");
}

TEST(Checker, S2WeightHalfAfterAFullBackward) {
  EXPECT_EQ(
      messages(twoRanks({"0F0 0F1 0B0 0B1 0W1", "1F0 1B0 1F1 1B1"})),
      "S2: rank 0: bwd_weight of stage 0, micro-batch 1 computes its weight gradient a second "
      "time\n");
}

TEST(Checker, S2BackwardInAForwardOnlySchedule) {
  Schedule schedule = twoRanks({"0F0 0F1 0B0", "1F0 1F1"});
  schedule.training = false;
  EXPECT_EQ(messages(schedule), "S2: rank 0: bwd of stage 0, micro-batch 0 in a schedule that runs "
                                "forward only\n");
}

TEST(Checker, ForwardOnlyNeedsNoBackward) {
  Schedule schedule = twoRanks({"0F0 0F1", "1F0 1F1"});
  schedule.training = false;
  EXPECT_EQ(messages(schedule), "");
}

TEST(Checker, S3BackwardBeforeForward) {
  std::vector<Diagnostic> found = check(twoRanks({"0F0 0B1 0F1 0B0", "1F0 1B0 1F1 1B1"}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].message,
            "S3: rank 0: bwd of stage 0, micro-batch 1 stands before its forward");
  EXPECT_EQ(found[0].notes.at(0).loc.column, 9u);
}

TEST(Checker, S3WeightHalfBeforeInputHalf) {
  EXPECT_EQ(messages(twoRanks({"0F0 0F1 0B0 0W1 0I1", "1F0 1B0 1F1 1B1"})),
            "S3: rank 0: bwd_weight of stage 0, micro-batch 1 stands before its input half\n");
  std::vector<Diagnostic> found = check(twoRanks({"0F0 0F1 0B0 0W1 0I1", "1F0 1B0 1F1 1B1"}));
  EXPECT_EQ(found[0].notes.at(0).message, "its input half is here");
}

TEST(Checker, S3FusedMembersOfOneMicrobatch) {
  EXPECT_EQ(messages(twoRanks({"0F0 0F1 0B0 0B1", "1F0 1B0 (1F1;1B1)"})),
            "S3: rank 1: fwd of stage 1, micro-batch 1 and bwd of stage 1, micro-batch 1 cannot be "
            "fused: both work on the same micro-batch of one stage\n");
  std::vector<Diagnostic> found = check(twoRanks({"0F0 0F1 0B0 0B1", "1F0 1B0 (1F1;1B1)"}));
  EXPECT_EQ(found[0].notes.at(0).message, "the other member is here");
}

TEST(Checker, S3FusedMembersThatFeedEachOther) {
  Schedule schedule =
      makeSchedule({makePipeline("v", {0, 0}, 0, 2)}, {"(0F0;1F0) 0F1 1F1 1B0 0B0 1B1 0B1"});
  EXPECT_EQ(messages(schedule), "S3: rank 0: fwd of stage 0, micro-batch 0 and fwd of stage 1, "
                                "micro-batch 0 cannot be fused: the second needs the result of the "
                                "first\n");
  schedule = makeSchedule({makePipeline("v", {0, 0}, 0, 2)}, {"(1F0;0F0) 0F1 1F1 1B0 0B0 1B1 0B1"});
  EXPECT_THAT(messages(schedule), HasSubstr("the first needs the result of the second"));
}

TEST(Checker, S3FusedMembersThatShareGradients) {
  EXPECT_EQ(messages(twoRanks({"0F0 0F1 (0B0;0B1)", "1F0 1B0 1F1 1B1"})),
            "S3: rank 0: bwd of stage 0, micro-batch 0 and bwd of stage 0, micro-batch 1 cannot be "
            "fused: both add to the gradients of one stage\n");
}

TEST(Checker, S4PrintsAShortestCycle) {
  // Rank 0 wants the gradient of micro-batch 1 before it sends micro-batch 1 forward.
  Schedule schedule =
      makeSchedule({makePipeline("down", {0, 1}, 0, 1), makePipeline("up", {1, 0}, 1, 1)},
                   {"1F1 0F0 1B1 0B0", "1F0 0F1 1B0 0B1"});
  std::vector<Diagnostic> found = check(schedule);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].message,
            "S4: the schedule cannot finish: 4 ops wait for each other in a circle");
  ASSERT_EQ(found[0].notes.size(), 4u);
  std::string notes;
  for (const Diagnostic::Note &note : found[0].notes)
    notes += note.message + "\n";
  EXPECT_EQ(
      notes,
      "rank 0: fwd of stage 1, micro-batch 1 waits for fwd of stage 0, micro-batch 1 on rank 1\n"
      "rank 1: fwd of stage 0, micro-batch 1 waits for fwd of stage 1, micro-batch 0 which "
      "stands before it on rank 1\n"
      "rank 1: fwd of stage 1, micro-batch 0 waits for fwd of stage 0, micro-batch 0 on rank 0\n"
      "rank 0: fwd of stage 0, micro-batch 0 waits for fwd of stage 1, micro-batch 1 which "
      "stands before it on rank 0\n");
}

TEST(Checker, S4ThroughAFusedGroup) {
  Schedule schedule =
      makeSchedule({makePipeline("down", {0, 1}, 0, 1), makePipeline("up", {1, 0}, 1, 1)},
                   {"(0F0;1F1) 1B1 0B0", "(1F0;0F1) 1B0 0B1"});
  std::vector<Diagnostic> found = check(schedule);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].message,
            "S4: the schedule cannot finish: 2 ops wait for each other in a circle");
}

TEST(Checker, S4FoldsRunsOfProgramOrder) {
  // Rank 0 wants the gradient of each micro-batch before it starts the next; rank 1
  // runs all forwards first.
  constexpr int kMicrobatches = 300;
  std::string lines[2];
  for (int mb = 0; mb != kMicrobatches; ++mb) {
    std::string number = std::to_string(mb) + " ";
    lines[0] += "0F" + number + "0B" + number;
    lines[1] += "1F" + number;
  }
  for (int mb = 0; mb != kMicrobatches; ++mb)
    lines[1] += "1B" + std::to_string(mb) + " ";
  std::vector<Diagnostic> found =
      check(makeSchedule({makePipeline("main", {0, 1}, 0, kMicrobatches)}, {lines[0], lines[1]}));
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].notes.size(), 4u);
  EXPECT_EQ(found[0].notes[1].message,
            "rank 1: bwd of stage 1, micro-batch 0 waits for fwd of stage 1, micro-batch 1 which "
            "stands before it on rank 1");
}

TEST(Checker, S4BoundsTheNotesOfACycle) {
  // A ring: each rank wants what the rank before it sends only after its own receive.
  auto makeRing = [](uint32_t ranks) {
    std::vector<Pipeline> pipelines;
    std::vector<std::string> lines;
    for (uint32_t rank = 0; rank != ranks; ++rank) {
      pipelines.push_back(
          makePipeline("p" + std::to_string(rank), {rank, (rank + 1) % ranks}, rank, 1));
      std::string own = std::to_string(rank), before = std::to_string((rank + ranks - 1) % ranks);
      lines.push_back("1F" + before + " 0F" + own + " 1B" + before + " 0B" + own);
    }
    return makeSchedule(pipelines, lines);
  };
  EXPECT_EQ(check(makeRing(3)).at(0).notes.size(), 6u);
  std::vector<Diagnostic> found = check(makeRing(30));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].message,
            "S4: the schedule cannot finish: 60 ops wait for each other in a circle");
  ASSERT_EQ(found[0].notes.size(), 21u);
  EXPECT_EQ(found[0].notes.back().message, "40 more ops of the circle are not shown");
}

TEST(Checker, TellsWhatAStageNeverRunsInOneFinding) {
  std::string order;
  for (int mb : {1, 2, 5, 7, 8, 9})
    order += "0F" + std::to_string(mb) + " ";
  Schedule schedule = makeSchedule({makePipeline("main", {0}, 0, 11)}, {order});
  schedule.training = false;
  std::vector<Diagnostic> found = check(schedule);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].message, "S1: rank 0 never runs the forward of stage 0, micro-batches 0, 3 to "
                              "4, 6 and 10 (pipeline 'main')");
}

TEST(Checker, CountsWhatItDoesNotShow) {
  std::string forwards;
  for (int mb = 0; mb != 40; ++mb)
    forwards += "0F0 ";
  Schedule schedule = makeSchedule({makePipeline("main", {0}, 0, 1)}, {forwards});
  schedule.training = false;
  std::vector<Diagnostic> found = check(schedule);
  ASSERT_EQ(found.size(), 21u);
  EXPECT_EQ(found.back().message, "19 more findings are not shown");
}

} // namespace
