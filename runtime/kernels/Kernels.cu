//===- Kernels.cu - the kernels for GPUs -------------------------------------===//
//
// Thin grids over the structs of Kernels.h. Never run on a GPU so far.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Kernels.h"

using namespace dualpipe::kernels;

#define DUALPIPE_KERNEL(name, ...)                                                                 \
  extern "C" __global__ void __launch_bounds__(kBlockThreads) dp_##name(__VA_ARGS__ kernel) {      \
    forEachItem(kernel, int64_t(blockIdx.x) * blockDim.x + threadIdx.x,                            \
                int64_t(gridDim.x) * blockDim.x);                                                  \
  }
#include "runtime/kernels/Kernels.def"
