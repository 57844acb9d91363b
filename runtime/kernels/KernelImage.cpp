//===- KernelImage.cpp - the kernels' binary inside the runtime -------------===//
//
// The assembler copies the file that nvcc wrote (DUALPIPE_KERNEL_IMAGE, set by
// CMake) into the read-only data.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/KernelImage.h"

#ifdef DUALPIPE_KERNEL_IMAGE
asm(".pushsection .rodata\n"
    ".balign 64\n"
    ".hidden dualpipe_kernel_image_begin\n"
    ".hidden dualpipe_kernel_image_end\n"
    ".globl dualpipe_kernel_image_begin\n"
    ".globl dualpipe_kernel_image_end\n"
    "dualpipe_kernel_image_begin:\n"
    ".incbin \"" DUALPIPE_KERNEL_IMAGE "\"\n"
    "dualpipe_kernel_image_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" const unsigned char dualpipe_kernel_image_begin[];
extern "C" const unsigned char dualpipe_kernel_image_end[];
#endif

namespace dualpipe::kernels {

Result<std::span<const unsigned char>> getKernelImage() {
#ifdef DUALPIPE_KERNEL_IMAGE
  return std::span<const unsigned char>(dualpipe_kernel_image_begin, dualpipe_kernel_image_end);
#else
  return Status::failure(
      "this build has no GPU kernels: no nvcc of CUDA 12.0 or later was found when it was "
      "configured; install the CUDA toolkit or set -DDUALPIPE_NVCC=PATH, and build again");
#endif
}

const char *getKernelTargets() {
#ifdef DUALPIPE_KERNEL_TARGETS
  return DUALPIPE_KERNEL_TARGETS;
#else
  return "";
#endif
}

} // namespace dualpipe::kernels
