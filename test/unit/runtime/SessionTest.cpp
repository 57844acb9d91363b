//===- SessionTest.cpp - whole programs on threads --------------------------===//

#include "TestModel.h"
#include "TestPrograms.h"

#include "dualpipe/Program/Memory.h"
#include "dualpipe/Program/Verify.h"
#include "dualpipe/Runtime/Session.h"
#include "runtime/device/cpu/CpuStream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::runtime;
using namespace dualpipe::test;
using testing::HasSubstr;

namespace {

std::shared_ptr<const Model> makeModel(const Program &program, bool fused = false) {
  ModelOptions options;
  options.numStages = program.shared.numStages;
  options.numMicrobatches = program.shared.numMicrobatches;
  Result<Model> model = Model::create(getTestModel(fused), options);
  EXPECT_TRUE(model.ok()) << model.message();
  return std::make_shared<const Model>(std::move(*model));
}

std::shared_ptr<const Optimizer> makeOptimizer() {
  return std::shared_ptr<const Optimizer>(std::move(*createOptimizer("sgd")));
}

Result<std::unique_ptr<Session>> makeSession(Program program, const SessionOptions &options) {
  auto shared = std::make_shared<const Program>(std::move(program));
  return Session::create(shared, makeModel(*shared), makeOptimizer(), options);
}

SessionOptions makeOptions(uint32_t steps = 1) {
  SessionOptions options;
  options.training = {7, steps, 0.05};
  options.timeoutSeconds = 60;
  return options;
}

/// Runs a program and holds it against its sequential replay.
void runAndCheck(Program program, const SessionOptions &options, bool fused = false) {
  ASSERT_TRUE(toStatus(program, verifyProgram(program)).ok())
      << toStatus(program, verifyProgram(program)).message();
  auto shared = std::make_shared<const Program>(std::move(program));
  auto model = makeModel(*shared, fused);
  auto optimizer = makeOptimizer();
  auto session = Session::create(shared, model, optimizer, options);
  ASSERT_TRUE(session.ok()) << session.message();
  Result<RunReport> report = (*session)->run();
  ASSERT_TRUE(report.ok()) << report.message();
  ASSERT_EQ(report->steps.size(), options.training.numSteps);
  EXPECT_NE(report->steps.back().loss, 0.0);
  Result<CheckReport> check =
      checkRun(*model, *shared, *optimizer, options.training, report->result);
  ASSERT_TRUE(check.ok()) << check.message();
  EXPECT_TRUE(check->passed) << check->getText();
}

class SessionTest : public testing::Test {
protected:
  void SetUp() override { getHooks().reset(); }
};

TEST_F(SessionTest, OneRank) { runAndCheck(buildPipelines({.numRanks = 1}), makeOptions()); }

TEST_F(SessionTest, OneRankThatIsNotThere) {
  SessionOptions options = makeOptions();
  options.onlyRank = 3;
  EXPECT_EQ(makeSession(buildPipelines({.numRanks = 2}), options).message(),
            "the program file holds 2 of 2 ranks, expected rank 3; compile it without --only-rank");
}

TEST_F(SessionTest, PipelineOfFourRanksOverSeveralSteps) {
  runAndCheck(buildPipelines({.numRanks = 4, .numMicrobatches = 8}), makeOptions(5));
}

TEST_F(SessionTest, SplitBackward) {
  runAndCheck(buildPipelines({.numRanks = 3, .numMicrobatches = 6, .splitBackward = true}),
              makeOptions(3));
}

TEST_F(SessionTest, MirroredPipelinesSumTheirCopies) {
  runAndCheck(buildPipelines({.numRanks = 4, .numMicrobatches = 12, .mirrored = true}),
              makeOptions(4));
}

TEST_F(SessionTest, VShapeHandsOverAtItsTurn) {
  runAndCheck(buildPipelines({.numRanks = 3, .numMicrobatches = 6, .vShaped = true}),
              makeOptions(2));
}

/// On one rank the forward of micro-batch 2 stands right before the backward of micro-batch 0.
Program buildWithPair() {
  Program program = buildPipelines({.numRanks = 1, .numMicrobatches = 4});
  RankProgram &rank = program.ranks[0];
  for (uint32_t i = 0; i != rank.commands.size(); ++i)
    if (rank.commands[i].op == CommandOp::Launch &&
        rank.launches[rank.commands[i].arg].function == Function::Backward) {
      rank.commands.insert(rank.commands.begin() + (i - 1), {CommandOp::Pair, 0, 2, 0});
      break;
    }
  return program;
}

TEST_F(SessionTest, PairRunsInTurnWithoutAFusedFunction) {
  runAndCheck(buildWithPair(), makeOptions(2));
  EXPECT_EQ(getHooks().fusedCalls, 0u);
}

TEST_F(SessionTest, PairRunsAsOneWithAFusedFunction) {
  auto shared = std::make_shared<const Program>(buildWithPair());
  auto session = Session::create(shared, makeModel(*shared, true), makeOptimizer(), makeOptions(2));
  ASSERT_TRUE(session.ok()) << session.message();
  // Every member has scratch memory of its own.
  EXPECT_EQ((*session)->getMemory()[0].workspace, 2u * 64);
  ASSERT_TRUE((*session)->run().ok());
  EXPECT_EQ(getHooks().fusedCalls, 2u);
  runAndCheck(buildWithPair(), makeOptions(2), /*fused=*/true);
}

TEST_F(SessionTest, RandomDelaysChangeNothing) {
  for (uint64_t seed = 1; seed != 4; ++seed) {
    SessionOptions options = makeOptions(2);
    options.device.jitterMicroseconds = 200;
    options.device.jitterSeed = seed;
    runAndCheck(buildPipelines(
                    {.numRanks = 4, .numMicrobatches = 6, .splitBackward = true, .mirrored = true}),
                options);
    runAndCheck(buildPipelines({.numRanks = 2, .numMicrobatches = 4, .vShaped = true}), options);
  }
}

TEST_F(SessionTest, TwoRunsGiveTheSameBytes) {
  std::vector<std::vector<double>> losses;
  for (uint64_t seed : {11, 12}) {
    SessionOptions options = makeOptions(3);
    options.device.jitterMicroseconds = 100;
    options.device.jitterSeed = seed;
    auto session = makeSession(
        buildPipelines({.numRanks = 4, .numMicrobatches = 8, .mirrored = true}), options);
    ASSERT_TRUE(session.ok()) << session.message();
    Result<RunReport> report = (*session)->run();
    ASSERT_TRUE(report.ok()) << report.message();
    losses.push_back(report->result.losses);
  }
  ASSERT_EQ(losses[0].size(), losses[1].size());
  EXPECT_EQ(std::memcmp(losses[0].data(), losses[1].data(), losses[0].size() * sizeof(double)), 0);
}

TEST_F(SessionTest, ForwardOnly) {
  Program program = buildPipelines({.numRanks = 3, .numMicrobatches = 5, .training = false});
  auto session = makeSession(std::move(program), makeOptions());
  ASSERT_TRUE(session.ok()) << session.message();
  Result<RunReport> report = (*session)->run();
  ASSERT_TRUE(report.ok()) << report.message();
  for (double loss : report->result.losses)
    EXPECT_GT(loss, 0.0);
}

TEST_F(SessionTest, StepsAreReportedInOrder) {
  SessionOptions options = makeOptions(4);
  std::vector<uint32_t> seen;
  options.onStep = [&](const StepReport &report) { seen.push_back(report.step); };
  auto session = makeSession(buildPipelines({}), options);
  ASSERT_TRUE(session.ok()) << session.message();
  ASSERT_TRUE((*session)->run().ok());
  EXPECT_EQ(seen, (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_THAT((*session)->run().message(), HasSubstr("runs once"));
}

TEST_F(SessionTest, MemoryIsThatOfTheSlots) {
  auto session = makeSession(buildPipelines({.numRanks = 2, .numMicrobatches = 2}), makeOptions());
  ASSERT_TRUE(session.ok()) << session.message();
  const std::vector<RankMemory> memory = (*session)->getMemory();
  ASSERT_EQ(memory.size(), 2u);
  // Rank 0, per micro-batch: input, output, saved, incoming gradient; 64 bytes each.
  EXPECT_EQ(memory[0].slots.arenaBytes, 2u * 4 * 64);
  EXPECT_EQ(memory[0].weights, 64u);
  EXPECT_EQ(memory[0].gradients, 64u);
  EXPECT_EQ(memory[0].optimizerState, 0u);
  EXPECT_EQ(memory[0].workspace, 64u);
}

TEST_F(SessionTest, ArenaIsWhatTheProgramSays) {
  const Program program = buildPipelines({.numRanks = 3, .splitBackward = true, .vShaped = true});
  auto session = makeSession(program, makeOptions());
  ASSERT_TRUE(session.ok()) << session.message();
  const std::vector<RankMemory> memory = (*session)->getMemory();
  for (const RankProgram &rank : program.ranks) {
    const SlotUse use =
        measureSlots(rank, program.shared, [](SlotKind, uint32_t) { return uint64_t(64); });
    EXPECT_EQ(use.arenaBytes, memory[rank.rank].slots.arenaBytes);
    EXPECT_LE(use.liveBytes, use.arenaBytes);
  }
}

TEST_F(SessionTest, MemoryIsKnownAfterTheRunToo) {
  auto session = makeSession(buildPipelines({.numRanks = 3}), makeOptions());
  ASSERT_TRUE(session.ok()) << session.message();
  ASSERT_TRUE((*session)->run().ok()); // the report takes the copies with it
  for (const RankMemory &memory : (*session)->getMemory())
    EXPECT_EQ(memory.weights + memory.gradients, 2u * 64);
}

TEST_F(SessionTest, SlotsThatNoMemoryHoldsAreRejected) {
  getHooks().extent = int64_t(1) << 43; // 2^46 bytes, the most that a model may say
  EXPECT_EQ(
      makeSession(buildPipelines({.numRanks = 2, .numMicrobatches = 2}), makeOptions()).message(),
      "rank 0 has not enough memory for 562949953421312 bytes");
}

TEST_F(SessionTest, TooManyLossesAreRejected) {
  const Program program = buildPipelines({.numRanks = 1, .numMicrobatches = 1024});
  EXPECT_EQ(makeSession(program, makeOptions(1u << 24)).message(),
            "16777216 steps of 1024 micro-batches have 17179869184 losses, expected at most "
            "134217728; run fewer steps");
  const Result<Replay> replayed =
      replay(*makeModel(program), program, *makeOptimizer(), makeOptions(1u << 24).training);
  EXPECT_THAT(replayed.message(), HasSubstr("run fewer steps"));
}

TEST(JitterTest, NeighbouringSeedsPauseDifferently) {
  std::set<std::vector<uint32_t>> sequences;
  for (uint64_t seed = 0; seed != 100; ++seed) {
    Jitter jitter(seed, 1000);
    std::vector<uint32_t> sequence(64);
    for (uint32_t &pause : sequence)
      pause = jitter.draw();
    sequences.insert(sequence);
  }
  EXPECT_EQ(sequences.size(), 100u);
}

TEST_F(SessionTest, FailingStageFunctionStopsEveryRank) {
  getHooks().failStage = 2;
  auto session = makeSession(buildPipelines({.numRanks = 4, .numMicrobatches = 8}), makeOptions(3));
  ASSERT_TRUE(session.ok()) << session.message();
  Result<RunReport> report = (*session)->run();
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.message(), HasSubstr("the test asked for a failure"));
  EXPECT_THAT(report.message(), HasSubstr("stage 2, micro-batch 1"));
  EXPECT_THAT(report.message(), HasSubstr("rank 2"));
  EXPECT_THAT(report.message(), HasSubstr("test.pipe:"));
  EXPECT_FALSE((*session)->hasStuckThread());
}

/// Rank 0 keeps the activation back until its gradient has come: rejected by D3, stuck when run all
/// the same.
Program buildDeadlock() {
  Program program;
  program.shared = makeShared(2, 1);
  const uint32_t down = addChannel(program.shared, 0, 1, SlotKind::Output);
  const uint32_t up = addChannel(program.shared, 1, 0, SlotKind::GradInput);

  RankBuilder first(program.shared, 0);
  const uint32_t input = first.addSlot(SlotKind::Input), output = first.addSlot(SlotKind::Output);
  const uint32_t gradient = first.addSlot(SlotKind::GradOutput);
  const uint32_t saved = first.addSlot(SlotKind::Saved);
  const uint32_t ready = first.addEvent(), arrived = first.addEvent();
  first.launch(Function::LoadInput, 0, 0, {{SlotKind::Input, input}});
  first.launch(Function::Forward, 0, 0,
               {{SlotKind::Input, input}, {SlotKind::Output, output}, {SlotKind::Saved, saved}});
  first.record(0, ready);
  first.recv(up, gradient, 0, 0);
  first.record(first.getStream(StreamKind::Recv, up), arrived);
  const uint16_t sending = first.getStream(StreamKind::Send, down);
  first.wait(sending, ready);
  first.wait(sending, arrived);
  first.send(down, output, 1, 0);
  first.wait(0, arrived);
  first.launch(Function::Backward, 0, 0,
               {{SlotKind::GradOutput, gradient}, {SlotKind::Saved, saved}});
  program.ranks.push_back(first.finish());

  Program straight = buildPipelines({.numRanks = 2, .numMicrobatches = 1});
  RankProgram second = straight.ranks[1];
  for (Command &command : second.commands) {
    program.shared.locations.push_back({0, uint32_t(program.shared.locations.size()) + 1, 5});
    command.loc = uint32_t(program.shared.locations.size()) - 1;
  }
  program.ranks.push_back(std::move(second));
  sealChannels(program);
  return program;
}

TEST_F(SessionTest, WatchdogNamesWhatEachRankWaitsFor) {
  Program program = buildDeadlock();
  const Verdict verdict = verifyProgram(program);
  ASSERT_TRUE(verdict);
  EXPECT_STREQ(verdict->id, "D3") << toStatus(program, verdict).message();

  SessionOptions options = makeOptions();
  options.timeoutSeconds = 0.2;
  auto session = makeSession(std::move(program), options);
  ASSERT_TRUE(session.ok()) << session.message();
  Result<RunReport> report = (*session)->run();
  ASSERT_FALSE(report.ok());
  EXPECT_FALSE((*session)->hasStuckThread());
  EXPECT_THAT(report.message(), HasSubstr("no progress for 0.2 s"));
  EXPECT_THAT(report.message(), HasSubstr("rank 0, command 3: recv of the gradient for stage 0, "
                                          "micro-batch 0 from rank 1 (test.pipe:"));
  EXPECT_THAT(report.message(), HasSubstr("rank 1, command 0: recv of the activation for stage 1, "
                                          "micro-batch 0 from rank 0 (test.pipe:"));
}

TEST_F(SessionTest, EndsOfDifferentCompilationsAreRejected) {
  Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 3});
  for (Transfer &transfer : program.ranks[1].transfers)
    if (program.shared.channels[transfer.channel].destination == 1 && transfer.microbatch == 2)
      transfer.microbatch = 1;
  EXPECT_THAT(makeSession(std::move(program), makeOptions()).message(),
              HasSubstr("different sequences: 3 transfers with digest"));
}

TEST_F(SessionTest, WatchdogReportsARankThatNeverAnswers) {
  getHooks().hangStage = 0;
  SessionOptions options = makeOptions();
  options.timeoutSeconds = 0.2;
  auto session = makeSession(buildPipelines({.numRanks = 2, .numMicrobatches = 3}), options);
  ASSERT_TRUE(session.ok()) << session.message();
  Result<RunReport> report = (*session)->run();
  ASSERT_FALSE(report.ok());
  EXPECT_TRUE((*session)->hasStuckThread());
  EXPECT_THAT(report.message(), HasSubstr("no progress for 0.2 s"));
  EXPECT_THAT(report.message(), HasSubstr("forward of stage 0, micro-batch 1"));
  EXPECT_THAT(report.message(), HasSubstr("recv of the activation for stage 1, micro-batch 1 from "
                                          "rank 0 (test.pipe:"));
  EXPECT_THAT(report.message(), HasSubstr("(recv)"));
  // Let the thread end before the hooks are used again.
  getHooks().released = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

TEST_F(SessionTest, MissingRanksAreRejected) {
  Program program = buildPipelines({.numRanks = 3});
  program.ranks.pop_back();
  EXPECT_THAT(makeSession(std::move(program), makeOptions()).message(),
              HasSubstr("holds 2 of 3 ranks"));
}

} // namespace
