//===- CudaBackend.h - ranks on GPUs of this process ----------------------------===//
//
// One GPU per rank with NCCL between them, where there are enough; else all ranks
// on one GPU with copies between them (GpuTransport.h). Or one rank on one GPU, with
// NCCL to those of other processes. Never run on a GPU so far.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_CUDA_CUDABACKEND_H
#define DUALPIPE_RUNTIME_CUDA_CUDABACKEND_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Backend.h"
#include "dualpipe/Runtime/Cuda/Api.h"
#include "dualpipe/Runtime/Cuda/CudaDevice.h"
#include "dualpipe/Runtime/Cuda/Graph.h"
#include "dualpipe/Runtime/Cuda/NcclTransport.h"
#include "dualpipe/Runtime/Reference.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dualpipe::runtime::cuda {

/// The tables that a backend calls through.
struct CudaApis {
  DriverApi driver;
  CublasApi cublas;
  Result<NcclApi> nccl; ///< or why it cannot be used
};

/// Opens driver, cuBLAS and NCCL, and looks for a GPU and kernels. Fails with what is missing but
/// for NCCL, which not every program needs.
Result<CudaApis> loadCudaApis();

/// What a process with one rank has of the others.
struct ProcessPart {
  /// Those that rank 0 has made, one for each communicator of the plan.
  std::vector<UniqueId> ids;
};

struct CudaBackendOptions {
  int gpu = 0; ///< the ordinal, where all ranks run on one, or the only rank of the process
  /// Where the other ranks are in other processes.
  std::optional<ProcessPart> part;
  /// Where there is a GPU per rank and NCCL cannot be used, all ranks run on one; else that fails.
  bool sharesGpuWithoutNccl = false;
  CudaDeviceOptions device;
  NcclOptions nccl;
  GraphOptions graph; ///< `together` follows from where ranks run
};

class CudaBackend : public Backend {
public:
  /// Loads the kernels of the runtime into the GPUs. `apis` and `shared` outlive the backend.
  static Result<std::unique_ptr<CudaBackend>> create(const CudaApis &apis,
                                                     const program::SharedInfo &shared,
                                                     const CudaBackendOptions &options);
  ~CudaBackend() override;

  Result<Ends> connect(const program::RankProgram &rank, const Model &model, FailureSink &failures,
                       RankRecorder *recorder) override;
  /// "cuda (NVIDIA H200)", "cuda (8 x NVIDIA H200, 16 communicators)".
  const std::string &getName() const;
  /// Why ranks share a GPU although there is one for each; empty otherwise.
  const std::string &getNote() const;
  /// Why steps are not captured although they were to be: once, then empty. From any thread.
  std::string takeGraphNote();
  /// Steps that ran as graphs so far.
  uint32_t getNumReplayed() const;

  /// What the communicators of a rank take, once it has met the others; nothing where there are
  /// none.
  std::optional<CommunicatorUse> getCommunicatorUse(uint32_t rank) const;

  /// A place on the GPU for `--check`, on the calling thread and in use until the backend goes.
  Result<CheckPlace> makeCheckPlace();

private:
  struct State;
  explicit CudaBackend(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace dualpipe::runtime::cuda

#endif // DUALPIPE_RUNTIME_CUDA_CUDABACKEND_H
