//===- Api.h - CUDA driver, NCCL and cuBLAS as tables of functions ----------===//
//
// All three are opened at run time, so one binary serves machines with and
// without a GPU. Whatever calls one of them is given the table that it calls
// through: tests fill the same tables with a device made of software.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_CUDA_API_H
#define DUALPIPE_RUNTIME_CUDA_API_H

#include "dualpipe/Runtime/Cuda/Types.h"
#include "dualpipe/Support/Status.h"

#include <string>
#include <vector>

namespace dualpipe::runtime::cuda {

/// The CUDA driver. A driver belongs to the process: tables stay valid to its end.
struct DriverApi {
#define DUALPIPE_DRIVER(member, name, since, parameters) DriverStatus(*member) parameters = nullptr;
#include "dualpipe/Runtime/Cuda/Driver.def"
  int version = 0; ///< 12040 is CUDA 12.4
};

struct NcclApi {
#define DUALPIPE_NCCL(member, name, since, result, parameters) result(*member) parameters = nullptr;
#include "dualpipe/Runtime/Cuda/Nccl.def"
  int version = 0; ///< 22809 is 2.28.9
};

struct CublasApi {
#define DUALPIPE_CUBLAS(member, name, since, result, parameters)                                   \
  result(*member) parameters = nullptr;
#include "dualpipe/Runtime/Cuda/Cublas.def"
  int version = 0; ///< 130100 is 13.1.0
};

/// The oldest that work. CUDA 12.0 has cuGetProcAddress as we call it; NCCL 2.18 has
/// non-blocking communicators with a limit on their thread blocks.
inline constexpr int kMinDriver = 12000;
inline constexpr int kMinNccl = 21800;
inline constexpr int kMinCublas = 120000;

/// Opens libcuda.so.1, initialises it and looks up every function. Fails with what is missing and
/// what to do about it: no driver, the stub of the toolkit, an old driver, a missing function.
Result<DriverApi> loadDriver();
/// libnccl.so.2.
Result<NcclApi> loadNccl();
/// libcublas.so.13 or .12.
Result<CublasApi> loadCublas();

/// "12.4", "2.28.9", "13.1.0".
std::string printDriverVersion(int version);
std::string printNcclVersion(int version);
std::string printCublasVersion(int version);

/// NVIDIA's name of a code ("CUDA_ERROR_OUT_OF_MEMORY"); null for one that we do not know.
const char *getName(DriverStatus status);
const char *getName(NcclStatus status);
const char *getName(CublasStatus status);

/// Success, or "WHAT failed: CUDA_ERROR_... (what it means)". `what` is "cuMemAlloc of 12 bytes".
Status check(const DriverApi &driver, DriverStatus status, const std::string &what);
/// With NCCL's own last error. ncclInProgress is a failure here.
Status check(const NcclApi &nccl, NcclStatus status, const std::string &what,
             Communicator communicator = nullptr);
Status check(const CublasApi &cublas, CublasStatus status, const std::string &what);

/// One GPU as the driver describes it.
struct Gpu {
  int ordinal = 0;
  std::string name;
  size_t memory = 0;
  int major = 0, minor = 0; ///< compute capability
  int multiprocessors = 0;
};
/// Fails where there is none.
Result<std::vector<Gpu>> listGpus(const DriverApi &driver);

} // namespace dualpipe::runtime::cuda

#endif // DUALPIPE_RUNTIME_CUDA_API_H
