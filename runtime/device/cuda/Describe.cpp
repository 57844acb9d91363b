//===- Describe.cpp - versions, status codes and GPUs in words ---------------===//

#include "dualpipe/Runtime/Cuda/Api.h"

#include <fmt/format.h>

namespace dualpipe::runtime::cuda {

std::string printDriverVersion(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// Up to 2.8 NCCL counted 2.7.8 as 2708.
std::string printNcclVersion(int version) {
  if (version < 10000)
    return fmt::format("{}.{}.{}", version / 1000, version % 1000 / 100, version % 100);
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

std::string printCublasVersion(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

// Full switches, one case per code that we know: a code of a later library falls behind them.

const char *getName(DriverStatus status) {
  switch (status) {
#define DUALPIPE_DRIVER_STATUS(enumerator, name, value)                                            \
  case DriverStatus::enumerator:                                                                   \
    return #name;
#include "dualpipe/Runtime/Cuda/Status.def"
  }
  return nullptr;
}

const char *getName(NcclStatus status) {
  switch (status) {
#define DUALPIPE_NCCL_STATUS(enumerator, name, value)                                              \
  case NcclStatus::enumerator:                                                                     \
    return #name;
#include "dualpipe/Runtime/Cuda/Status.def"
  }
  return nullptr;
}

const char *getName(CublasStatus status) {
  switch (status) {
#define DUALPIPE_CUBLAS_STATUS(enumerator, name, value)                                            \
  case CublasStatus::enumerator:                                                                   \
    return #name;
#include "dualpipe/Runtime/Cuda/Status.def"
  }
  return nullptr;
}

/// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)", or the number of a code that we do not know.
template <typename Code> static std::string describe(Code code, const char *meaning) {
  const char *name = getName(code);
  const std::string known = name ? name : fmt::format("code {}", int(code));
  return meaning && *meaning ? fmt::format("{} ({})", known, meaning) : known;
}

Status check(const DriverApi &driver, DriverStatus status, const std::string &what) {
  if (status == DriverStatus::Success)
    return Status::success();
  const char *meaning = nullptr;
  if (driver.getErrorString(status, &meaning) != DriverStatus::Success)
    meaning = nullptr;
  return Status::failure(fmt::format("{} failed: {}", what, describe(status, meaning)));
}

Status check(const NcclApi &nccl, NcclStatus status, const std::string &what,
             Communicator communicator) {
  if (status == NcclStatus::Success)
    return Status::success();
  const char *last = nccl.getLastError(communicator);
  return Status::failure(fmt::format("{} failed: {}{}{}", what,
                                     describe(status, nccl.getErrorString(status)),
                                     last && *last ? ": " : "", last ? last : ""));
}

Status check(const CublasApi &cublas, CublasStatus status, const std::string &what) {
  if (status == CublasStatus::Success)
    return Status::success();
  return Status::failure(
      fmt::format("{} failed: {}", what, describe(status, cublas.getStatusString(status))));
}

static Result<Gpu> describeGpu(const DriverApi &driver, int ordinal) {
  Gpu gpu;
  gpu.ordinal = ordinal;
  DeviceId device = 0;
  char name[256] = "";
  const std::string what = fmt::format("reading the properties of GPU {}", ordinal);
  for (const DriverStatus status :
       {driver.deviceGet(&device, ordinal), driver.deviceGetName(name, sizeof(name), device),
        driver.deviceTotalMem(&gpu.memory, device),
        driver.deviceGetAttribute(&gpu.major, DeviceAttribute::ComputeCapabilityMajor, device),
        driver.deviceGetAttribute(&gpu.minor, DeviceAttribute::ComputeCapabilityMinor, device),
        driver.deviceGetAttribute(&gpu.multiprocessors, DeviceAttribute::MultiprocessorCount,
                                  device)})
    if (Status checked = check(driver, status, what); !checked.ok())
      return checked;
  gpu.name = name;
  return gpu;
}

Result<std::vector<Gpu>> listGpus(const DriverApi &driver) {
  int count = 0;
  if (Status status = check(driver, driver.deviceGetCount(&count), "cuDeviceGetCount");
      !status.ok())
    return status;
  if (count == 0)
    return Status::failure("the CUDA driver finds no GPU: look at nvidia-smi and at "
                           "CUDA_VISIBLE_DEVICES");
  std::vector<Gpu> gpus;
  for (int ordinal = 0; ordinal != count; ++ordinal) {
    Result<Gpu> gpu = describeGpu(driver, ordinal);
    if (!gpu.ok())
      return gpu.getStatus();
    gpus.push_back(std::move(*gpu));
  }
  return gpus;
}

} // namespace dualpipe::runtime::cuda
