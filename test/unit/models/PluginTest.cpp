//===- PluginTest.cpp - the example plug-in, through its shared object ------===//

#include "TestSupport.h"

#include <cmath>

using namespace dualpipe;
using namespace dualpipe::runtime;
using namespace dualpipe::runtime::test;
using dualpipe::program::Function;
using dualpipe::program::kFirstStage;
using dualpipe::program::kLastStage;
using dualpipe::program::SlotKind;

namespace {

const std::string kExample = DUALPIPE_TEST_PLUGINS "/libexample.so";

TEST(Plugin, TheExampleIsAModel) {
  Model model = makeModel(kExample, {{"width", "5"}}, 3);
  EXPECT_EQ(model.getName(), "example");
  EXPECT_EQ(model.getBytes(2, SlotKind::Output), 5 * 8 * sizeof(float));
  EXPECT_EQ(model.getNumParams(0), 2u);
  EXPECT_EQ(getCreateError(kExample, {{"hidden", "5"}}, 3),
            "model 'example': unknown setting 'hidden'; the settings are width, tokens");
  EXPECT_EQ(getCreateError(kExample, {{"width", "five"}}, 3),
            "model 'example': setting 'width': expected an integer from 1 to 4096, got 'five'");
}

TEST(Plugin, TheExampleReplays) {
  constexpr Function F = Function::Forward, B = Function::Backward;
  ProgramBuilder builder(2, 2, 3);
  builder.pipeline(0, 3, {0, 1});
  for (Op op : {Op{F, 0, 0}, {F, 0, 1}, {B, 0, 0}, {F, 0, 2}, {B, 0, 1}, {B, 0, 2}})
    builder.op(0, op);
  for (Op op : {Op{F, 1, 0},
                {Function::BackwardInput, 1, 0},
                {F, 1, 1},
                {B, 1, 1},
                {F, 1, 2},
                {Function::BackwardWeight, 1, 0},
                {B, 1, 2}})
    builder.op(1, op);
  program::Program program = builder.step(0, 0).step(1, 1).take();
  Model model = makeModel(kExample, {}, 2, 3);
  auto optimizer = createOptimizer("sgd");
  ASSERT_TRUE(optimizer);
  TrainingOptions options = {1, 3, 0.1};
  Result<Replay> run = replay(model, program, **optimizer, options);
  ASSERT_TRUE(run) << run.message();
  EXPECT_GT(run->result.losses[0], 0.0);
  Result<CheckReport> report = checkRun(model, program, **optimizer, options, run->result);
  ASSERT_TRUE(report) << report.message();
  EXPECT_TRUE(report->passed) << report->getText();
}

/// Gradients of a last stage against central differences, as far as float32 allows.
TEST(Plugin, TheExampleHasTheRightGradients) {
  Model model = makeModel(kExample, {{"width", "4"}, {"tokens", "3"}}, 2);
  StageFixture first(model, 0), stage(model, 1);
  first.run(Function::LoadInput, kFirstStage, {SlotKind::Input});
  stage.run(Function::LoadLabels, kLastStage, {SlotKind::Labels});
  std::memcpy(stage.get<char>(SlotKind::Input), first.get<char>(SlotKind::Input),
              stage.getBytes(SlotKind::Input));
  auto forward = [&] {
    stage.run(Function::Forward, kLastStage, {SlotKind::Input, SlotKind::Labels, SlotKind::Saved});
    return stage.loss;
  };
  forward();
  stage.run(Function::Backward, kLastStage, {SlotKind::Saved, SlotKind::GradInput});
  auto check = [&](float *values, const float *grads, int count, const char *what) {
    for (int i = 0; i < count; ++i) {
      constexpr float kStep = 1.0f / 256;
      float before = values[i];
      values[i] = before + kStep;
      double above = forward();
      values[i] = before - kStep;
      double below = forward();
      values[i] = before;
      EXPECT_NEAR((above - below) / (2 * kStep), grads[i], 1e-4) << what << " " << i;
    }
  };
  check(static_cast<float *>(stage.copy.getParam(0).data),
        static_cast<const float *>(stage.copy.getGrad(0).data), 16, "W");
  check(static_cast<float *>(stage.copy.getParam(1).data),
        static_cast<const float *>(stage.copy.getGrad(1).data), 4, "b");
  check(stage.get<float>(SlotKind::Input), stage.get<float>(SlotKind::GradInput), 12, "x");
}

} // namespace
