//===- ReferenceTest.cpp - replaying programs in sequence -------------------===//

#include "FakeModel.h"
#include "TestSupport.h"

#include "runtime/reference/ReplayValues.h"

using namespace dualpipe;
using namespace dualpipe::runtime;
using namespace dualpipe::runtime::test;
using dualpipe::program::Function;
using dualpipe::program::Program;
using testing::ElementsAre;

namespace {

constexpr Function F = Function::Forward, B = Function::Backward, I = Function::BackwardInput,
                   W = Function::BackwardWeight;

const Settings kSingle = {{"hidden", "16"}, {"seq", "4"}, {"batch", "2"}};
const Settings kDouble = {{"hidden", "16"}, {"seq", "4"}, {"batch", "2"}, {"dtype", "f64"}};

/// One rank, one stage, three micro-batches, the second one's backward split.
Program makeOneRank() {
  ProgramBuilder builder(1, 1, 3);
  builder.pipeline(0, 3, {0});
  for (Op op : {Op{F, 0, 0}, {F, 0, 1}, {B, 0, 0}, {I, 0, 1}, {F, 0, 2}, {W, 0, 1}, {B, 0, 2}})
    builder.op(0, op);
  return builder.step(0, 0).take();
}

/// Two ranks, two stages, one pipeline, 1F1B.
Program makeTwoRanks() {
  ProgramBuilder builder(2, 2, 3);
  builder.pipeline(0, 3, {0, 1});
  for (Op op : {Op{F, 0, 0}, {F, 0, 1}, {B, 0, 0}, {F, 0, 2}, {B, 0, 1}, {B, 0, 2}})
    builder.op(0, op);
  for (Op op : {Op{F, 1, 0}, {B, 1, 0}, {F, 1, 1}, {B, 1, 1}, {F, 1, 2}, {B, 1, 2}})
    builder.op(1, op);
  return builder.step(0, 0).step(1, 1).take();
}

/// DualPipe, 2 ranks x 4 micro-batches: the pipelines run in opposite directions.
///
///   rank 0   F0 m0 | F1 m2 | F0 m1 | B1 m2 | F1 m3 + B0 m0 | B1 m3 | I0 m1 | W0 m1
///   rank 1   F0 m2 | F1 m0 | F0 m3 | B1 m0 | F1 m1 + B0 m2 | B1 m1 | I0 m3 | W0 m3
Program makeDualPipe() {
  ProgramBuilder builder(2, 2, 4);
  builder.pipeline(0, 2, {0, 1}).pipeline(2, 2, {1, 0});
  for (uint32_t rank = 0; rank < 2; ++rank) {
    uint32_t a = rank == 0 ? 0 : 2, b = rank == 0 ? 2 : 0; // first micro-batch of each direction
    for (Op op : {Op{F, 0, a}, {F, 1, b}, {F, 0, a + 1}, {B, 1, b}})
      builder.op(rank, op);
    builder.pair(rank, {{F, 1, b + 1}, {B, 0, a}});
    for (Op op : {Op{B, 1, b + 1}, {I, 0, a + 1}, {W, 0, a + 1}})
      builder.op(rank, op);
  }
  builder.reduce(1, {0, 1}).reduce(0, {0, 1});
  for (uint32_t rank = 0; rank < 2; ++rank)
    builder.step(rank, 1).step(rank, 0);
  return builder.take();
}

std::unique_ptr<Optimizer> makeSgd() {
  auto optimizer = createOptimizer("sgd");
  EXPECT_TRUE(optimizer);
  return std::move(*optimizer);
}

Replay runReplay(const Model &model, const Program &program, uint32_t numSteps = 1) {
  Result<Replay> result = replay(model, program, *makeSgd(), {1, numSteps, 0.1});
  EXPECT_TRUE(result) << result.message();
  return std::move(*result);
}

/// Checks a replay against a second one and the plain sum.
CheckReport checkProgram(const std::string &name, const Settings &settings, const Program &program,
                         uint32_t numSteps) {
  Model model = makeModel(name, settings, program.shared.numStages, program.shared.numMicrobatches);
  Replay run = runReplay(model, program, numSteps);
  Result<CheckReport> report = checkRun(model, program, *makeSgd(), {1, numSteps, 0.1}, run.result);
  EXPECT_TRUE(report) << report.message();
  return *report;
}

TEST(Reference, AgreesWithThePlainSum) {
  for (const Program &program : {makeOneRank(), makeTwoRanks(), makeDualPipe()})
    for (const Settings &settings : {kSingle, kDouble})
      for (uint32_t numSteps : {1, 5}) {
        CheckReport report = checkProgram("mlp", settings, program, numSteps);
        EXPECT_TRUE(report.passed) << report.getText();
      }
  EXPECT_TRUE(checkProgram("noop", {}, makeDualPipe(), 2).passed);
}

TEST(Reference, ReportsInAFewLines) {
  CheckReport report = checkProgram("mlp", kDouble, makeDualPipe(), 2);
  ASSERT_EQ(report.lines.size(), 6u) << report.getText();
  EXPECT_EQ(report.lines[0], "losses: 4 micro-batches, 2 steps: equal to the replay bit for bit");
  EXPECT_EQ(report.lines[1], "gradients: 4 copies of 2 stages: equal to the replay bit for bit");
  EXPECT_EQ(report.lines[2], "weights: equal to the replay bit for bit");
  EXPECT_EQ(report.lines[3], "copies: all copies of a stage are equal bit for bit");
  EXPECT_THAT(report.lines[4], testing::StartsWith("plain sum: gradients agree within "));
  EXPECT_EQ(report.lines[5], "check passed: losses, gradients and weights agree bit for bit");
}

/// A direct loop over micro-batches, apart from the replay's machinery.
TEST(Reference, OneStageIsAPlainLoop) {
  Model model = makeModel("mlp", kDouble, 1, 3);
  Replay run = runReplay(model, makeOneRank());
  using dualpipe::program::SlotKind;
  StageFixture stage(model, 0);
  uint8_t ends = dualpipe::program::kFirstStage | dualpipe::program::kLastStage;
  for (uint32_t microbatch = 0; microbatch < 3; ++microbatch) {
    stage.run(Function::LoadInput, ends, {SlotKind::Input}, microbatch);
    stage.run(Function::LoadLabels, ends, {SlotKind::Labels}, microbatch);
    stage.run(F, ends, {SlotKind::Input, SlotKind::Labels, SlotKind::Saved}, microbatch);
    EXPECT_EQ(stage.loss, run.result.losses[microbatch]);
    EXPECT_GT(stage.loss, 0);
    uint8_t flags = uint8_t(ends | (microbatch ? dualpipe::program::kAccumulate : 0));
    stage.run(B, flags, {SlotKind::Saved}, microbatch);
  }
  EXPECT_TRUE(sameBytes(stage.copy.getGradBuffer(), run.result.copies[0].getGradBuffer()));
  EXPECT_FALSE(sameBytes(stage.copy.getParamBuffer(), run.result.copies[0].getParamBuffer()));
  ASSERT_TRUE(descend(stage.copy, 0.1).ok());
  EXPECT_TRUE(sameBytes(stage.copy.getParamBuffer(), run.result.copies[0].getParamBuffer()));
}

class FakeReferenceTest : public testing::Test {
protected:
  void SetUp() override { getFakeBehaviour() = {}; }
  Model makeFake(const Program &program) {
    Result<Model> model = Model::create(
        api, makeOptions("fake", {}, program.shared.numStages, program.shared.numMicrobatches));
    EXPECT_TRUE(model) << model.message();
    return std::move(*model);
  }
  std::string getError(const Program &program) {
    Model model = makeFake(program);
    Result<Replay> result = replay(model, program, *makeSgd(), {1, 1, 0.1});
    return result ? "" : result.message();
  }
  static double getGrad(const Replay &run, size_t copy) {
    return *static_cast<const double *>(run.result.copies[copy].getGrad(0).data);
  }
  dp_model_api api = makeFakeApi();
  FakeBehaviour &fake = getFakeBehaviour();
};

TEST_F(FakeReferenceTest, AccumulatesInTheOrderOfTheProgram) {
  Program program = makeOneRank();
  Model model = makeFake(program);
  Replay run = runReplay(model, program);
  // The halves run as m0, m1, m2: ((1 * 2) + 2) * 2 + 3.
  EXPECT_EQ(getGrad(run, 0), 11);
  EXPECT_THAT(fake.log, ElementsAre("load_input s0 m0", "load_labels s0 m0", "forward s0 m0",
                                    "load_input s0 m1", "load_labels s0 m1", "forward s0 m1",
                                    "backward s0 m0", "backward_input s0 m1", "load_input s0 m2",
                                    "load_labels s0 m2", "forward s0 m2", "backward_weight s0 m1",
                                    "backward s0 m2"));
}

TEST_F(FakeReferenceTest, LossesBelongToTheirMicrobatches) {
  Program program = makeDualPipe();
  Model model = makeFake(program);
  Replay run = runReplay(model, program, 2);
  // Parameters are 1 and 2 at first; the input is 10 per micro-batch, the label 1/2.
  ASSERT_EQ(run.result.losses.size(), 8u);
  for (int microbatch = 0; microbatch < 4; ++microbatch)
    EXPECT_EQ(run.result.losses[microbatch], 10 * microbatch + 1 + 2 - 0.5);
  // Rank 0 accumulates m0, m1 in stage 0 and rank 1 m2, m3: 1 * 2 + 2 and 3 * 2 + 4, summed.
  ASSERT_EQ(run.result.copies.size(), 4u);
  EXPECT_EQ(getGrad(run, 0), 4 + 10);
  EXPECT_EQ(getGrad(run, 2), 4 + 10);
  // A step of 0.1 per copy: the second step's losses start from 1 - 1.4 and 2 - 1.4.
  EXPECT_NEAR(run.result.losses[4], 1 + 2 - 2.8 - 0.5, 1e-14);
  ASSERT_EQ(run.startOfLastStep.size(), 4u);
  double weight;
  std::memcpy(&weight, run.startOfLastStep[0].data(), sizeof weight);
  EXPECT_NEAR(weight, -0.4, 1e-14);
}

TEST_F(FakeReferenceTest, PairsRunFusedWhereTheModelCan) {
  Program program = makeDualPipe();
  api = makeFullFakeApi();
  Model model = makeFake(program);
  Replay run = runReplay(model, program);
  EXPECT_EQ(std::count(fake.log.begin(), fake.log.end(), "fused 2"), 2);
  // The model's own optimizer adds 100.
  EXPECT_EQ(*static_cast<const double *>(run.result.copies[0].getParam(0).data), 101);

  std::vector<std::string> with = fake.log;
  fake.log.clear();
  api.fused = nullptr;
  Model plain = makeFake(program);
  Replay other = runReplay(plain, program);
  EXPECT_EQ(std::count(fake.log.begin(), fake.log.end(), "fused 2"), 0);
  EXPECT_EQ(getGrad(run, 0), getGrad(other, 0));
  EXPECT_EQ(run.result.losses, other.result.losses);
}

TEST_F(FakeReferenceTest, CallsOfAPairMustNotDependOnEachOther) {
  api = makeFullFakeApi();
  ProgramBuilder builder(1, 1, 2);
  builder.pipeline(0, 2, {0}).pair(0, {{F, 0, 0}, {F, 0, 0}});
  EXPECT_EQ(getError(builder.take()),
            "the calls of a pair depend on each other: two use the saved context of stage 0, "
            "micro-batch 0, and one of them writes it");

  // Two loads for nobody: the second has nothing left to let go of.
  Program program = makeOneRank();
  auto &rank = program.ranks[0];
  for (uint32_t i = 0; i < rank.launches.size(); ++i)
    if (rank.launches[i].function == Function::LoadLabels) {
      rank.launches[i].microbatch = 2;
      rank.commands = {{program::CommandOp::Pair, 0, 2, 0},
                       {program::CommandOp::Launch, 0, i, 0},
                       {program::CommandOp::Launch, 0, i, 0}};
    }
  EXPECT_THAT(getError(program), testing::HasSubstr("two use the labels of stage 0"));
}

TEST_F(FakeReferenceTest, BackwardsReadLabelsWhereTheContractSaysSo) {
  Program program = makeOneRank();
  Model model = makeFake(program);
  Replay run = runReplay(model, program);
  ASSERT_TRUE(runPlain(model, program.shared, run, {1, 1, 0.1}));
  EXPECT_EQ(fake.backwardsWithLabels, 0);
  fake.contract.backward_reads |= DP_READS(DP_LABELS);
  program.shared.contract.backwardReads |= 1u << unsigned(program::SlotKind::Labels);
  Model reading = makeFake(program);
  ASSERT_TRUE(runPlain(reading, program.shared, run, {1, 1, 0.1}));
  EXPECT_EQ(fake.backwardsWithLabels, 3);
}

/// The executor gives the same: Session takes getMaxWorkspaceBytes as it is.
TEST_F(FakeReferenceTest, EveryCallHasTheSameWorkspace) {
  Program program = makeOneRank();
  Model model = makeFake(program);
  EXPECT_EQ(model.getMaxWorkspaceBytes(), 64u);
  Replay run = runReplay(model, program);
  ASSERT_TRUE(runPlain(model, program.shared, run, {1, 1, 0.1}));
  EXPECT_THAT(fake.workspaceSizes, testing::Each(64u));
}

TEST_F(FakeReferenceTest, FailuresOfTheModelEndTheReplay) {
  fake.failing = "backward";
  EXPECT_EQ(getError(makeOneRank()),
            "model 'fake': backward of stage 0, micro-batch 0 failed: told to fail");
  fake.failing = "step";
  api = makeFullFakeApi();
  EXPECT_EQ(getError(makeOneRank()), "model 'fake': step of stage 0 failed: told to fail");
  // The first backward of stage 0 is the second member of a pair.
  fake.failing = "backward";
  fake.failingStage = 0;
  EXPECT_EQ(getError(makeDualPipe()),
            "model 'fake': a fused group of stage 0, micro-batch 0 failed: told to fail");
}

TEST_F(FakeReferenceTest, AProgramThatCannotGoOnIsToldOn) {
  ProgramBuilder builder(2, 2, 2);
  builder.pipeline(0, 2, {0, 1});
  builder.op(0, {F, 0, 0}).op(0, {B, 0, 1}).op(1, {F, 1, 0}).op(1, {B, 1, 0}).op(1, {F, 1, 1});
  EXPECT_EQ(getError(builder.take()),
            "the replay cannot go on: rank 0 waits for the output gradient of stage 0, micro-batch "
            "1, rank 1 waits for the input of stage 1, micro-batch 1");
  ProgramBuilder lonely(2, 1, 1);
  lonely.pipeline(0, 1, {0}).pipeline(1, 0, {1});
  lonely.reduce(0, {0, 1}).op(0, {F, 0, 0});
  Program program = lonely.take();
  program.ranks[1].commands.clear();
  EXPECT_EQ(getError(program), "the replay cannot go on: rank 0 waits for the other members of the "
                               "reduction of stage 0");
}

TEST_F(FakeReferenceTest, WrongProgramsAreRejected) {
  Program program = makeTwoRanks();
  program.ranks.pop_back();
  EXPECT_EQ(getError(program), "the check needs the programs of all ranks, expected 2, got 1");
  program = makeTwoRanks();
  program.shared.pipelines[0].placement = {0, 0};
  EXPECT_EQ(getError(program),
            "the program of rank 1 uses stage 1, which no pipeline places there");
  program = makeTwoRanks();
  Model model = makeFake(makeOneRank());
  Result<Replay> result = replay(model, program, *makeSgd(), {1, 1, 0.1});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.message(), "model 'fake' was split into 1 stages, the program has 2");
}

TEST_F(FakeReferenceTest, ThePlainSumNeedsAStep) {
  Program program = makeTwoRanks();
  Model model = makeFake(program);
  Replay run = runReplay(model, program, 0);
  Result<TrainingResult> plain = runPlain(model, program.shared, run, {1, 0, 0.1});
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.message(), "the plain sum needs a replay of at least one step");
}

TEST_F(FakeReferenceTest, AStageWithoutAPipelineIsToldOn) {
  Program program = makeTwoRanks();
  program.shared.pipelines[0].placement.pop_back();
  program.shared.pipelines[0].numStages = 1;
  Model model = makeFake(program);
  Replay run;
  Result<StageCopy> copy = StageCopy::create(model, 0, 0, true);
  ASSERT_TRUE(copy);
  run.result.copies.push_back(std::move(*copy));
  run.startOfLastStep.emplace_back(8);
  Result<TrainingResult> plain = runPlain(model, program.shared, run, {1, 1, 0.1});
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.message(), "no pipeline has stage 1");
}

TEST_F(FakeReferenceTest, ForwardOnlyComparesLosses) {
  ProgramBuilder builder(2, 2, 2);
  builder.forwardOnly().pipeline(0, 2, {0, 1});
  for (uint32_t microbatch = 0; microbatch < 2; ++microbatch)
    builder.op(0, {F, 0, microbatch}).op(1, {F, 1, microbatch});
  Program program = builder.take();
  CheckReport report = checkProgram("mlp", kSingle, program, 1);
  EXPECT_TRUE(report.passed) << report.getText();
  EXPECT_EQ(report.lines.back(), "check passed: losses and weights agree bit for bit");
}

TEST(ReplayValues, EverythingIsLetGo) {
  Program program = makeTwoRanks();
  Model model = makeModel("mlp", kSingle, 2, 3);
  HostMemory memory;
  ReplayValues values(model, memory);
  StageFixture first(model, 0), second(model, 1);
  for (const auto &rank : program.ranks)
    for (const auto &launch : rank.launches)
      values.expect(launch);
  size_t most = 0;
  // Rank by rank, as far as each goes, until both are through.
  size_t next[2] = {0, 0};
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < 2; ++rank)
      while (next[rank] < program.ranks[rank].launches.size() &&
             values.isReady(program.ranks[rank].launches[next[rank]])) {
        const auto &launch = program.ranks[rank].launches[next[rank]++];
        StageFixture &stage = rank == 0 ? first : second;
        stage.call.begin(stage.copy, launch, true);
        ASSERT_TRUE(values.bind(launch, stage.call).ok());
        most = std::max(most, values.getNumLive());
        values.release(launch);
        moved = true;
      }
  }
  EXPECT_EQ(next[0], program.ranks[0].launches.size());
  EXPECT_EQ(next[1], program.ranks[1].launches.size());
  EXPECT_EQ(values.getNumLive(), 0u);
  EXPECT_GT(most, 3u);
}

} // namespace
