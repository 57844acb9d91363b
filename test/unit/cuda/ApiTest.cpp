//===- ApiTest.cpp - versions, codes and GPUs in words --------------------------===//

#include "Harness.h"

#include "dualpipe/Runtime/Cuda/Api.h"

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

/// Every code by the name that NVIDIA gives it: one row of Status.def each.
TEST(ApiTest, EveryCodeHasItsName) {
#define DUALPIPE_DRIVER_STATUS(enumerator, name, value)                                            \
  EXPECT_STREQ(getName(DriverStatus(value)), #name);
#include "dualpipe/Runtime/Cuda/Status.def"
#define DUALPIPE_NCCL_STATUS(enumerator, name, value)                                              \
  EXPECT_STREQ(getName(NcclStatus(value)), #name);
#include "dualpipe/Runtime/Cuda/Status.def"
#define DUALPIPE_CUBLAS_STATUS(enumerator, name, value)                                            \
  EXPECT_STREQ(getName(CublasStatus(value)), #name);
#include "dualpipe/Runtime/Cuda/Status.def"
  EXPECT_EQ(getName(DriverStatus(12345)), nullptr);
  EXPECT_EQ(getName(NcclStatus(12345)), nullptr);
  EXPECT_EQ(getName(CublasStatus(12345)), nullptr);
  EXPECT_STREQ(getName(DriverStatus::StubLibrary), "CUDA_ERROR_STUB_LIBRARY");
  EXPECT_STREQ(getName(NcclStatus::InProgress), "ncclInProgress");
  EXPECT_STREQ(getName(CublasStatus::NotInitialized), "CUBLAS_STATUS_NOT_INITIALIZED");
}

TEST(ApiTest, VersionsAsPeopleWriteThem) {
  EXPECT_EQ(printDriverVersion(12040), "12.4");
  EXPECT_EQ(printDriverVersion(13000), "13.0");
  EXPECT_EQ(printNcclVersion(22809), "2.28.9");
  EXPECT_EQ(printNcclVersion(2708), "2.7.8");
  EXPECT_EQ(printCublasVersion(130100), "13.1.0");
}

TEST(ApiTest, AFailedCallSaysWhatAndWhy) {
  SoftGpu gpu;
  EXPECT_TRUE(check(gpu.getDriver(), DriverStatus::Success, "cuMemAlloc").ok());
  EXPECT_EQ(check(gpu.getDriver(), DriverStatus::OutOfMemory, "cuMemAlloc of 8 bytes").message(),
            "cuMemAlloc of 8 bytes failed: CUDA_ERROR_OUT_OF_MEMORY (as the software device says)");
  EXPECT_EQ(check(gpu.getDriver(), DriverStatus(12345), "cuMemAlloc").message(),
            "cuMemAlloc failed: code 12345");
  EXPECT_EQ(check(gpu.getNccl(), NcclStatus::InProgress, "ncclSend").message(),
            "ncclSend failed: ncclInProgress (as the software device says)");
  EXPECT_EQ(check(gpu.getCublas(), CublasStatus::NotSupported, "cublasGemmEx").message(),
            "cublasGemmEx failed: CUBLAS_STATUS_NOT_SUPPORTED (as the software device says)");
}

TEST(ApiTest, GpusAsTheDriverDescribesThem) {
  SoftGpu gpu({.numGpus = 2});
  Result<std::vector<Gpu>> gpus = listGpus(gpu.getDriver());
  ASSERT_TRUE(gpus.ok()) << gpus.message();
  ASSERT_EQ(gpus->size(), 2u);
  EXPECT_EQ((*gpus)[1].ordinal, 1);
  EXPECT_EQ((*gpus)[1].name, "GPU made of software");
  EXPECT_EQ((*gpus)[1].major, 9);
  EXPECT_EQ((*gpus)[1].memory, size_t(4) << 30);
}

TEST(ApiTest, NoGpuAndABrokenOne) {
  {
    SoftGpu gpu({.numGpus = 0});
    EXPECT_EQ(listGpus(gpu.getDriver()).message(),
              "the CUDA driver finds no GPU: look at nvidia-smi and at CUDA_VISIBLE_DEVICES");
  }
  SoftGpu gpu({.faults = {{"cuDeviceTotalMem", 1, int(DriverStatus::DeviceUnavailable)}}});
  EXPECT_THAT(listGpus(gpu.getDriver()).message(),
              testing::HasSubstr("reading the properties of GPU 0 failed: "
                                 "CUDA_ERROR_DEVICE_UNAVAILABLE"));
}

} // namespace
