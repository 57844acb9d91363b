//===- KernelModule.h - the kernels, loaded into a GPU -----------------------===//

#ifndef DUALPIPE_RUNTIME_KERNELS_KERNELMODULE_H
#define DUALPIPE_RUNTIME_KERNELS_KERNELMODULE_H

#include "runtime/kernels/Kernels.h"

#include "dualpipe/Runtime/Cuda/Api.h"
#include "dualpipe/Support/Status.h"

#include <array>
#include <span>
#include <utility>

namespace dualpipe::kernels {

/// All kernels of one context. Move-only; goes before its context does.
class KernelModule {
public:
  /// Into the thread's current context. `image` is that of getKernelImage(); the device made of
  /// software looks at the names alone. `driver` outlives the module.
  static Result<KernelModule> load(const runtime::cuda::DriverApi &driver,
                                   std::span<const unsigned char> image);
  KernelModule(KernelModule &&other) noexcept
      : driver(other.driver), module(std::exchange(other.module, nullptr)),
        functions(other.functions) {}
  KernelModule &operator=(KernelModule &&) = delete;
  ~KernelModule();

  /// Puts a kernel on a stream; nothing where it has no items.
  template <typename Kernel> Status launch(runtime::cuda::Stream stream, Kernel kernel) const {
    return launch(stream, kKernelId<Kernel>, kernel.getSize(), &kernel);
  }

private:
  explicit KernelModule(const runtime::cuda::DriverApi &driver) : driver(&driver) {}
  Status launch(runtime::cuda::Stream stream, KernelId kernel, int64_t size, void *argument) const;

  const runtime::cuda::DriverApi *driver;
  runtime::cuda::Module module = nullptr;
  std::array<runtime::cuda::Function, kNumKernels> functions{};
};

} // namespace dualpipe::kernels

#endif // DUALPIPE_RUNTIME_KERNELS_KERNELMODULE_H
