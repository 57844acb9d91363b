//===- RangeTest.cpp - programs that break P3 -------------------------------===//

#include "TestPrograms.h"

#include "dualpipe/Program/Verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::test;
using testing::HasSubstr;

namespace {

/// A change that breaks P3, and what is said of it.
struct Case {
  const char *name;
  std::function<void(SharedInfo &, RankProgram &)> breakIt; ///< the rank is rank 1 of 3
  const char *message;
};

void PrintTo(const Case &c, std::ostream *os) { *os << c.name; }

Command &firstOf(RankProgram &rank, CommandOp op) {
  for (Command &command : rank.commands)
    if (command.op == op)
      return command;
  ADD_FAILURE() << "no such command";
  return rank.commands.front();
}

Launch &firstLaunch(RankProgram &rank, Function function) {
  for (Launch &launch : rank.launches)
    if (launch.function == function)
      return launch;
  ADD_FAILURE() << "no such launch";
  return rank.launches.front();
}

uint32_t &slotOf(Launch &launch, SlotKind kind) { return launch.slots[unsigned(kind)]; }

using S = SharedInfo;
using R = RankProgram;

class RangeTest : public testing::TestWithParam<Case> {};

TEST_P(RangeTest, IsRejected) {
  Program program = buildPipelines(
      {.numRanks = 3, .numMicrobatches = 6, .splitBackward = true, .mirrored = true});
  ASSERT_TRUE(toStatus(program, verifyProgram(program)).ok());
  GetParam().breakIt(program.shared, program.ranks[1]);
  const Status status = toStatus(program, verifyProgram(program));
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), testing::StartsWith("P3: "));
  EXPECT_THAT(status.message(), HasSubstr(GetParam().message));
}

const Case kSharedCases[] = {
    {"NoRanks", [](S &s, R &) { s.numRanks = 0; }, "0 ranks, expected 1 to"},
    {"NoStages", [](S &s, R &) { s.numStages = 0; }, "0 stages, expected 1 to"},
    {"StageOfNoPipeline", [](S &s, R &) { s.numStages = 1u << 24; },
     "no pipeline has stage 3 of 16777216"},
    {"NoMicrobatches", [](S &s, R &) { s.numMicrobatches = 0; }, "0 micro-batches, expected"},
    {"PipelineTooLong", [](S &s, R &) { s.pipelines[0].numStages = 4; },
     "pipeline main has stages 0 to 3, the schedule has 3"},
    {"PlacementTooShort", [](S &s, R &) { s.pipelines[0].placement.pop_back(); },
     "pipeline main places 2 stages, expected 3"},
    {"PlacementOutOfRange", [](S &s, R &) { s.pipelines[0].placement[1] = 3; },
     "places a stage on rank 3 of 3"},
    {"MicrobatchGap", [](S &s, R &) { s.pipelines[1].firstMicrobatch = 4; },
     "pipeline up begins with micro-batch 4, expected 3"},
    {"MicrobatchCount", [](S &s, R &) { s.numMicrobatches = 7; },
     "the pipelines have 6 micro-batches, expected 7"},
    {"ChannelToItself", [](S &s, R &) { s.channels[0].destination = s.channels[0].source; },
     "expected two of 3 ranks"},
    {"ChannelOfSaved", [](S &s, R &) { s.channels[0].kind = SlotKind::Saved; },
     "carries saved, expected output or grad_input"},
    {"ReduceGroupOfOne", [](S &s, R &) { s.reduceGroups[0].ranks.pop_back(); },
     "expected two or more, ascending"},
    {"ReduceGroupTwice", [](S &s, R &) { s.reduceGroups[0].ranks = {1, 1}; },
     "has ranks [1, 1], expected two or more, ascending"},
    {"NoComponents", [](S &s, R &) { s.contract.numComponents = 0; }, "0 components"},
    {"BackwardReadsItsResult", [](S &s, R &) { s.contract.backwardReads |= 1u << 3; },
     "lets a backward read what no backward can"},
    {"SizeGroupsOfTooFewStages", [](S &s, R &) { s.contract.sizeGroup = {0, 0}; },
     "names the size group of 2 stages, expected 3"},
    {"SizeGroupOutOfRange", [](S &s, R &) { s.contract.sizeGroup = {0, 1, 0}; },
     "size group 1 of 1"},
    {"LocationInNoFile", [](S &s, R &) { s.locations[2].file = 1; },
     "location 2 is in file 1 of 1"},
};

const Case kRankCases[] = {
    {"RankTooHigh", [](S &, R &r) { r.rank = 3; }, "a program for rank 3 of 3"},
    {"MoreEventsThanCommands", [](S &, R &r) { r.numEvents = 1u << 30; }, "1073741824 events for"},
    {"ComputeStreamWithTarget", [](S &, R &r) { r.streams[0].target = 1; },
     "stream 0 computes and has the target 1, expected 0"},
    {"StreamOfNoChannel", [](S &, R &r) { r.streams[1].target = 99; }, "serves channel 99 of"},
    {"StreamOfAnotherRank",
     [](S &s, R &r) {
       for (uint32_t i = 0; i != s.channels.size(); ++i)
         if (s.channels[i].source != 1 && s.channels[i].destination != 1)
           return;
       r.streams[1] = {StreamKind::Send, r.streams[1].target};
     },
     "is the send end of channel"},
    {"UnknownStreamKind", [](S &, R &r) { r.streams[1].kind = StreamKind(9); },
     "has the unknown kind 9"},
    {"TwoStreamsForOneEnd", [](S &, R &r) { r.streams.push_back(r.streams[1]); }, "is a second"},
    {"StreamOfNoReduceGroup", [](S &, R &r) { r.streams.push_back({StreamKind::Reduce, 7}); },
     "serves reduce group 7 of"},
    {"StreamOfOthersReduceGroup", [](S &, R &r) { r.streams.push_back({StreamKind::Reduce, 0}); },
     "serves reduce group 0, which the rank is not in"},
    {"TooManyStreams", [](S &, R &r) { r.streams.resize(5000, {StreamKind::Compute, 0}); },
     "5000 streams, expected at most"},
    {"UnknownSlotKind", [](S &, R &r) { r.slotClasses[0].kind = SlotKind(7); },
     "a slot class of the unknown kind 7"},
    {"SlotClassTwice", [](S &, R &r) { r.slotClasses.push_back(r.slotClasses[0]); },
     "stands twice"},
    {"SlotClassOfNoGroup", [](S &, R &r) { r.slotClasses[0].sizeGroup = 1; },
     "size group 1: expected a group below 1"},
    {"MoreSparesThanSlots", [](S &, R &r) { r.slotClasses[0].spares = 500; }, "500 of them spare"},
    {"HugeSlotClass", [](S &, R &r) { r.slotClasses[0].count = ~0u; }, "has 4294967295 slots"},
    {"TooManySlotsInAll",
     [](S &s, R &r) {
       s.contract.numSizeGroups = 3;
       const uint32_t most = uint32_t(r.launches.size() + r.transfers.size());
       r.slotClasses.clear();
       for (uint32_t group = 0; group != 3; ++group)
         for (unsigned kind = 0; kind != kNumSlotKinds; ++kind)
           r.slotClasses.push_back({SlotKind(kind), group, most, 0});
     },
     "in all classes together, expected at most"},
    {"PhaseWithoutName", [](S &, R &r) { r.phases[0].name = 4; }, "phase 4 of 1"},
    {"PhaseBehindTheEnd", [](S &, R &r) { r.phases[0].command = 100000; },
     "begins at command 100000"},
    {"UnknownCommand", [](S &, R &r) { r.commands[3].op = CommandOp(9); },
     "the unknown operation 9"},
    {"StreamOutOfRange", [](S &, R &r) { r.commands[3].stream = 77; }, "stream 77 of"},
    {"LocationOutOfRange", [](S &, R &r) { r.commands[3].loc = 1u << 20; }, "location 1048576 of"},
    {"LaunchOutOfRange", [](S &, R &r) { firstOf(r, CommandOp::Launch).arg = 5000; },
     "launch 5000 of"},
    {"TransferOutOfRange", [](S &, R &r) { firstOf(r, CommandOp::Send).arg = 5000; },
     "transfer 5000 of"},
    {"EventOutOfRange", [](S &, R &r) { firstOf(r, CommandOp::Record).arg = 5000; },
     "event 5000 of"},
    {"LaunchOnSendStream",
     [](S &, R &r) { firstOf(r, CommandOp::Launch).stream = firstOf(r, CommandOp::Send).stream; },
     "stands on a send stream, expected a compute stream"},
    {"SendOnComputeStream", [](S &, R &r) { firstOf(r, CommandOp::Send).stream = 0; },
     "stands on a compute stream, expected a send stream"},
    {"StepOnSendStream",
     [](S &, R &r) { firstOf(r, CommandOp::Step).stream = firstOf(r, CommandOp::Send).stream; },
     "stands on a send stream, expected a compute stream"},
    {"StepOfForeignStage", [](S &, R &r) { firstOf(r, CommandOp::Step).arg = 0; },
     "the rank holds no copy of that stage"},
    {"ChannelOfAnotherStream",
     [](S &, R &r) {
       Transfer &transfer = r.transfers[firstOf(r, CommandOp::Send).arg];
       transfer.channel ^= 1;
     },
     "on the stream of channel"},
    {"TransferOfNoMicrobatch",
     [](S &, R &r) { r.transfers[firstOf(r, CommandOp::Send).arg].microbatch = 66; },
     "micro-batch 66 of 6"},
    {"TransferOfAnotherStage",
     [](S &, R &r) { r.transfers[firstOf(r, CommandOp::Send).arg].stage = 1; },
     "does not get its activation from rank 1"},
    {"TransferSlotOutOfRange",
     [](S &, R &r) { r.transfers[firstOf(r, CommandOp::Send).arg].slot = 1u << 20; },
     "slot 1048576 of"},
    {"TransferOfAnotherClass",
     [](S &, R &r) { r.transfers[firstOf(r, CommandOp::Send).arg].slot = 0; },
     "slot 0 is of the class input, expected output"},
    {"UnknownFunction", [](S &, R &r) { firstLaunch(r, Function::Forward).function = Function(6); },
     "the unknown function 6"},
    {"ComponentOutOfRange", [](S &, R &r) { firstLaunch(r, Function::Forward).component = 1; },
     "component 1 of 1"},
    {"LaunchOfNoMicrobatch", [](S &, R &r) { firstLaunch(r, Function::Forward).microbatch = 6; },
     "micro-batch 6 of 6"},
    {"LaunchOfNoStage", [](S &, R &r) { firstLaunch(r, Function::Forward).stage = 3; },
     "pipeline main has no stage 3"},
    {"LaunchOnAnotherRank", [](S &, R &r) { firstLaunch(r, Function::Forward).stage = 0; },
     "pipeline main places stage 0 on rank 0"},
    {"UnknownFlags", [](S &, R &r) { firstLaunch(r, Function::Forward).flags |= 64; },
     "unknown flags"},
    {"WrongFlags", [](S &, R &r) { firstLaunch(r, Function::Forward).flags |= kLastStage; },
     "the flags do not fit stage 1 of pipeline main, which has stages 0 to 2"},
    {"LoadsInputInTheMiddle",
     [](S &, R &r) { firstLaunch(r, Function::Forward).function = Function::LoadInput; },
     "loads the input of a stage that is not its pipeline's first"},
    {"LoadsLabelsInTheMiddle",
     [](S &, R &r) { firstLaunch(r, Function::Forward).function = Function::LoadLabels; },
     "loads the labels of a stage that is not its pipeline's last"},
    {"SlotMissing",
     [](S &, R &r) { slotOf(firstLaunch(r, Function::Forward), SlotKind::Saved) = kNone; },
     "has no saved slot"},
    {"SlotTooMany",
     [](S &, R &r) { slotOf(firstLaunch(r, Function::Forward), SlotKind::GradInput) = 1; },
     "has a grad_input slot, which forward does not use there"},
    {"SlotOutOfRange",
     [](S &, R &r) { slotOf(firstLaunch(r, Function::Forward), SlotKind::Saved) = 9999; },
     "slot 9999 of"},
    {"SlotOfAnotherClass",
     [](S &, R &r) { slotOf(firstLaunch(r, Function::Forward), SlotKind::Saved) = 0; },
     "slot 0 is of the class input, expected saved"},
    {"BackwardInForwardOnly", [](S &s, R &) { s.training = false; }, "saved"},
    {"PairTooLong", [](S &, R &r) { r.commands.back() = {CommandOp::Pair, 0, 2, 0}; },
     "pair of 2 commands, 0 follow"},
    {"EmptyPair", [](S &, R &r) { r.commands.back() = {CommandOp::Pair, 0, 0, 0}; },
     "pair of 0 commands"},
    {"PairOfSomethingElse",
     [](S &, R &r) { r.commands.insert(r.commands.begin(), {CommandOp::Pair, 0, 1, 0}); },
     "a recv inside a pair"},
    {"PairOverTwoStreams",
     [](S &, R &r) {
       r.streams.push_back({StreamKind::Compute, 0});
       const uint16_t stream = uint16_t(r.streams.size() - 1);
       for (size_t i = 0; i != r.commands.size(); ++i)
         if (r.commands[i].op == CommandOp::Launch) {
           r.commands.insert(r.commands.begin() + ptrdiff_t(i), {CommandOp::Pair, stream, 1, 0});
           return;
         }
     },
     "with a member on stream 0"},
    {"GroupOfLaunches",
     [](S &, R &r) {
       for (size_t i = 0; i != r.commands.size(); ++i)
         if (r.commands[i].op == CommandOp::Launch) {
           r.commands.insert(r.commands.begin() + ptrdiff_t(i), {CommandOp::Group, 0, 1, 0});
           return;
         }
     },
     "a launch inside a group"},
};

std::string getCaseName(const testing::TestParamInfo<Case> &info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Shared, RangeTest, testing::ValuesIn(kSharedCases), getCaseName);
INSTANTIATE_TEST_SUITE_P(Rank, RangeTest, testing::ValuesIn(kRankCases), getCaseName);

TEST(ReductionRangeTest, IsRejected) {
  const Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 8, .mirrored = true});
  const auto check = [&](const std::function<void(RankProgram &)> &breakIt) {
    Program broken = program;
    breakIt(broken.ranks[0]);
    return toStatus(broken, verifyProgram(broken)).message();
  };
  EXPECT_THAT(check([](R &r) { firstOf(r, CommandOp::Reduce).arg = 50; }),
              HasSubstr("reduction 50 of 2"));
  EXPECT_THAT(check([](R &r) { r.reductions[0].group = 1; }),
              HasSubstr("reduce group 1 on the stream of group 0"));
  EXPECT_THAT(check([](R &r) { r.reductions[0].stage = 5; }),
              HasSubstr("rank 0 holds no copy of stage 5"));
  EXPECT_THAT(check([](R &r) { firstOf(r, CommandOp::Reduce).stream = 0; }),
              HasSubstr("stands on a compute stream, expected a reduce stream"));
}

TEST(SizeGroupTest, SlotsAreOfTheGroupOfTheirStage) {
  Program program = buildPipelines({.numRanks = 2, .training = false});
  program.shared.contract.numSizeGroups = 2;
  program.shared.contract.sizeGroup = {0, 1};
  EXPECT_THAT(toStatus(program, verifyProgram(program)).message(),
              HasSubstr("slot 0 is of size group 0, stage 1 is of group 1"));
}

TEST(SpareRangeTest, TheSparesOfARankAreBounded) {
  Program program = buildPipelines({.numRanks = 2});
  program.shared.contract.numSizeGroups = 200;
  std::vector<SlotClass> &classes = program.ranks[0].slotClasses;
  for (uint32_t group = 1; group != 200; ++group)
    for (unsigned kind = 0; kind != kNumSlotKinds; ++kind)
      classes.push_back({SlotKind(kind), group, 1024, 1024});
  EXPECT_THAT(toStatus(program, verifyRanges(program.shared, program.ranks[0])).message(),
              HasSubstr("1426432 spare ones in all classes together, expected at most"));
}

/// Without training there is nothing to go backward, to sum or to step.
TEST(ForwardOnlyRangeTest, IsRejected) {
  const Program program =
      buildPipelines({.numRanks = 2, .numMicrobatches = 8, .training = false, .mirrored = true});
  ASSERT_TRUE(toStatus(program, verifyProgram(program)).ok());
  const auto check = [&](const std::function<void(SharedInfo &, RankProgram &)> &breakIt) {
    Program broken = program;
    breakIt(broken.shared, broken.ranks[0]);
    return toStatus(broken, verifyProgram(broken)).message();
  };
  EXPECT_THAT(
      check([](S &, R &r) { firstLaunch(r, Function::Forward).function = Function::Backward; }),
      HasSubstr("a backward in a program for forward only"));
  EXPECT_THAT(check([](S &s, R &r) {
                s.reduceGroups.push_back({{0, 1}});
                r.streams.push_back({StreamKind::Reduce, 0});
                r.reductions.push_back({0, 0});
                r.commands.push_back({CommandOp::Reduce, uint16_t(r.streams.size() - 1), 0, 0});
              }),
              HasSubstr("a reduction in a program for forward only"));
  EXPECT_THAT(check([](S &, R &r) { r.commands.push_back({CommandOp::Step, 0, 0, 0}); }),
              HasSubstr("an optimizer step in a program for forward only"));
}

TEST(RankOrderTest, RanksAscend) {
  Program program = buildPipelines({.numRanks = 2});
  std::swap(program.ranks[0], program.ranks[1]);
  EXPECT_THAT(toStatus(program, verifyProgram(program)).message(),
              HasSubstr("the ranks are not in ascending order"));
}

} // namespace
