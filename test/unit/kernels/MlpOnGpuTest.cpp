//===- MlpOnGpuTest.cpp - the mlp on a software GPU against the CPU ----------===//
//
// Data and weights have the CPU's bits. What is computed may differ, by the
// tolerances below: the order of sums is another (docs/cuda.md states them).
//
//===----------------------------------------------------------------------===//

#include "OnGpu.h"

#include "test/unit/models/TestSupport.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace dualpipe;
using namespace dualpipe::runtime;
using namespace dualpipe::runtime::test;
using dualpipe::kernels::Bf16;
using dualpipe::kernels::test::OnGpu;
using dualpipe::program::Function;
using dualpipe::program::kAccumulate;
using dualpipe::program::kFirstStage;
using dualpipe::program::kLastStage;
using dualpipe::program::SlotKind;

namespace {

constexpr uint64_t kSeed = 7;

Settings makeSettings(const std::string &type) {
  return {{"hidden", "24"}, {"seq", "5"}, {"batch", "3"}, {"dtype", type}, {"layers", "4"}};
}

Model makeGpuModel(const std::string &name, const Settings &settings, uint32_t numStages,
                   uint32_t numMicrobatches = 1) {
  ModelOptions options = makeOptions(name, settings, numStages, numMicrobatches);
  options.device = kDLCUDA;
  Result<Model> model = Model::create(options);
  EXPECT_TRUE(model) << model.message();
  return std::move(*model);
}

/// The same as StageFixture in memory of a GPU. `host` has what was read back.
struct GpuStage {
  GpuStage(OnGpu &on, const Model &model, uint32_t stage)
      : on(on), model(model), stage(stage), copy(makeCopy(on, model, stage)),
        host(std::move(*StageCopy::create(model, 0, stage, true))) {
    const dp_step_state values = {3, kSeed, 0.1};
    state = on.put(std::vector<dp_step_state>{values});
    loss = on.put(std::vector<double>{-1.0});
    const size_t bytes = model.getMaxWorkspaceBytes();
    void *workspace = on.put(std::vector<char>(bytes, 0x7f));
    call = std::make_unique<StageCall>(model, *state, workspace, bytes, on.getCalls());
    Status status = copy.initialize(model, *call);
    EXPECT_TRUE(status.ok()) << status.message();
    for (unsigned kind = 0; kind < program::kNumSlotKinds; ++kind)
      tensors[kind] = on.put(std::vector<char>(model.getBytes(stage, SlotKind(kind)), 0x7f));
  }
  static StageCopy makeCopy(OnGpu &on, const Model &model, uint32_t stage) {
    Result<StageCopy> made = StageCopy::create(model, 0, stage, true, 0, *on.place);
    EXPECT_TRUE(made) << made.message();
    return std::move(*made);
  }

  void run(Function function, uint8_t flags, std::vector<SlotKind> kinds, uint32_t microbatch = 0) {
    call->begin(copy, microbatch, 0, flags, true);
    for (SlotKind kind : kinds)
      call->bind(kind, tensors[unsigned(kind)]);
    call->setLoss(loss);
    Status status = model.run(function, *call);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  std::vector<char> read(SlotKind kind) {
    return on.get(tensors[unsigned(kind)], model.getBytes(stage, kind));
  }
  StageCopy &readCopy() {
    EXPECT_TRUE(copy.download(*on.place, host).ok());
    return host;
  }
  double readLoss() { return on.get(loss, 1)[0]; }

  OnGpu &on;
  const Model &model;
  uint32_t stage;
  StageCopy copy, host;
  dp_step_state *state = nullptr;
  double *loss = nullptr;
  std::unique_ptr<StageCall> call;
  std::array<char *, program::kNumSlotKinds> tensors{};
};

/// Relative to the largest element of a tensor.
double getTolerance(const std::string &type) {
  return type == "f64" ? 1e-13 : type == "f32" ? 2e-6 : 0x1p-7;
}

std::vector<double> widen(DLDataType type, const void *data, size_t count) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = type.code == kDLBfloat ? double(kernels::widen(static_cast<const Bf16 *>(data)[i]))
                : type.bits == 32      ? double(static_cast<const float *>(data)[i])
                                       : static_cast<const double *>(data)[i];
  return values;
}

void expectClose(const std::vector<double> &got, const std::vector<double> &wanted,
                 double tolerance, const std::string &what) {
  double largest = 0;
  for (double value : wanted)
    largest = std::max(largest, std::abs(value));
  ASSERT_GT(largest, 0) << what;
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], wanted[i], tolerance * largest) << what << ", element " << i;
}

void compareTensor(GpuStage &gpu, StageFixture &cpu, SlotKind kind, const std::string &type) {
  const dp_tensor_spec &spec = gpu.model.getSpec(gpu.stage, kind);
  const std::vector<char> bytes = gpu.read(kind);
  const size_t count = bytes.size() / getElementBytes(spec.dtype);
  expectClose(widen(spec.dtype, bytes.data(), count), widen(spec.dtype, cpu.get<void>(kind), count),
              getTolerance(type), std::string(describeKind(kind)) + " " + type);
}

void compareGrads(GpuStage &gpu, StageFixture &cpu, const std::string &type) {
  const StageCopy &read = gpu.readCopy();
  for (uint32_t i = 0; i < read.getNumParams(); ++i) {
    const DLTensor &tensor = read.getGrad(i);
    const size_t count = size_t(getNumElements(tensor));
    expectClose(widen(tensor.dtype, tensor.data, count),
                widen(tensor.dtype, cpu.copy.getGrad(i).data, count), getTolerance(type),
                "gradient " + std::to_string(i) + " " + type);
  }
}

class OnGpuTypes : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Mlp, OnGpuTypes, testing::Values("f32", "bf16", "f64"),
                         [](const auto &info) { return std::string(info.param); });

TEST_P(OnGpuTypes, WeightsAndDataHaveTheBitsOfTheCpu) {
  const Settings settings = makeSettings(GetParam());
  Model cpuModel = makeModel("mlp", settings, 2), gpuModel = makeGpuModel("mlp", settings, 2);
  OnGpu on;
  for (uint32_t stage : {0u, 1u}) {
    StageFixture cpu(cpuModel, stage, kSeed);
    cpu.state.step = 3;
    GpuStage gpu(on, gpuModel, stage);
    EXPECT_TRUE(sameBytes(gpu.readCopy().getParamBuffer(), cpu.copy.getParamBuffer()));
    for (auto [function, kind] : {std::pair(Function::LoadInput, SlotKind::Input),
                                  std::pair(Function::LoadLabels, SlotKind::Labels)}) {
      cpu.run(function, 0, {kind}, 5);
      gpu.run(function, 0, {kind}, 5);
      EXPECT_EQ(std::memcmp(gpu.read(kind).data(), cpu.get<void>(kind), cpu.getBytes(kind)), 0);
    }
  }
}

/// Gives the CPU's tensor to the GPU.
void hand(StageFixture &cpu, SlotKind from, GpuStage &gpu, SlotKind to) {
  ASSERT_TRUE(
      gpu.on.place->upload(gpu.tensors[unsigned(to)], cpu.get<void>(from), cpu.getBytes(from))
          .ok());
}

/// Each function of each stage starts from the same bits on both.
TEST_P(OnGpuTypes, FunctionsAgreeWithTheCpu) {
  const std::string type = GetParam();
  Model cpuModel = makeModel("mlp", makeSettings(type), 2, 4);
  Model gpuModel = makeGpuModel("mlp", makeSettings(type), 2, 4);
  OnGpu on;
  StageFixture front(cpuModel, 0, kSeed), back(cpuModel, 1, kSeed);
  GpuStage gpuFront(on, gpuModel, 0), gpuBack(on, gpuModel, 1);
  front.run(Function::LoadInput, kFirstStage, {SlotKind::Input}, 2);
  hand(front, SlotKind::Input, gpuFront, SlotKind::Input);
  const std::vector<SlotKind> up = {SlotKind::Input, SlotKind::Output, SlotKind::Saved};
  front.run(Function::Forward, kFirstStage, up);
  gpuFront.run(Function::Forward, kFirstStage, up);
  compareTensor(gpuFront, front, SlotKind::Output, type);

  std::memcpy(back.get<char>(SlotKind::Input), front.get<char>(SlotKind::Output),
              front.getBytes(SlotKind::Output));
  back.run(Function::LoadLabels, kLastStage, {SlotKind::Labels}, 2);
  hand(back, SlotKind::Input, gpuBack, SlotKind::Input);
  hand(back, SlotKind::Labels, gpuBack, SlotKind::Labels);
  const std::vector<SlotKind> end = {SlotKind::Input, SlotKind::Labels, SlotKind::Saved};
  back.run(Function::Forward, kLastStage, end);
  gpuBack.run(Function::Forward, kLastStage, end);
  EXPECT_NEAR(gpuBack.readLoss(), back.loss, getTolerance(type) * back.loss);

  hand(back, SlotKind::Saved, gpuBack, SlotKind::Saved);
  for (uint8_t accumulate : {uint8_t(0), uint8_t(kAccumulate)}) {
    const std::vector<SlotKind> down = {SlotKind::Saved, SlotKind::GradInput};
    back.run(Function::Backward, uint8_t(kLastStage | accumulate), down);
    gpuBack.run(Function::Backward, uint8_t(kLastStage | accumulate), down);
    compareTensor(gpuBack, back, SlotKind::GradInput, type);
    compareGrads(gpuBack, back, type);
  }

  std::memcpy(front.get<char>(SlotKind::GradOutput), back.get<char>(SlotKind::GradInput),
              front.getBytes(SlotKind::GradOutput));
  hand(front, SlotKind::Saved, gpuFront, SlotKind::Saved);
  hand(front, SlotKind::GradOutput, gpuFront, SlotKind::GradOutput);
  const std::vector<SlotKind> half = {SlotKind::Saved, SlotKind::GradOutput,
                                      SlotKind::WeightContext};
  front.run(Function::BackwardInput, kFirstStage, half);
  gpuFront.run(Function::BackwardInput, kFirstStage, half);
  hand(front, SlotKind::WeightContext, gpuFront, SlotKind::WeightContext);
  const std::vector<SlotKind> weight = {SlotKind::Saved, SlotKind::WeightContext};
  front.run(Function::BackwardWeight, kFirstStage, weight);
  gpuFront.run(Function::BackwardWeight, kFirstStage, weight);
  compareGrads(gpuFront, front, type);
}

TEST_P(OnGpuTypes, HalvesGiveTheBitsOfTheFullBackward) {
  Model model = makeGpuModel("mlp", makeSettings(GetParam()), 2);
  OnGpu on;
  GpuStage whole(on, model, 1), halves(on, model, 1);
  for (GpuStage *stage : {&whole, &halves}) {
    stage->run(Function::LoadInput, 0, {SlotKind::Input});
    stage->run(Function::LoadLabels, 0, {SlotKind::Labels});
    stage->run(Function::Forward, kLastStage, {SlotKind::Input, SlotKind::Labels, SlotKind::Saved});
  }
  whole.run(Function::Backward, kLastStage, {SlotKind::Saved, SlotKind::GradInput});
  halves.run(Function::BackwardInput, kLastStage,
             {SlotKind::Saved, SlotKind::GradInput, SlotKind::WeightContext});
  halves.run(Function::BackwardWeight, kLastStage, {SlotKind::Saved, SlotKind::WeightContext});
  EXPECT_EQ(whole.readLoss(), halves.readLoss());
  EXPECT_TRUE(sameBytes(whole.readCopy().getGradBuffer(), halves.readCopy().getGradBuffer()));
  EXPECT_EQ(whole.read(SlotKind::GradInput), halves.read(SlotKind::GradInput));
}

TEST_P(OnGpuTypes, StepsAgreeWithTheCpu) {
  const std::string type = GetParam();
  Model cpuModel = makeModel("mlp", makeSettings(type), 2);
  Model gpuModel = makeGpuModel("mlp", makeSettings(type), 2);
  OnGpu on;
  StageFixture cpu(cpuModel, 0, kSeed);
  GpuStage gpu(on, gpuModel, 0);
  std::memcpy(cpu.copy.getGradBuffer().data(), cpu.copy.getParamBuffer().data(),
              cpu.copy.getGradBuffer().size());
  ASSERT_TRUE(on.place
                  ->upload(gpu.copy.getGrad(0).data, cpu.copy.getGradBuffer().data(),
                           cpu.copy.getGradBuffer().size())
                  .ok());
  auto optimizer = createOptimizer("sgd");
  ASSERT_TRUE(takeStep(cpuModel, **optimizer, cpu.copy, cpu.call).ok());
  ASSERT_TRUE(takeStep(gpuModel, **optimizer, gpu.copy, *gpu.call).ok());
  EXPECT_TRUE(sameBytes(gpu.readCopy().getParamBuffer(), cpu.copy.getParamBuffer()));
}

/// A training step of one stage that is first and last, as calls.
void runStep(GpuStage &stage, const Model &model) {
  const uint8_t both = kFirstStage | kLastStage;
  stage.run(Function::LoadInput, both, {SlotKind::Input});
  stage.run(Function::LoadLabels, both, {SlotKind::Labels});
  stage.run(Function::Forward, both, {SlotKind::Input, SlotKind::Labels, SlotKind::Saved});
  stage.run(Function::Backward, both, {SlotKind::Saved});
  stage.run(Function::BackwardInput, both, {SlotKind::Saved, SlotKind::WeightContext});
  stage.run(Function::BackwardWeight, uint8_t(both | kAccumulate),
            {SlotKind::Saved, SlotKind::WeightContext});
  auto optimizer = createOptimizer("sgd");
  ASSERT_TRUE(takeStep(model, **optimizer, stage.copy, *stage.call).ok());
}

TEST_P(OnGpuTypes, CallsPutWorkOnTheStreamAndDoNothingElse) {
  Model model = makeGpuModel("mlp", makeSettings(GetParam()), 1);
  OnGpu on;
  GpuStage stage(on, model, 0);
  const std::vector<std::string> allowed = {"cuLaunchKernel", "cuMemcpyDtoDAsync",
                                            "cublasGemmStridedBatchedEx"};
  std::vector<std::string> others;
#define DUALPIPE_DRIVER(member, name, since, parameters) others.push_back(#name);
#include "dualpipe/Runtime/Cuda/Driver.def"
#define DUALPIPE_CUBLAS(member, name, since, result, parameters) others.push_back(#name);
#include "dualpipe/Runtime/Cuda/Cublas.def"
  std::erase_if(others, [&](const std::string &name) {
    return std::find(allowed.begin(), allowed.end(), name) != allowed.end();
  });
  const auto count = [&] {
    std::map<std::string, uint32_t> calls;
    for (const std::string &name : others)
      calls[name] = on.gpu.getNumCalls(name);
    return calls;
  };
  const auto before = count();
  ASSERT_GT(before.at("cuMemAlloc"), 0u);
  const uint32_t launches = on.gpu.getNumCalls("cuLaunchKernel");
  runStep(stage, model);
  EXPECT_EQ(count(), before);
  EXPECT_GT(on.gpu.getNumCalls("cuLaunchKernel"), launches);
}

/// Step, seed and learning rate are read when the graph runs, not when it is captured.
TEST_P(OnGpuTypes, ACapturedStepFollowsTheStateInDeviceMemory) {
  Model model = makeGpuModel("mlp", makeSettings(GetParam()), 1);
  OnGpu on;
  GpuStage direct(on, model, 0), captured(on, model, 0);
  const cuda::DriverApi &driver = on.gpu.getDriver();
  cuda::Graph graph = nullptr;
  cuda::GraphExec executable = nullptr;
  ASSERT_EQ(driver.streamBeginCapture(on.getStream(), cuda::CaptureMode::ThreadLocal),
            cuda::DriverStatus::Success);
  runStep(captured, model);
  ASSERT_EQ(driver.streamEndCapture(on.getStream(), &graph), cuda::DriverStatus::Success);
  ASSERT_EQ(driver.graphInstantiate(&executable, graph, 0), cuda::DriverStatus::Success);
  double last = -1;
  for (uint64_t step = 5; step < 8; ++step) {
    const dp_step_state state = {step, kSeed, 0.5 / double(step)};
    for (GpuStage *stage : {&direct, &captured})
      ASSERT_TRUE(on.place->upload(stage->state, &state, sizeof state).ok());
    runStep(direct, model);
    ASSERT_EQ(driver.graphLaunch(executable, on.getStream()), cuda::DriverStatus::Success);
    EXPECT_EQ(captured.readLoss(), direct.readLoss());
    EXPECT_NE(captured.readLoss(), last) << "the same data again";
    last = captured.readLoss();
    EXPECT_TRUE(
        sameBytes(captured.readCopy().getParamBuffer(), direct.readCopy().getParamBuffer()));
  }
  EXPECT_EQ(driver.graphExecDestroy(executable), cuda::DriverStatus::Success);
  EXPECT_EQ(driver.graphDestroy(graph), cuda::DriverStatus::Success);
}

/// DualPipe on two ranks as far as a replay sees it: both hold both stages.
program::Program makeMirrored() {
  ProgramBuilder builder(2, 2, 4);
  builder.pipeline(0, 2, {0, 1}).pipeline(2, 2, {1, 0});
  for (uint32_t microbatch = 0; microbatch < 4; ++microbatch) {
    const uint32_t first = microbatch < 2 ? 0 : 1;
    builder.op(first, {Function::Forward, 0, microbatch});
    builder.op(1 - first, {Function::Forward, 1, microbatch});
    builder.op(1 - first, {Function::Backward, 1, microbatch});
    builder.op(first, {Function::BackwardInput, 0, microbatch});
    builder.op(first, {Function::BackwardWeight, 0, microbatch});
  }
  builder.reduce(0, {0, 1}).reduce(1, {0, 1});
  for (uint32_t rank : {0u, 1u})
    builder.step(rank, 0).step(rank, 1);
  return builder.take();
}

TrainingResult replayOnGpu(const Model &model, const program::Program &program, uint64_t seed,
                           const TrainingOptions &options) {
  dualpipe::test::SoftGpuOptions gpu;
  gpu.seed = seed;
  OnGpu on(gpu);
  auto optimizer = createOptimizer("sgd");
  Result<Replay> made = replay(model, program, **optimizer, options, on.getCheck());
  EXPECT_TRUE(made) << made.message();
  return std::move(made->result);
}

TEST_P(OnGpuTypes, AReplayAgreesWithTheOneOfTheCpuAndWithItself) {
  const std::string type = GetParam();
  const program::Program program = makeMirrored();
  Model cpuModel = makeModel("mlp", makeSettings(type), 2, 4);
  Model gpuModel = makeGpuModel("mlp", makeSettings(type), 2, 4);
  const TrainingOptions options = {kSeed, 3, 0.05};
  auto optimizer = createOptimizer("sgd");
  Result<Replay> cpu = replay(cpuModel, program, **optimizer, options);
  ASSERT_TRUE(cpu) << cpu.message();
  const TrainingResult first = replayOnGpu(gpuModel, program, 1, options);
  const TrainingResult second = replayOnGpu(gpuModel, program, 2, options);
  EXPECT_EQ(first.losses, second.losses);
  ASSERT_EQ(first.copies.size(), cpu->result.copies.size());
  expectClose(first.losses, cpu->result.losses, getTolerance(type), "losses");
  for (size_t i = 0; i < first.copies.size(); ++i) {
    EXPECT_TRUE(sameBytes(first.copies[i].getParamBuffer(), second.copies[i].getParamBuffer()));
    EXPECT_TRUE(sameBytes(first.copies[i].getGradBuffer(), second.copies[i].getGradBuffer()));
    for (uint32_t index = 0; index < first.copies[i].getNumParams(); ++index) {
      const DLTensor &weight = first.copies[i].getParam(index);
      const size_t count = size_t(getNumElements(weight));
      expectClose(widen(weight.dtype, weight.data, count),
                  widen(weight.dtype, cpu->result.copies[i].getParam(index).data, count),
                  getTolerance(type), "weights");
    }
  }
}

TEST_P(OnGpuTypes, TheWholeCheckRunsOnTheGpu) {
  const program::Program program = makeMirrored();
  Model model = makeGpuModel("mlp", makeSettings(GetParam()), 2, 4);
  const TrainingOptions options = {kSeed, 2, 0.05};
  const TrainingResult run = replayOnGpu(model, program, 1, options);
  OnGpu on;
  auto optimizer = createOptimizer("sgd");
  Result<CheckReport> report = checkRun(model, program, **optimizer, options, run, on.getCheck());
  ASSERT_TRUE(report) << report.message();
  EXPECT_TRUE(report->passed) << report->getText();
}

TEST(NoopOnGpu, LeavesALossOfZero) {
  Model model = makeGpuModel("noop", {}, 2);
  OnGpu on;
  GpuStage stage(on, model, 1);
  EXPECT_EQ(stage.readLoss(), -1.0);
  stage.run(Function::Forward, kLastStage, {SlotKind::Input, SlotKind::Labels, SlotKind::Saved});
  EXPECT_EQ(stage.readLoss(), 0.0);
  stage.run(Function::Backward, kLastStage, {SlotKind::Saved, SlotKind::GradInput});
  EXPECT_EQ(*static_cast<float *>(stage.readCopy().getGrad(0).data), 0.0f);
}

TEST(NoopOnGpu, PassesOnWhatFailed) {
  dualpipe::test::SoftGpuOptions options;
  options.faults = {{"cuMemsetD8Async", 100, 700}};
  Model model = makeGpuModel("noop", {}, 2);
  OnGpu on(options);
  GpuStage stage(on, model, 1);
  Status status = Status::success();
  for (int i = 0; i < 100 && status.ok(); ++i) {
    stage.call->begin(stage.copy, 0, 0, kLastStage, true);
    stage.call->setLoss(stage.loss);
    status = model.run(Function::Forward, *stage.call);
  }
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(
      status.message(),
      testing::StartsWith("model 'noop': forward of stage 1, micro-batch 0 failed: clearing "
                          "8 bytes of the GPU failed: CUDA_ERROR_ILLEGAL_ADDRESS"));
}

} // namespace
