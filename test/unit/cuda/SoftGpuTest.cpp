//===- SoftGpuTest.cpp - GPUs made of software: streams, events, memory --------===//

#include "Harness.h"

using namespace dualpipe;
using namespace dualpipe::test;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

TEST(SoftGpuTest, AStreamRunsInOrder) {
  EXPECT_THAT(collectReports([](SoftGpu &gpu) {
                Host host(gpu);
                int *numbers = host.makeInts(3, 1);
                const Stream stream = host.makeStream();
                host.add(stream, numbers + 1, numbers, numbers);
                host.add(stream, numbers + 2, numbers + 1, numbers + 1);
                EXPECT_CUDA(host.wait(stream));
                EXPECT_EQ(host.read(numbers + 2), 4);
              }),
              IsEmpty());
}

/// Two kernels on two streams, the second reads what the first writes.
void runInTwoStreams(SoftGpu &gpu, bool recordFirst, std::set<int> *results) {
  Host host(gpu);
  int *numbers = host.makeInts(3, 1);
  const Stream first = host.makeStream(), second = host.makeStream();
  const Event event = host.makeEvent();
  const auto record = [&] { host.record(event, first); };
  const auto waitFor = [&] { host.waitFor(second, event); };
  host.add(first, numbers + 1, numbers, numbers);
  if (recordFirst)
    record(), waitFor();
  else
    waitFor(), record();
  host.add(second, numbers + 2, numbers + 1, numbers + 1);
  EXPECT_CUDA(host.wait(first));
  EXPECT_CUDA(host.wait(second));
  if (results)
    results->insert(host.read(numbers + 2));
}

TEST(SoftGpuTest, AnEventOrdersTwoStreams) {
  std::set<int> results;
  EXPECT_THAT(collectReports([&](SoftGpu &gpu) { runInTwoStreams(gpu, true, &results); }),
              IsEmpty());
  EXPECT_THAT(results, ElementsAre(4));
}

TEST(SoftGpuTest, AWaitBeforeTheRecordWaitsForNothing) {
  std::set<int> results;
  EXPECT_THAT(collectReports([&](SoftGpu &gpu) { runInTwoStreams(gpu, false, &results); }),
              Contains(HasSubstr("nothing orders kernel add on stream")));
  EXPECT_THAT(results, ElementsAre(2, 4)) << "both orders must come up";
}

TEST(SoftGpuTest, AnUnorderedWriteAfterARead) {
  EXPECT_THAT(collectReports([](SoftGpu &gpu) {
                Host host(gpu);
                int *numbers = host.makeInts(3, 1);
                const Stream one = host.makeStream(), two = host.makeStream();
                host.add(one, numbers + 1, numbers, numbers);
                host.add(two, numbers, numbers + 2, numbers + 2);
                EXPECT_CUDA(host.wait(one));
                EXPECT_CUDA(host.wait(two));
              }),
              Contains(HasSubstr("which reads memory, and kernel add")));
}

TEST(SoftGpuTest, TwoReadsNeedNoOrder) {
  EXPECT_THAT(collectReports([](SoftGpu &gpu) {
                Host host(gpu);
                int *numbers = host.makeInts(3, 1);
                const Stream one = host.makeStream(), two = host.makeStream();
                host.add(one, numbers + 1, numbers, numbers);
                host.add(two, numbers + 2, numbers, numbers);
                EXPECT_CUDA(host.wait(one));
                EXPECT_CUDA(host.wait(two));
              }),
              IsEmpty());
}

TEST(SoftGpuTest, AHostThatHasWaitedOrdersWhatItIssuesNext) {
  EXPECT_THAT(collectReports([](SoftGpu &gpu) {
                Host host(gpu);
                int *numbers = host.makeInts(2, 1);
                const Stream one = host.makeStream(), two = host.makeStream();
                host.add(one, numbers + 1, numbers, numbers);
                EXPECT_CUDA(host.wait(one));
                host.add(two, numbers, numbers + 1, numbers + 1);
                EXPECT_CUDA(host.wait(two));
                EXPECT_EQ(host.read(numbers), 4);
              }),
              IsEmpty());
}

TEST(SoftGpuTest, MemoryIsPoisonedAndWatched) {
  SoftGpu gpu;
  Host host(gpu);
  DevicePointer pointer = 0;
  ASSERT_CUDA(host.cuda.memAlloc(&pointer, sizeof(int)));
  EXPECT_EQ(host.read(reinterpret_cast<int *>(pointer)), -1);
  const Stream stream = host.makeStream();
  auto *number = reinterpret_cast<int *>(pointer);
  host.add(stream, number, number, number + 1);
  EXPECT_CUDA(host.wait(stream));
  ASSERT_CUDA(host.cuda.memFree(pointer));
  host.add(stream, number, number, number);
  EXPECT_CUDA(host.wait(stream));
  EXPECT_THAT(gpu.getReports(), ElementsAre("kernel add reads memory that no allocation holds",
                                            "kernel add reads memory after it was freed",
                                            "kernel add writes memory after it was freed"));
  EXPECT_EQ(host.cuda.memFree(pointer), DriverStatus::InvalidValue);
}

TEST(SoftGpuTest, AUseBeyondAnAllocation) {
  SoftGpu gpu;
  Host host(gpu);
  int *numbers = host.makeInts(3, 1);
  const Stream stream = host.makeStream();
  EXPECT_CUDA(host.cuda.memsetD8Async(reinterpret_cast<DevicePointer>(numbers + 1), 0, 12, stream));
  EXPECT_CUDA(host.wait(stream));
  EXPECT_THAT(gpu.getReports(),
              ElementsAre("a fill writes 12 bytes at byte 4 of an allocation of 12 bytes"));
}

TEST(SoftGpuTest, MemoryRunsOut) {
  SoftGpu gpu({.memoryBytes = 1000});
  Host host(gpu);
  DevicePointer one = 0, two = 0;
  EXPECT_CUDA(host.cuda.memAlloc(&one, 600));
  EXPECT_EQ(host.cuda.memAlloc(&two, 600), DriverStatus::OutOfMemory);
  EXPECT_CUDA(host.cuda.memFree(one));
  EXPECT_CUDA(host.cuda.memAlloc(&two, 600));
}

TEST(SoftGpuTest, CallsNeedAContext) {
  SoftGpu gpu;
  DevicePointer pointer = 0;
  EXPECT_EQ(gpu.getDriver().memAlloc(&pointer, 8), DriverStatus::InvalidContext);
}

TEST(SoftGpuTest, APlantedFaultComesOnce) {
  SoftGpu gpu({.faults = {{"cuEventRecord", 2, int(DriverStatus::LaunchFailed)}}});
  Host host(gpu);
  const Stream stream = host.makeStream();
  const Event event = host.makeEvent();
  EXPECT_CUDA(host.cuda.eventRecord(event, stream));
  EXPECT_EQ(host.cuda.eventRecord(event, stream), DriverStatus::LaunchFailed);
  EXPECT_CUDA(host.cuda.eventRecord(event, stream));
}

TEST(SoftGpuTest, AKernelThatNeverEndsIsAWaitThatNeverEnds) {
  EXPECT_THAT(collectReports(
                  [](SoftGpu &gpu) {
                    Host host(gpu);
                    int *numbers = host.makeInts(2, 1);
                    const Stream stream = host.makeStream();
                    host.add(stream, numbers + 1, numbers, numbers);
                    EXPECT_EQ(host.wait(stream), DriverStatus::LaunchTimeout);
                  },
                  {.hangAt = 1}, 4),
              Contains(HasSubstr("a wait can never end: stream 1 is at kernel add")));
}

TEST(SoftGpuTest, ProductsAreThoseOfPlainLoops) {
  SoftGpu gpu;
  Host host(gpu);
  const CublasApi &blas = gpu.getCublas();
  const Stream stream = host.makeStream();
  CublasHandle handle = nullptr;
  ASSERT_EQ(blas.create(&handle), CublasStatus::Success);
  ASSERT_EQ(blas.setStream(handle, stream), CublasStatus::Success);
  // Column-major: A is 2 x 3, B is 3 x 1, C is 2 x 1.
  const std::vector<double> a = {1, 2, 3, 4, 5, 6}, b = {1, 10, 100}, c = {7, 8};
  DevicePointer data = 0;
  ASSERT_CUDA(host.cuda.memAlloc(&data, 11 * sizeof(double)));
  auto *numbers = reinterpret_cast<double *>(data);
  const auto put = [&](double *to, const std::vector<double> &from) {
    EXPECT_CUDA(host.cuda.memcpyHtoDAsync(reinterpret_cast<DevicePointer>(to), from.data(),
                                          from.size() * sizeof(double), stream));
  };
  put(numbers, a);
  put(numbers + 6, b);
  put(numbers + 9, c);
  const double one = 1, two = 2;
  const auto real = CublasType::Float64;
  ASSERT_EQ(blas.gemmEx(handle, CublasOperation::None, CublasOperation::None, 2, 1, 3, &one,
                        numbers, real, 2, numbers + 6, real, 3, &two, numbers + 9, real, 2,
                        CublasCompute::Float64, CublasAlgorithm::Default),
            CublasStatus::Success);
  std::vector<double> result(2);
  EXPECT_CUDA(host.cuda.memcpyDtoHAsync(result.data(), reinterpret_cast<DevicePointer>(numbers + 9),
                                        16, stream));
  EXPECT_CUDA(host.wait(stream));
  EXPECT_THAT(result, ElementsAre(1 + 30 + 500 + 14, 2 + 40 + 600 + 16));
  EXPECT_THAT(gpu.getReports(), IsEmpty());
  EXPECT_EQ(blas.destroy(handle), CublasStatus::Success);
}

} // namespace
