//===- OnGpu.h - a place on a GPU made of software ---------------------------===//

#ifndef DUALPIPE_TEST_UNIT_KERNELS_ONGPU_H
#define DUALPIPE_TEST_UNIT_KERNELS_ONGPU_H

#include "runtime/executor/FirstFailure.h"
#include "runtime/kernels/DeviceMath.h"
#include "test/support/softgpu/SoftGpu.h"
#include "test/support/softgpu/Twins.h"

#include "dualpipe/Runtime/Cuda/CudaDevice.h"
#include "dualpipe/Runtime/Reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

namespace dualpipe::kernels::test {

/// A GPU with our kernels, memory, and one stream on which calls run one after the other, as in a
/// check. Nothing undefined may have happened at its end.
class OnGpu {
public:
  explicit OnGpu(dualpipe::test::SoftGpuOptions options = {}) : gpu(std::move(options)) {
    dualpipe::test::addKernelTwins(gpu);
    auto made = runtime::cuda::GpuContext::create(gpu.getDriver(), 0);
    EXPECT_TRUE(made.ok()) << made.message();
    context.emplace(std::move(*made));
    scope.emplace(*context);
    auto loaded = KernelModule::load(gpu.getDriver(), dualpipe::test::getSoftImage());
    EXPECT_TRUE(loaded.ok()) << loaded.message();
    kernels.emplace(std::move(*loaded));
    auto placed = runtime::cuda::CudaDevice::create(program, failures, *context, {});
    EXPECT_TRUE(placed.ok()) << placed.message();
    place = std::move(*placed);
    auto calculator = makeMath();
    EXPECT_TRUE(calculator.ok()) << calculator.message();
    math = std::move(*calculator);
  }
  ~OnGpu() {
    // Waits for what stands on the stream: nothing may be freed under it.
    char byte = 0;
    (void)place->download(&byte, put(std::vector<char>(1)), 1);
    math.reset();
    place.reset();
    kernels.reset();
    scope.reset();
    context.reset();
    EXPECT_THAT(gpu.getReports(), testing::IsEmpty());
  }

  Result<std::unique_ptr<DeviceMath>> makeMath() {
    return DeviceMath::create(gpu.getDriver(), gpu.getCublas(), *kernels, *place, {getStream()});
  }
  DeviceMath &getMath() { return *math; }
  runtime::cuda::Stream getStream() { return place->getCopyStream(); }
  runtime::CallPlace getCalls() { return {place->getPlace(), getStream(), math.get()}; }
  runtime::CheckPlace getCheck() { return {place.get(), getCalls()}; }

  /// Device memory with these values.
  template <typename T> T *put(const std::vector<T> &values) {
    Result<void *> data = place->allocate(values.size() * sizeof(T));
    EXPECT_TRUE(data.ok()) << data.message();
    EXPECT_TRUE(place->upload(*data, values.data(), values.size() * sizeof(T)).ok());
    return static_cast<T *>(*data);
  }
  template <typename T> std::vector<T> get(const T *data, size_t count) {
    std::vector<T> values(count);
    Status status = place->download(values.data(), data, count * sizeof(T));
    EXPECT_TRUE(status.ok()) << status.message();
    return values;
  }

  dualpipe::test::SoftGpu gpu;
  std::optional<runtime::cuda::GpuContext> context;
  std::optional<runtime::cuda::ContextScope> scope;
  std::optional<KernelModule> kernels;
  const program::RankProgram program{};
  runtime::FirstFailure failures;
  std::unique_ptr<runtime::cuda::CudaDevice> place;
  std::unique_ptr<DeviceMath> math;
};

} // namespace dualpipe::kernels::test

#endif // DUALPIPE_TEST_UNIT_KERNELS_ONGPU_H
