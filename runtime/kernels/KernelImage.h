//===- KernelImage.h - the kernels' binary inside the runtime ---------------===//

#ifndef DUALPIPE_RUNTIME_KERNELS_KERNELIMAGE_H
#define DUALPIPE_RUNTIME_KERNELS_KERNELIMAGE_H

#include "dualpipe/Support/Status.h"

#include <span>

namespace dualpipe::kernels {

/// The fatbin for cuModuleLoadData. Fails where the runtime was built without nvcc, and says what
/// to do.
Result<std::span<const unsigned char>> getKernelImage();

/// What it holds: "sm_80, sm_90 and PTX". Empty where there is none.
const char *getKernelTargets();

} // namespace dualpipe::kernels

#endif // DUALPIPE_RUNTIME_KERNELS_KERNELIMAGE_H
