//===- Harness.h - short ways to use a GPU made of software --------------------===//

#ifndef DUALPIPE_TEST_UNIT_CUDA_HARNESS_H
#define DUALPIPE_TEST_UNIT_CUDA_HARNESS_H

#include "test/support/softgpu/SoftGpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace dualpipe::test {

using namespace runtime::cuda;

#define EXPECT_CUDA(call) EXPECT_EQ(call, DriverStatus::Success)
#define ASSERT_CUDA(call) ASSERT_EQ(call, DriverStatus::Success)
#define EXPECT_NCCL(call)                                                                          \
  EXPECT_THAT(call, testing::AnyOf(NcclStatus::Success, NcclStatus::InProgress))

/// A kernel that adds: *to = *a + *b.
struct AddArgument {
  int *to;
  const int *a, *b;
};

inline SoftKernel makeAdd() {
  SoftKernel kernel;
  kernel.name = "add";
  kernel.argumentBytes = sizeof(AddArgument);
  kernel.run = [](const void *bytes, int64_t) {
    AddArgument argument;
    std::memcpy(&argument, bytes, sizeof argument);
    *argument.to = *argument.a + *argument.b;
  };
  kernel.listUses = [](const void *bytes, std::vector<SoftUse> &uses) {
    AddArgument argument;
    std::memcpy(&argument, bytes, sizeof argument);
    uses = {{argument.a, sizeof(int), false},
            {argument.b, sizeof(int), false},
            {argument.to, sizeof(int), true}};
  };
  return kernel;
}

/// The calls of a test on one thread.
class Host {
public:
  explicit Host(SoftGpu &gpu, int ordinal = 0) : cuda(gpu.getDriver()) {
    gpu.addKernel(makeAdd());
    enter(ordinal);
    EXPECT_CUDA(cuda.moduleLoadData(&module, "image"));
    EXPECT_CUDA(cuda.moduleGetFunction(&addition, module, "add"));
  }
  ~Host() { cuda.ctxSetCurrent(nullptr); }

  void enter(int ordinal) {
    Context context = nullptr;
    EXPECT_CUDA(cuda.devicePrimaryCtxRetain(&context, ordinal));
    EXPECT_CUDA(cuda.ctxSetCurrent(context));
  }
  Stream makeStream() {
    Stream stream = nullptr;
    EXPECT_CUDA(cuda.streamCreateWithPriority(&stream, kStreamNonBlocking, 0));
    return stream;
  }
  Event makeEvent() {
    Event event = nullptr;
    EXPECT_CUDA(cuda.eventCreate(&event, kEventDisableTiming));
    return event;
  }
  /// So many numbers on the GPU, all `value`.
  int *makeInts(size_t count, int value) {
    DevicePointer pointer = 0;
    EXPECT_CUDA(cuda.memAlloc(&pointer, count * sizeof(int)));
    const Stream stream = makeStream();
    std::vector<int> values(count, value);
    EXPECT_CUDA(cuda.memcpyHtoDAsync(pointer, values.data(), count * sizeof(int), stream));
    EXPECT_CUDA(wait(stream));
    return reinterpret_cast<int *>(pointer);
  }
  void add(Stream stream, int *to, const int *a, const int *b) {
    AddArgument argument{to, a, b};
    void *parameters[] = {&argument};
    EXPECT_CUDA(cuda.launchKernel(addition, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  }
  void record(Event event, Stream stream) { EXPECT_CUDA(cuda.eventRecord(event, stream)); }
  void waitFor(Stream stream, Event event) { EXPECT_CUDA(cuda.streamWaitEvent(stream, event, 0)); }
  DriverStatus wait(Stream stream) {
    DriverStatus status;
    do
      status = cuda.streamQuery(stream);
    while (status == DriverStatus::NotReady);
    return status;
  }
  int read(const int *data) {
    int value = 0;
    const Stream stream = makeStream();
    EXPECT_CUDA(
        cuda.memcpyDtoHAsync(&value, reinterpret_cast<DevicePointer>(data), sizeof value, stream));
    EXPECT_CUDA(wait(stream));
    return value;
  }

  const DriverApi &cuda;

private:
  Module module = nullptr;
  Function addition = nullptr;
};

/// What a test reports over many seeds, each finding once.
template <typename Test>
std::set<std::string> collectReports(Test test, SoftGpuOptions options = {}, uint64_t seeds = 40) {
  std::set<std::string> all;
  for (uint64_t seed = 0; seed != seeds; ++seed) {
    options.seed = seed;
    SoftGpu gpu(options);
    test(gpu);
    for (const std::string &text : gpu.getReports())
      all.insert(text);
  }
  return all;
}

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_UNIT_CUDA_HARNESS_H
