//===- SoftExact.h - the exact model on GPUs made of software -------------------===//

#ifndef DUALPIPE_TEST_SUPPORT_SOFTRUN_SOFTEXACT_H
#define DUALPIPE_TEST_SUPPORT_SOFTRUN_SOFTEXACT_H

#include "test/support/softgpu/SoftGpu.h"

#include "dualpipe/Runtime/Model.h"
#include "dualpipe/Support/Status.h"
#include "dualpipe/stage.h"

#include <span>

namespace dualpipe::test {

/// What the model's functions find in dp_call::runtime.
struct SoftExactRuntime {
  const runtime::cuda::DriverApi *driver;
  runtime::cuda::Function call; ///< the kernel that runs a stage function
  runtime::cuda::Function sum;  ///< the kernel that sums
};

/// The model of ExactModel.h, whose functions put themselves on a stream: its losses, gradients and
/// weights are those of the host.
const dp_model_api &getSoftExactModel();
/// Its kernels.
void addSoftExactKernels(SoftGpu &gpu);
/// Looks them up in the thread's context.
SoftExactRuntime loadSoftExact(const runtime::cuda::DriverApi &driver);

/// Puts to[i] = from[0][i] + from[1][i] + ... on a stream, float64, for all of `to`.
Status launchSum(const SoftExactRuntime &runtime, runtime::cuda::Stream stream,
                 std::span<void *const> from, std::span<void *const> to, int64_t count);

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_SUPPORT_SOFTRUN_SOFTEXACT_H
