//===- CudaBackend.h - ranks on GPUs of this process ----------------------------===//
//
// All ranks on one GPU, with copies between them (GpuTransport.h). Never run on a
// GPU so far.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_CUDA_CUDABACKEND_H
#define DUALPIPE_RUNTIME_CUDA_CUDABACKEND_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Backend.h"
#include "dualpipe/Runtime/Cuda/Api.h"
#include "dualpipe/Runtime/Cuda/CudaDevice.h"
#include "dualpipe/Runtime/Reference.h"

#include <memory>
#include <span>
#include <string>

namespace dualpipe::runtime::cuda {

/// The tables that a backend calls through.
struct CudaApis {
  DriverApi driver;
  CublasApi cublas;
};

/// Opens driver and cuBLAS, and looks for a GPU and kernels. Fails with what is missing.
Result<CudaApis> loadCudaApis();

struct CudaBackendOptions {
  int gpu = 0; ///< ordinal
  CudaDeviceOptions device;
};

class CudaBackend : public Backend {
public:
  /// Loads the kernels of the runtime into a GPU. `apis` and `shared` outlive the backend.
  static Result<std::unique_ptr<CudaBackend>> create(const CudaApis &apis,
                                                     const program::SharedInfo &shared,
                                                     const CudaBackendOptions &options);
  ~CudaBackend() override;

  Result<Ends> connect(const program::RankProgram &rank, FailureSink &failures,
                       RankRecorder *recorder) override;
  bool canRecord() const override { return false; }
  /// "cuda (NVIDIA H200)".
  const std::string &getName() const;

  /// A place on the GPU for `--check`, on the calling thread and in use until the backend goes.
  Result<CheckPlace> makeCheckPlace();

private:
  struct State;
  explicit CudaBackend(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace dualpipe::runtime::cuda

#endif // DUALPIPE_RUNTIME_CUDA_CUDABACKEND_H
