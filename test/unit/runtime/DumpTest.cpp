//===- DumpTest.cpp - programs as text --------------------------------------===//

#include "TestPrograms.h"

#include "dualpipe/Program/Dump.h"
#include "dualpipe/Program/Verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::test;
using testing::HasSubstr;

namespace {

TEST(DumpTest, SaysEverythingOfATinyProgram) {
  const std::string text = dumpProgram(buildPipelines({.numRanks = 2, .numMicrobatches = 1}));
  for (const char *expected :
       {"schedule test (unit test), training\n  2 ranks, 2 stages, 1 micro-batches\n",
        "  parameter P = 2\n", "  planned cost bwd = 2\n",
        "  pipeline main: stages 0 to 1, micro-batches 0 to 0, on ranks 0 1\n",
        "    backward reads grad_output, saved\n",
        "  channel 0   rank 0 -> rank 1, output, 1 transfers, digest ",
        "\nrank 0: 10 commands, 2 events, 4 slots\n", "  stream 0   compute\n",
        "  stream 1   send  channel 0 to rank 1, output\n",
        "  slots input          size group 0: 1, numbers 0 to 0, 0 spare, at most 1 in use, first "
        "at command 0\n",
        "  phase \"whole\"\n", "       0   0 compute  load_input      stage 0 mb 0 input=0 first ",
        "send            stage 1 mb 0 slot=1 to rank 1", "wait            event 1 "})
    EXPECT_THAT(text, HasSubstr(expected));
  // Every command shows its line.
  for (int line = 2; line != 20; ++line)
    EXPECT_THAT(text, HasSubstr("test.pipe:" + std::to_string(line) + ":3\n"));
}

TEST(DumpTest, PairsAreIndented) {
  Program program = buildPipelines({.numRanks = 1, .numMicrobatches = 1});
  std::vector<Command> &commands = program.ranks[0].commands;
  commands.insert(commands.begin(), {CommandOp::Pair, 0, 2, 0});
  const std::string text = dumpProgram(program);
  EXPECT_THAT(text, HasSubstr("pair            of the next 2"));
  EXPECT_THAT(text, HasSubstr("compute    load_input"));
  EXPECT_THAT(text, HasSubstr("compute  forward"));
}

TEST(DumpTest, APhaseMayBeginBehindTheLastCommand) {
  Program program = buildPipelines({.numRanks = 1, .numMicrobatches = 1});
  program.shared.phaseNames.push_back("nothing left");
  program.ranks[0].phases.push_back({1, uint32_t(program.ranks[0].commands.size())});
  ASSERT_TRUE(toStatus(program, verifyProgram(program)).ok());
  EXPECT_THAT(dumpProgram(program), testing::EndsWith("  phase \"nothing left\"\n"));
}

TEST(NamesTest, AreDistinct) {
  const auto distinct = [](unsigned count, auto getText) {
    std::set<std::string> names;
    for (unsigned i = 0; i != count; ++i) {
      EXPECT_STRNE(getText(i), "unknown");
      names.insert(getText(i));
    }
    return names.size() == count;
  };
  EXPECT_TRUE(distinct(kNumSlotKinds, [](unsigned i) { return getName(SlotKind(i)); }));
  EXPECT_TRUE(distinct(kNumFunctions, [](unsigned i) { return getName(Function(i)); }));
  EXPECT_TRUE(distinct(kNumCommandOps, [](unsigned i) { return getName(CommandOp(i)); }));
  EXPECT_TRUE(distinct(4, [](unsigned i) { return getName(StreamKind(i)); }));
}

TEST(DigestTest, DependsOnOrderAndContent) {
  const auto fold = [](std::initializer_list<std::pair<uint32_t, uint32_t>> transfers) {
    uint64_t digest = kDigestSeed;
    for (const auto &[stage, microbatch] : transfers)
      digest = extendDigest(digest, stage, microbatch);
    return digest;
  };
  EXPECT_EQ(fold({{1, 2}, {3, 4}}), fold({{1, 2}, {3, 4}}));
  EXPECT_NE(fold({{1, 2}, {3, 4}}), fold({{3, 4}, {1, 2}}));
  EXPECT_NE(fold({{1, 2}}), fold({{2, 1}}));
  EXPECT_NE(fold({}), fold({{0, 0}}));
}

TEST(DescribeTest, PlacesOutsideTheTables) {
  const Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 1});
  EXPECT_EQ(describeLocation(program.shared, 1u << 20), "no place known");
  EXPECT_EQ(describeCommand(program.shared, program.ranks[1], 1u << 20), "rank 1, command 1048576");
}

} // namespace
