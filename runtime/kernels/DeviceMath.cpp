//===- DeviceMath.cpp - what stage functions on a GPU compute with ----------===//

#include "runtime/kernels/DeviceMath.h"

#include <fmt/format.h>

#include <algorithm>

namespace dualpipe::kernels {

using namespace runtime::cuda;

namespace {

DevicePointer toDevice(const void *data) {
  return DevicePointer(reinterpret_cast<uintptr_t>(data));
}

CublasType getCublasType(Element type) {
  switch (type) {
  case Element::F32:
    return CublasType::Float32;
  case Element::BF16:
    return CublasType::Bfloat16;
  case Element::F64:
    return CublasType::Float64;
  }
  return CublasType::Float32;
}

/// The type of the sums inside a product. Of float32, without a detour over TF32.
CublasCompute getCompute(Element operands) {
  switch (operands) {
  case Element::F32:
  case Element::BF16:
    return CublasCompute::Float32;
  case Element::F64:
    return CublasCompute::Float64;
  }
  return CublasCompute::Float32;
}

/// sum = members, from `first` on as many as one launch takes; `sum` is the first.
template <typename T>
SumMembers<T> makeSum(std::span<void *const> members, size_t first, int64_t count) {
  SumMembers<T> sum = {static_cast<T *>(members[0]), {}, 0, count};
  sum.members[sum.numMembers++] = sum.sum;
  for (size_t i = first; i < members.size() && sum.numMembers < kMaxMembers; ++i)
    sum.members[sum.numMembers++] = static_cast<const T *>(members[i]);
  return sum;
}

/// In as many launches as it takes; each goes on with the sum of those before.
template <typename T>
Status sumOf(DeviceMath &math, Stream stream, std::span<void *const> members, int64_t count) {
  for (size_t first = 1; first < members.size(); first += size_t(kMaxMembers) - 1)
    if (Status status = math.launch(stream, makeSum<T>(members, first, count)); !status.ok())
      return status;
  for (void *member : members.subspan(1))
    if (Status status = math.copy(stream, member, members[0], size_t(count) * sizeof(T));
        !status.ok())
      return status;
  return Status::success();
}

} // namespace

Result<std::unique_ptr<DeviceMath>>
DeviceMath::create(const DriverApi &driver, const CublasApi &cublas, const KernelModule &kernels,
                   runtime::Memory &memory, const std::vector<Stream> &streams) {
  std::unique_ptr<DeviceMath> math(new DeviceMath(driver, cublas, kernels));
  for (Stream stream : streams)
    if (Status status = math->addStream(stream, memory); !status.ok())
      return status;
  return math;
}

Status DeviceMath::addStream(Stream stream, runtime::Memory &memory) {
  Result<void *> workspace = memory.allocate(kWorkspaceBytes);
  if (!workspace.ok())
    return workspace.getStatus();
  CublasHandle handle = nullptr;
  if (Status status = check(cublas, cublas.create(&handle), "cublasCreate"); !status.ok())
    return status;
  handles.push_back({stream, handle}); // destroyed from now on
  if (Status status = check(cublas, cublas.setStream(handle, stream), "cublasSetStream");
      !status.ok())
    return status;
  if (Status status = check(cublas, cublas.setWorkspace(handle, *workspace, kWorkspaceBytes),
                            "cublasSetWorkspace");
      !status.ok())
    return status;
  if (Status status = check(cublas, cublas.setAtomicsMode(handle, CublasAtomics::NotAllowed),
                            "cublasSetAtomicsMode");
      !status.ok())
    return status;
  // Otherwise parts of a split bf16 product may be added up in bf16.
  return check(cublas, cublas.setMathMode(handle, CublasMath::FullPrecisionReduction),
               "cublasSetMathMode");
}

DeviceMath::~DeviceMath() {
  // A failure says that the context is gone, and the handle with it.
  for (const Blas &blas : handles)
    (void)cublas.destroy(blas.handle);
}

/// cuBLAS is column-major: a row-major matrix is its transpose there, so the operands change
/// places.
Status DeviceMath::multiply(Stream stream, const Product &product, const void *a, const void *b,
                            void *c) {
  const auto blas = std::find_if(handles.begin(), handles.end(),
                                 [&](const Blas &other) { return other.stream == stream; });
  if (blas == handles.end())
    return Status::failure("a matrix product on a stream that was not prepared for products; put "
                           "it on the compute stream of the call");
  const double exact[] = {1.0, product.accumulate ? 1.0 : 0.0};
  const float single[] = {1.0f, product.accumulate ? 1.0f : 0.0f};
  const bool isDouble = product.operands == Element::F64;
  const void *alpha = isDouble ? static_cast<const void *>(&exact[0]) : &single[0];
  const void *beta = isDouble ? static_cast<const void *>(&exact[1]) : &single[1];
  const CublasType type = getCublasType(product.operands);
  const CublasStatus status = cublas.gemmEx(
      blas->handle, product.transposeB ? CublasOperation::Transpose : CublasOperation::None,
      product.transposeA ? CublasOperation::Transpose : CublasOperation::None, int(product.columns),
      int(product.rows), int(product.inner), alpha, b, type,
      int(product.transposeB ? product.inner : product.columns), a, type,
      int(product.transposeA ? product.rows : product.inner), beta, c,
      getCublasType(product.result), int(product.columns), getCompute(product.operands),
      CublasAlgorithm::Default);
  if (status == CublasStatus::Success)
    return Status::success();
  return check(cublas, status,
               fmt::format("a product of {} x {} by {} x {} (cublasGemmEx)", product.rows,
                           product.inner, product.inner, product.columns));
}

Status DeviceMath::copy(Stream stream, void *to, const void *from, size_t bytes) {
  if (bytes == 0)
    return Status::success();
  const DriverStatus status = driver.memcpyDtoDAsync(toDevice(to), toDevice(from), bytes, stream);
  if (status == DriverStatus::Success)
    return Status::success();
  return check(driver, status, fmt::format("copying {} bytes within the GPU", bytes));
}

Status DeviceMath::zero(Stream stream, void *data, size_t bytes) {
  if (bytes == 0)
    return Status::success();
  const DriverStatus status = driver.memsetD8Async(toDevice(data), 0, bytes, stream);
  if (status == DriverStatus::Success)
    return Status::success();
  return check(driver, status, fmt::format("clearing {} bytes of the GPU", bytes));
}

Status DeviceMath::descend(Stream stream, Element type, void *params, const void *grads,
                           const dp_step_state *state, int64_t count) {
  switch (type) {
  case Element::F32:
    return launch(stream, Descend<float>{static_cast<float *>(params),
                                         static_cast<const float *>(grads), state, count});
  case Element::F64:
    return launch(stream, Descend<double>{static_cast<double *>(params),
                                          static_cast<const double *>(grads), state, count});
  case Element::BF16:
    break;
  }
  return Status::failure(
      "cannot update parameters of type bfloat16 on the GPU, expected float32 or "
      "float64");
}

Status DeviceMath::sumMembers(Stream stream, Element type, std::span<void *const> members,
                              int64_t count) {
  if (members.size() < 2)
    return Status::success();
  switch (type) {
  case Element::F32:
    return sumOf<float>(*this, stream, members, count);
  case Element::F64:
    return sumOf<double>(*this, stream, members, count);
  case Element::BF16:
    break;
  }
  return Status::failure("cannot sum gradients of type bfloat16 on the GPU, expected float32 or "
                         "float64");
}

} // namespace dualpipe::kernels
