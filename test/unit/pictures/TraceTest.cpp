//===- TraceTest.cpp - traces of runs that no simulation makes --------------===//

#include "dualpipe/Runtime/Trace.h"
#include "test/unit/runtime/TestPrograms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::runtime;
using namespace dualpipe::test;
using testing::HasSubstr;
using testing::Not;

namespace {

Program makeProgram() { return buildPipelines({.numRanks = 2, .numMicrobatches = 4}); }

std::vector<std::vector<CommandTime>> getTimes(const Program &program) {
  Result<Simulation> simulation =
      simulate(program, *SimulationCosts::parse("transfer=0.5"), /*keepTimes=*/true);
  EXPECT_TRUE(simulation.ok()) << simulation.message();
  return std::move(simulation->commands);
}

uint32_t findCommand(const RankProgram &rank, CommandOp op) {
  for (uint32_t i = 0; i != rank.commands.size(); ++i)
    if (rank.commands[i].op == op)
      return i;
  ADD_FAILURE() << "no " << getName(op);
  return 0;
}

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(Trace, OneRankOfTwoHasNoArrows) {
  Program program = makeProgram();
  std::vector<std::vector<CommandTime>> times = getTimes(program);
  const std::string whole = printTrace(program, times);
  EXPECT_EQ(count(whole, "\"ph\": \"s\""), count(whole, "\"ph\": \"f\""));
  EXPECT_GT(count(whole, "\"ph\": \"s\""), 0u);
  program.ranks.erase(program.ranks.begin());
  times.erase(times.begin());
  const std::string second = printTrace(program, times);
  EXPECT_THAT(second, HasSubstr("\"name\": \"rank 1\""));
  EXPECT_THAT(second, Not(HasSubstr("\"name\": \"rank 0\"")));
  EXPECT_THAT(second, Not(HasSubstr("\"ph\": \"s\"")));
  EXPECT_THAT(second, HasSubstr("recv act"));
}

/// A device measures when a stream waits; a simulation knows only until when.
TEST(Trace, WaitsThatTakeTimeAreSlices) {
  const Program program = makeProgram();
  std::vector<std::vector<CommandTime>> times = getTimes(program);
  EXPECT_THAT(printTrace(program, times), Not(HasSubstr("\"cat\": \"wait\"")));
  times[1][findCommand(program.ranks[1], CommandOp::Wait)] = {0, 1000, {}};
  EXPECT_THAT(printTrace(program, times), HasSubstr("\"cat\": \"wait\""));
}

/// A receive that was posted early ends an arrow when the data has left, one that was over
/// before, by another clock, at its own end.
TEST(Trace, ArrowsEndInsideTheReceive) {
  const Program program = makeProgram();
  std::vector<std::vector<CommandTime>> times = getTimes(program);
  times[0][findCommand(program.ranks[0], CommandOp::Send)] = {5'000, 9'000, {}};
  CommandTime &recv = times[1][findCommand(program.ranks[1], CommandOp::Recv)];
  const std::string end = "\"id\": 0, \"pid\": 2, \"tid\": ";
  recv = {1'000, 9'000, {}};
  std::string text = printTrace(program, times);
  EXPECT_THAT(text.substr(text.find(end), 60), HasSubstr("\"ts\": 5, \"bp\": \"e\""));
  recv = {1'000, 3'000, {}};
  text = printTrace(program, times);
  EXPECT_THAT(text.substr(text.find(end), 60), HasSubstr("\"ts\": 3, \"bp\": \"e\""));
}

TEST(Trace, TheScaleIsTheCallers) {
  const Program program = makeProgram();
  const std::vector<std::vector<CommandTime>> times = getTimes(program);
  TraceOptions options;
  options.ticksPerMicrosecond = 3;
  options.notes = {{"times", "thirds"}};
  const std::string text = printTrace(program, times, options);
  EXPECT_THAT(text, HasSubstr("\"dur\": 333333.333333"));
  EXPECT_THAT(text, HasSubstr("\"times\": \"thirds\""));
}

TEST(Trace, BytesWhereSizesAreKnown) {
  const Program program = makeProgram();
  const std::vector<std::vector<CommandTime>> times = getTimes(program);
  EXPECT_THAT(printTrace(program, times), Not(HasSubstr("bytes in use")));
  TraceOptions options;
  options.slotSize = [](SlotKind, uint32_t) { return uint64_t(4096); };
  const std::string text = printTrace(program, times, options);
  EXPECT_THAT(text, HasSubstr("\"name\": \"bytes in use\""));
  EXPECT_THAT(text, HasSubstr("\"saved\": 4096"));
}

} // namespace
