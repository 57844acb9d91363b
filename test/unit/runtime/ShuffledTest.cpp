//===- ShuffledTest.cpp - programs in random legal orders -------------------===//

#include "TestModel.h"
#include "TestPrograms.h"

#include "dualpipe/Program/Verify.h"
#include "dualpipe/Runtime/ShuffledDevice.h"
#include "dualpipe/Runtime/ShuffledRun.h"
#include "test/support/ExactModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::runtime;
using namespace dualpipe::test;
using testing::HasSubstr;

namespace {

constexpr TrainingOptions kTraining = {.seed = 7, .numSteps = 2, .learningRate = 0.05};
constexpr uint64_t kSeeds = 50;

Model makeModel(const Program &program, const dp_model_api &api) {
  ModelOptions options;
  options.numStages = program.shared.numStages;
  options.numMicrobatches = program.shared.numMicrobatches;
  return std::move(*Model::create(api, options));
}

Result<RunReport> run(const Program &program, uint64_t seed,
                      const dp_model_api &api = getTestModel()) {
  return runShuffled(makeModel(program, api), program, **createOptimizer("sgd"), kTraining, seed);
}

/// The findings of all runs, each once; "" is a run that agrees with the replay of `original`.
std::set<std::string> runAll(const Program &program, const Program &original,
                             const dp_model_api &api = getTestModel()) {
  const Model model = makeModel(original, api);
  Result<Replay> reference = replay(model, original, **createOptimizer("sgd"), kTraining);
  EXPECT_TRUE(reference.ok()) << reference.message();
  std::set<std::string> findings;
  for (uint64_t seed = 0; seed != kSeeds; ++seed) {
    Result<RunReport> result = run(program, seed, api);
    if (!result.ok())
      findings.insert(result.message());
    else if (!compareRuns(result->result, reference->result, nullptr).passed)
      findings.insert("differs");
    else
      findings.insert("");
  }
  return findings;
}

void expectRight(const PipelineOptions &options) {
  const Program program = buildPipelines(options);
  EXPECT_THAT(runAll(program, program), testing::ElementsAre(""));
}

CommandRef find(const Program &program, uint32_t rank, CommandOp op, size_t number = 0) {
  const std::vector<Command> &commands = program.ranks[rank].commands;
  for (uint32_t i = 0; i != commands.size(); ++i)
    if (commands[i].op == op && number-- == 0)
      return {rank, i};
  ADD_FAILURE() << "the program has no such command";
  return {};
}

void erase(Program &program, CommandRef ref) {
  std::vector<Command> &commands = program.ranks[ref.rank].commands;
  commands.erase(commands.begin() + ref.command);
}

class ShuffledTest : public testing::Test {
protected:
  void SetUp() override { getHooks().reset(); }
};

TEST_F(ShuffledTest, EveryOrderOfACorrectProgramIsRight) {
  for (const PipelineOptions &pipelines : kPipelines)
    expectRight(pipelines);
}

TEST_F(ShuffledTest, TheSameSeedGivesTheSameOrder) {
  Program program = buildPipelines({.numRanks = 2});
  erase(program, find(program, 1, CommandOp::Wait));
  for (uint64_t seed = 0; seed != kSeeds; ++seed) {
    Result<RunReport> one = run(program, seed), two = run(program, seed);
    ASSERT_TRUE(one.ok() && two.ok());
    EXPECT_EQ(one->result.losses, two->result.losses);
  }
}

TEST_F(ShuffledTest, AMissingWaitShows) {
  const Program original = buildPipelines({.numRanks = 2});
  for (uint32_t rank = 0; rank != 2; ++rank) {
    Program program = original;
    erase(program, find(program, rank, CommandOp::Wait));
    ASSERT_STREQ(verifyProgram(program)->id, "P2");
    EXPECT_THAT(runAll(program, original), testing::Contains("differs"));
  }
}

TEST_F(ShuffledTest, AWaitForAnEventThatNothingRecordsOrdersNothing) {
  const Program original = buildPipelines({.numRanks = 2});
  Program program = original;
  erase(program, find(program, 1, CommandOp::Record));
  ASSERT_STREQ(verifyProgram(program)->id, "P1");
  EXPECT_THAT(runAll(program, original), testing::Contains("differs"));
}

TEST_F(ShuffledTest, ALostReceiveIsStuckAndSaysWhere) {
  Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 1});
  const CommandRef send = find(program, 0, CommandOp::Send);
  erase(program, send);
  Result<RunReport> result = run(program, 0);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.message(), HasSubstr("nothing can go on; what each rank waits for:\n  rank 0, "
                                          "command "));
  EXPECT_THAT(result.message(), HasSubstr("rank 1, command 0: recv of the activation for stage 1, "
                                          "micro-batch 0 from rank 0"));
}

/// Stuck where a send blocks, and done where it does not: both are legal.
TEST_F(ShuffledTest, SendsAreEagerOrRendezvous) {
  const Program original = buildPipelines({.numRanks = 2, .numMicrobatches = 2, .mirrored = true});
  Program program = original;
  for (RankProgram &rank : program.ranks) { // both send on the stream that they receive on, first
    const uint32_t send = find(original, rank.rank, CommandOp::Send).command;
    const uint32_t recv = find(original, rank.rank, CommandOp::Recv).command;
    rank.commands[send].stream = rank.commands[recv].stream;
    if (recv < send)
      std::rotate(rank.commands.begin() + recv, rank.commands.begin() + recv + 1,
                  rank.commands.begin() + send + 1);
  }
  size_t numStuck = 0, numDone = 0;
  for (const std::string &finding : runAll(program, original))
    ++(finding.rfind("nothing can go on", 0) == 0 ? numStuck : numDone);
  EXPECT_NE(numStuck, 0u);
  EXPECT_NE(numDone, 0u);
}

/// The second member reads what the first one writes.
TEST_F(ShuffledTest, MembersOfAPairComeInAnyOrder) {
  const Program original = buildPipelines({.numRanks = 1, .numMicrobatches = 1});
  Program program = original;
  RankProgram &rank = program.ranks[0];
  const CommandRef first = find(program, 0, CommandOp::Launch, 0);
  ASSERT_EQ(rank.commands[first.command + 1].op, CommandOp::Launch);
  Command pair = rank.commands[first.command];
  pair.op = CommandOp::Pair;
  pair.arg = 3; // load_input, load_labels, forward
  rank.commands.insert(rank.commands.begin() + first.command, pair);
  EXPECT_THAT(runAll(program, original), testing::Contains("differs"));
}

TEST_F(ShuffledTest, FailuresOfStageFunctionsComeOut) {
  getHooks().failStage = 1;
  Result<RunReport> result = run(buildPipelines({.numRanks = 2}), 3);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.message(), HasSubstr("the test asked for a failure"));
}

/// Keeps what a device reports.
struct Failures : FailureSink {
  void fail(Status status) override { text = status.message(); }
  std::string text;
};

TEST_F(ShuffledTest, EndsOfATransferAgreeInSize) {
  const Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 1});
  Failures failures;
  ShuffledHub hub(program.shared, failures, 1);
  ShuffledHub::Rank sender = hub.connect(program.ranks[0]),
                    receiver = hub.connect(program.ranks[1]);
  const CommandRef send = find(program, 0, CommandOp::Send),
                   recv = find(program, 1, CommandOp::Recv);
  double data[2] = {};
  const uint32_t sendStream = program.ranks[0].commands[send.command].stream;
  const uint32_t recvStream = program.ranks[1].commands[recv.command].stream;
  ASSERT_TRUE(sender.transport->send(sendStream, send.command, 0, data, 8).ok());
  ASSERT_TRUE(receiver.transport->recv(recvStream, recv.command, 0, data, 16).ok());
  EXPECT_FALSE(sender.device->synchronize());
  EXPECT_EQ(failures.text, "8 bytes arrived on channel 0, expected 16");
  EXPECT_FALSE(hub.isStuck());
}

TEST_F(ShuffledTest, SaysThatMemoryRunsOut) {
  const Program program = buildPipelines({.numRanks = 2});
  Failures failures;
  ShuffledHub hub(program.shared, failures, 1);
  Result<void *> memory = hub.connect(program.ranks[0]).device->allocate(size_t(1) << 60);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.message(), "rank 0 has not enough memory for 1152921504606846976 bytes");
}

TEST_F(ShuffledTest, NeedsAllRanks) {
  Program program = buildPipelines({.numRanks = 2});
  program.ranks.pop_back();
  Result<RunReport> result = run(program, 0);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.message(), "expected the programs of all 2 ranks, got 1");
}

/// The exact model sums gradients without rounding, and still sees what it is meant to see.
TEST_F(ShuffledTest, TheExactModelTellsProgramsApart) {
  const Program original = buildPipelines({.numRanks = 2, .numMicrobatches = 4});
  EXPECT_THAT(runAll(original, original, getExactModel()), testing::ElementsAre(""));
  Program program = original;
  erase(program, find(program, 0, CommandOp::Step));
  EXPECT_THAT(runAll(program, original, getExactModel()), testing::ElementsAre("differs"));
}

} // namespace
