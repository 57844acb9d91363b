//===- SlotUseTest.cpp - P4: slots by class, counted on the program ---------===//

#include "TestPrograms.h"

#include "dualpipe/Program/Dump.h"
#include "dualpipe/Program/Memory.h"
#include "dualpipe/Program/Proof.h"
#include "dualpipe/Program/Verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

std::string check(const Program &program) {
  const Status status = toStatus(program, verifyWholeProgram(program));
  return status.ok() ? "fine" : status.message();
}

const ClassUse &find(const SlotUse &use, SlotKind kind) {
  for (const ClassUse &entry : use.classes)
    if (entry.slotClass.kind == kind)
      return entry;
  ADD_FAILURE() << "no class " << getName(kind);
  return use.classes.front();
}

/// Two micro-batches forward, then both backward: what the forwards save lives side by side.
Program buildTwo() { return buildPipelines({.numRanks = 1, .numMicrobatches = 2}); }

TEST(SlotUseTest, CountsWhatLivesAtOnce) {
  const Program program = buildTwo();
  const SlotUse use = measureSlots(program.ranks[0], program.shared);
  EXPECT_EQ(find(use, SlotKind::Saved).peak, 2u);
  EXPECT_EQ(find(use, SlotKind::Saved).peakCommand, 5u); // the second forward
  EXPECT_EQ(find(use, SlotKind::Input).peak, 1u);
  EXPECT_EQ(find(use, SlotKind::Labels).peak, 1u);
}

TEST(SlotUseTest, CountsBytes) {
  const Program program = buildTwo();
  const SlotUse use = measureSlots(program.ranks[0], program.shared, [](SlotKind kind, uint32_t) {
    return kind == SlotKind::Saved ? 100 : 1;
  });
  EXPECT_EQ(find(use, SlotKind::Saved).allocatedBytes, 200u);
  EXPECT_EQ(find(use, SlotKind::Input).allocatedBytes, 2u);
  EXPECT_EQ(find(use, SlotKind::Input).peakBytes, 1u);
  EXPECT_EQ(use.arenaBytes, 204u);
  // The second forward: both contexts, its input and its labels.
  EXPECT_EQ(use.liveBytes, 202u);
  EXPECT_EQ(use.liveCommand, 5u);
}

TEST(SlotUseTest, MembersOfAPairLiveSideBySide) {
  Program program = buildTwo();
  std::vector<Command> &commands = program.ranks[0].commands;
  // The load of the second input in one unit with the forward that reads the first.
  std::swap(commands[2], commands[3]);
  std::swap(commands[1], commands[2]);
  const auto peak = [&] {
    return find(measureSlots(program.ranks[0], program.shared), SlotKind::Input).peak;
  };
  EXPECT_EQ(peak(), 2u);
  std::swap(commands[1], commands[2]);
  std::swap(commands[2], commands[3]);
  EXPECT_EQ(peak(), 1u);
  commands.insert(commands.begin() + 2, {CommandOp::Pair, 0, 2, 0});
  EXPECT_EQ(peak(), 2u);
}

TEST(SlotUseTest, P4SlotsBeyondThePeak) {
  EXPECT_THAT(check(buildTwo()),
              AllOf(HasSubstr("P4: rank 0, command 0: load_input of stage 0, micro-batch 0"),
                    HasSubstr("slot class input of size group 0 has 2 slots, 0 of them spare, "
                              "expected 1: 1 hold values at once here, at most")));
}

/// The same with one slot for both inputs and one for both labels.
Program buildTight() {
  Program program = buildTwo();
  RankProgram &rank = program.ranks[0];
  for (SlotKind kind : {SlotKind::Labels, SlotKind::Input}) {
    uint32_t first = 0;
    for (SlotClass &slotClass : rank.slotClasses) {
      if (slotClass.kind == kind)
        slotClass.count = 1;
      if (slotClass.kind < kind)
        first += slotClass.count;
    }
    for (Launch &launch : rank.launches)
      for (uint32_t &slot : launch.slots)
        if (slot != kNone && slot > first)
          --slot;
  }
  return program;
}

TEST(SlotUseTest, P4HoldsWithStatedSpares) {
  Program program = buildTight();
  EXPECT_EQ(check(program), "fine");
  SlotClass &last = program.ranks[0].slotClasses.back();
  ++last.count;
  EXPECT_THAT(check(program), HasSubstr("P4: "));
  ++last.spares;
  EXPECT_EQ(check(program), "fine");
}

TEST(SlotUseTest, DumpShowsThePeak) {
  EXPECT_THAT(dumpProgram(buildTwo()),
              HasSubstr("slots input          size group 0: 2, numbers 0 to 1, 0 spare, at most 1 "
                        "in use, first at command 0\n"));
}

TEST(SlotUseTest, ProofCounts) {
  EXPECT_EQ(describeProof(buildTight()),
            "P1  0 waits come after the records of their 0 events\n"
            "P2  12 accesses to 4 slots are ordered, nothing is read before it is written\n"
            "P3  9 commands on 1 streams name what exists and fits\n"
            "P4  4 slots: 4 hold values at once, 0 spare\n"
            "P5  0 groups have at most 256 transfers each\n"
            "D1  0 transfers and 0 reductions have all their ends\n"
            "D2  0 channels are received from in the order of the sends\n"
            "D3  1 ranks finish, as if each rank had one queue\n"
            "D4  2 gradients reach the step of 1 stage copies exactly once\n"
            "D5  6 reads find the value they name, 2 forwards run exactly once\n");
}

TEST(SlotUseTest, ProofNamesTheWeakerRule) {
  const Program program = buildTight();
  EXPECT_THAT(describeProof(program, {.numQueues = 0}),
              HasSubstr("D3  1 ranks finish, with a queue for every stream (weaker"));
  EXPECT_THAT(describeProof(program, {.numQueues = 2}),
              HasSubstr("D3  1 ranks finish, with 2 hardware queues per rank (weaker"));
}

TEST(SlotUseTest, WholeProgramsHaveAllRanks) {
  Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 1});
  program.ranks.pop_back();
  EXPECT_THAT(check(program), HasSubstr("the programs of 1 of 2 ranks, expected all"));
}

} // namespace
