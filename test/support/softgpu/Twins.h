//===- Twins.h - our kernels on GPUs made of software -------------------------===//

#ifndef DUALPIPE_TEST_SUPPORT_SOFTGPU_TWINS_H
#define DUALPIPE_TEST_SUPPORT_SOFTGPU_TWINS_H

#include "SoftGpu.h"

#include <span>

namespace dualpipe::test {

/// Registers the host's twin of every kernel of runtime/kernels.
void addKernelTwins(SoftGpu &gpu);

/// What stands for the image of the kernels: a software device looks at names alone.
std::span<const unsigned char> getSoftImage();

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_SUPPORT_SOFTGPU_TWINS_H
