//===- SelectBackend.cpp - what --backend means on this machine ------------------===//

#include "SelectBackend.h"

namespace dualpipe::launcher {

using namespace runtime::cuda;

CudaBackendOptions makeCudaOptions(const Options &options) {
  CudaBackendOptions backendOptions;
  backendOptions.device.timeoutSeconds = options.timeoutSeconds;
  backendOptions.nccl.timeoutSeconds = options.timeoutSeconds;
  backendOptions.nccl.fold = options.foldChannels;
  if (!options.graph.empty())
    backendOptions.graph.use = options.graph == "require" ? GraphUse::Require : GraphUse::Try;
  backendOptions.sharesGpuWithoutNccl = options.backend == "auto";
  return backendOptions;
}

static Result<SelectedBackend> selectCuda(const Options &options,
                                          const program::SharedInfo &shared) {
  Result<CudaApis> apis = loadCudaApis();
  if (!apis.ok())
    return apis.getStatus();
  SelectedBackend selected;
  selected.apis = std::make_shared<const CudaApis>(*apis);
  Result<std::unique_ptr<CudaBackend>> backend =
      CudaBackend::create(*selected.apis, shared, makeCudaOptions(options));
  if (!backend.ok())
    return backend.getStatus();
  selected.cuda = std::move(*backend);
  selected.note = selected.cuda->getNote();
  selected.noteIsNews = !selected.note.empty();
  return selected;
}

Result<SelectedBackend> selectBackend(const Options &options, const program::SharedInfo &shared) {
  const bool forCpu = options.backend == "cpu" || options.jitterSeed || options.shuffleSeed;
  if (forCpu)
    return SelectedBackend();
  Result<SelectedBackend> cuda = selectCuda(options, shared);
  if (cuda.ok() || options.backend == "cuda")
    return cuda;
  if (!options.graph.empty())
    return Status::failure("--graph captures what a GPU does, and none can be used: " +
                           cuda.message());
  SelectedBackend cpu;
  cpu.note = "running on the CPU: " + cuda.message();
  cpu.noteIsNews = options.foldChannels; // which does nothing there
  return cpu;
}

} // namespace dualpipe::launcher
