//===- Library.cpp - GPUs made of software as libcuda, libnccl and libcublas ----===//
//
// A shared object that the runtime opens as it opens the real ones: for tests of
// whole programs. In the environment
//
//   DUALPIPE_SOFTGPU         seed=3,gpus=2,driver=11080,nccl=21500,memory=BYTES,
//                            threads=N,hang=N,communicator=BYTES,missing=cuMemAlloc,
//                            fail=cuMemAlloc:3:2
//   CUDA_VISIBLE_DEVICES     as for real ones: only these, up to the first that is not there
//   DUALPIPE_SOFTGPU_REPORT  a file that gets what was found wrong, when the process
//                            ends; the first line counts the operations that ran
//
//===----------------------------------------------------------------------===//

#include "State.h"
#include "Twins.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

namespace dualpipe::test::softgpu {
namespace {

std::string missingFunction;

/// "cuMemAlloc:3:2": the third call returns 2.
SoftFault parseFault(const std::string &text) {
  std::istringstream stream(text);
  SoftFault fault;
  char colon = 0;
  std::getline(stream, fault.function, ':');
  stream >> fault.number >> colon >> fault.status;
  return fault;
}

/// Those of so many GPUs that CUDA_VISIBLE_DEVICES leaves.
std::vector<int> listVisible(int numGpus) {
  std::vector<int> visible;
  const char *given = std::getenv("CUDA_VISIBLE_DEVICES");
  for (int ordinal = 0; !given && ordinal != numGpus; ++ordinal)
    visible.push_back(ordinal);
  std::istringstream stream(given ? given : "");
  for (int ordinal = 0; stream >> ordinal && ordinal >= 0 && ordinal < numGpus;) {
    visible.push_back(ordinal);
    stream.ignore(); // the comma
  }
  return visible;
}

SoftGpuOptions parseOptions() {
  SoftGpuOptions options;
  options.hostThreads = ~0u;
  options.spansProcesses = true;
  const char *given = std::getenv("DUALPIPE_SOFTGPU");
  std::istringstream stream(given ? given : "");
  for (std::string item; std::getline(stream, item, ',');) {
    const std::string key = item.substr(0, item.find('='));
    const std::string value = item.substr(std::min(item.size(), key.size() + 1));
    const uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
    if (key == "seed")
      options.seed = number;
    else if (key == "gpus")
      options.numGpus = int(number);
    else if (key == "memory")
      options.memoryBytes = number;
    else if (key == "driver")
      options.driverVersion = int(number);
    else if (key == "nccl")
      options.ncclVersion = int(number);
    else if (key == "threads")
      options.hostThreads = uint32_t(number);
    else if (key == "hang")
      options.hangAt = uint32_t(number);
    else if (key == "communicator")
      options.communicatorBytes = number;
    else if (key == "fail")
      options.faults.push_back(parseFault(value));
    else if (key == "missing")
      missingFunction = value;
    else {
      fmt::print(stderr, "DUALPIPE_SOFTGPU: unknown '{}'\n", item);
      std::abort();
    }
  }
  options.gpusOfMachine = listVisible(options.numGpus);
  options.numGpus = int(options.gpusOfMachine.size());
  return options;
}

/// The device of the process.
struct Process {
  Process() : gpu(parseOptions()) { addKernelTwins(gpu); }
  ~Process() {
    const char *path = std::getenv("DUALPIPE_SOFTGPU_REPORT");
    if (!path)
      return;
    std::ofstream file(path);
    file << gpu.getNumRun() << " operations\n";
    for (const std::string &report : gpu.getReports())
      file << report << "\n";
  }
  SoftGpu gpu;
};

Process process;

DriverStatus getProcAddress(const char *name, void **address, int version, uint64_t, int *found) {
  *address = nullptr;
  *found = 1;
  if (name == missingFunction)
    return DriverStatus::NotFound;
#define DUALPIPE_DRIVER(member, own, since, parameters)                                            \
  if (std::string_view(name) == #own && version >= since) {                                        \
    *address = reinterpret_cast<void *>(process.gpu.getDriver().member);                           \
    *found = 0;                                                                                    \
    return DriverStatus::Success;                                                                  \
  }
#include "dualpipe/Runtime/Cuda/Driver.def"
  return DriverStatus::NotFound;
}

} // namespace
} // namespace dualpipe::test::softgpu

// Symbols of the right names, each found by the dynamic linker through a function that knows where
// the real one is.
extern "C" {
#define EXPORT(name, function)                                                                     \
  static void (*resolve_##name())() {                                                              \
    using namespace dualpipe::test::softgpu;                                                       \
    return reinterpret_cast<void (*)()>(function);                                                 \
  }                                                                                                \
  __attribute__((visibility("default"), ifunc("resolve_" #name))) void name();

EXPORT(cuInit, makeDriver(0).init)
EXPORT(cuDriverGetVersion, makeDriver(0).driverGetVersion)
EXPORT(cuGetProcAddress_v2, getProcAddress)
#define DUALPIPE_NCCL(member, name, since, result, parameters) EXPORT(name, makeNccl(0).member)
#include "dualpipe/Runtime/Cuda/Nccl.def"
#define DUALPIPE_CUBLAS(member, name, since, result, parameters) EXPORT(name, makeCublas(0).member)
#include "dualpipe/Runtime/Cuda/Cublas.def"
}
