//===- Devices.cpp - what this machine can run on ----------------------------===//

#include "Devices.h"

#include "runtime/kernels/KernelImage.h"

#include "dualpipe/Runtime/Cuda/Api.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace dualpipe::launcher {

using namespace runtime::cuda;

static std::string describeUnusable(const char *what, const std::string &why) {
  return fmt::format("{}: unusable: {}\n", what, why);
}

static std::string describeGpu(const Gpu &gpu) {
  return fmt::format("  GPU {}: {}, {:.1f} GiB, compute capability {}.{}, {} multiprocessors\n",
                     gpu.ordinal, gpu.name, double(gpu.memory) / double(1 << 30), gpu.major,
                     gpu.minor, gpu.multiprocessors);
}

static std::string describeCuda() {
  const Result<DriverApi> driver = loadDriver();
  if (!driver.ok())
    return describeUnusable("cuda", driver.message());
  const Result<std::vector<Gpu>> gpus = listGpus(*driver);
  if (!gpus.ok())
    return describeUnusable("cuda", gpus.message());
  std::string text =
      fmt::format("cuda: the driver supports CUDA {}\n", printDriverVersion(driver->version));
  for (const Gpu &gpu : *gpus)
    text += describeGpu(gpu);
  return text;
}

static std::string describeNccl() {
  const Result<NcclApi> nccl = loadNccl();
  return nccl.ok() ? fmt::format("nccl: {}\n", printNcclVersion(nccl->version))
                   : describeUnusable("nccl", nccl.message());
}

static std::string describeCublas() {
  const Result<CublasApi> cublas = loadCublas();
  return cublas.ok() ? fmt::format("cublas: {}\n", printCublasVersion(cublas->version))
                     : describeUnusable("cublas", cublas.message());
}

static std::string describeKernels() {
  const auto image = kernels::getKernelImage();
  return image.ok() ? fmt::format("kernels: {}\n", kernels::getKernelTargets())
                    : describeUnusable("kernels", image.message());
}

std::string describeDevices() {
  return fmt::format("cpu: {} hardware threads\n",
                     std::max(1u, std::thread::hardware_concurrency())) +
         describeCuda() + describeNccl() + describeCublas() + describeKernels();
}

} // namespace dualpipe::launcher
