//===- CudaBackend.cpp - ranks on GPUs of this process ---------------------------===//

#include "dualpipe/Runtime/Cuda/CudaBackend.h"
#include "FirstFailure.h"

#include "dualpipe/Runtime/Cuda/GpuTransport.h"
#include "dualpipe/Runtime/Numerics.h"
#include "runtime/kernels/DeviceMath.h"
#include "runtime/kernels/KernelImage.h"
#include "runtime/kernels/KernelModule.h"

#include <fmt/format.h>

#include <map>
#include <optional>

namespace dualpipe::runtime::cuda {

using kernels::DeviceMath;
using kernels::KernelModule;
using program::StreamKind;

Result<CudaApis> loadCudaApis() {
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
  return CudaApis{*driver, *cublas, loadNccl()};
}

namespace {

/// What a check computes on: a device without a program, whose copies go to the stream of the
/// calls.
struct CheckRoom {
  program::RankProgram nothing;
  FirstFailure failures;
  std::optional<ContextScope> scope; // outlives what was made in it
  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<DeviceMath> math;
};

/// A GPU, and the kernels in it.
struct LoadedGpu {
  static Result<LoadedGpu> create(const DriverApi &driver, int ordinal,
                                  std::span<const unsigned char> image);
  ~LoadedGpu() {
    if (!gpu)
      return;
    const ContextScope scope(*gpu); // kernels are unloaded from it
    kernels.reset();
  }
  LoadedGpu(LoadedGpu &&) = default;
  LoadedGpu &operator=(LoadedGpu &&) = delete;

  std::unique_ptr<const GpuContext> gpu;
  std::unique_ptr<const KernelModule> kernels;

private:
  LoadedGpu() = default;
};

/// How ranks are spread over GPUs.
struct Spread {
  bool usesNccl = false; ///< a GPU for each
  std::string note;
};

} // namespace

Result<LoadedGpu> LoadedGpu::create(const DriverApi &driver, int ordinal,
                                    std::span<const unsigned char> image) {
  LoadedGpu loaded;
  Result<GpuContext> gpu = GpuContext::create(driver, ordinal);
  if (!gpu.ok())
    return gpu.getStatus();
  loaded.gpu = std::make_unique<const GpuContext>(std::move(*gpu));
  const ContextScope scope(*loaded.gpu);
  if (!scope.getStatus().ok())
    return scope.getStatus();
  Result<KernelModule> kernels = KernelModule::load(driver, image);
  if (!kernels.ok())
    return kernels.getStatus();
  loaded.kernels = std::make_unique<const KernelModule>(std::move(*kernels));
  return loaded;
}

struct CudaBackend::State {
  State(const CudaApis &apis, const program::SharedInfo &shared, const CudaBackendOptions &options)
      : apis(apis), shared(shared), options(options), hub(shared) {}

  /// By NCCL, or by copies on one GPU.
  Result<std::unique_ptr<Transport>> connect(const program::RankProgram &rank, const Model &model,
                                             CudaDevice &device,
                                             const std::shared_ptr<DeviceMath> &math);
  Status loadGpus(const Spread &spread, std::span<const unsigned char> image);
  const LoadedGpu &getGpu(uint32_t rank) const { return gpus[gpus.size() == 1 ? 0 : rank]; }
  bool usesNccl() const { return !ids.empty(); }

  const CudaApis &apis;
  const program::SharedInfo &shared;
  const CudaBackendOptions options;
  std::vector<LoadedGpu> gpus; ///< one, or by rank
  std::vector<UniqueId> ids;   ///< of NCCL's communicators
  std::map<uint32_t, std::shared_ptr<const CommunicatorUse>> communicatorUse; ///< by rank
  std::string name;
  std::string note;
  GpuHub hub;
  std::unique_ptr<GraphHub> graphs; ///< null where steps are not to be captured
  CheckRoom room;
};

CudaBackend::CudaBackend(std::unique_ptr<State> state) : state(std::move(state)) {}
CudaBackend::~CudaBackend() = default;
const std::string &CudaBackend::getName() const { return state->name; }
const std::string &CudaBackend::getNote() const { return state->note; }
std::string CudaBackend::takeGraphNote() {
  return state->graphs ? state->graphs->takeNote() : std::string();
}
uint32_t CudaBackend::getNumReplayed() const {
  return state->graphs ? state->graphs->getNumReplayed() : 0;
}

/// Every rank has a process and a GPU.
static Result<Spread> spreadProcess(const CudaApis &apis, const CudaBackendOptions &options) {
  if (options.part->ids.empty() || apis.nccl.ok())
    return Spread{!options.part->ids.empty(), ""};
  return Status::failure("NCCL between processes cannot be used: " + apis.nccl.message());
}

static Result<Spread> spreadRanks(const CudaApis &apis, size_t numGpus,
                                  const program::SharedInfo &shared,
                                  const CudaBackendOptions &options) {
  if (options.part)
    return spreadProcess(apis, options);
  const bool enough = numGpus >= shared.numRanks;
  if (options.nccl.fold && !enough)
    return Status::failure(
        fmt::format("--fold-channels folds what NCCL does between GPUs, expected a GPU for each "
                    "of {} ranks, got {}; leave it out, and all ranks run on one GPU",
                    shared.numRanks, numGpus));
  if (!enough || planCommunicators(shared, options.nccl.fold).empty())
    return Spread{};
  if (apis.nccl.ok())
    return Spread{true, ""};
  const std::string reason =
      fmt::format("each of {} ranks could have a GPU, but NCCL between them cannot be used: {}",
                  shared.numRanks, apis.nccl.message());
  if (!options.sharesGpuWithoutNccl || options.nccl.fold)
    return Status::failure(fmt::format(
        "{}; or let all ranks share a GPU with CUDA_VISIBLE_DEVICES={}", reason, options.gpu));
  return Spread{false, fmt::format("all ranks run on one GPU: {}", reason)};
}

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
  auto state = std::make_unique<State>(apis, shared, options);
  Result<Spread> spread = spreadRanks(apis, gpus->size(), shared, options);
  if (!spread.ok())
    return spread.getStatus();
  state->note = spread->note;
  const size_t numCommunicators = planCommunicators(shared, options.nccl.fold).size();
  if (options.part) {
    state->ids = options.part->ids;
  } else if (spread->usesNccl) {
    Result<std::vector<UniqueId>> ids = makeUniqueIds(*apis.nccl, numCommunicators);
    if (!ids.ok())
      return ids.getStatus();
    state->ids = std::move(*ids);
  }
  if (Status status = state->loadGpus(*spread, *image); !status.ok())
    return status;
  if (options.graph.use != GraphUse::Never) {
    GraphOptions graph = options.graph;
    graph.together = !spread->usesNccl;
    state->graphs = std::make_unique<GraphHub>(shared, std::move(graph));
  }
  const std::string &model = (*gpus)[size_t(options.gpu)].name;
  state->name = spread->usesNccl ? fmt::format("cuda ({} x {}, {} communicators)", shared.numRanks,
                                               model, numCommunicators)
                                 : fmt::format("cuda ({})", model);
  return std::unique_ptr<CudaBackend>(new CudaBackend(std::move(state)));
}

Status CudaBackend::State::loadGpus(const Spread &spread, std::span<const unsigned char> image) {
  const bool several = spread.usesNccl && !options.part;
  for (uint32_t i = 0; i != (several ? shared.numRanks : 1); ++i) {
    Result<LoadedGpu> gpu = LoadedGpu::create(apis.driver, several ? int(i) : options.gpu, image);
    if (!gpu.ok())
      return gpu.getStatus();
    gpus.push_back(std::move(*gpu));
  }
  return Status::success();
}

static std::vector<Stream> listComputeStreams(const program::RankProgram &rank,
                                              const CudaDevice &device) {
  std::vector<Stream> streams;
  for (uint32_t i = 0; i != rank.streams.size(); ++i)
    if (rank.streams[i].kind == StreamKind::Compute)
      streams.push_back(device.getStream(i));
  return streams;
}

Result<std::unique_ptr<Transport>>
CudaBackend::State::connect(const program::RankProgram &rank, const Model &model,
                            CudaDevice &device, const std::shared_ptr<DeviceMath> &math) {
  if (!usesNccl()) {
    dp_call call{};
    call.device = device.getPlace();
    call.runtime = math.get();
    const auto sum = [call](Stream stream, std::span<StageCopy *const> copies) {
      dp_call own = call;
      own.stream = stream;
      return sumGradients(copies, own);
    };
    return hub.connect(rank, device, sum);
  }
  const auto sum = [math](Stream stream, kernels::Element type, std::span<void *const> members,
                          int64_t count) { return math->sumMembers(stream, type, members, count); };
  Result<std::unique_ptr<NcclTransport>> made =
      NcclTransport::create(*apis.nccl, shared, rank, model, device, ids, sum, options.nccl);
  if (!made.ok())
    return made.getStatus();
  communicatorUse[rank.rank] = (*made)->getUse();
  return std::unique_ptr<Transport>(std::move(*made));
}

std::optional<CommunicatorUse> CudaBackend::getCommunicatorUse(uint32_t rank) const {
  const auto found = state->communicatorUse.find(rank);
  return found == state->communicatorUse.end() ? std::nullopt : std::optional(*found->second);
}

Result<Backend::Ends> CudaBackend::connect(const program::RankProgram &rank, const Model &model,
                                           FailureSink &failures, RankRecorder *recorder) {
  const LoadedGpu &loaded = state->getGpu(rank.rank);
  Result<std::unique_ptr<CudaDevice>> device =
      CudaDevice::create(rank, failures, *loaded.gpu, state->options.device);
  if (!device.ok())
    return device.getStatus();
  if (recorder)
    if (Status status = (*device)->record(*recorder); !status.ok())
      return status;
  const ContextScope scope(*loaded.gpu);
  if (!scope.getStatus().ok())
    return scope.getStatus();
  Result<std::unique_ptr<DeviceMath>> made =
      DeviceMath::create(state->apis.driver, state->apis.cublas, *loaded.kernels, **device,
                         listComputeStreams(rank, **device));
  if (!made.ok())
    return made.getStatus();
  const std::shared_ptr<DeviceMath> math(made->release(),
                                         [gpu = loaded.gpu.get()](DeviceMath *old) {
                                           const ContextScope scope(*gpu);
                                           delete old;
                                         });
  Result<std::unique_ptr<Transport>> transport = state->connect(rank, model, **device, math);
  if (!transport.ok())
    return transport.getStatus();
  Ends ends{std::move(*device), math, std::move(*transport)};
  if (!state->graphs)
    return ends;
  Result<std::unique_ptr<StepGraph>> graph =
      state->graphs->connect(rank, static_cast<CudaDevice &>(*ends.device));
  if (!graph.ok())
    return graph.getStatus();
  ends.graph = std::move(*graph);
  return ends;
}

Result<CheckPlace> CudaBackend::makeCheckPlace() {
  CheckRoom &room = state->room;
  const GpuContext &gpu = *state->gpus.front().gpu;
  Result<std::unique_ptr<CudaDevice>> device =
      CudaDevice::create(room.nothing, room.failures, gpu, state->options.device);
  if (!device.ok())
    return device.getStatus();
  room.device = std::move(*device);
  room.scope.emplace(gpu);
  if (!room.scope->getStatus().ok())
    return room.scope->getStatus();
  const Stream stream = room.device->getCopyStream();
  Result<std::unique_ptr<DeviceMath>> math = DeviceMath::create(
      state->apis.driver, state->apis.cublas, *state->gpus.front().kernels, *room.device, {stream});
  if (!math.ok())
    return math.getStatus();
  room.math = std::move(*math);
  return CheckPlace{room.device.get(), {room.device->getPlace(), stream, room.math.get()}};
}

} // namespace dualpipe::runtime::cuda
