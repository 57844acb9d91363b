//===- EmitTest.cpp - the text of programs as CUDA C++ ----------------------===//

#include "test/unit/runtime/TestPrograms.h"

#include "dualpipe/Program/Digest.h"
#include "dualpipe/Runtime/EmitCuda.h"
#include "runtime/emit/Names.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::runtime;
using namespace dualpipe::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace {

TEST(Emit, NamesAreIdentifiers) {
  EXPECT_EQ(emit::toIdentifier("zero bubble"), "zero_bubble");
  EXPECT_EQ(emit::toIdentifier("a\"\n*/b"), "a____b");
  EXPECT_EQ(emit::toIdentifier(""), "unnamed");
}

/// A path may have any bytes; a comment ends with its line.
TEST(Emit, CommentsStayOnTheirLine) {
  EXPECT_EQ(emit::toComment("a\nb\x7f"), "a b ");
  EXPECT_EQ(emit::toComment("x\\"), "x\\ ");
  EXPECT_EQ(emit::toComment("\xff"), "\xEF\xBF\xBD");
}

TEST(Emit, ANameIsGivenOnce) {
  emit::UniqueNames names;
  EXPECT_EQ(names.add("x"), "x");
  EXPECT_EQ(names.add("x"), "x_2");
  EXPECT_EQ(names.add("x_2"), "x_2_2");
  EXPECT_EQ(names.add("x"), "x_3");
}

TEST(Emit, AllNamesOfARankDiffer) {
  const Program program = buildPipelines(
      {.numRanks = 4, .numMicrobatches = 8, .splitBackward = true, .mirrored = true});
  for (const RankProgram &rank : program.ranks) {
    const emit::Names names(program.shared, rank);
    std::set<std::string> all;
    size_t count = 0;
    for (const auto *list : {&names.streams, &names.classes, &names.events}) {
      all.insert(list->begin(), list->end());
      count += list->size();
    }
    EXPECT_EQ(all.size(), count);
    EXPECT_EQ(all.count(""), 0u);
  }
}

/// Every command once, none of a pair apart from it, and no function too long.
void expectParts(const RankProgram &rank, const emit::Names &names) {
  uint32_t next = 0;
  for (const emit::Part &part : names.parts) {
    EXPECT_EQ(part.begin, next);
    EXPECT_LE(part.end - part.begin, 202u);
    next = part.end;
  }
  EXPECT_EQ(next, rank.commands.size());
}

TEST(Emit, PhasesBecomeFunctions) {
  Program program = buildPipelines({.numRanks = 1, .numMicrobatches = 400});
  program.shared.phaseNames = {"warm-up", "steady \"state\"", "nothing"};
  RankProgram &rank = program.ranks[0];
  ASSERT_GT(rank.commands.size(), 1000u);
  rank.phases = {{0, 10}, {2, 20}, {1, 20}};
  const emit::Names names(program.shared, rank);
  expectParts(rank, names);
  EXPECT_EQ(names.parts[0].name, "commands");
  EXPECT_EQ(names.parts[1].name, "phase_warm_up");
  EXPECT_EQ(names.parts[2].name, "phase_steady__state_");
  EXPECT_EQ(names.parts[3].name, "phase_steady__state__2");
  const std::string text = emitRank(program.shared, rank);
  EXPECT_THAT(text, HasSubstr("/// Commands 0 to 9.\n"));
  EXPECT_THAT(text, HasSubstr("/// Phase \"warm-up\": commands 10 to 19.\n"));
  EXPECT_THAT(text, Not(HasSubstr("nothing")));
}

/// A mark in the middle of a pair belongs behind it.
TEST(Emit, APairStaysTogether) {
  Program program = buildPipelines({.numRanks = 1, .numMicrobatches = 4});
  RankProgram &rank = program.ranks[0];
  const uint32_t at = findLaunch(rank, Function::Backward, 0) - 1;
  rank.commands.insert(rank.commands.begin() + at, {CommandOp::Pair, 0, 2, 0});
  program.shared.phaseNames = {"late"};
  rank.phases = {{0, at + 2}};
  const emit::Names names(program.shared, rank);
  expectParts(rank, names);
  EXPECT_EQ(names.parts.back().begin, at + 3);
  const std::string text = emitRank(program.shared, rank);
  EXPECT_THAT(text,
              HasSubstr(fmt::format("  DP_AT({}, fused(compute, {{forward(stage(0), mb(", at)));
  EXPECT_THAT(text, Not(HasSubstr(fmt::format("DP_AT({},", at + 1))));
}

TEST(Emit, GroupsAreOpenedAndEnded) {
  Program program = buildPipelines({.numRanks = 2});
  RankProgram &rank = program.ranks[0];
  const uint32_t at = find(rank, CommandOp::Send);
  rank.commands.insert(rank.commands.begin() + at,
                       {CommandOp::Group, rank.commands[at].stream, 1, rank.commands[at].loc});
  EXPECT_THAT(emitRank(program.shared, rank),
              HasSubstr(fmt::format("  {{\n    Group group(*this);\n"
                                    "    DP_AT({0}, group.ncclGroupStart());\n"
                                    "    DP_AT({1}, ncclSend(output[0], input_bytes(1), ncclInt8,",
                                    at, at + 1)));
  EXPECT_THAT(emitRank(program.shared, rank),
              HasSubstr(fmt::format("    DP_AT({}, group.ncclGroupEnd());\n  }}\n", at)));
}

TEST(Emit, ComponentsAndSizeGroupsAreNamed) {
  Program program = buildPipelines({.numRanks = 1, .numMicrobatches = 1});
  program.shared.contract.numComponents = 2;
  program.shared.contract.numSizeGroups = 2;
  RankProgram &rank = program.ranks[0];
  getLaunch(rank, Function::Forward, 0).component = 1;
  const std::string text = emitRank(program.shared, rank);
  EXPECT_THAT(text, HasSubstr("static constexpr Slots saved_g0{"));
  EXPECT_THAT(text, HasSubstr("forward(stage(0), mb(0), compute,\n                   {.component = "
                              "1, .input = input_g0[0], "));
}

/// The compiler of whoever reads it breaks no line.
TEST(Emit, LinesAreShort) {
  const Program program = buildPipelines(
      {.numRanks = 4, .numMicrobatches = 8, .splitBackward = true, .mirrored = true});
  for (const RankProgram &rank : program.ranks) {
    std::istringstream lines(emitRank(program.shared, rank));
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST(Emit, TheTableHasRanksAndDigests) {
  Program program = buildPipelines({.numRanks = 3});
  program.ranks.erase(program.ranks.begin());
  const std::string text = emitStep(program);
  EXPECT_THAT(text, HasSubstr(fmt::format("    {{2, 0x{:016x}, dualpipe_issue_rank2}},\n",
                                          computeDigest(program.shared, program.ranks[1]))));
  EXPECT_THAT(text, HasSubstr("sizeof(dp_step_program), \"test\", 3, 2, steps,"));
  EXPECT_THAT(text, Not(HasSubstr("rank0")));
  EXPECT_THAT(emitBuildFile(program), HasSubstr("set(ranks\n  rank1.cu\n  rank2.cu\n)\n"));
}

} // namespace
