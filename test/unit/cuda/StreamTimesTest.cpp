//===- StreamTimesTest.cpp - when commands ran, by the clock of a GPU -----------===//

#include "test/support/Subject.h"
#include "test/support/softrun/SoftRun.h"
#include "test/unit/runtime/TestPrograms.h"

#include "dualpipe/Runtime/Measured.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::runtime;
using namespace dualpipe::test;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

SoftRunOptions makeOptions(SoftTransport transport, uint64_t seed) {
  SoftRunOptions options;
  options.transport = transport;
  options.training = Subject::getTraining();
  options.gpu.seed = seed;
  options.timeoutSeconds = 20;
  options.numRecordedSteps = 1;
  return options;
}

Program makeMirrored() {
  return buildPipelines(
      {.numRanks = 4, .numMicrobatches = 8, .splitBackward = true, .mirrored = true});
}

/// Streams run in order, and nothing begins before what it waits for in its rank has ended. Other
/// ranks have a GPU with a clock of its own.
void expectInOrder(const Program &program, const Simulation &run) {
  for (uint32_t rank = 0; rank != program.ranks.size(); ++rank) {
    const RankProgram &own = program.ranks[rank];
    std::vector<Ticks> streams(own.streams.size());
    for (uint32_t i = 0; i != own.commands.size(); ++i) {
      if (own.commands[i].op == CommandOp::Group)
        continue;
      const CommandTime &time = run.commands[rank][i];
      EXPECT_LE(streams[own.commands[i].stream], time.start) << "rank " << rank << " at " << i;
      EXPECT_LE(time.start, time.end);
      streams[own.commands[i].stream] = time.end;
      if (time.after.rank == rank) {
        EXPECT_LE(run.commands[rank][time.after.command].end, time.start);
      }
    }
    EXPECT_GT(run.ranks[rank].firstStart, 0);
  }
}

TEST(StreamTimesTest, TimesFollowTheProgram) {
  const Program program = makeMirrored();
  for (const SoftTransport transport :
       {SoftTransport::Copies, SoftTransport::Nccl, SoftTransport::Folded})
    for (uint64_t seed = 0; seed != 3; ++seed) {
      const SoftRunResult result = runOnSoftGpus(program, makeOptions(transport, seed));
      ASSERT_EQ(result.failure, "");
      EXPECT_THAT(result.reports, IsEmpty());
      ASSERT_EQ(result.recordings.size(), 1u);
      Result<Simulation> run = readRecording(program, result.recordings[0]);
      ASSERT_TRUE(run.ok()) << run.message();
      EXPECT_GT(run->makespan, 0);
      expectInOrder(program, *run);
    }
}

TEST(StreamTimesTest, RecordedStepsComputeTheSame) {
  const Subject subject("", makeMirrored());
  const SoftRunResult run = runOnSoftGpus(subject.program, makeOptions(SoftTransport::Copies, 1));
  ASSERT_EQ(run.failure, "");
  EXPECT_EQ(subject.compare(run.result), "");
}

TEST(StreamTimesTest, Failures) {
  const auto fail = [](const char *function, uint32_t call) {
    SoftRunOptions options = makeOptions(SoftTransport::Copies, 0);
    options.gpu.faults = {{function, call, 999}};
    return runOnSoftGpus(buildPipelines({.numRanks = 2}), options).failure;
  };
  EXPECT_THAT(fail("cuEventElapsedTime", 3), HasSubstr("cuEventElapsedTime failed: "));
  EXPECT_THAT(fail("cuEventElapsedTime", 3), HasSubstr("rank "));
  // The events of the program come first, then those with times.
  const uint32_t numEvents = buildPipelines({.numRanks = 2}).ranks[0].numEvents;
  EXPECT_THAT(fail("cuEventCreate", numEvents + 3), HasSubstr("cuEventCreate failed: "));
  EXPECT_THAT(fail("cuEventCreate", numEvents + 9), HasSubstr("cuEventCreate failed: "));
  EXPECT_THAT(fail("cuEventRecord", 2), HasSubstr("cuEventRecord failed: "));
}

CommandSpan span(int64_t begin, int64_t end) { return {begin, end, 0, 0, 0}; }

/// Two ranks whose clocks differ: both ends of a transfer begin with the later one.
TEST(AlignEndsTest, TheLaterEndCounts) {
  const Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 2});
  StepRecording recording;
  std::vector<std::vector<uint32_t>> forwards(2); // by rank: transfers of the first channel
  for (uint32_t rank = 0; rank != 2; ++rank) {
    const RankProgram &own = program.ranks[rank];
    recording.ranks.emplace_back(own.commands.size());
    for (uint32_t i = 0; i != own.commands.size(); ++i)
      if (own.commands[i].op == CommandOp::Send || own.commands[i].op == CommandOp::Recv)
        if (own.transfers[own.commands[i].arg].channel == 0)
          forwards[rank].push_back(i);
  }
  ASSERT_EQ(forwards[0].size(), 2u);
  ASSERT_EQ(forwards[1].size(), 2u);
  const auto at = [&](uint32_t rank, size_t number) -> CommandSpan & {
    return recording.ranks[rank][forwards[rank][number]];
  };
  at(0, 0) = span(10, 30);
  at(1, 0) = span(5, 31);
  at(0, 1) = span(40, 42); // its clock is behind: it ends before the other one begins
  at(1, 1) = span(50, 60);
  alignEnds(program, recording);
  EXPECT_EQ(at(0, 0).begin, 10);
  EXPECT_EQ(at(1, 0).begin, 10);
  EXPECT_EQ(at(0, 0).end, 30);
  EXPECT_EQ(at(1, 0).end, 31);
  EXPECT_EQ(at(0, 1).begin, 42);
  EXPECT_EQ(at(0, 1).end, 42);
  EXPECT_EQ(at(1, 1).begin, 50);
  EXPECT_EQ(at(1, 1).end, 60);
}

} // namespace
