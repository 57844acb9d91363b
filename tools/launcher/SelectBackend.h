//===- SelectBackend.h - what --backend means on this machine --------------------===//

#ifndef DUALPIPE_TOOLS_LAUNCHER_SELECTBACKEND_H
#define DUALPIPE_TOOLS_LAUNCHER_SELECTBACKEND_H

#include "Options.h"

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Cuda/CudaBackend.h"

#include <memory>
#include <string>

namespace dualpipe::launcher {

/// Where a program runs. In the order of destruction: last to first.
struct SelectedBackend {
  std::shared_ptr<const runtime::cuda::CudaApis> apis;
  std::shared_ptr<runtime::cuda::CudaBackend> cuda; ///< null: on the CPU
  /// Why `auto` is not what it could be; empty otherwise.
  std::string note;
  /// Said to those who left the choice, too: there is a GPU, and it is used less than it could be.
  bool noteIsNews = false;

  DLDeviceType getDevice() const { return cuda ? kDLCUDA : kDLCPU; }
  std::string getName() const { return cuda ? cuda->getName() : "cpu"; }
};

/// What the options say of a run on GPUs.
runtime::cuda::CudaBackendOptions makeCudaOptions(const Options &options);

/// Fails where `cuda` is asked for and cannot be had; `auto` goes on with the CPU then.
/// `shared` outlives what is returned.
Result<SelectedBackend> selectBackend(const Options &options, const program::SharedInfo &shared);

} // namespace dualpipe::launcher

#endif // DUALPIPE_TOOLS_LAUNCHER_SELECTBACKEND_H
