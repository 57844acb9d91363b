//===- MutantTest.cpp - broken programs, without the compiler ---------------===//
//
// What test/unit/mutation does with the examples, with a few programs built by hand:
// this one runs under the sanitizers too.
//
//===----------------------------------------------------------------------===//

#include "TestPrograms.h"

#include "test/support/Tally.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::test;

namespace {

Subjects makeSubjects() {
  const std::pair<const char *, PipelineOptions> all[] = {
      {"one pipeline", {.numRanks = 3, .numMicrobatches = 4}},
      {"split backward", {.numRanks = 2, .numMicrobatches = 4, .splitBackward = true}},
      {"two pipelines", {.numRanks = 2, .numMicrobatches = 4, .mirrored = true}},
      {"two stages a rank", {.numRanks = 2, .numMicrobatches = 3, .vShaped = true}},
      {"forward only", {.numRanks = 2, .numMicrobatches = 3, .training = false}}};
  Subjects subjects;
  for (const auto &[name, options] : all)
    subjects.push_back(std::make_unique<Subject>(name, buildPipelines(options)));
  return subjects;
}

/// These programs have a slot for every value, so P4 is left out.
TEST(Mutant, IsReportedOrMakesNoDifference) {
  const Subjects subjects = makeSubjects();
  for (const auto &subject : subjects)
    ASSERT_TRUE(toStatus(subject->program, verifyProgram(subject->program)).ok()) << subject->name;
  unsigned numReported = 0, numEquivalent = 0;
  uint64_t seed = 1000;
  for (const Mutation &mutation : getMutations()) {
    const Tally tally = judge(mutation, subjects, verifyProgram, 10, ++seed);
    for (const std::string &finding : tally.findings)
      ADD_FAILURE() << finding;
    numEquivalent += tally.numEquivalent;
    numReported += tally.numMutants - tally.numEquivalent - tally.numHoles;
  }
  EXPECT_GT(numReported, 300u);
  EXPECT_GT(numEquivalent, 50u);
}

} // namespace
