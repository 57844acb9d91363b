//===- CompareTest.cpp - what a check says when something differs -----------===//

#include "FakeModel.h"
#include "TestSupport.h"

#include <cmath>

using namespace dualpipe;
using namespace dualpipe::runtime;
using namespace dualpipe::runtime::test;

namespace {

/// A run, its replay and its plain sum, all equal: two copies of stage 0, on ranks 0 and 1, two
/// parameters' worth of doubles each; two steps of two micro-batches.
class CompareTest : public testing::Test {
protected:
  void SetUp() override {
    getFakeBehaviour() = {};
    getFakeBehaviour().param.shape[0] = 3;
    api = makeFakeApi();
    Result<Model> made = Model::create(api, makeOptions("fake", {}, 1, 2));
    ASSERT_TRUE(made);
    model.emplace(std::move(*made));
    for (TrainingResult *result : {&run, &reference}) {
      result->numMicrobatches = 2;
      result->losses = {1, 2, 3, 4};
      for (uint32_t rank = 0; rank < 2; ++rank)
        result->copies.push_back(makeCopy(rank));
    }
    plain.numMicrobatches = 2;
    plain.losses = {3, 4};
    plain.copies.push_back(makeCopy(0));
  }

  StageCopy makeCopy(uint32_t rank) {
    Result<StageCopy> copy = StageCopy::create(*model, rank, 0, true);
    EXPECT_TRUE(copy);
    for (int i = 0; i < 3; ++i) {
      getGrads(*copy)[i] = i + 1;
      getWeights(*copy)[i] = 0.5 * i;
    }
    return std::move(*copy);
  }
  static double *getGrads(StageCopy &copy) { return static_cast<double *>(copy.getGrad(0).data); }
  static double *getWeights(StageCopy &copy) {
    return static_cast<double *>(copy.getParam(0).data);
  }

  /// The last line of the report; a failure never says "passed".
  std::string getVerdict() {
    CheckReport report = compareRuns(run, reference, &plain);
    EXPECT_EQ(report.passed, report.lines.back().starts_with("check passed"));
    return report.lines.back();
  }

  dp_model_api api;
  std::optional<Model> model;
  TrainingResult run, reference, plain;
};

TEST_F(CompareTest, EqualRunsPass) {
  EXPECT_EQ(getVerdict(), "check passed: losses, gradients and weights agree bit for bit");
}

TEST_F(CompareTest, ALossDiffers) {
  run.losses[2] = std::nextafter(3.0, 4.0);
  EXPECT_EQ(getVerdict(), "check failed: loss of step 1, micro-batch 0: run 3.0000000000000004, "
                          "replay 3");
}

TEST_F(CompareTest, AGradientDiffers) {
  getGrads(run.copies[1])[2] = std::nextafter(3.0, 4.0);
  EXPECT_EQ(getVerdict(), "check failed: rank 1, stage 0: gradient of parameter 0, element 2: run "
                          "3.0000000000000004, replay 3");
}

TEST_F(CompareTest, AWeightDiffersInItsSignAlone) {
  getWeights(run.copies[0])[0] = -0.0;
  EXPECT_EQ(getVerdict(),
            "check failed: rank 0, stage 0: weight of parameter 0, element 0: run -0, replay 0");
}

TEST_F(CompareTest, CopiesDiffer) {
  for (TrainingResult *result : {&run, &reference})
    getWeights(result->copies[1])[1] = 7;
  EXPECT_EQ(getVerdict(), "check failed: rank 1, stage 0: weight of parameter 0, element 1: here "
                          "7, copy on rank 0 0.5");
  for (TrainingResult *result : {&run, &reference}) {
    getWeights(result->copies[1])[1] = 0.5;
    getGrads(result->copies[1])[1] = 7;
  }
  EXPECT_EQ(getVerdict(), "check failed: rank 1, stage 0: gradient of parameter 0, element 1: here "
                          "7, copy on rank 0 2");
}

TEST_F(CompareTest, ThePlainSumIsFarOff) {
  getGrads(plain.copies[0])[0] = 1 + 1e-12;
  EXPECT_EQ(getVerdict(), "check failed: rank 0, stage 0: gradient of parameter 0 is off the plain "
                          "sum by 3.3e-13, expected at most 1e-13 of its largest element");
  getGrads(plain.copies[0])[0] = 1 + 1e-13;
  EXPECT_EQ(getVerdict(), "check passed: losses, gradients and weights agree bit for bit");
  getGrads(plain.copies[0])[0] = NAN;
  EXPECT_THAT(getVerdict(), testing::HasSubstr("is off the plain sum by nan"));
}

TEST_F(CompareTest, ThePlainLossDiffers) {
  plain.losses[1] = 5;
  EXPECT_EQ(getVerdict(),
            "check failed: loss of the last step, micro-batch 1: run 4, in plain order 5");
}

TEST_F(CompareTest, RunsOfAnotherShapeFail) {
  run.losses.pop_back();
  EXPECT_EQ(getVerdict(), "check failed: the run has 3 losses, expected 4");
  run.losses.push_back(4);
  run.copies[1] = makeCopy(2);
  EXPECT_EQ(getVerdict(),
            "check failed: copy 1 of the run is stage 0 on rank 2, expected stage 0 on rank 1");
  run.copies.pop_back();
  EXPECT_EQ(getVerdict(), "check failed: the run has 1 copies of stages, expected 2");
  getFakeBehaviour().param.shape[0] = 30;
  Result<Model> other = Model::create(api, makeOptions("fake", {}, 1, 2));
  ASSERT_TRUE(other);
  Result<StageCopy> copy = StageCopy::create(*other, 1, 0, true);
  ASSERT_TRUE(copy);
  run.copies.push_back(std::move(*copy));
  EXPECT_EQ(getVerdict(),
            "check failed: rank 1, stage 0: the run has other parameters than its replay");
}

TEST(Compare, OtherTypesAreShownAsBytes) {
  getFakeBehaviour() = {};
  getFakeBehaviour().param = {{kDLFloat, 16, 1}, 1, 1, {2}};
  dp_model_api api = makeFakeApi();
  Result<Model> model = Model::create(api, makeOptions("fake", {}, 1, 1));
  ASSERT_TRUE(model);
  TrainingResult run, reference;
  for (TrainingResult *result : {&run, &reference}) {
    result->numMicrobatches = 1;
    result->losses = {1};
    Result<StageCopy> copy = StageCopy::create(*model, 0, 0, true);
    ASSERT_TRUE(copy);
    result->copies.push_back(std::move(*copy));
  }
  static_cast<uint16_t *>(run.copies[0].getParam(0).data)[1] = 0x3c00;
  CheckReport report = compareRuns(run, reference, nullptr);
  EXPECT_FALSE(report.passed);
  EXPECT_EQ(report.lines.back(), "check failed: rank 0, stage 0: weight of parameter 0, element 1: "
                                 "run 0x3c00, replay 0x0000");
  CheckReport plain = compareRuns(reference, reference, &reference);
  EXPECT_FALSE(plain.passed);
  EXPECT_EQ(plain.lines.back(), "check failed: cannot compare tensors of type float16, expected "
                                "float32 or float64");
}

TEST(Compare, DifferencesAreRelativeToTheLargestElement) {
  double a[2] = {1, 100}, b[2] = {2, 100};
  int64_t shape[1] = {2};
  DLTensor left = {a, {kDLCPU, 0}, 1, {kDLFloat, 64, 1}, shape, nullptr, 0}, right = left;
  right.data = b;
  Result<double> difference = getRelativeDifference(left, right);
  ASSERT_TRUE(difference);
  EXPECT_DOUBLE_EQ(*difference, 0.01);
  b[0] = 1;
  EXPECT_EQ(*getRelativeDifference(left, right), 0.0);
  a[0] = a[1] = b[0] = b[1] = 0;
  EXPECT_EQ(*getRelativeDifference(left, right), 0.0);
}

} // namespace
