//===- Load.cpp - opening the CUDA driver, NCCL and cuBLAS -------------------===//

#include "dualpipe/Runtime/Cuda/Api.h"

#include <fmt/format.h>

#include <dlfcn.h>

namespace dualpipe::runtime::cuda {

/// Libraries stay open: what they made may be in use until the process ends.
static Result<void *> open(std::initializer_list<const char *> names, const char *advice) {
  std::string reasons;
  for (const char *name : names) {
    if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
      return library;
    const char *reason = dlerror();
    reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", reason ? reason : name);
  }
  return Status::failure(fmt::format("{} ({})", advice, reasons));
}

template <typename Function>
static Status lookUp(void *library, const char *file, const char *name, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function)
    return Status::success();
  return Status::failure(fmt::format("{} lacks the function {}: the installation is incomplete or "
                                     "another library has its name; reinstall it",
                                     file, name));
}

//===--- CUDA driver --------------------------------------------------------===//

/// Why cuInit failed, with what to do.
static std::string explainInit(DriverStatus status) {
  const char *name = getName(status);
  const std::string code = fmt::format("cuInit: {}", name ? name : "unknown code");
  switch (status) {
  case DriverStatus::StubLibrary:
    return fmt::format("libcuda.so.1 is the stub of the CUDA toolkit, not a driver ({}): take "
                       "lib64/stubs out of LD_LIBRARY_PATH and install NVIDIA's driver",
                       code);
  case DriverStatus::NoDevice:
    return fmt::format("the CUDA driver finds no GPU ({}): look at nvidia-smi and at "
                       "CUDA_VISIBLE_DEVICES",
                       code);
  case DriverStatus::SystemDriverMismatch:
    return fmt::format("the CUDA driver and the kernel module differ ({}): restart the machine "
                       "after an update of the driver",
                       code);
  default:
    return fmt::format("the CUDA driver cannot start ({}, {}): look at nvidia-smi", code,
                       int(status));
  }
}

/// By cuGetProcAddress, which pins the signature by the version that brought it.
template <typename Function>
static Status lookUp(const DriverApi &driver,
                     DriverStatus (*getProcAddress)(const char *, void **, int, uint64_t, int *),
                     const char *name, int since, Function &function) {
  void *address = nullptr;
  int found = 0;
  const DriverStatus status = getProcAddress(name, &address, since, 0, &found);
  if (status == DriverStatus::Success && found == 0 && address) {
    function = reinterpret_cast<Function>(address);
    return Status::success();
  }
  return Status::failure(fmt::format("the CUDA driver {} lacks the function {}, there since {}: "
                                     "the installation is damaged; reinstall NVIDIA's driver",
                                     printDriverVersion(driver.version), name,
                                     printDriverVersion(since)));
}

static Status checkDriverVersion(DriverApi &driver) {
  if (driver.driverGetVersion(&driver.version) != DriverStatus::Success)
    return Status::failure("the CUDA driver does not say its version (cuDriverGetVersion); "
                           "reinstall NVIDIA's driver");
  if (driver.version >= kMinDriver)
    return Status::success();
  return Status::failure(
      fmt::format("the CUDA driver supports CUDA {}, expected {} or later; update NVIDIA's driver",
                  printDriverVersion(driver.version), printDriverVersion(kMinDriver)));
}

Result<DriverApi> loadDriver() {
  const char *file = "libcuda.so.1";
  Result<void *> library =
      open({file}, "there is no CUDA driver; install NVIDIA's driver, or use --backend=cpu");
  if (!library.ok())
    return library.getStatus();
  DriverApi driver;
  // These three do not change; the version says whether the rest can be asked for.
  DriverStatus (*getProcAddress)(const char *, void **, int, uint64_t, int *) = nullptr;
  if (Status status = lookUp(*library, file, "cuInit", driver.init); !status.ok())
    return status;
  if (Status status = lookUp(*library, file, "cuDriverGetVersion", driver.driverGetVersion);
      !status.ok())
    return status;
  if (const DriverStatus status = driver.init(0); status != DriverStatus::Success)
    return Status::failure(explainInit(status));
  if (Status status = checkDriverVersion(driver); !status.ok())
    return status;
  if (Status status = lookUp(*library, file, "cuGetProcAddress_v2", getProcAddress); !status.ok())
    return status;
#define DUALPIPE_DRIVER(member, name, since, parameters)                                           \
  if (Status status = lookUp(driver, getProcAddress, #name, since, driver.member); !status.ok())   \
    return status;
#include "dualpipe/Runtime/Cuda/Driver.def"
  return driver;
}

//===--- NCCL ---------------------------------------------------------------===//

Result<NcclApi> loadNccl() {
  const char *file = "libnccl.so.2";
  Result<void *> library =
      open({file}, "there is no NCCL, which several GPUs need; install NCCL 2.18 or later and put "
                   "it into LD_LIBRARY_PATH");
  if (!library.ok())
    return library.getStatus();
  NcclApi nccl;
  if (Status status = lookUp(*library, file, "ncclGetVersion", nccl.getVersion); !status.ok())
    return status;
  if (nccl.getVersion(&nccl.version) != NcclStatus::Success)
    return Status::failure("NCCL does not say its version (ncclGetVersion); reinstall NCCL");
  if (nccl.version < kMinNccl)
    return Status::failure(fmt::format("NCCL is version {}, expected {} or later; update NCCL",
                                       printNcclVersion(nccl.version), printNcclVersion(kMinNccl)));
#define DUALPIPE_NCCL(member, name, since, result, parameters)                                     \
  static_assert(since <= kMinNccl, #name " is not in the oldest NCCL that works");                 \
  if (Status status = lookUp(*library, file, #name, nccl.member); !status.ok())                    \
    return status;
#include "dualpipe/Runtime/Cuda/Nccl.def"
  return nccl;
}

//===--- cuBLAS -------------------------------------------------------------===//

static Status checkCublasVersion(CublasApi &cublas) {
  int parts[3] = {0, 0, 0};
  for (int i = 0; i != 3; ++i)
    if (cublas.getProperty(LibraryProperty(i), &parts[i]) != CublasStatus::Success)
      return Status::failure("cuBLAS does not say its version (cublasGetProperty); reinstall "
                             "cuBLAS");
  cublas.version = parts[0] * 10000 + parts[1] * 100 + parts[2];
  return Status::success();
}

Result<CublasApi> loadCublas() {
  const char *file = "libcublas.so";
  Result<void *> library = open({"libcublas.so.13", "libcublas.so.12"},
                                "there is no cuBLAS, which models on a GPU need; install cuBLAS 12 "
                                "or 13 and put it into LD_LIBRARY_PATH");
  if (!library.ok())
    return library.getStatus();
  CublasApi cublas;
#define DUALPIPE_CUBLAS(member, name, since, result, parameters)                                   \
  if (Status status = lookUp(*library, file, #name, cublas.member); !status.ok())                  \
    return status;
#include "dualpipe/Runtime/Cuda/Cublas.def"
  if (Status status = checkCublasVersion(cublas); !status.ok())
    return status;
  return cublas;
}

} // namespace dualpipe::runtime::cuda
