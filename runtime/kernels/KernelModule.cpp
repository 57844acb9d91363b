//===- KernelModule.cpp - the kernels, loaded into a GPU ---------------------===//

#include "runtime/kernels/KernelModule.h"

#include <fmt/format.h>

namespace dualpipe::kernels {

using runtime::cuda::DriverStatus;

Result<KernelModule> KernelModule::load(const runtime::cuda::DriverApi &driver,
                                        std::span<const unsigned char> image) {
  KernelModule loaded(driver);
  const DriverStatus status = driver.moduleLoadData(&loaded.module, image.data());
  if (status == DriverStatus::NoBinaryForGpu)
    return Status::failure("this GPU is older than the kernels, which need compute capability 8.0 "
                           "(A100) or newer; use another GPU or --backend=cpu");
  if (status != DriverStatus::Success)
    return runtime::cuda::check(driver, status, "loading the kernels (cuModuleLoadData)");
  for (unsigned kernel = 0; kernel < kNumKernels; ++kernel) {
    const DriverStatus found =
        driver.moduleGetFunction(&loaded.functions[kernel], loaded.module, kKernelNames[kernel]);
    if (found != DriverStatus::Success)
      return runtime::cuda::check(driver, found,
                                  fmt::format("looking up the kernel {}", kKernelNames[kernel]));
  }
  return loaded;
}

KernelModule::~KernelModule() {
  // A failure says that the context is gone, and the module with it.
  if (module)
    (void)driver->moduleUnload(module);
}

Status KernelModule::launch(runtime::cuda::Stream stream, KernelId kernel, int64_t size,
                            void *argument) const {
  if (size <= 0)
    return Status::success();
  void *arguments[] = {argument};
  const DriverStatus status =
      driver->launchKernel(functions[unsigned(kernel)], getNumBlocks(size), 1, 1, kBlockThreads, 1,
                           1, 0, stream, arguments, nullptr);
  if (status == DriverStatus::Success)
    return Status::success();
  return runtime::cuda::check(
      *driver, status, fmt::format("launching the kernel {}", kKernelNames[unsigned(kernel)]));
}

} // namespace dualpipe::kernels
