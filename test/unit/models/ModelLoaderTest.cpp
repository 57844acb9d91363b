//===- ModelLoaderTest.cpp - finding models, and what is wrong with them ----===//

#include "FakeModel.h"
#include "TestSupport.h"

#include <fstream>
#include <type_traits>

using namespace dualpipe;
using namespace dualpipe::runtime;
using namespace dualpipe::runtime::test;
using testing::HasSubstr;

namespace {

const std::string kPlugins = DUALPIPE_TEST_PLUGINS;

TEST(ModelLoader, KnowsTheBuiltinModels) {
  EXPECT_EQ(makeModel("mlp", {}, 2).getName(), "mlp");
  EXPECT_EQ(makeModel("noop", {}, 2).getName(), "noop");
  EXPECT_EQ(
      getCreateError("mpl", {}, 2),
      "unknown model 'mpl' (did you mean 'mlp'?); the models are mlp, noop, wait, and a plug-in is "
      "named by its path");
  EXPECT_EQ(
      getCreateError("transformer", {}, 2),
      "unknown model 'transformer'; the models are mlp, noop, wait, and a plug-in is named by its "
      "path");
  EXPECT_EQ(getCreateError("mlp", {}, 0), "model 'mlp': expected at least one stage, got 0");
}

/// Assigned to, it would close its library before the model that came from it goes.
static_assert(std::is_move_constructible_v<Model> && !std::is_move_assignable_v<Model>);

TEST(ModelLoader, SplitsSettings) {
  auto setting = parseSetting("a=b=c");
  ASSERT_TRUE(setting);
  EXPECT_EQ(*setting, std::make_pair(std::string("a"), std::string("b=c")));
  EXPECT_EQ(parseSetting("hidden").message(), "expected KEY=VALUE, got 'hidden'");
  EXPECT_EQ(parseSetting("=3").message(), "expected KEY=VALUE, got '=3'");
}

TEST(ModelLoader, RejectsWhatIsNoPlugin) {
  std::string missing = kPlugins + "/nowhere.so";
  EXPECT_THAT(getCreateError(missing, {}, 2),
              HasSubstr("cannot load the plug-in '" + missing + "': "));
  EXPECT_THAT(getCreateError("nowhere.so", {}, 2), HasSubstr("cannot load the plug-in"));
  std::string text = testing::TempDir() + "/dualpipe-text.so";
  std::ofstream(text) << "no shared object";
  EXPECT_THAT(getCreateError(text, {}, 2), HasSubstr("cannot load the plug-in"));
  std::string empty = kPlugins + "/libplugin-empty.so";
  EXPECT_EQ(getCreateError(empty, {}, 2),
            empty + ": not a plug-in: it does not export 'dp_get_model'");
}

TEST(ModelLoader, RejectsFaultyPlugins) {
  std::string path = kPlugins + "/libplugin-version.so";
  EXPECT_EQ(getCreateError(path, {}, 2),
            path + ": built for another version of the stage interface, expected 1, got 2; rebuild "
                   "it with this stage.h");
  path = kPlugins + "/libplugin-size.so";
  EXPECT_EQ(getCreateError(path, {}, 2),
            path + ": its dp_model_api has 16 bytes, expected at least " +
                std::to_string(sizeof(dp_model_api)) + "; rebuild it with this stage.h");
  path = kPlugins + "/libplugin-lacks.so";
  EXPECT_EQ(getCreateError(path, {}, 2),
            path + ": its dp_model_api lacks 'create', which is not optional");
  path = kPlugins + "/libplugin-null.so";
  EXPECT_EQ(getCreateError(path, {}, 2), path + ": its 'dp_get_model' returned no model");
}

class FakeModelTest : public testing::Test {
protected:
  void SetUp() override { getFakeBehaviour() = {}; }
  std::string getError(uint32_t numStages = 2) {
    Result<Model> model = Model::create(api, makeOptions("fake", {}, numStages));
    return model ? "" : model.message();
  }
  dp_model_api api = makeFakeApi();
  FakeBehaviour &fake = getFakeBehaviour();
};

TEST_F(FakeModelTest, EveryFunctionIsRequired) {
  EXPECT_EQ(getError(), "");
  api.backward_weight = nullptr;
  EXPECT_EQ(getError(), "fake: its dp_model_api lacks 'backward_weight', which is not optional");
}

TEST_F(FakeModelTest, FailuresOfAModelAreToldOn) {
  fake.failing = "create";
  EXPECT_EQ(getError(), "model 'fake': told to fail");
  fake.silent = true;
  EXPECT_EQ(getError(), "model 'fake': cannot be created, no reason given");
  fake.failing = "contract";
  EXPECT_EQ(getError(), "model 'fake': cannot state its contract");
  fake.failing = "tensor";
  EXPECT_EQ(getError(), "model 'fake': cannot describe the input of stage 0");
  fake.failing = "param";
  EXPECT_EQ(getError(), "model 'fake': cannot describe parameter 0 of stage 0");
}

TEST_F(FakeModelTest, DescriptionsAreChecked) {
  fake.tensor.ndim = 9;
  EXPECT_EQ(getError(), "model 'fake': the input of stage 0 has 9 dimensions, expected at most 8");
  fake.tensor = {{kDLInt, 4, 1}, 1, 1, {2}};
  EXPECT_EQ(getError(), "model 'fake': the input of stage 0 has a type whose elements are not "
                        "whole bytes");
  fake.tensor = {{kDLFloat, 32, 1}, 1, 1, {-2}};
  EXPECT_EQ(getError(), "model 'fake': the input of stage 0 has a negative extent, -2");
  fake = {};
  fake.param.ndim = 2;
  fake.param.shape[0] = fake.param.shape[1] = int64_t(1) << 40;
  EXPECT_EQ(getError(), "model 'fake': parameter 0 of stage 0 is larger than memory can be");
}

TEST_F(FakeModelTest, SumsOfWhatAModelSaysAreBounded) {
  fake.numParams = ~0u;
  EXPECT_EQ(getError(),
            "model 'fake': stage 0 has 4294967295 parameters, expected at most 1048576");
  fake.numParams = 3;
  fake.param.shape[0] = int64_t(1) << 42;
  EXPECT_EQ(getError(),
            "model 'fake': the parameters of stage 0 are together larger than memory can be");
  fake = {};
  fake.workspace = ~size_t(0);
  EXPECT_EQ(getError(), "model 'fake': the workspace of stage 0, 18446744073709551615 bytes, is "
                        "larger than memory can be");
}

TEST_F(FakeModelTest, AFailingCallNamesItsPlace) {
  Result<Model> model = Model::create(api, makeOptions("fake", {}, 2));
  ASSERT_TRUE(model);
  StageFixture stage(*model, 1);
  stage.call.begin(stage.copy, 7, 0, 0, true);
  fake.failing = "load_input";
  EXPECT_EQ(model->run(dualpipe::program::Function::LoadInput, stage.call).message(),
            "model 'fake': load_input of stage 1, micro-batch 7 failed: told to fail");
  fake.silent = true;
  stage.call.begin(stage.copy, 7, 0, 0, true);
  EXPECT_EQ(model->run(dualpipe::program::Function::LoadInput, stage.call).message(),
            "model 'fake': load_input of stage 1, micro-batch 7 failed: no reason given");
}

TEST_F(FakeModelTest, AFailingInitIsToldOn) {
  Result<Model> model = Model::create(api, makeOptions("fake", {}, 2));
  ASSERT_TRUE(model);
  Result<StageCopy> copy = StageCopy::create(*model, 0, 1, true);
  ASSERT_TRUE(copy);
  fake.failing = "init";
  EXPECT_EQ(copy->initialize(*model, 1).message(),
            "model 'fake': init of stage 1 failed: told to fail");
}

dualpipe::program::SharedInfo makeShared() {
  return ProgramBuilder(2, 2, 1).pipeline(0, 1, {0, 1}).take().shared;
}

TEST_F(FakeModelTest, AProgramMustFitTheModel) {
  auto check = [&](const dualpipe::program::SharedInfo &shared) {
    Result<Model> model = Model::create(api, makeOptions("fake", {}, 2));
    Status status = model->checkProgram(shared);
    return status ? "" : status.message();
  };
  EXPECT_EQ(check(makeShared()), "");
  auto shared = makeShared();
  shared.numStages = 8;
  EXPECT_EQ(check(shared), "model 'fake' was split into 2 stages, the program has 8");

  shared = makeShared();
  shared.numMicrobatches = 3;
  EXPECT_EQ(check(shared), "model 'fake' was made for 1 micro-batches, the program has 3");

  fake.contract.num_components = 2;
  EXPECT_EQ(check(makeShared()),
            "model 'fake' has 2 components per stage, the program was compiled for 1; compile the "
            "schedule with the contract of the model");
  fake.contract.num_components = 1;

  fake.contract.backward_weight_reads |= DP_READS(DP_GRAD_OUTPUT);
  EXPECT_EQ(check(makeShared()),
            "model 'fake' reads the output gradient in backward_weight, which the program does not "
            "keep until then; compile the schedule with the contract of the model");
  shared = makeShared();
  shared.contract.backwardWeightReads |= DP_READS(DP_GRAD_OUTPUT);
  EXPECT_EQ(check(shared), "");
  shared = makeShared();
  shared.training = false;
  EXPECT_EQ(check(shared), "") << "forward alone reads nothing later";
}

TEST_F(FakeModelTest, HandOversMustAgreeInSize) {
  fake.oddOutput = 3;
  Result<Model> model = Model::create(api, makeOptions("fake", {}, 2));
  ASSERT_TRUE(model);
  EXPECT_EQ(model->checkProgram(makeShared()).message(),
            "model 'fake': stage 0 puts out 24 bytes, stage 1 takes in 8; both must agree");
}

TEST(Model, SlotsAreAsLargeAsTheLargestStageOfTheirGroup) {
  getFakeBehaviour() = {};
  getFakeBehaviour().oddOutput = 5;
  dp_model_api api = makeFakeApi();
  Result<Model> model = Model::create(api, makeOptions("fake", {}, 3));
  ASSERT_TRUE(model);
  dualpipe::program::Contract contract;
  using dualpipe::program::SlotKind;
  EXPECT_EQ(model->getSlotBytes(contract, SlotKind::Output, 0), 40u);
  EXPECT_EQ(model->getSlotBytes(contract, SlotKind::Input, 0), 8u);
  contract.sizeGroup = {0, 1, 1};
  EXPECT_EQ(model->getSlotBytes(contract, SlotKind::Output, 0), 40u);
  EXPECT_EQ(model->getSlotBytes(contract, SlotKind::Output, 1), 8u);
}

TEST(Noop, HasTinyTensorsAndDoesNothing) {
  Model model = makeModel("noop", {{"bytes", "24"}}, 2);
  using dualpipe::program::SlotKind;
  EXPECT_EQ(model.getBytes(0, SlotKind::Output), 24u);
  EXPECT_EQ(model.getNumParams(1), 1u);
  EXPECT_EQ(getCreateError("noop", {{"bytes", "-1"}}, 2),
            "model 'noop': setting 'bytes': expected an integer from 1 to 1073741824, got '-1'");
}

} // namespace
