//===- EmittedTest.cpp - emitted steps in place of commands -----------------===//
//
// A step of the kind that --emit=cuda writes, but for any program: it issues what
// the program says through the calls of emitted.h. End-to-end tests build what is
// really written.
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"
#include "TestPrograms.h"

#include "test/support/BracketTransfers.h"

#include "dualpipe/Program/Digest.h"
#include "dualpipe/Runtime/Session.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::runtime;
using namespace dualpipe::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

/// Steps have no arguments of their own: what they issue, and what a test changes about it.
struct Script {
  const Program *program = nullptr;
  std::function<int(dp_step &)> instead; ///< of rank 0, where set
};
Script script;

class Walker : emitted::Step {
public:
  Walker(dp_step &given, const RankProgram &rank) : Step(given), rank(rank) {}
  int issue() {
    for (uint32_t i = 0; i != rank.commands.size(); ++i) {
      DP_AT(i, run(i));
      if (rank.commands[i].op == CommandOp::Pair || rank.commands[i].op == CommandOp::Group)
        i += rank.commands[i].arg;
    }
    return 0;
  }

private:
  int run(uint32_t index);
  int transfer(uint32_t index);
  int runGroup(uint32_t index);
  dp_step_call describe(uint32_t index) const;

  const RankProgram &rank;
};

dp_step_call Walker::describe(uint32_t index) const {
  const Launch &launch = rank.launches[rank.commands[index].arg];
  dp_step_call call = {uint32_t(launch.function), launch.stage, launch.microbatch,
                       launch.component,          launch.flags, {}};
  std::copy(launch.slots.begin(), launch.slots.end(), call.slots);
  return call;
}

int Walker::transfer(uint32_t index) {
  const Command &command = rank.commands[index];
  const Transfer &what = rank.transfers[command.arg];
  const emitted::Link link{{command.stream}};
  const bool isActivation = script.program->shared.channels[what.channel].kind == SlotKind::Output;
  const size_t bytes = isActivation ? input_bytes(what.stage) : grad_output_bytes(what.stage);
  if (command.op == CommandOp::Send)
    return ncclSend({what.slot}, bytes, ncclInt8, peer(link), comm(link), link);
  return ncclRecv({what.slot}, bytes, ncclInt8, peer(link), comm(link), link);
}

int Walker::runGroup(uint32_t index) {
  Group group(*this);
  DP_AT(index, group.ncclGroupStart());
  for (uint32_t i = 0; i != rank.commands[index].arg; ++i)
    DP_AT(index + 1 + i, transfer(index + 1 + i));
  DP_AT(index, group.ncclGroupEnd());
  return 0;
}

int Walker::run(uint32_t index) {
  const Command &command = rank.commands[index];
  const emitted::Stream stream{command.stream};
  switch (command.op) {
  case CommandOp::Launch: {
    const dp_step_call call = describe(index);
    return step->launch(step->run, command.stream, &call, 1);
  }
  case CommandOp::Pair: {
    std::vector<dp_step_call> calls;
    for (uint32_t i = 0; i != command.arg; ++i)
      calls.push_back(describe(index + 1 + i));
    return step->launch(step->run, command.stream, calls.data(), command.arg);
  }
  case CommandOp::Send:
  case CommandOp::Recv:
    return transfer(index);
  case CommandOp::Group:
    return runGroup(index);
  case CommandOp::Record:
    return cuEventRecord({command.arg}, stream);
  case CommandOp::Wait:
    return cuStreamWaitEvent(stream, {command.arg}, 0);
  case CommandOp::Reduce:
    return sum_gradients(stage(rank.reductions[command.arg].stage), {{command.stream}});
  case CommandOp::Step:
    return optimizer_step(stage(command.arg), stream);
  }
  return 1;
}

template <uint32_t number> int issueRank(dp_step *step) {
  if (number == 0 && script.instead)
    return script.instead(*step);
  return Walker(*step, script.program->ranks[number]).issue();
}
constexpr uint32_t kMaxRanks = 4;
using Issue = int (*)(dp_step *step);
constexpr Issue kIssue[kMaxRanks] = {issueRank<0>, issueRank<1>, issueRank<2>, issueRank<3>};

/// A program, a model, and the steps of all ranks.
struct Subject {
  explicit Subject(Program made, bool fused = false)
      : program(std::make_shared<const Program>(std::move(made))) {
    ModelOptions options;
    options.numStages = program->shared.numStages;
    options.numMicrobatches = program->shared.numMicrobatches;
    model = std::make_shared<const Model>(std::move(*Model::create(getTestModel(fused), options)));
    for (const RankProgram &rank : program->ranks)
      ranks.push_back({rank.rank, computeDigest(program->shared, rank), kIssue[rank.rank]});
    steps = {DP_STEP_ABI_VERSION,      sizeof steps,           "test",
             program->shared.numRanks, uint32_t(ranks.size()), ranks.data()};
    script.program = program.get();
  }

  Result<RunReport> run(bool isEmitted, uint32_t numSteps = 2) const {
    SessionOptions options;
    options.training = {7, numSteps, 0.05};
    options.timeoutSeconds = 60;
    options.device.jitterMicroseconds = 50;
    if (isEmitted) {
      Result<std::shared_ptr<const EmittedStep>> emitted = EmittedStep::create(steps, "test.so");
      if (!emitted.ok())
        return emitted.getStatus();
      options.emitted = *emitted;
    }
    Result<std::unique_ptr<Session>> session = Session::create(
        program, model, std::shared_ptr<const Optimizer>(std::move(*createOptimizer("sgd"))),
        options);
    if (!session.ok())
      return session.getStatus();
    return (*session)->run();
  }

  std::shared_ptr<const Program> program;
  std::shared_ptr<const Model> model;
  std::vector<dp_step_rank> ranks;
  dp_step_program steps;
};

class EmittedTest : public testing::Test {
protected:
  void SetUp() override {
    getHooks().reset();
    script = {};
  }
};

bool isEqual(const AlignedBuffer &a, const AlignedBuffer &b) {
  return a.size() == b.size() && (a.size() == 0 || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

void expectSameRun(const Subject &subject) {
  Result<RunReport> commands = subject.run(false);
  ASSERT_TRUE(commands.ok()) << commands.message();
  Result<RunReport> emitted = subject.run(true);
  ASSERT_TRUE(emitted.ok()) << emitted.message();
  EXPECT_EQ(commands->result.losses, emitted->result.losses);
  ASSERT_EQ(commands->result.copies.size(), emitted->result.copies.size());
  for (size_t i = 0; i != commands->result.copies.size(); ++i) {
    EXPECT_TRUE(isEqual(commands->result.copies[i].getParamBuffer(),
                        emitted->result.copies[i].getParamBuffer()));
    EXPECT_TRUE(isEqual(commands->result.copies[i].getGradBuffer(),
                        emitted->result.copies[i].getGradBuffer()));
  }
}

TEST_F(EmittedTest, RunsAsTheProgram) {
  expectSameRun(Subject(buildPipelines({.numRanks = 1})));
  expectSameRun(Subject(buildPipelines({.numRanks = 3, .splitBackward = true})));
  expectSameRun(Subject(buildPipelines({.numRanks = 4, .numMicrobatches = 8, .mirrored = true})));
  expectSameRun(Subject(buildPipelines({.numRanks = 2, .vShaped = true})));
  expectSameRun(Subject(buildPipelines({.numRanks = 3, .training = false})));
}

TEST_F(EmittedTest, Groups) {
  Program program = buildPipelines({.numRanks = 3});
  bracketTransfers(program);
  expectSameRun(Subject(program));
}

/// On one rank the forward of micro-batch 2 stands right before the backward of micro-batch 0.
Program buildWithPair() {
  Program program = buildPipelines({.numRanks = 1, .numMicrobatches = 4});
  RankProgram &rank = program.ranks[0];
  const uint32_t at = findLaunch(rank, Function::Backward, 0);
  rank.commands.insert(rank.commands.begin() + (at - 1), {CommandOp::Pair, 0, 2, 0});
  return program;
}

TEST_F(EmittedTest, PairsWithAndWithoutAFusedFunction) {
  expectSameRun(Subject(buildWithPair()));
  EXPECT_EQ(getHooks().fusedCalls, 0u);
  expectSameRun(Subject(buildWithPair(), /*fused=*/true));
  EXPECT_EQ(getHooks().fusedCalls, 4u); // two runs of two steps
}

//===--- Plug-ins that do not fit -------------------------------------------===//

std::string getMessage(const Subject &subject) {
  Result<RunReport> run = subject.run(true);
  return run.ok() ? "" : run.message();
}

TEST_F(EmittedTest, AnotherVersion) {
  Subject subject(buildPipelines({}));
  subject.steps.abi_version = 0;
  EXPECT_THAT(getMessage(subject),
              HasSubstr("test.so: built for another version of the step interface, expected 1, got "
                        "0; emit it again and build it with this emitted.h"));
  subject.steps.abi_version = DP_STEP_ABI_VERSION;
  subject.steps.struct_size = 8;
  EXPECT_THAT(getMessage(subject),
              AllOf(HasSubstr("its dp_step_program has 8 bytes, expected at least "),
                    HasSubstr("; build it with this emitted.h")));
}

TEST_F(EmittedTest, AnotherNumberOfRanks) {
  Subject subject(buildPipelines({.numRanks = 2}));
  subject.steps.num_ranks = 4;
  EXPECT_THAT(getMessage(subject),
              HasSubstr("test.so: the step of 'test' on 4 ranks, expected that "
                        "of 'test' on 2, which the program file holds"));
}

TEST_F(EmittedTest, ARankIsMissing) {
  Subject subject(buildPipelines({.numRanks = 2}));
  subject.steps.num_steps = 1;
  EXPECT_THAT(getMessage(subject),
              HasSubstr("test.so: there is no step for rank 1; emit all ranks"));
}

TEST_F(EmittedTest, AnotherProgram) {
  Subject subject(buildPipelines({.numRanks = 2}));
  subject.ranks[1].digest ^= 1;
  EXPECT_THAT(getMessage(subject),
              AllOf(HasSubstr("test.so: the step of rank 1 was emitted from another program "
                              "(digest "),
                    HasSubstr("the program file has "),
                    HasSubstr("); run the program file that --emit=cuda wrote beside it, or emit "
                              "and build it again")));
}

TEST_F(EmittedTest, NothingIsRecorded) {
  const Subject subject(buildPipelines({}));
  SessionOptions options;
  options.training = {7, 2, 0.05};
  options.numRecordedSteps = 1;
  options.emitted = *EmittedStep::create(subject.steps, "test.so");
  Result<std::unique_ptr<Session>> session = Session::create(
      subject.program, subject.model,
      std::shared_ptr<const Optimizer>(std::move(*createOptimizer("sgd"))), options);
  ASSERT_FALSE(session.ok());
  EXPECT_THAT(session.message(),
              HasSubstr("times of commands cannot be taken of an emitted step; trace, profile "
                        "and explain runs of the program file"));
}

/// A digest is of one rank: it is the same in a file of all ranks and in one of that rank.
TEST_F(EmittedTest, DigestIsOfARank) {
  const Program program = buildPipelines({.numRanks = 2});
  Program other = program;
  other.ranks[1].commands[0].arg ^= 1;
  EXPECT_EQ(computeDigest(program.shared, program.ranks[0]),
            computeDigest(other.shared, other.ranks[0]));
  EXPECT_NE(computeDigest(program.shared, program.ranks[1]),
            computeDigest(other.shared, other.ranks[1]));
  other.shared.numMicrobatches += 1;
  EXPECT_NE(computeDigest(program.shared, program.ranks[0]),
            computeDigest(other.shared, other.ranks[0]));
}

//===--- Steps that go wrong ------------------------------------------------===//

TEST_F(EmittedTest, AFailureNamesItsCommand) {
  const Subject subject(buildPipelines({.numRanks = 1}));
  getHooks().failStage = 0;
  const uint32_t at = findLaunch(subject.program->ranks[0], Function::Forward, 1);
  EXPECT_THAT(
      getMessage(subject),
      AllOf(HasSubstr(fmt::format("rank 0, command {}: forward of stage 0, micro-batch 1 (", at)),
            HasSubstr("failed: ")));
}

TEST_F(EmittedTest, AStepThatEndsEarly) {
  const Subject subject(buildPipelines({.numRanks = 1}));
  script.instead = [](dp_step &step) {
    step.command = 3;
    return 1;
  };
  EXPECT_THAT(getMessage(subject),
              AllOf(HasSubstr("rank 0, command 3: "),
                    HasSubstr(": the emitted step ended here without saying why")));
}

/// What a text names that was changed since it was written.
TEST_F(EmittedTest, WhatIsNotThere) {
  const Subject subject(buildPipelines({.numRanks = 1}));
  dp_step_call call = {DP_STEP_FORWARD, 0, 0, 0, 0, {}};
  std::fill(std::begin(call.slots), std::end(call.slots), DP_STEP_NO_SLOT);
  const auto expect = [&](const char *text, std::function<int(dp_step &)> instead) {
    script.instead = std::move(instead);
    EXPECT_THAT(getMessage(subject), HasSubstr(text));
  };
  expect("the emitted step names stream 9, expected a compute stream",
         [&](dp_step &step) { return step.launch(step.run, 9, &call, 1); });
  expect("the emitted step names stream 0, expected a reduce stream",
         [](dp_step &step) { return step.sum_gradients(step.run, 0, 0); });
  expect("the emitted step names stage 5, which the rank has no copy of",
         [](dp_step &step) { return step.optimizer_step(step.run, 0, 5); });
  expect("the emitted step is at command 999 of ", [&](dp_step &step) {
    step.command = 999;
    return step.launch(step.run, 0, &call, 1);
  });
  expect("the emitted step calls function 6 of micro-batch 0", [&](dp_step &step) {
    dp_step_call other = call;
    other.function = 6;
    return step.launch(step.run, 0, &other, 1);
  });
  expect("the emitted step has a launch without a call",
         [&](dp_step &step) { return step.launch(step.run, 0, &call, 0); });
  expect("the emitted step names slot 1000 of ", [&](dp_step &step) {
    dp_step_call other = call;
    other.slots[0] = 1000;
    return step.launch(step.run, 0, &other, 1);
  });
}

TEST_F(EmittedTest, APairThatIsTooLarge) {
  const Subject subject(buildWithPair(), /*fused=*/true);
  script.instead = [](dp_step &step) {
    dp_step_call call = {DP_STEP_FORWARD, 0, 0, 0, 0, {}};
    std::fill(std::begin(call.slots), std::end(call.slots), DP_STEP_NO_SLOT);
    const dp_step_call calls[3] = {call, call, call};
    return step.launch(step.run, 0, calls, 3);
  };
  EXPECT_THAT(
      getMessage(subject),
      HasSubstr("the emitted step has a pair of 3 calls, the largest of the program has 2"));
}

} // namespace
