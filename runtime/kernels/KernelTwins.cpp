//===- KernelTwins.cpp - the kernels as functions of the host ---------------===//

#include "runtime/kernels/KernelTwins.h"
#include "runtime/kernels/Kernels.h"

#include <type_traits>

namespace dualpipe::kernels {
namespace {

/// What a kernel's `visitMemory` calls.
struct UseCollector {
  std::vector<MemoryUse> &uses;

  template <typename T> void reads(const T *data, int64_t count) { add(data, count, false); }
  template <typename T> void writes(const T *data, int64_t count) { add(data, count, true); }
  template <typename T> void add(const T *data, int64_t count, bool writes) {
    if (count > 0)
      uses.push_back({data, size_t(count) * sizeof(T), writes});
  }
};

/// The argument may stand at any address, as bytes that were copied for a later launch do.
template <typename Kernel> Kernel readArgument(const void *argument) {
  Kernel kernel;
  std::memcpy(&kernel, argument, sizeof kernel);
  return kernel;
}

template <typename Kernel> void runThreads(const void *argument, int64_t numThreads) {
  const auto kernel = readArgument<Kernel>(argument);
  for (int64_t thread = 0; thread < numThreads; ++thread)
    forEachItem(kernel, thread, numThreads);
}

template <typename Kernel> void listMemoryOf(const void *argument, std::vector<MemoryUse> &uses) {
  UseCollector collector{uses};
  readArgument<Kernel>(argument).visitMemory(collector);
}

template <typename Kernel> constexpr KernelTwin makeTwin(const char *name) {
  static_assert(std::is_trivially_copyable_v<Kernel> && std::is_standard_layout_v<Kernel>,
                "the host and the device must see the same bytes");
  static_assert(sizeof(Kernel) <= 4096, "CUDA passes at most so many bytes to a kernel");
  return {name, sizeof(Kernel), runThreads<Kernel>, listMemoryOf<Kernel>};
}

constexpr KernelTwin kTwins[] = {
#define DUALPIPE_KERNEL(name, ...) makeTwin<__VA_ARGS__>("dp_" #name),
#include "runtime/kernels/Kernels.def"
};

} // namespace

std::span<const KernelTwin> getKernelTwins() { return kTwins; }

const KernelTwin *findKernelTwin(std::string_view name) {
  for (const KernelTwin &twin : kTwins)
    if (name == twin.name)
      return &twin;
  return nullptr;
}

} // namespace dualpipe::kernels
