//===- Types.h - types of the CUDA driver API, NCCL and cuBLAS, as our own --===//
//
// Written down here, so that the runtime builds without a toolkit and tests can
// put a device of their own behind the same functions. Handles name the structs
// of NVIDIA's headers, so both can be included side by side; enumerations have
// NVIDIA's values. HeaderCheck.cpp compares all of it where a toolkit is.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_CUDA_TYPES_H
#define DUALPIPE_RUNTIME_CUDA_TYPES_H

#include <climits>
#include <cstddef>
#include <cstdint>

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUmod_st;
struct CUfunc_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct cublasContext;
struct ncclComm;

namespace dualpipe::runtime::cuda {

//===--- CUDA driver --------------------------------------------------------===//

using Context = CUctx_st *;
using Stream = CUstream_st *;
using Event = CUevent_st *;
using Module = CUmod_st *;
using Function = CUfunc_st *;
using Graph = CUgraph_st *;
using GraphExec = CUgraphExec_st *;
using DeviceId = int;
using DevicePointer = unsigned long long;

/// CUresult.
enum class DriverStatus : int {
#define DUALPIPE_DRIVER_STATUS(enumerator, name, value) enumerator = value,
#include "dualpipe/Runtime/Cuda/Status.def"
};

enum class DeviceAttribute : int {
  MultiprocessorCount = 16,
  ComputeCapabilityMajor = 75,
  ComputeCapabilityMinor = 76,
};

enum class CaptureMode : int { Global = 0, ThreadLocal = 1, Relaxed = 2 };
enum class CaptureStatus : int { None = 0, Active = 1, Invalidated = 2 };

/// A graph whose kernels keep the priorities of the streams that they were captured on.
inline constexpr unsigned long long kGraphUseNodePriority = 8;

/// A stream that waits for the null stream, and the null stream for it.
inline constexpr unsigned kStreamDefault = 0;
/// One that does not.
inline constexpr unsigned kStreamNonBlocking = 1;
/// An event without a time stamp: cheaper to record.
inline constexpr unsigned kEventDefault = 0;
inline constexpr unsigned kEventDisableTiming = 2;

//===--- NCCL ---------------------------------------------------------------===//

using Communicator = ncclComm *;

/// ncclResult_t.
enum class NcclStatus : int {
#define DUALPIPE_NCCL_STATUS(enumerator, name, value) enumerator = value,
#include "dualpipe/Runtime/Cuda/Status.def"
};

/// ncclDataType_t: those that tensors can have.
enum class NcclType : int { Int8 = 0, Float32 = 7, Float64 = 8, Bfloat16 = 9 };

enum class NcclReduction : int { Sum = 0 };

struct UniqueId {
  char internal[128];
};

/// ncclConfig_t as NCCL 2.18 has it. NCCL reads `size` bytes of it and fills in the rest, so this
/// layout serves every later version.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = INT_MIN; ///< INT_MIN: NCCL decides
  int cgaClusterSize = INT_MIN;
  int minCTAs = INT_MIN;
  int maxCTAs = INT_MIN;
  const char *netName = nullptr;
  int splitShare = INT_MIN;
};

//===--- cuBLAS -------------------------------------------------------------===//

using CublasHandle = cublasContext *;

/// cublasStatus_t.
enum class CublasStatus : int {
#define DUALPIPE_CUBLAS_STATUS(enumerator, name, value) enumerator = value,
#include "dualpipe/Runtime/Cuda/Status.def"
};

enum class CublasOperation : int { None = 0, Transpose = 1 };
/// cudaDataType_t.
enum class CublasType : int { Float32 = 0, Float64 = 1, Bfloat16 = 14 };
enum class CublasCompute : int { Float32 = 68, Float32Pedantic = 69, Float64 = 70 };
/// FullPrecisionReduction: parts of a product are added in the type of its sums.
enum class CublasMath : int { Default = 0, Pedantic = 2, FullPrecisionReduction = 16 };
enum class CublasAtomics : int { NotAllowed = 0, Allowed = 1 };
enum class CublasAlgorithm : int { Default = -1 };
/// libraryPropertyType.
enum class LibraryProperty : int { MajorVersion = 0, MinorVersion = 1, PatchLevel = 2 };

} // namespace dualpipe::runtime::cuda

#endif // DUALPIPE_RUNTIME_CUDA_TYPES_H
