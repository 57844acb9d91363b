//===- ExplainTest.cpp - predicted against measured -------------------------===//

#include "test/unit/runtime/TestPrograms.h"

#include "dualpipe/Runtime/Explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::runtime;
using namespace dualpipe::test;
using testing::HasSubstr;

namespace {

/// What a run would record that took just the times of a simulation.
StepRecording record(const Program &program, const SimulationCosts &costs, uint32_t step) {
  Result<Simulation> run = simulate(program, costs, true);
  EXPECT_TRUE(run.ok()) << run.message();
  StepRecording recording{step, {}};
  for (const std::vector<CommandTime> &commands : run->commands) {
    std::vector<CommandSpan> &spans = recording.ranks.emplace_back();
    for (const CommandTime &time : commands)
      spans.push_back({time.start, time.end, time.end - time.start, time.end - time.start, 0});
  }
  return recording;
}

Profile measure(const Program &program, const std::vector<StepRecording> &recordings) {
  ModelSizes sizes;
  sizes.stages.resize(program.shared.numStages);
  ProfileOrigin origin;
  origin.schedule = program.shared.schedule;
  origin.stages = program.shared.numStages;
  Result<Profile> profile = measureProfile(program, recordings, origin, sizes);
  EXPECT_TRUE(profile.ok()) << profile.message();
  return std::move(*profile);
}

/// A device that does what is simulated is explained without a rest.
TEST(Explain, ARunLikeItsPrediction) {
  const Program program = buildPipelines({.numRanks = 4, .numMicrobatches = 12, .mirrored = true});
  const SimulationCosts costs =
      *SimulationCosts::parse("fwd=1,bwd=2,transfer=0.25,reduce=0.5,step=0.125");
  const std::vector<StepRecording> recordings = {record(program, costs, 1)};
  Result<Explanation> explanation =
      explain(program, measure(program, recordings), recordings, /*cores=*/8);
  ASSERT_TRUE(explanation.ok()) << explanation.message();
  EXPECT_EQ(explanation->predicted.prediction.makespan, explanation->measured.prediction.makespan);
  EXPECT_EQ(explanation->predicted.ranks, explanation->measured.ranks);
  const std::string text = printExplanation(*explanation);
  EXPECT_THAT(text, HasSubstr("measured / predicted: 1.000"));
  EXPECT_THAT(text, HasSubstr("measured in step 1 (the median of 1)"));
  EXPECT_THAT(printExplanationJson(*explanation), HasSubstr("\"ratio\":1.0"));
}

/// The times of a rank add up to the makespan, so differences add up to the difference.
TEST(Explain, TheStepInTheMiddle) {
  const Program program = buildPipelines({.numRanks = 3, .numMicrobatches = 6});
  std::vector<StepRecording> recordings;
  for (const auto &[step, fwd] :
       {std::pair(0, "9"), std::pair(1, "1"), std::pair(2, "3"), std::pair(3, "2")})
    recordings.push_back(
        record(program, *SimulationCosts::parse(std::string("bwd=2,fwd=") + fwd), uint32_t(step)));
  Result<Explanation> explanation =
      explain(program, measure(program, recordings), recordings, /*cores=*/2);
  ASSERT_TRUE(explanation.ok()) << explanation.message();
  EXPECT_EQ(explanation->step, 3u);
  EXPECT_EQ(explanation->numSteps, 3u);
  EXPECT_EQ(explanation->predicted.prediction.costs.cores, 2u);
  for (const ExplainedRun *run : {&explanation->predicted, &explanation->measured})
    for (const RankTimeByKind &rank : run->ranks) {
      Ticks sum = 0;
      for (const Ticks time : rank)
        sum += time;
      EXPECT_EQ(sum, run->prediction.makespan);
    }
  EXPECT_GT(explanation->predicted.prediction.makespan, explanation->measured.prediction.makespan);
  EXPECT_THAT(printExplanation(*explanation), HasSubstr("3 ranks share 2 cores\n"));
}

TEST(Explain, Errors) {
  const Program program = buildPipelines({});
  const std::vector<StepRecording> recordings = {record(program, SimulationCosts(), 0),
                                                 record(program, SimulationCosts(), 1)};
  const Profile profile = measure(program, recordings);
  Result<Explanation> explanation = explain(program, profile, {recordings[0]}, 2);
  ASSERT_FALSE(explanation.ok());
  EXPECT_EQ(explanation.message(), "no step after the first was recorded, expected at least two "
                                   "steps to compare with");
}

} // namespace
