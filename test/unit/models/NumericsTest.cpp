//===- NumericsTest.cpp - sums, steps and copies ----------------------------===//

#include "FakeModel.h"
#include "TestSupport.h"

using namespace dualpipe;
using namespace dualpipe::runtime;
using namespace dualpipe::runtime::test;

namespace {

Model makeFake(const dp_model_api &api, DLDataType type, int64_t count) {
  getFakeBehaviour() = {};
  getFakeBehaviour().param = {type, 1, 1, {count}};
  Result<Model> model = Model::create(api, makeOptions("fake", {}, 1));
  EXPECT_TRUE(model) << model.message();
  return std::move(*model);
}

constexpr DLDataType kF32 = {kDLFloat, 32, 1}, kF64 = {kDLFloat, 64, 1}, kF16 = {kDLFloat, 16, 1};

StageCopy makeCopy(const Model &model, uint32_t rank) {
  Result<StageCopy> copy = StageCopy::create(model, rank, 0, true);
  EXPECT_TRUE(copy) << copy.message();
  return std::move(*copy);
}

template <typename T> T *getGrads(StageCopy &copy) {
  return static_cast<T *>(copy.getGrad(0).data);
}

/// Three addends whose float sum depends on the order: (1e8 - 1e8) + 1 = 1, 1e8 + (1 - 1e8) = 0.
template <typename T> void checkSumOrder(DLDataType type, T large) {
  dp_model_api api = makeFakeApi();
  constexpr int64_t kCount = 10000; // more than a block of the implementation
  Model model = makeFake(api, type, kCount);
  std::vector<StageCopy> copies;
  for (uint32_t rank = 0; rank < 3; ++rank)
    copies.push_back(makeCopy(model, rank));
  T addends[3] = {large, -large, T(1)};
  for (int64_t i = 0; i < kCount; ++i)
    for (int member = 0; member < 3; ++member)
      getGrads<T>(copies[member])[i] = addends[(member + i) % 3];
  std::vector<StageCopy *> members = {&copies[0], &copies[1], &copies[2]};
  ASSERT_TRUE(sumGradients(members).ok());
  for (int64_t i = 0; i < kCount; ++i) {
    volatile T sum = addends[i % 3] + addends[(1 + i) % 3];
    T expected = sum + addends[(2 + i) % 3];
    for (StageCopy &copy : copies)
      ASSERT_EQ(getGrads<T>(copy)[i], expected) << i;
  }
  EXPECT_EQ(getGrads<T>(copies[0])[0], T(1));
  EXPECT_EQ(getGrads<T>(copies[0])[1], T(0));
}

TEST(Numerics, SumsAddInTheOrderOfTheCopies) {
  checkSumOrder<float>(kF32, 1e8f);
  checkSumOrder<double>(kF64, 1e17);
}

TEST(Numerics, OneCopyIsItsOwnSum) {
  dp_model_api api = makeFakeApi();
  Model model = makeFake(api, kF64, 1);
  StageCopy copy = makeCopy(model, 0);
  getGrads<double>(copy)[0] = 3;
  StageCopy *only = &copy;
  ASSERT_TRUE(sumGradients({&only, 1}).ok());
  EXPECT_EQ(getGrads<double>(copy)[0], 3);
}

TEST(Numerics, DescentFollowsTheGradient) {
  dp_model_api api = makeFakeApi();
  Model model = makeFake(api, kF32, 3);
  StageCopy copy = makeCopy(model, 0);
  float *params = static_cast<float *>(copy.getParam(0).data);
  for (int i = 0; i < 3; ++i) {
    params[i] = float(i);
    getGrads<float>(copy)[i] = 2;
  }
  auto optimizer = createOptimizer("sgd");
  ASSERT_TRUE(optimizer);
  const dp_step_state state = {0, 0, 0.5};
  StageCall call(model, state, nullptr, 0);
  ASSERT_TRUE((*optimizer)->step(copy, call.get()).ok());
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(params[i], float(i - 1));
}

TEST(Numerics, OtherTypesAreRejected) {
  dp_model_api api = makeFakeApi();
  Model model = makeFake(api, kF16, 3);
  StageCopy a = makeCopy(model, 0), b = makeCopy(model, 1);
  std::vector<StageCopy *> members = {&a, &b};
  EXPECT_EQ(sumGradients(members).message(),
            "cannot sum the gradients of parameter 0 of stage 0: expected float32 or float64, got "
            "float16");
  EXPECT_EQ(descend(a, 0.1).message(),
            "cannot update parameter 0 of stage 0: expected float32 or float64, got float16");
  EXPECT_EQ(getRelativeDifference(a.getGrad(0), b.getGrad(0)).message(),
            "cannot compare tensors of type float16, expected float32 or float64");
  EXPECT_EQ(describeType({kDLBfloat, 16, 4}), "bfloat16x4");
}

TEST(Numerics, UnknownOptimizersAreRejected) {
  EXPECT_EQ(createOptimizer("sdg").getStatus().message(),
            "unknown optimizer 'sdg' (did you mean 'sgd'?); the optimizers are sgd");
  EXPECT_EQ(createOptimizer("lion").getStatus().message(),
            "unknown optimizer 'lion'; the optimizers are sgd");
}

TEST(StageCopy, TensorsAreAlignedAndStayWhereTheyAre) {
  Model model = makeModel("mlp", {{"hidden", "3"}, {"layers", "2"}}, 1);
  Result<StageCopy> made = StageCopy::create(model, 4, 0, true, 2);
  ASSERT_TRUE(made);
  DLTensor *tensor = made->getParamPointers()[3];
  StageCopy copy = std::move(*made);
  EXPECT_EQ(tensor, copy.getParamPointers()[3]);
  EXPECT_EQ(tensor, &copy.getParam(3));
  EXPECT_EQ(copy.getRank(), 4u);
  ASSERT_EQ(copy.getNumParams(), 4u);
  for (uint32_t i = 0; i < 4; ++i)
    for (void *data : {copy.getParam(i).data, copy.getGrad(i).data, copy.getState(0, i).data,
                       copy.getState(1, i).data})
      EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % kTensorAlignment, 0u);
  EXPECT_EQ(copy.getParam(0).shape[0], 12);
  EXPECT_EQ(copy.getParam(0).shape[1], 3);
}

TEST(StageCopy, ForwardOnlyHasNoGradients) {
  Model model = makeModel("mlp", {{"hidden", "3"}}, 1);
  Result<StageCopy> copy = StageCopy::create(model, 0, 0, false, 2);
  ASSERT_TRUE(copy);
  EXPECT_FALSE(copy->hasGradients());
  EXPECT_EQ(copy->getGradPointers(), nullptr);
}

} // namespace
