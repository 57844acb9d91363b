//===- cuda_issue.cpp - host time per command of the cuda backend --------------===//
//
//   bench-cuda-issue PROGRAM.dpx [STEP.so]
//
// STEP.so is what --emit=cuda wrote for the program: its steps are then measured, too.
//
// Then the host's time for a step that is issued, and for one that is launched as a graph.
//
// The host thread of each rank issues steps of a model that does nothing, through
// tables whose functions return at once: what is left is the runtime's own time,
// beyond the calls. Between ranks stands NCCL, so no rank waits for another.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Executor.h"
#include "runtime/kernels/DeviceMath.h"
#include "runtime/kernels/KernelModule.h"

#include "dualpipe/Program/Reader.h"
#include "dualpipe/Runtime/Cuda/CudaDevice.h"
#include "dualpipe/Runtime/Cuda/Graph.h"
#include "dualpipe/Runtime/Cuda/NcclTransport.h"
#include "dualpipe/Runtime/EmittedStep.h"
#include "dualpipe/Runtime/RankMemory.h"
#include "dualpipe/Runtime/Reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace dualpipe;
using namespace dualpipe::runtime;
using namespace dualpipe::runtime::cuda;

namespace {

/// Steps of one measurement, and measurements, of which the best counts.
constexpr int kSteps = 200;
constexpr int kRepeats = 15;
constexpr int kTurns = 5; ///< where two ways are compared

/// A function that does nothing and succeeds.
template <typename Pointer> struct Nothing;
template <typename Value, typename... Arguments> struct Nothing<Value (*)(Arguments...)> {
  static Value call(Arguments...) { return Value{}; }
};

template <typename Pointer> void fill(Pointer &member) { member = Nothing<Pointer>::call; }

DriverApi makeDriver() {
  DriverApi driver;
#define DUALPIPE_DRIVER(member, name, since, parameters) fill(driver.member);
#include "dualpipe/Runtime/Cuda/Driver.def"
  driver.streamIsCapturing = [](cuda::Stream, CaptureStatus *status) {
    *status = CaptureStatus::Active;
    return DriverStatus::Success;
  };
  driver.graphInstantiate = [](GraphExec *executable, Graph, unsigned long long) {
    static char graph; // anything but null
    *executable = reinterpret_cast<GraphExec>(&graph);
    return DriverStatus::Success;
  };
  return driver;
}
NcclApi makeNccl() {
  NcclApi nccl;
#define DUALPIPE_NCCL(member, name, since, result, parameters) fill(nccl.member);
#include "dualpipe/Runtime/Cuda/Nccl.def"
  return nccl;
}
CublasApi makeCublas() {
  CublasApi cublas;
#define DUALPIPE_CUBLAS(member, name, since, result, parameters) fill(cublas.member);
#include "dualpipe/Runtime/Cuda/Cublas.def"
  return cublas;
}

struct Failures : FailureSink {
  void fail(Status status) override { fmt::print(stderr, "{}\n", status.message()); }
};

/// What measuring needs of the whole run.
struct Bench {
  const DriverApi driver = makeDriver();
  const NcclApi nccl = makeNccl();
  const CublasApi cublas = makeCublas();
  Failures failures;
};

} // namespace

/// Nanoseconds that one rank takes to issue a step, or, captured, to launch it. `emitted` issues it
/// in place of its commands, or is null.
static Result<double> measure(Bench &bench, const program::SharedInfo &shared,
                              const program::RankProgram &rank, const Model &model,
                              const Optimizer &optimizer, bool captured,
                              const dp_step_rank *emitted = nullptr) {
  Result<GpuContext> gpu = GpuContext::create(bench.driver, 0);
  if (!gpu.ok())
    return gpu.getStatus();
  Result<std::unique_ptr<CudaDevice>> device = CudaDevice::create(rank, bench.failures, *gpu, {});
  if (!device.ok())
    return device.getStatus();
  const unsigned char image[1] = {0};
  Result<kernels::KernelModule> kernels = kernels::KernelModule::load(bench.driver, image);
  if (!kernels.ok())
    return kernels.getStatus();
  Result<std::unique_ptr<kernels::DeviceMath>> math =
      kernels::DeviceMath::create(bench.driver, bench.cublas, *kernels, **device, {});
  if (!math.ok())
    return math.getStatus();
  const std::vector<UniqueId> ids(planCommunicators(shared, false).size());
  Result<std::unique_ptr<NcclTransport>> transport =
      NcclTransport::create(bench.nccl, shared, rank, model, **device, ids,
                            [](Stream, dualpipe::kernels::Element, std::span<void *const>,
                               int64_t) { return Status::success(); },
                            {});
  if (!transport.ok())
    return transport.getStatus();
  GraphHub hub(shared, {GraphUse::Require, false, {}});
  Result<std::unique_ptr<StepGraph>> graph = hub.connect(rank, **device);
  if (!graph.ok())
    return graph.getStatus();
  std::vector<StageCopy> copies;
  for (const auto &[owner, stage] : listCopies(shared)) {
    if (owner != rank.rank)
      continue;
    Result<StageCopy> copy = StageCopy::create(model, owner, stage, shared.training, 0, **device);
    if (!copy.ok())
      return copy.getStatus();
    copies.push_back(std::move(*copy));
  }
  Result<std::unique_ptr<Executor>> executor = Executor::create(
      {&shared, &rank, &model, &optimizer, device->get(), transport->get(), &bench.failures, copies,
       math->get(), nullptr, captured ? graph->get() : nullptr, emitted});
  if (!executor.ok())
    return executor.getStatus();
  std::vector<double> losses(shared.numMicrobatches);
  double best = 1e300; // also without the steps before the first launch
  for (int repeat = 0; repeat != kRepeats; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    for (int step = 0; step != kSteps; ++step)
      if (!(*executor)->issueStep({uint64_t(step), 0, 0.01}, losses.data()))
        return Status::failure("a step could not be issued");
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / kSteps);
  }
  return best;
}

/// By turns, so that both see the same machine.
static Status compareEmitted(Bench &bench, const program::SharedInfo &shared,
                             const program::RankProgram &rank, const Model &model,
                             const Optimizer &optimizer, const dp_step_rank *emitted) {
  double best[2] = {1e300, 1e300}; // of commands, of the emitted step
  for (int turn = 0; turn != 2 * kTurns; ++turn) {
    Result<double> nanoseconds =
        measure(bench, shared, rank, model, optimizer, false, turn % 2 == 0 ? nullptr : emitted);
    if (!nanoseconds.ok())
      return nanoseconds.getStatus();
    best[turn % 2] = std::min(best[turn % 2], *nanoseconds);
  }
  fmt::print("          emitted: {:>6.0f} ns, {:.2f} of it\n",
             best[1] / double(rank.commands.size()), best[1] / best[0]);
  return Status::success();
}

static Status run(const char *path, const char *stepPath) {
  Result<program::Program> program = program::readProgramFile(path);
  if (!program.ok())
    return program.getStatus();
  ModelOptions options;
  options.name = "noop";
  options.numStages = program->shared.numStages;
  options.numMicrobatches = program->shared.numMicrobatches;
  options.device = kDLCUDA;
  Result<Model> model = Model::create(options);
  if (!model.ok())
    return model.getStatus();
  Result<std::unique_ptr<Optimizer>> optimizer = createOptimizer("sgd");
  if (!optimizer.ok())
    return optimizer.getStatus();
  std::shared_ptr<const EmittedStep> step;
  if (stepPath) {
    Result<std::shared_ptr<const EmittedStep>> loaded = EmittedStep::load(stepPath);
    if (!loaded.ok())
      return loaded.getStatus();
    if (Status status = (*loaded)->checkProgram(*program); !status.ok())
      return status;
    step = *loaded;
  }
  Bench bench;
  double most = 0;
  for (const program::RankProgram &rank : program->ranks) {
    Result<double> issued = measure(bench, program->shared, rank, *model, **optimizer, false);
    if (!issued.ok())
      return issued.getStatus();
    Result<double> launched = measure(bench, program->shared, rank, *model, **optimizer, true);
    if (!launched.ok())
      return launched.getStatus();
    const double each = *issued / double(rank.commands.size());
    fmt::print(
        "rank {:>3}: {:>6} commands, {:>6.0f} ns of the host per command; a step takes {:.1f} us, "
        "as a graph {:.2f} us, 1/{:.0f}\n",
        rank.rank, rank.commands.size(), each, *issued * 1e-3, *launched * 1e-3,
        *issued / *launched);
    most = std::max(most, each);
    if (!step)
      continue;
    const dp_step_rank *emitted = step->findRank(rank.rank);
    if (Status status = compareEmitted(bench, program->shared, rank, *model, **optimizer, emitted);
        !status.ok())
      return status;
  }
  fmt::print("most: {:.0f} ns, allowed 1000\n", most);
  return Status::success();
}

int main(int argc, char **argv) {
  if (argc != 2 && argc != 3) {
    fmt::print(stderr, "usage: bench-cuda-issue PROGRAM.dpx [STEP.so]\n");
    return 1;
  }
  const Status status = run(argv[1], argc == 3 ? argv[2] : nullptr);
  if (status.ok())
    return 0;
  fmt::print(stderr, "bench-cuda-issue: error: {}\n", status.message());
  return 1;
}
