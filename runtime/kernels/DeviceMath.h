//===- DeviceMath.h - what stage functions on a GPU compute with ------------===//
//
// Matrix products of cuBLAS, our kernels and copies, for one rank. A call puts
// work on a stream and returns: it allocates nothing, waits for nothing and reads
// nothing back, so all of it can be captured in a graph. The same calls in the
// same order give the same bits: cuBLAS has a workspace of its own per stream and
// no atomics, sums have a fixed order. Never run on a GPU so far.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_KERNELS_DEVICEMATH_H
#define DUALPIPE_RUNTIME_KERNELS_DEVICEMATH_H

#include "runtime/kernels/KernelModule.h"

#include "dualpipe/Runtime/Cuda/Api.h"
#include "dualpipe/Runtime/Memory.h"

#include <memory>
#include <vector>

namespace dualpipe::kernels {

/// C[rows, columns] (+)= op(A)[rows, inner] * op(B)[inner, columns], all row-major and dense. With
/// `transposeA`, A is stored as [inner, rows]; with `transposeB`, B as [columns, inner]. Sums are
/// taken in float32 for f32 and bf16, in float64 for f64.
struct Product {
  int64_t rows, columns, inner;
  bool transposeA = false;
  bool transposeB = false;
  bool accumulate = false;
  Element operands = Element::F32; ///< of A and B
  Element result = Element::F32;   ///< of C: that of the operands, or F32 where they are BF16
};

/// One rank's cuBLAS and kernels. Used by the rank's thread alone, with the context current in
/// which it was made.
class DeviceMath {
public:
  /// What NVIDIA advises for its newest GPUs; older ones take less.
  static constexpr size_t kWorkspaceBytes = size_t(32) << 20;

  /// For products on `streams`; everything else may go to any stream. The workspaces come from
  /// `memory`. All arguments outlive the object.
  static Result<std::unique_ptr<DeviceMath>>
  create(const runtime::cuda::DriverApi &driver, const runtime::cuda::CublasApi &cublas,
         const KernelModule &kernels, runtime::Memory &memory,
         const std::vector<runtime::cuda::Stream> &streams);
  DeviceMath(const DeviceMath &) = delete;
  DeviceMath &operator=(const DeviceMath &) = delete;
  ~DeviceMath();

  template <typename Kernel> Status launch(runtime::cuda::Stream stream, const Kernel &kernel) {
    return kernels.launch(stream, kernel);
  }
  Status multiply(runtime::cuda::Stream stream, const Product &product, const void *a,
                  const void *b, void *c);
  /// Within the device.
  Status copy(runtime::cuda::Stream stream, void *to, const void *from, size_t bytes);
  Status zero(runtime::cuda::Stream stream, void *data, size_t bytes);

  /// params -= state->learning_rate * grads. F32 and F64.
  Status descend(runtime::cuda::Stream stream, Element type, void *params, const void *grads,
                 const dp_step_state *state, int64_t count);
  /// All members become members[0] + members[1] + ..., added in that order. F32 and F64. Every
  /// member is memory of this device.
  Status sumMembers(runtime::cuda::Stream stream, Element type, std::span<void *const> members,
                    int64_t count);

private:
  /// cuBLAS ties a handle to a stream, and forgets the workspace when the stream changes.
  struct Blas {
    runtime::cuda::Stream stream;
    runtime::cuda::CublasHandle handle;
  };

  DeviceMath(const runtime::cuda::DriverApi &driver, const runtime::cuda::CublasApi &cublas,
             const KernelModule &kernels)
      : driver(driver), cublas(cublas), kernels(kernels) {}
  Status addStream(runtime::cuda::Stream stream, runtime::Memory &memory);

  const runtime::cuda::DriverApi &driver;
  const runtime::cuda::CublasApi &cublas;
  const KernelModule &kernels;
  std::vector<Blas> handles;
};

} // namespace dualpipe::kernels

#endif // DUALPIPE_RUNTIME_KERNELS_DEVICEMATH_H
