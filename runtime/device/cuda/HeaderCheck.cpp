//===- HeaderCheck.cpp - our prototypes against NVIDIA's headers -------------===//
//
// Compiled only where a toolkit is found; holds nothing but static_asserts. The
// signatures of the driver are those that cudaTypedefs.h names by version.
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Runtime/Cuda/Api.h"

#include <cuda.h>
#include <cudaTypedefs.h>

#include <cublas_v2.h>

#ifdef DUALPIPE_HAVE_NCCL_HEADER
#include <nccl.h>
#endif

#include <cstddef>
#include <tuple>
#include <type_traits>

namespace dualpipe::runtime::cuda {
namespace {

/// Whether two types pass in the same way: handles must be the same type, numbers and enumerations
/// (ours are enum classes) of the same size, other pointers pointers alike, structs of the same
/// size.
template <typename Ours, typename Theirs> constexpr bool isSameParameter() {
  if constexpr (std::is_same_v<Ours, Theirs>)
    return true;
  else if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    using OurTarget = std::remove_pointer_t<Ours>;
    using TheirTarget = std::remove_pointer_t<Theirs>;
    if constexpr (std::is_const_v<OurTarget> != std::is_const_v<TheirTarget>)
      return false;
    else if constexpr (std::is_void_v<OurTarget> || std::is_void_v<TheirTarget>)
      return std::is_void_v<OurTarget> && std::is_void_v<TheirTarget>;
    else
      return isSameParameter<std::remove_const_t<OurTarget>, std::remove_const_t<TheirTarget>>();
  } else if constexpr (std::is_class_v<Ours> && std::is_class_v<Theirs>)
    // Of ncclConfig_t ours is the beginning.
    return sizeof(Ours) <= sizeof(Theirs) && alignof(Ours) == alignof(Theirs);
  else
    return (std::is_integral_v<Ours> || std::is_enum_v<Ours>) &&
           (std::is_integral_v<Theirs> || std::is_enum_v<Theirs>) && sizeof(Ours) == sizeof(Theirs);
}

template <typename Ours, typename Theirs> struct Signatures;
template <typename OurResult, typename... Ours, typename TheirResult, typename... Theirs>
struct Signatures<OurResult (*)(Ours...), TheirResult (*)(Theirs...)> {
  static constexpr bool areSame() {
    if constexpr (sizeof...(Ours) != sizeof...(Theirs))
      return false;
    else
      return isSameParameter<OurResult, TheirResult>() && (isSameParameter<Ours, Theirs>() && ...);
  }
};

#define DUALPIPE_DRIVER(member, name, since, parameters)                                           \
  static_assert(Signatures<decltype(DriverApi::member), PFN_##name##_v##since>::areSame(),         \
                #name " has another signature in cudaTypedefs.h");
#include "dualpipe/Runtime/Cuda/Driver.def"

#define DUALPIPE_DRIVER_STATUS(enumerator, name, value)                                            \
  static_assert(int(name) == value, #name " has another value in cuda.h");
#include "dualpipe/Runtime/Cuda/Status.def"

static_assert(int(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) ==
              int(DeviceAttribute::MultiprocessorCount));
static_assert(int(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) ==
              int(DeviceAttribute::ComputeCapabilityMajor));
static_assert(int(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) ==
              int(DeviceAttribute::ComputeCapabilityMinor));
static_assert(unsigned(CU_STREAM_NON_BLOCKING) == kStreamNonBlocking);
static_assert(unsigned(CU_EVENT_DEFAULT) == kEventDefault);
static_assert(unsigned(CU_EVENT_DISABLE_TIMING) == kEventDisableTiming);
static_assert(int(CU_STREAM_CAPTURE_MODE_GLOBAL) == int(CaptureMode::Global));
static_assert(int(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == int(CaptureMode::ThreadLocal));
static_assert(int(CU_STREAM_CAPTURE_MODE_RELAXED) == int(CaptureMode::Relaxed));
static_assert(int(CU_STREAM_CAPTURE_STATUS_NONE) == int(CaptureStatus::None));
static_assert(int(CU_STREAM_CAPTURE_STATUS_ACTIVE) == int(CaptureStatus::Active));
static_assert(int(CU_STREAM_CAPTURE_STATUS_INVALIDATED) == int(CaptureStatus::Invalidated));
static_assert(int(CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) == int(kGraphUseNodePriority));
static_assert(unsigned(CU_STREAM_DEFAULT) == kStreamDefault);

// cublasGemmEx is overloaded in C++: the one with cublasComputeType_t.
using GemmEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                  int, const void *, const void *, cudaDataType, int, const void *,
                                  cudaDataType, int, const void *, void *, cudaDataType, int,
                                  cublasComputeType_t, cublasGemmAlgo_t);
using GemmStridedBatchedEx = cublasStatus_t (*)(
    cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void *, const void *,
    cudaDataType, int, long long int, const void *, cudaDataType, int, long long int, const void *,
    void *, cudaDataType, int, long long int, int, cublasComputeType_t, cublasGemmAlgo_t);
[[maybe_unused]] constexpr GemmEx kGemmEx = ::cublasGemmEx;
[[maybe_unused]] constexpr GemmStridedBatchedEx kGemmStridedBatchedEx =
    ::cublasGemmStridedBatchedEx;
static_assert(Signatures<decltype(CublasApi::gemmEx), GemmEx>::areSame());
static_assert(
    Signatures<decltype(CublasApi::gemmStridedBatchedEx), GemmStridedBatchedEx>::areSame());
#define CHECK_CUBLAS(member, name)                                                                 \
  static_assert(Signatures<decltype(CublasApi::member), decltype(&::name)>::areSame(),             \
                #name " has another signature in cublas_v2.h");
CHECK_CUBLAS(create, cublasCreate_v2)
CHECK_CUBLAS(destroy, cublasDestroy_v2)
CHECK_CUBLAS(getVersion, cublasGetVersion_v2)
CHECK_CUBLAS(getProperty, cublasGetProperty)
CHECK_CUBLAS(getStatusString, cublasGetStatusString)
CHECK_CUBLAS(setStream, cublasSetStream_v2)
CHECK_CUBLAS(setWorkspace, cublasSetWorkspace_v2)
CHECK_CUBLAS(setMathMode, cublasSetMathMode)
CHECK_CUBLAS(setAtomicsMode, cublasSetAtomicsMode)
#undef CHECK_CUBLAS

#define DUALPIPE_CUBLAS_STATUS(enumerator, name, value)                                            \
  static_assert(int(name) == value, #name " has another value in cublas_v2.h");
#include "dualpipe/Runtime/Cuda/Status.def"

static_assert(int(CUBLAS_OP_N) == int(CublasOperation::None));
static_assert(int(CUBLAS_OP_T) == int(CublasOperation::Transpose));
static_assert(int(CUDA_R_32F) == int(CublasType::Float32));
static_assert(int(CUDA_R_64F) == int(CublasType::Float64));
static_assert(int(CUDA_R_16BF) == int(CublasType::Bfloat16));
static_assert(int(CUBLAS_COMPUTE_32F) == int(CublasCompute::Float32));
static_assert(int(CUBLAS_COMPUTE_32F_PEDANTIC) == int(CublasCompute::Float32Pedantic));
static_assert(int(CUBLAS_COMPUTE_64F) == int(CublasCompute::Float64));
static_assert(int(CUBLAS_DEFAULT_MATH) == int(CublasMath::Default));
static_assert(int(CUBLAS_PEDANTIC_MATH) == int(CublasMath::Pedantic));
static_assert(int(CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) ==
              int(CublasMath::FullPrecisionReduction));
static_assert(int(CUBLAS_ATOMICS_NOT_ALLOWED) == int(CublasAtomics::NotAllowed));
static_assert(int(CUBLAS_ATOMICS_ALLOWED) == int(CublasAtomics::Allowed));
static_assert(int(CUBLAS_GEMM_DEFAULT) == int(CublasAlgorithm::Default));
static_assert(int(::MAJOR_VERSION) == int(LibraryProperty::MajorVersion));
static_assert(int(::MINOR_VERSION) == int(LibraryProperty::MinorVersion));
static_assert(int(::PATCH_LEVEL) == int(LibraryProperty::PatchLevel));

#ifdef DUALPIPE_HAVE_NCCL_HEADER
#define DUALPIPE_NCCL(member, name, since, result, parameters)                                     \
  static_assert(Signatures<decltype(NcclApi::member), decltype(&::name)>::areSame(),               \
                #name " has another signature in nccl.h");
#include "dualpipe/Runtime/Cuda/Nccl.def"

#define DUALPIPE_NCCL_STATUS(enumerator, name, value)                                              \
  static_assert(int(::name) == value, #name " has another value in nccl.h");
#include "dualpipe/Runtime/Cuda/Status.def"

static_assert(int(::ncclInt8) == int(NcclType::Int8));
static_assert(int(::ncclFloat32) == int(NcclType::Float32));
static_assert(int(::ncclFloat64) == int(NcclType::Float64));
static_assert(int(::ncclBfloat16) == int(NcclType::Bfloat16));
static_assert(int(::ncclSum) == int(NcclReduction::Sum));
static_assert(sizeof(UniqueId) == sizeof(::ncclUniqueId));
static_assert(offsetof(NcclConfig, blocking) == offsetof(::ncclConfig_t, blocking));
static_assert(offsetof(NcclConfig, cgaClusterSize) == offsetof(::ncclConfig_t, cgaClusterSize));
static_assert(offsetof(NcclConfig, minCTAs) == offsetof(::ncclConfig_t, minCTAs));
static_assert(offsetof(NcclConfig, maxCTAs) == offsetof(::ncclConfig_t, maxCTAs));
static_assert(offsetof(NcclConfig, netName) == offsetof(::ncclConfig_t, netName));
static_assert(offsetof(NcclConfig, splitShare) == offsetof(::ncclConfig_t, splitShare));
#endif

} // namespace
} // namespace dualpipe::runtime::cuda
