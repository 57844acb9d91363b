//===- Twins.cpp - our kernels on GPUs made of software -----------------------===//

#include "Twins.h"

#include "runtime/kernels/KernelTwins.h"

namespace dualpipe::test {

void addKernelTwins(SoftGpu &gpu) {
  for (const kernels::KernelTwin &twin : kernels::getKernelTwins()) {
    SoftKernel kernel;
    kernel.name = twin.name;
    kernel.argumentBytes = twin.argumentBytes;
    kernel.run = twin.run;
    kernel.listUses = [&twin](const void *argument, std::vector<SoftUse> &uses) {
      std::vector<kernels::MemoryUse> memory;
      twin.listMemory(argument, memory);
      for (const kernels::MemoryUse &use : memory)
        uses.push_back({use.data, use.bytes, use.writes});
    };
    gpu.addKernel(std::move(kernel));
  }
}

std::span<const unsigned char> getSoftImage() {
  static constexpr unsigned char kImage[] = "software";
  return kImage;
}

} // namespace dualpipe::test
