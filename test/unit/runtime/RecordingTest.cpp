//===- RecordingTest.cpp - when the commands of a step ran ------------------===//

#include "TestModel.h"
#include "TestPrograms.h"

#include "dualpipe/Runtime/Measured.h"
#include "dualpipe/Runtime/Session.h"

#include <gtest/gtest.h>

#include <optional>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::runtime;
using namespace dualpipe::test;

namespace {

Result<RunReport> record(std::shared_ptr<const Program> program, uint32_t numSteps,
                         uint32_t numRecorded, std::optional<uint32_t> onlyRank = {}) {
  ModelOptions modelOptions;
  modelOptions.numStages = program->shared.numStages;
  modelOptions.numMicrobatches = program->shared.numMicrobatches;
  auto model =
      std::make_shared<const Model>(std::move(*Model::create(getTestModel(false), modelOptions)));
  std::shared_ptr<const Optimizer> optimizer = std::move(*createOptimizer("sgd"));
  SessionOptions options;
  options.training = {7, numSteps, 0.05};
  options.timeoutSeconds = 60;
  options.numRecordedSteps = numRecorded;
  options.onlyRank = onlyRank;
  auto session = Session::create(program, model, optimizer, options);
  if (!session)
    return session.getStatus();
  return (*session)->run();
}

std::shared_ptr<const Program> makeMirrored() {
  return std::make_shared<const Program>(buildPipelines(
      {.numRanks = 4, .numMicrobatches = 8, .splitBackward = true, .mirrored = true}));
}

class RecordingTest : public testing::Test {
protected:
  void SetUp() override { getHooks().reset(); }
};

TEST_F(RecordingTest, NothingUnlessAskedFor) {
  Result<RunReport> report = record(makeMirrored(), 2, 0);
  ASSERT_TRUE(report.ok()) << report.message();
  EXPECT_TRUE(report->recordings.empty());
}

TEST_F(RecordingTest, TheLastStepsAreKept) {
  Result<RunReport> report = record(makeMirrored(), 3, 2);
  ASSERT_TRUE(report.ok()) << report.message();
  ASSERT_EQ(report->recordings.size(), 2u);
  EXPECT_EQ(report->recordings[0].step, 1u);
  EXPECT_EQ(report->recordings[1].step, 2u);
  report = record(makeMirrored(), 2, 5);
  ASSERT_EQ(report->recordings.size(), 2u);
}

/// Streams run in order, nothing begins before what it waits for has ended, and all
/// ends of a transfer have the same times.
TEST_F(RecordingTest, TimesFollowTheProgram) {
  auto program = makeMirrored();
  Result<RunReport> report = record(program, 3, 2);
  ASSERT_TRUE(report.ok()) << report.message();
  for (const StepRecording &recording : report->recordings) {
    Result<Simulation> run = readRecording(*program, recording);
    ASSERT_TRUE(run.ok()) << run.message();
    EXPECT_GT(run->makespan, 0);
    EXPECT_LE(double(run->makespan) * 1e-9, report->steps[recording.step].seconds);
    for (uint32_t rank = 0; rank != program->ranks.size(); ++rank) {
      const RankProgram &own = program->ranks[rank];
      std::vector<Ticks> streams(own.streams.size());
      for (uint32_t i = 0; i != own.commands.size(); ++i) {
        const CommandTime &time = run->commands[rank][i];
        EXPECT_LE(streams[own.commands[i].stream], time.start) << "rank " << rank << " at " << i;
        EXPECT_LE(time.start, time.end);
        streams[own.commands[i].stream] = time.end;
        if (!time.after.isNone()) {
          EXPECT_LE(run->commands[time.after.rank][time.after.command].end, time.start);
        }
      }
      EXPECT_EQ(run->ranks[rank].sends, rank == 0 || rank == 3 ? 8u : 16u);
      EXPECT_GT(run->ranks[rank].firstStart, 0);
    }
  }
}

/// A path of the measured run reaches back to the beginning of the step.
TEST_F(RecordingTest, ReportsOfMeasuredRunsAddUp) {
  auto program = makeMirrored();
  Result<RunReport> report = record(program, 2, 1);
  ASSERT_TRUE(report.ok()) << report.message();
  Result<Simulation> run = readRecording(*program, report->recordings[0]);
  ASSERT_TRUE(run.ok()) << run.message();
  const Prediction measured = describeRun(*program, SimulationCosts(), *run);
  Ticks path = 0;
  for (const PathShare &share : measured.criticalPath)
    path += share.time;
  EXPECT_LE(path, measured.makespan);
  EXPECT_GT(path, 0);
  // `pairs` is what the others leave: below 0 where a part were counted twice.
  for (const RankBubble &bubble : measured.bubbles) {
    EXPECT_EQ(bubble.total, bubble.warmUp + bubble.drain + bubble.slots + bubble.reductions +
                                bubble.cores + bubble.pairs + bubble.getPeers());
    for (Ticks part : {bubble.warmUp, bubble.drain, bubble.slots, bubble.reductions, bubble.cores,
                       bubble.pairs, bubble.getPeers()})
      EXPECT_GE(part, 0);
  }
}

TEST_F(RecordingTest, Errors) {
  auto program = makeMirrored();
  EXPECT_EQ(record(program, 2, 1, /*onlyRank=*/1).message(),
            "times are taken of all ranks together, expected a session of all of them, not of one");
  Result<Simulation> run = readRecording(*program, {});
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.message(), "the recording is empty: no step was recorded");
  Result<RunReport> report = record(program, 2, 1);
  ASSERT_TRUE(report.ok()) << report.message();
  report->recordings[0].ranks[2].pop_back();
  run = readRecording(*program, report->recordings[0]);
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.message(),
            "the recording of step 1 is not of this program: it has other ranks or commands");
}

} // namespace
