//===- SoftRun.cpp - a program on GPUs made of software -------------------------===//

#include "SoftRun.h"

#include "SoftExact.h"

#include "dualpipe/Runtime/Cuda/CudaDevice.h"
#include "dualpipe/Runtime/Cuda/GpuTransport.h"
#include "dualpipe/Runtime/Cuda/NcclTransport.h"

#include <memory>
#include <optional>

namespace dualpipe::test {

using namespace runtime;
using namespace runtime::cuda;

namespace {

/// Ranks on GPUs made of software, with the kernels of the exact model.
class SoftBackend : public Backend {
public:
  SoftBackend(SoftGpu &gpu, const program::SharedInfo &shared, const SoftRunOptions &options)
      : gpu(gpu), shared(shared), options(options), hub(shared), graphs(shared, getGraph()) {}

  Result<Ends> connect(const program::RankProgram &rank, const Model &model, FailureSink &failures,
                       RankRecorder *recorder) override;
  GraphHub &getGraphs() { return graphs; }

private:
  GraphOptions getGraph() const {
    GraphOptions graph = options.graph;
    graph.together = options.transport == SoftTransport::Copies;
    return graph;
  }
  Result<std::unique_ptr<Transport>> connectByCopies(const program::RankProgram &rank,
                                                     CudaDevice &device,
                                                     const SoftExactRuntime &kernels);
  Result<std::unique_ptr<Transport>> connectByNccl(const program::RankProgram &rank,
                                                   const Model &model, CudaDevice &device,
                                                   const SoftExactRuntime &kernels);

  SoftGpu &gpu;
  const program::SharedInfo &shared;
  const SoftRunOptions &options;
  GpuHub hub;
  std::vector<UniqueId> ids;
  std::vector<std::unique_ptr<GpuContext>> contexts;
  GraphHub graphs;
};

} // namespace

Result<std::unique_ptr<Transport>> SoftBackend::connectByCopies(const program::RankProgram &rank,
                                                                CudaDevice &device,
                                                                const SoftExactRuntime &kernels) {
  const auto sum = [&kernels](Stream stream, std::span<StageCopy *const> copies) {
    std::vector<void *> gradients;
    for (StageCopy *copy : copies)
      gradients.push_back(copy->getGrad(0).data);
    return launchSum(kernels, stream, gradients, gradients, 1);
  };
  return hub.connect(rank, device, sum);
}

Result<std::unique_ptr<Transport>> SoftBackend::connectByNccl(const program::RankProgram &rank,
                                                              const Model &model,
                                                              CudaDevice &device,
                                                              const SoftExactRuntime &kernels) {
  NcclOptions nccl;
  nccl.fold = options.transport == SoftTransport::Folded;
  nccl.timeoutSeconds = options.timeoutSeconds;
  if (ids.empty()) {
    Result<std::vector<UniqueId>> made =
        makeUniqueIds(gpu.getNccl(), planCommunicators(shared, nccl.fold).size());
    if (!made.ok())
      return made.getStatus();
    ids = std::move(*made);
  }
  const auto sum = [&kernels](Stream stream, dualpipe::kernels::Element,
                              std::span<void *const> members, int64_t count) {
    return launchSum(kernels, stream, members, members.first(1), count);
  };
  Result<std::unique_ptr<NcclTransport>> made =
      NcclTransport::create(gpu.getNccl(), shared, rank, model, device, ids, sum, nccl);
  if (!made.ok())
    return made.getStatus();
  return std::unique_ptr<Transport>(std::move(*made));
}

Result<Backend::Ends> SoftBackend::connect(const program::RankProgram &rank, const Model &model,
                                           FailureSink &failures, RankRecorder *recorder) {
  const bool copies = options.transport == SoftTransport::Copies;
  Result<GpuContext> context = GpuContext::create(gpu.getDriver(), copies ? 0 : int(rank.rank));
  if (!context.ok())
    return context.getStatus();
  contexts.push_back(std::make_unique<GpuContext>(std::move(*context)));
  CudaDeviceOptions deviceOptions;
  deviceOptions.timeoutSeconds = options.timeoutSeconds;
  Result<std::unique_ptr<CudaDevice>> device =
      CudaDevice::create(rank, failures, *contexts.back(), deviceOptions);
  if (!device.ok())
    return device.getStatus();
  if (recorder)
    if (Status status = (*device)->record(*recorder); !status.ok())
      return status;
  std::shared_ptr<SoftExactRuntime> kernels;
  {
    const ContextScope scope(*contexts.back());
    kernels = std::make_shared<SoftExactRuntime>(loadSoftExact(gpu.getDriver()));
  }
  Result<std::unique_ptr<Transport>> transport =
      copies ? connectByCopies(rank, **device, *kernels)
             : connectByNccl(rank, model, **device, *kernels);
  if (!transport.ok())
    return transport.getStatus();
  Ends ends{std::move(*device), kernels, std::move(*transport)};
  if (options.graph.use == GraphUse::Never)
    return ends;
  Result<std::unique_ptr<StepGraph>> graph =
      graphs.connect(rank, static_cast<CudaDevice &>(*ends.device));
  if (!graph.ok())
    return graph.getStatus();
  ends.graph = std::move(*graph);
  return ends;
}

static Result<RunReport> train(SoftGpu &gpu, const program::Program &program,
                               const SoftRunOptions &options, SoftRunResult &result) {
  auto shared = std::make_shared<const program::Program>(program);
  ModelOptions modelOptions;
  modelOptions.numStages = program.shared.numStages;
  modelOptions.numMicrobatches = program.shared.numMicrobatches;
  modelOptions.device = kDLCUDA;
  Result<Model> model =
      Model::create(options.model ? *options.model : getSoftExactModel(), modelOptions);
  if (!model.ok())
    return model.getStatus();
  SessionOptions session;
  session.training = options.training;
  session.timeoutSeconds = options.timeoutSeconds;
  session.numRecordedSteps = options.numRecordedSteps;
  const auto backend = std::make_shared<SoftBackend>(gpu, shared->shared, options);
  session.backend = backend;
  Result<std::unique_ptr<Optimizer>> optimizer = createOptimizer("sgd");
  if (!optimizer.ok())
    return optimizer.getStatus();
  Result<std::unique_ptr<Session>> made = Session::create(
      shared, std::make_shared<const Model>(std::move(*model)), std::move(*optimizer), session);
  if (!made.ok())
    return made.getStatus();
  Result<RunReport> run = (*made)->run();
  result.numReplayed = backend->getGraphs().getNumReplayed();
  result.note = backend->getGraphs().takeNote();
  return run;
}

SoftRunResult runOnSoftGpus(const program::Program &program, const SoftRunOptions &options) {
  SoftGpuOptions gpuOptions = options.gpu;
  gpuOptions.numGpus =
      options.transport == SoftTransport::Copies ? 1 : int(program.shared.numRanks);
  gpuOptions.hostThreads = options.hostThreads ? options.hostThreads : program.shared.numRanks;
  // Memory of another rank is out of reach, so there is nothing to order.
  gpuOptions.ordersAcrossRanks = options.transport == SoftTransport::Copies;
  gpuOptions.missingBytes = options.missingBytes;
  gpuOptions.missingOf = options.missingOf;
  SoftGpu gpu(gpuOptions);
  addSoftExactKernels(gpu);
  SoftRunResult result;
  Result<RunReport> trained = train(gpu, program, options, result);
  if (trained.ok()) {
    result.result = std::move(trained->result);
    result.recordings = std::move(trained->recordings);
  } else {
    result.failure = trained.message();
  }
  result.reports = gpu.getReports();
  result.numRun = gpu.getNumRun();
  return result;
}

} // namespace dualpipe::test
