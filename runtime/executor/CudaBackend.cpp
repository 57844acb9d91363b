//===- CudaBackend.cpp - ranks on GPUs of this process ---------------------------===//

#include "dualpipe/Runtime/Cuda/CudaBackend.h"

#include "dualpipe/Runtime/Cuda/GpuTransport.h"
#include "dualpipe/Runtime/Numerics.h"
#include "runtime/kernels/DeviceMath.h"
#include "runtime/kernels/KernelImage.h"
#include "runtime/kernels/KernelModule.h"

#include <fmt/format.h>

#include <optional>

namespace dualpipe::runtime::cuda {

using kernels::DeviceMath;
using kernels::KernelModule;
using program::StreamKind;

Result<CudaApis> loadCudaApis() {
  CudaApis apis;
  Result<DriverApi> driver = loadDriver();
  if (!driver.ok())
    return driver.getStatus();
  Result<CublasApi> cublas = loadCublas();
  if (!cublas.ok())
    return cublas.getStatus();
  if (Result<std::vector<Gpu>> gpus = listGpus(*driver); !gpus.ok())
    return gpus.getStatus();
  if (Result<std::span<const unsigned char>> image = kernels::getKernelImage(); !image.ok())
    return image.getStatus();
  return CudaApis{*driver, *cublas};
}

namespace {

/// Outside of a session: the first failure.
struct FirstFailure : FailureSink {
  void fail(Status status) override {
    if (!failure)
      failure = std::move(status);
  }
  std::optional<Status> failure;
};

/// What a check computes on: a device without a program, whose copies go to the stream of the
/// calls.
struct CheckRoom {
  program::RankProgram nothing;
  FirstFailure failures;
  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<DeviceMath> math;
  std::optional<ContextScope> scope;
};

} // namespace

struct CudaBackend::State {
  State(const CudaApis &apis, const program::SharedInfo &shared, const CudaBackendOptions &options,
        GpuContext gpu, KernelModule kernels, std::string name)
      : apis(apis), options(options), gpu(std::move(gpu)), kernels(std::move(kernels)),
        name(std::move(name)), hub(shared) {}

  const CudaApis &apis;
  const CudaBackendOptions options;
  const GpuContext gpu;
  const KernelModule kernels;
  const std::string name;
  GpuHub hub;
  CheckRoom room;
};

CudaBackend::CudaBackend(std::unique_ptr<State> state) : state(std::move(state)) {}
CudaBackend::~CudaBackend() {
  const ContextScope scope(state->gpu); // kernels are unloaded from it
  state.reset();
}
const std::string &CudaBackend::getName() const { return state->name; }

Result<std::unique_ptr<CudaBackend>> CudaBackend::create(const CudaApis &apis,
                                                         const program::SharedInfo &shared,
                                                         const CudaBackendOptions &options) {
  Result<std::vector<Gpu>> gpus = listGpus(apis.driver);
  if (!gpus.ok())
    return gpus.getStatus();
  if (options.gpu < 0 || size_t(options.gpu) >= gpus->size())
    return Status::failure(fmt::format("there is no GPU {}; the driver finds {}, from 0 to {}",
                                       options.gpu, gpus->size(), gpus->size() - 1));
  Result<std::span<const unsigned char>> image = kernels::getKernelImage();
  if (!image.ok())
    return image.getStatus();
  Result<GpuContext> gpu = GpuContext::create(apis.driver, options.gpu);
  if (!gpu.ok())
    return gpu.getStatus();
  const ContextScope scope(*gpu);
  if (!scope.getStatus().ok())
    return scope.getStatus();
  Result<KernelModule> kernels = KernelModule::load(apis.driver, *image);
  if (!kernels.ok())
    return kernels.getStatus();
  std::string name = fmt::format("cuda ({})", (*gpus)[size_t(options.gpu)].name);
  return std::unique_ptr<CudaBackend>(new CudaBackend(std::make_unique<State>(
      apis, shared, options, std::move(*gpu), std::move(*kernels), std::move(name))));
}

static std::vector<Stream> listComputeStreams(const program::RankProgram &rank,
                                              const CudaDevice &device) {
  std::vector<Stream> streams;
  for (uint32_t i = 0; i != rank.streams.size(); ++i)
    if (rank.streams[i].kind == StreamKind::Compute)
      streams.push_back(device.getStream(i));
  return streams;
}

Result<Backend::Ends> CudaBackend::connect(const program::RankProgram &rank, FailureSink &failures,
                                           RankRecorder *) {
  Result<std::unique_ptr<CudaDevice>> device =
      CudaDevice::create(rank, failures, state->gpu, state->options.device);
  if (!device.ok())
    return device.getStatus();
  const ContextScope scope(state->gpu);
  if (!scope.getStatus().ok())
    return scope.getStatus();
  Result<std::unique_ptr<DeviceMath>> made =
      DeviceMath::create(state->apis.driver, state->apis.cublas, state->kernels, **device,
                         listComputeStreams(rank, **device));
  if (!made.ok())
    return made.getStatus();
  const std::shared_ptr<DeviceMath> math(made->release(), [&gpu = state->gpu](DeviceMath *old) {
    const ContextScope scope(gpu);
    delete old;
  });
  dp_call call{};
  call.device = (*device)->getPlace();
  call.runtime = math.get();
  const auto sum = [call](Stream stream, std::span<StageCopy *const> copies) {
    dp_call own = call;
    own.stream = stream;
    return sumGradients(copies, own);
  };
  Result<std::unique_ptr<Transport>> transport = state->hub.connect(rank, **device, sum);
  if (!transport.ok())
    return transport.getStatus();
  return Ends{std::move(*device), math, std::move(*transport)};
}

Result<CheckPlace> CudaBackend::makeCheckPlace() {
  CheckRoom &room = state->room;
  Result<std::unique_ptr<CudaDevice>> device =
      CudaDevice::create(room.nothing, room.failures, state->gpu, state->options.device);
  if (!device.ok())
    return device.getStatus();
  room.device = std::move(*device);
  room.scope.emplace(state->gpu);
  if (!room.scope->getStatus().ok())
    return room.scope->getStatus();
  const Stream stream = room.device->getCopyStream();
  Result<std::unique_ptr<DeviceMath>> math = DeviceMath::create(
      state->apis.driver, state->apis.cublas, state->kernels, *room.device, {stream});
  if (!math.ok())
    return math.getStatus();
  room.math = std::move(*math);
  return CheckPlace{room.device.get(), {room.device->getPlace(), stream, room.math.get()}};
}

} // namespace dualpipe::runtime::cuda
