//===- ResultsTest.cpp - programs that compute the wrong thing: D4, D5 ------===//

#include "TestPrograms.h"

#include "dualpipe/Program/Verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

using Check = Verdict (*)(const SharedInfo &, const RankProgram &);

/// What one check says of one rank.
std::string check(const Program &program, Check verify, uint32_t rank = 0) {
  const Status status = toStatus(program, verify(program.shared, program.ranks[rank]));
  return status.ok() ? "fine" : status.message();
}
std::string checkValues(const Program &program, uint32_t rank = 0) {
  return check(program, verifyValues, rank);
}
std::string checkGradients(const Program &program, uint32_t rank = 0) {
  return check(program, verifyGradients, rank);
}

void duplicate(RankProgram &rank, uint32_t command) {
  rank.commands.insert(rank.commands.begin() + command, rank.commands[command]);
}

void moveToFront(RankProgram &rank, uint32_t command) {
  const Command moved = rank.commands[command];
  erase(rank, command);
  rank.commands.insert(rank.commands.begin(), moved);
}

void exchangeSlots(Launch &a, Launch &b, SlotKind kind) {
  std::swap(a.slots[unsigned(kind)], b.slots[unsigned(kind)]);
}

/// Two copies of each of two stages, whose gradients are summed.
Program buildMirrored() {
  return buildPipelines({.numRanks = 2, .numMicrobatches = 8, .mirrored = true});
}

TEST(ResultsTest, CorrectProgramsPass) {
  for (uint32_t ranks : {1, 2, 3})
    for (bool split : {false, true})
      for (bool vShaped : {false, true})
        for (bool mirrored : {false, true})
          for (bool training : {false, true}) {
            const Program program = buildPipelines({.numRanks = ranks,
                                                    .training = training,
                                                    .splitBackward = split,
                                                    .mirrored = mirrored,
                                                    .vShaped = vShaped});
            for (uint32_t rank = 0; rank != ranks; ++rank) {
              EXPECT_EQ(checkValues(program, rank), "fine");
              EXPECT_EQ(checkGradients(program, rank), "fine");
            }
          }
}

// D5

TEST(ResultsTest, D5ForwardReadsAnotherMicrobatch) {
  Program program = buildPipelines({});
  RankProgram &rank = program.ranks[1];
  exchangeSlots(getLaunch(rank, Function::Forward, 0), getLaunch(rank, Function::Forward, 1),
                SlotKind::Input);
  EXPECT_THAT(checkValues(program, 1),
              AllOf(HasSubstr("D5: rank 1, command 4: forward of stage 1, micro-batch 0"),
                    HasSubstr("reads slot 1 for the activation for stage 1, micro-batch 0, "
                              "expected that value, got nothing")));
}

TEST(ResultsTest, D5BackwardReadsWhatAnotherForwardSaved) {
  Program program = buildPipelines({.numRanks = 1});
  RankProgram &rank = program.ranks[0];
  exchangeSlots(getLaunch(rank, Function::Backward, 0), getLaunch(rank, Function::Backward, 1),
                SlotKind::Saved);
  EXPECT_THAT(checkValues(program),
              AllOf(HasSubstr("for what the forward saved of stage 0, micro-batch 0, expected that "
                              "value, got what the forward saved of stage 0, micro-batch 1"),
                    HasSubstr("note: rank 0, command"), HasSubstr("written here")));
}

TEST(ResultsTest, D5WeightHalfReadsAnotherContext) {
  Program program = buildPipelines({.numRanks = 1, .splitBackward = true});
  RankProgram &rank = program.ranks[0];
  getLaunch(rank, Function::BackwardWeight, 1).slots[unsigned(SlotKind::WeightContext)] =
      getLaunch(rank, Function::BackwardInput, 0).slots[unsigned(SlotKind::WeightContext)];
  EXPECT_THAT(checkValues(program), HasSubstr("got the weight context of stage 0, micro-batch 0"));
}

TEST(ResultsTest, D5SendsAnotherMicrobatch) {
  Program program = buildPipelines({});
  RankProgram &rank = program.ranks[0];
  rank.transfers[1].slot = rank.transfers[0].slot;
  EXPECT_THAT(checkValues(program),
              AllOf(HasSubstr("send of the activation for stage 1, micro-batch 1 to rank 1"),
                    HasSubstr("got the activation for stage 1, micro-batch 0")));
}

TEST(ResultsTest, D5SlotReusedForAnotherType) {
  // Where classes allow it: what a stage handed over is read as the input of the stage behind it.
  Program program = buildPipelines({.numRanks = 1, .vShaped = true});
  RankProgram &rank = program.ranks[0];
  for (Launch &launch : rank.launches)
    if (launch.function == Function::Backward && launch.stage == 0 && launch.microbatch == 0)
      launch.slots[unsigned(SlotKind::GradOutput)] =
          rank.launches[1].slots[unsigned(SlotKind::Output)];
  EXPECT_THAT(checkValues(program),
              HasSubstr("for the gradient for stage 0, micro-batch 0, expected that value, got the "
                        "activation for stage 1, micro-batch 0"));
  EXPECT_THAT(toStatus(program, verifyProgram(program)).message(),
              HasSubstr("is of the class output, expected grad_output"));
}

TEST(ResultsTest, D5LabelsOfAnotherMicrobatch) {
  Program program = buildPipelines({.numRanks = 1, .training = false});
  RankProgram &rank = program.ranks[0];
  getLaunch(rank, Function::Forward, 1).slots[unsigned(SlotKind::Labels)] =
      getLaunch(rank, Function::Forward, 0).slots[unsigned(SlotKind::Labels)];
  EXPECT_THAT(checkValues(program), HasSubstr("got the labels of stage 0, micro-batch 0"));
}

TEST(ResultsTest, D5ForwardTwice) {
  Program program = buildPipelines({.numRanks = 1, .training = false});
  duplicate(program.ranks[0], findLaunch(program.ranks[0], Function::Forward, 2));
  EXPECT_THAT(checkValues(program),
              AllOf(HasSubstr("a second forward of its stage and micro-batch, expected one"),
                    HasSubstr("the first is here")));
}

TEST(ResultsTest, D5ForwardLeftOut) {
  Program program = buildPipelines({.numRanks = 1, .training = false});
  erase(program.ranks[0], findLaunch(program.ranks[0], Function::Forward, 2));
  EXPECT_THAT(checkValues(program),
              HasSubstr("D5: rank 0: no forward of stage 0, micro-batch 2, expected one: its "
                        "pipeline places the stage here"));
}

TEST(ResultsTest, D5ClaimsOfManyMicrobatchesCostNothing) {
  Program program = buildPipelines({.numRanks = 1, .training = false});
  program.shared.numMicrobatches = program.shared.pipelines[0].numMicrobatches = 1u << 24;
  EXPECT_THAT(checkValues(program), HasSubstr("no forward of stage 0, micro-batch 4"));
}

// D4: contributions

TEST(ResultsTest, D4BackwardLeftOut) {
  Program program = buildPipelines({.numRanks = 1});
  erase(program.ranks[0], findLaunch(program.ranks[0], Function::Backward, 2));
  EXPECT_THAT(checkGradients(program),
              AllOf(HasSubstr("optimizer step of stage 0"),
                    HasSubstr("takes the step of stage 0 after 3 of 4 micro-batches, without "
                              "micro-batch 2, expected all")));
}

TEST(ResultsTest, D4WeightHalfLeftOut) {
  Program program = buildPipelines({.numRanks = 1, .splitBackward = true});
  RankProgram &rank = program.ranks[0];
  erase(rank, find(rank, CommandOp::Step));
  erase(rank, findLaunch(rank, Function::BackwardWeight, 3));
  EXPECT_THAT(checkGradients(program), HasSubstr("D4: rank 0: the gradients of stage 0 hold 3 of 4 "
                                                 "micro-batches, without micro-batch 3"));
}

TEST(ResultsTest, D4BackwardTwice) {
  Program program = buildPipelines({.numRanks = 1});
  duplicate(program.ranks[0], findLaunch(program.ranks[0], Function::Backward, 2));
  EXPECT_THAT(checkGradients(program),
              AllOf(HasSubstr("adds to the gradients of stage 0 from micro-batch 2 a second time"),
                    HasSubstr("the first time is here")));
}

TEST(ResultsTest, D4BackwardBehindItsHalves) {
  Program program = buildPipelines({.numRanks = 1, .splitBackward = true});
  getLaunch(program.ranks[0], Function::BackwardWeight, 1).function = Function::Backward;
  EXPECT_THAT(checkGradients(program),
              AllOf(HasSubstr("a full backward behind the input half of its stage and micro-batch, "
                              "expected the weight half"),
                    HasSubstr("the input half is here")));
}

TEST(ResultsTest, D4InputHalfBehindTheBackward) {
  Program program = buildPipelines({.numRanks = 1});
  RankProgram &rank = program.ranks[0];
  const uint32_t backward = findLaunch(rank, Function::Backward, 1);
  Launch half = rank.launches[rank.commands[backward].arg];
  half.function = Function::BackwardInput;
  duplicate(rank, backward);
  rank.commands[backward + 1].arg = uint32_t(rank.launches.size());
  rank.launches.push_back(half);
  EXPECT_THAT(checkGradients(program),
              AllOf(HasSubstr("an input half behind the backward of its stage and micro-batch"),
                    HasSubstr("the backward is here")));
}

TEST(ResultsTest, D4InputHalfTwice) {
  Program program = buildPipelines({.numRanks = 1, .splitBackward = true});
  duplicate(program.ranks[0], findLaunch(program.ranks[0], Function::BackwardInput, 1));
  EXPECT_THAT(checkGradients(program),
              HasSubstr("a second input half of its stage and micro-batch, expected one"));
}

TEST(ResultsTest, D4WeightHalfWhenNoneIsPending) {
  Program program = buildPipelines({.numRanks = 1, .splitBackward = true});
  erase(program.ranks[0], findLaunch(program.ranks[0], Function::BackwardInput, 1));
  EXPECT_THAT(checkGradients(program),
              HasSubstr("a weight half before the input half of its stage and micro-batch"));
}

TEST(ResultsTest, D4BackwardBeforeItsForward) {
  Program program = buildPipelines({.numRanks = 1});
  moveToFront(program.ranks[0], findLaunch(program.ranks[0], Function::Backward, 0));
  EXPECT_THAT(checkGradients(program), HasSubstr("stands before the forward of its stage and "
                                                 "micro-batch, expected behind it"));
}

TEST(ResultsTest, D4SecondContributionOverwrites) {
  Program program = buildPipelines({.numRanks = 1});
  getLaunch(program.ranks[0], Function::Backward, 2).flags &= uint8_t(~kAccumulate);
  EXPECT_THAT(checkGradients(program),
              AllOf(HasSubstr("overwrites the gradients of stage 0 that 2 micro-batches have "
                              "contributed to, expected it to accumulate"),
                    HasSubstr("the first contribution is here")));
}

TEST(ResultsTest, D4FirstContributionAccumulates) {
  Program program = buildPipelines({.numRanks = 1});
  getLaunch(program.ranks[0], Function::Backward, 0).flags |= kAccumulate;
  EXPECT_THAT(checkGradients(program),
              HasSubstr("adds to the gradients of stage 0 of the step before, expected the first "
                        "micro-batch to overwrite them"));
}

// D4: two copies on one rank are one gradient

TEST(ResultsTest, D4CopiesOnOneRankCountTogether) {
  Program program = buildPipelines({.numRanks = 3, .numMicrobatches = 8, .mirrored = true});
  EXPECT_EQ(checkGradients(program, 1), "fine");
  RankProgram &middle = program.ranks[1];
  getLaunch(middle, Function::Backward, 4).flags &= uint8_t(~kAccumulate); // the other pipeline's
  EXPECT_THAT(checkGradients(program, 1),
              HasSubstr("overwrites the gradients of stage 1 that 1 micro-batches have contributed "
                        "to"));
}

// D4: reductions and steps

TEST(ResultsTest, D4StepLeftOut) {
  Program program = buildPipelines({.numRanks = 1});
  erase(program.ranks[0], find(program.ranks[0], CommandOp::Step));
  EXPECT_THAT(checkGradients(program),
              HasSubstr("D4: rank 0: no optimizer step of stage 0, expected one"));
  EXPECT_FALSE(toStatus(program, verifyProgram(program)).ok());
}

TEST(ResultsTest, D4StepTwice) {
  Program program = buildPipelines({.numRanks = 1});
  duplicate(program.ranks[0], find(program.ranks[0], CommandOp::Step));
  EXPECT_THAT(checkGradients(program), AllOf(HasSubstr("a second step of stage 0, expected one"),
                                             HasSubstr("the first is here")));
}

TEST(ResultsTest, D4StepBeforeTheLastBackward) {
  Program program = buildPipelines({.numRanks = 1});
  RankProgram &rank = program.ranks[0];
  std::swap(rank.commands[find(rank, CommandOp::Step)],
            rank.commands[findLaunch(rank, Function::Backward, 3)]);
  EXPECT_THAT(checkGradients(program), HasSubstr("after 3 of 4 micro-batches, without micro-batch "
                                                 "3, expected all"));
}

TEST(ResultsTest, D4StepOfAStageWithoutMicrobatches) {
  Program program = buildPipelines({.numRanks = 1});
  program.shared.pipelines.push_back({"idle", 1, 1, 4, 0, {0}});
  program.shared.numStages = 2;
  EXPECT_EQ(checkGradients(program), "fine");
  program.ranks[0].commands[find(program.ranks[0], CommandOp::Step)].arg = 1;
  EXPECT_THAT(checkGradients(program),
              HasSubstr("no micro-batch contributes to the stage's gradients here"));
}

TEST(ResultsTest, D4ReductionLeftOut) {
  Program program = buildMirrored();
  for (RankProgram &rank : program.ranks)
    erase(rank, find(rank, CommandOp::Reduce));
  EXPECT_THAT(checkGradients(program), HasSubstr("takes the step of stage 0 before its gradients "
                                                 "are summed over ranks 0, 1"));
}

TEST(ResultsTest, D4ReductionAndStepLeftOut) {
  Program program = buildMirrored();
  RankProgram &rank = program.ranks[0];
  erase(rank, find(rank, CommandOp::Reduce));
  erase(rank, find(rank, CommandOp::Step));
  EXPECT_THAT(checkGradients(program),
              HasSubstr("the gradients of stage 0 are not summed over ranks 0, 1, which hold a "
                        "copy each, expected a reduction"));
}

TEST(ResultsTest, D4ReductionTwice) {
  Program program = buildMirrored();
  duplicate(program.ranks[0], find(program.ranks[0], CommandOp::Reduce));
  EXPECT_THAT(checkGradients(program),
              AllOf(HasSubstr("sums the gradients of stage 0 a second time, expected once"),
                    HasSubstr("the first time is here")));
}

TEST(ResultsTest, D4ReductionBeforeTheLastBackward) {
  Program program = buildMirrored();
  moveToFront(program.ranks[0], find(program.ranks[0], CommandOp::Reduce));
  EXPECT_THAT(checkGradients(program), HasSubstr("sums the gradients of stage 0 after 0 of 4 "
                                                 "micro-batches, without micro-batch 0"));
}

TEST(ResultsTest, D4ReductionOverSomeOfTheCopies) {
  Program program = buildMirrored();
  // A third pipeline holds a copy of stage 0 on a rank that the group leaves out.
  program.shared.pipelines.push_back({"other", 0, 1, 8, 1, {2}});
  EXPECT_THAT(checkGradients(program),
              HasSubstr("sums the gradients of stage 0 over ranks 0, 1, expected all that hold a "
                        "copy: 0, 1, 2"));
}

TEST(ResultsTest, D4ReductionOfTheOnlyCopy) {
  Program program = buildPipelines({.numRanks = 2});
  RankProgram &rank = program.ranks[0];
  program.shared.reduceGroups.push_back({{0, 1}});
  rank.reductions.push_back({0, 0});
  rank.commands.push_back({CommandOp::Reduce, 0, 0, 0});
  EXPECT_THAT(checkGradients(program), HasSubstr("expected no sum: the stage has gradients on one "
                                                 "rank only"));
}

} // namespace
