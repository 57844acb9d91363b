//===- KernelTwins.h - the kernels as functions of the host -----------------===//
//
// What the software device runs instead of a kernel of the same name: the same
// source per element, the same loop per thread, compiled by the host compiler.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_KERNELS_KERNELTWINS_H
#define DUALPIPE_RUNTIME_KERNELS_KERNELTWINS_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace dualpipe::kernels {

/// Memory that a launch reads or writes, from `data` on. 0 bytes are no use.
struct MemoryUse {
  const void *data;
  size_t bytes;
  bool writes;
};

struct KernelTwin {
  const char *name;
  /// A kernel has one argument, so many bytes, passed by value: `kernelParams[0]` points to it.
  size_t argumentBytes;
  /// Runs so many threads (blocks times threads of a block), one after the other.
  void (*run)(const void *argument, int64_t numThreads);
  /// Appends what a launch uses.
  void (*listMemory)(const void *argument, std::vector<MemoryUse> &uses);
};

/// One per kernel, in the order of Kernels.def.
std::span<const KernelTwin> getKernelTwins();
/// Null for a name that no kernel has.
const KernelTwin *findKernelTwin(std::string_view name);

} // namespace dualpipe::kernels

#endif // DUALPIPE_RUNTIME_KERNELS_KERNELTWINS_H
