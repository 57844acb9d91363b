//===- MlpTest.cpp - the mlp model against finite differences and itself ----===//

#include "TestSupport.h"

#include <cmath>
#include <thread>

using namespace dualpipe;
using namespace dualpipe::runtime;
using namespace dualpipe::runtime::test;
using dualpipe::program::Function;
using dualpipe::program::kAccumulate;
using dualpipe::program::kFirstStage;
using dualpipe::program::kLastStage;
using dualpipe::program::SlotKind;

namespace {

const Settings kSmall = {{"hidden", "3"}, {"seq", "2"}, {"batch", "2"}, {"dtype", "f64"}};

Settings with(Settings settings, const std::string &key, const std::string &value) {
  settings.emplace_back(key, value);
  return settings;
}

/// Two stages of a model, with the hand-overs between them.
struct TwoStages {
  explicit TwoStages(const Model &model) : front(model, 0), back(model, 1) {}

  double forward(uint32_t microbatch = 0) {
    front.run(Function::Forward, kFirstStage, {SlotKind::Input, SlotKind::Output, SlotKind::Saved},
              microbatch);
    copy(front, SlotKind::Output, back, SlotKind::Input);
    back.run(Function::Forward, kLastStage, {SlotKind::Input, SlotKind::Labels, SlotKind::Saved},
             microbatch);
    return back.loss;
  }
  void load(uint32_t microbatch = 0) {
    front.run(Function::LoadInput, kFirstStage, {SlotKind::Input}, microbatch);
    back.run(Function::LoadLabels, kLastStage, {SlotKind::Labels}, microbatch);
  }
  /// Full backwards; the front stage hands its input gradient on, to be tested.
  void backward(uint8_t accumulate = 0) {
    back.run(Function::Backward, uint8_t(kLastStage | accumulate),
             {SlotKind::Saved, SlotKind::GradInput});
    copy(back, SlotKind::GradInput, front, SlotKind::GradOutput);
    front.run(Function::Backward, accumulate,
              {SlotKind::Saved, SlotKind::GradOutput, SlotKind::GradInput});
  }
  static void copy(StageFixture &from, SlotKind source, StageFixture &to, SlotKind place) {
    std::memcpy(to.get<char>(place), from.get<char>(source), from.getBytes(source));
  }

  StageFixture front, back;
};

/// Central difference of the scaled loss with respect to one number.
double getSlope(TwoStages &stages, double &number, double scale) {
  constexpr double kStep = 1e-5;
  double before = number;
  number = before + kStep;
  double above = stages.forward();
  number = before - kStep;
  double below = stages.forward();
  number = before;
  return scale * (above - below) / (2 * kStep);
}

TEST(Mlp, GradientsAgreeWithFiniteDifferences) {
  constexpr uint32_t kMicrobatches = 4;
  Model model = makeModel("mlp", with(kSmall, "layers", "4"), 2, kMicrobatches);
  TwoStages stages(model);
  stages.load();
  stages.forward();
  stages.backward();
  double scale = 1.0 / kMicrobatches;
  for (StageFixture *stage : {&stages.front, &stages.back}) {
    ASSERT_EQ(stage->copy.getNumParams(), 4u);
    for (uint32_t index = 0; index < 4; ++index) {
      double *values = static_cast<double *>(stage->copy.getParam(index).data);
      const double *grads = static_cast<const double *>(stage->copy.getGrad(index).data);
      ASSERT_EQ(getNumElements(stage->copy.getParam(index)), 36);
      for (int i = 0; i < 36; ++i)
        ASSERT_NEAR(getSlope(stages, values[i], scale), grads[i], 1e-9)
            << "stage " << stage->stage << ", parameter " << index << ", element " << i;
    }
  }
  double *x = stages.front.get<double>(SlotKind::Input);
  const double *dx = stages.front.get<double>(SlotKind::GradInput);
  for (int i = 0; i < 12; ++i)
    ASSERT_NEAR(getSlope(stages, x[i], scale), dx[i], 1e-9) << "input " << i;
}

TEST(Mlp, LossIsTheMeanSquaredError) {
  // With weights of zero the output is zero, and the loss the mean square of the labels.
  Model model = makeModel("mlp", kSmall, 2);
  TwoStages stages(model);
  stages.load();
  std::memset(stages.back.copy.getParamBuffer().data(), 0,
              stages.back.copy.getParamBuffer().size());
  double loss = stages.forward(), expected = 0;
  for (int i = 0; i < 12; ++i)
    expected += std::pow(stages.back.get<double>(SlotKind::Labels)[i], 2) / 12;
  EXPECT_NEAR(loss, expected, 1e-14);
}

/// Backward as two halves on the same saved tensors.
void checkHalves(const std::string &type) {
  Model model = makeModel(
      "mlp", {{"hidden", "16"}, {"seq", "5"}, {"batch", "3"}, {"dtype", type}, {"layers", "6"}}, 2,
      8);
  TwoStages whole(model), halves(model);
  for (TwoStages *stages : {&whole, &halves}) {
    stages->load(3);
    stages->forward(3);
  }
  whole.backward();
  halves.back.run(Function::BackwardInput, kLastStage,
                  {SlotKind::Saved, SlotKind::GradInput, SlotKind::WeightContext});
  TwoStages::copy(halves.back, SlotKind::GradInput, halves.front, SlotKind::GradOutput);
  halves.front.run(
      Function::BackwardInput, 0,
      {SlotKind::Saved, SlotKind::GradOutput, SlotKind::GradInput, SlotKind::WeightContext});
  // The weight half must not need what the contract lets go: the gradient that came in.
  std::memset(halves.front.get<char>(SlotKind::GradOutput), 0xff,
              halves.front.getBytes(SlotKind::GradOutput));
  for (StageFixture *stage : {&halves.front, &halves.back})
    stage->run(Function::BackwardWeight, stage == &halves.back ? kLastStage : 0,
               {SlotKind::Saved, SlotKind::WeightContext});
  for (auto [a, b] : {std::pair{&whole.front, &halves.front}, {&whole.back, &halves.back}}) {
    EXPECT_TRUE(sameBytes(a->copy.getGradBuffer(), b->copy.getGradBuffer())) << type;
    EXPECT_TRUE(sameBytes(a->tensors[unsigned(SlotKind::GradInput)],
                          b->tensors[unsigned(SlotKind::GradInput)]))
        << type;
  }
  // The first stage of a pipeline hands no gradient on, and its weight half is the same without.
  halves.front.run(Function::BackwardInput, kFirstStage,
                   {SlotKind::Saved, SlotKind::GradOutput, SlotKind::WeightContext});
}

TEST(Mlp, HalvesGiveTheBitsOfTheFullBackward) {
  checkHalves("f32");
  checkHalves("bf16");
  checkHalves("f64");
}

TEST(Mlp, FirstStageNeedsNoPlaceForItsInputGradient) {
  Model model = makeModel("mlp", kSmall, 2);
  TwoStages stages(model);
  stages.load();
  stages.forward();
  stages.backward();
  AlignedBuffer before(stages.front.copy.getGradBuffer().size());
  std::memcpy(before.data(), stages.front.copy.getGradBuffer().data(), before.size());
  stages.front.run(Function::Backward, kFirstStage, {SlotKind::Saved, SlotKind::GradOutput});
  EXPECT_TRUE(sameBytes(before, stages.front.copy.getGradBuffer()));
}

TEST(Mlp, AccumulateAddsAndOverwriteDoesNot) {
  Model model = makeModel("mlp", kSmall, 2);
  TwoStages stages(model);
  stages.load();
  stages.forward();
  stages.backward();
  auto *grads = static_cast<double *>(stages.front.copy.getGrad(0).data);
  std::vector<double> once(grads, grads + 36);
  ASSERT_NE(once[0], 0.0);
  stages.backward(kAccumulate);
  for (int i = 0; i < 36; ++i)
    EXPECT_NEAR(grads[i], 2 * once[i], 1e-15) << i;
  stages.backward();
  for (int i = 0; i < 36; ++i)
    EXPECT_EQ(grads[i], once[i]) << i;
}

TEST(Mlp, SingleAndDoublePrecisionAgree) {
  Settings single = {{"hidden", "24"}, {"seq", "4"}, {"batch", "2"}};
  Model low = makeModel("mlp", single, 2), high = makeModel("mlp", with(single, "dtype", "f64"), 2);
  TwoStages a(low), b(high);
  for (TwoStages *stages : {&a, &b}) {
    stages->load();
    stages->forward();
    stages->backward();
  }
  EXPECT_NEAR(a.back.loss, b.back.loss, 1e-6);
  for (auto [one, other] : {std::pair{&a.front, &b.front}, {&a.back, &b.back}})
    for (uint32_t index = 0; index < 2; ++index) {
      const float *narrow = static_cast<const float *>(one->copy.getGrad(index).data);
      const double *wide = static_cast<const double *>(other->copy.getGrad(index).data);
      double norm = 0;
      int64_t count = getNumElements(one->copy.getGrad(index));
      for (int64_t i = 0; i < count; ++i)
        norm = std::max(norm, std::abs(wide[i]));
      ASSERT_GT(norm, 0);
      for (int64_t i = 0; i < count; ++i)
        ASSERT_NEAR(double(narrow[i]), wide[i], 1e-5 * norm);
    }
  // Both start from the same numbers.
  for (int i = 0; i < 24; ++i)
    EXPECT_EQ(double(a.front.get<float>(SlotKind::Input)[i]),
              b.front.get<double>(SlotKind::Input)[i]);
}

TEST(Mlp, ForwardAloneGivesTheSameLoss) {
  Model model = makeModel("mlp", with(kSmall, "layers", "6"), 2);
  TwoStages training(model), inference(model);
  training.load();
  double expected = training.forward();
  inference.load();
  inference.front.run(Function::Forward, kFirstStage, {SlotKind::Input, SlotKind::Output}, 0,
                      false);
  TwoStages::copy(inference.front, SlotKind::Output, inference.back, SlotKind::Input);
  inference.back.run(Function::Forward, kLastStage, {SlotKind::Input, SlotKind::Labels}, 0, false);
  EXPECT_EQ(inference.back.loss, expected);
}

TEST(Mlp, WeightsDoNotDependOnTheSplit) {
  Model coarse = makeModel("mlp", with(kSmall, "layers", "4"), 2);
  Model fine = makeModel("mlp", with(kSmall, "layers", "4"), 4);
  StageFixture whole(coarse, 1), part(fine, 3);
  // Stage 1 of 2 holds the blocks 2 and 3, stage 3 of 4 the block 3.
  for (uint32_t index = 0; index < 2; ++index)
    EXPECT_EQ(0, std::memcmp(whole.copy.getParam(2 + index).data, part.copy.getParam(index).data,
                             getNumBytes(part.copy.getParam(index))));
}

TEST(Mlp, DataIsAFunctionOfSeedStepAndMicrobatch) {
  Model model = makeModel("mlp", kSmall, 2);
  auto load = [&](uint64_t seed, uint64_t step, uint32_t microbatch) {
    StageFixture stage(model, 0, seed);
    stage.state.step = step;
    stage.run(Function::LoadInput, kFirstStage, {SlotKind::Input}, microbatch);
    const double *values = stage.get<double>(SlotKind::Input);
    return std::vector<double>(values, values + 12);
  };
  EXPECT_EQ(load(1, 2, 3), load(1, 2, 3));
  EXPECT_NE(load(1, 2, 3), load(2, 2, 3));
  EXPECT_NE(load(1, 2, 3), load(1, 3, 3));
  EXPECT_NE(load(1, 2, 3), load(1, 2, 4));
}

/// Copies of one stage on several ranks share the model.
TEST(Mlp, CopiesOfAStageRunAtOnce) {
  for (const char *type : {"f32", "bf16", "f64"}) {
    Model model = makeModel(
        "mlp", {{"hidden", "32"}, {"seq", "8"}, {"batch", "2"}, {"dtype", type}, {"layers", "4"}},
        2, 4);
    constexpr size_t kThreads = 4;
    std::vector<std::unique_ptr<TwoStages>> runs;
    for (size_t i = 0; i <= kThreads; ++i)
      runs.push_back(std::make_unique<TwoStages>(model));
    auto train = [&](size_t index) {
      for (uint32_t microbatch = 0; microbatch < 4; ++microbatch) {
        runs[index]->load(microbatch);
        runs[index]->forward(microbatch);
        runs[index]->backward(microbatch == 0 ? 0 : uint8_t(kAccumulate));
      }
    };
    train(kThreads);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kThreads; ++i)
      threads.emplace_back(train, i);
    for (std::thread &thread : threads)
      thread.join();
    for (size_t i = 0; i < kThreads; ++i) {
      EXPECT_EQ(runs[i]->back.loss, runs[kThreads]->back.loss);
      EXPECT_TRUE(sameBytes(runs[i]->front.copy.getGradBuffer(),
                            runs[kThreads]->front.copy.getGradBuffer()));
      EXPECT_TRUE(
          sameBytes(runs[i]->back.copy.getGradBuffer(), runs[kThreads]->back.copy.getGradBuffer()));
    }
  }
}

TEST(Mlp, RejectsWhatItCannotDo) {
  EXPECT_EQ(getCreateError("mlp", {{"layers", "8"}}, 3),
            "model 'mlp': cannot split 8 layers into 3 stages; set layers to a multiple of 3");
  EXPECT_EQ(getCreateError("mlp", {{"hiden", "8"}}, 2),
            "model 'mlp': unknown setting 'hiden' (did you mean 'hidden'?); the settings are "
            "hidden, seq, batch, dtype, layers");
  EXPECT_EQ(getCreateError("mlp", {{"colour", "8"}}, 2),
            "model 'mlp': unknown setting 'colour'; the settings are hidden, seq, batch, dtype, "
            "layers");
  EXPECT_EQ(getCreateError("mlp", {{"hidden", "0"}}, 2),
            "model 'mlp': setting 'hidden': expected an integer from 1 to 65536, got '0'");
  EXPECT_EQ(getCreateError("mlp", {{"seq", "12x"}}, 2),
            "model 'mlp': setting 'seq': expected an integer from 1 to 1048576, got '12x'");
  EXPECT_EQ(getCreateError("mlp", {{"dtype", "f16"}}, 2),
            "model 'mlp': setting 'dtype': expected one of f32, bf16, f64, got 'f16'");
  EXPECT_EQ(getCreateError("mlp", {{"batch", "1048576"}, {"seq", "2"}, {"hidden", "1024"}}, 2),
            "model 'mlp': batch * seq * 4 * hidden is 8589934592, expected at most 1073741824; "
            "make one of them smaller");
  ModelOptions options = makeOptions("mlp", {}, 2);
  options.device = kDLVulkan;
  Result<Model> model = Model::create(options);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.message(), "model 'mlp': runs on the CPU and on CUDA devices only");
}

} // namespace
