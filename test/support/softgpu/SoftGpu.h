//===- SoftGpu.h - GPUs made of software, behind the tables of CUDA ---------===//
//
// Fills the tables of Cuda/Api.h on the CPU with the semantics of the real ones,
// as weak as they allow:
//
//   - What is put on a stream runs later, and streams run in any order that
//     streams, events and transfers leave open; the seed draws it. Half of the
//     seeds run nothing before all host threads wait (`lazy`), half run while they
//     still issue.
//   - A wait for an event stands for the last record before it in host order, and
//     for nothing where there is none.
//   - An NCCL transfer holds its stream until its partner is there; a send may end
//     early, the seed says which. Calls of a group begin together, the k-th send to
//     a peer meets the k-th receive, a communicator runs in host order.
//   - Memory is poisoned when it is given and when it is freed.
//
// What CUDA would leave undefined is reported (`getReports`): memory that two
// operations touch without an order between them (vector clocks over streams,
// events, transfers and host threads; Fidge 1988, Mattern 1989), use after free and
// beyond an allocation, a group left open, too large or over several streams,
// communicators used in different orders, waits that can never end. Faults can be
// injected: the n-th call of a function fails, communicators stay in progress,
// errors come asynchronously, work never ends.
//
// Device memory is memory of the host, kernels are functions looked up by name.
// One at a time per process.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_TEST_SUPPORT_SOFTGPU_SOFTGPU_H
#define DUALPIPE_TEST_SUPPORT_SOFTGPU_SOFTGPU_H

#include "dualpipe/Runtime/Cuda/Api.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dualpipe::test {

/// Memory that an operation reads or writes.
struct SoftUse {
  const void *data;
  size_t bytes;
  bool writes;
};

/// A kernel with one argument, passed by value.
struct SoftKernel {
  std::string name;
  size_t argumentBytes = 0;
  std::function<void(const void *argument, int64_t numThreads)> run;
  std::function<void(const void *argument, std::vector<SoftUse> &uses)> listUses;
};

/// The `number`-th call, counted from 1, of a function ("cuMemAlloc", "ncclSend") returns `status`
/// and does nothing.
struct SoftFault {
  std::string function;
  uint32_t number = 1;
  int status = 0;
};

struct SoftGpuOptions {
  uint64_t seed = 0;
  int numGpus = 1;
  size_t memoryBytes = size_t(4) << 30; ///< of each GPU
  int driverVersion = 13000;
  int ncclVersion = 22809;
  int cublasVersion = 130100;
  std::vector<SoftFault> faults = {};
  /// How often ncclCommGetAsyncError says ncclInProgress after every call of NCCL.
  uint32_t inProgress = 0;
  /// The transfer or collective of so much, counted from 1 as they are issued, fails with
  /// ncclRemoteError, which ncclCommGetAsyncError then says; 0 is none.
  uint32_t asyncErrorAt = 0;
  /// The kernel of so much never ends; 0 is none.
  uint32_t hangAt = 0;
  /// Allocations of `missingOf` bytes are so much smaller than was asked for; 0 is none.
  size_t missingBytes = 0;
  size_t missingOf = 0;
  /// So many host threads use the GPUs at once. A wait can never end only where all of them wait,
  /// or have ended. More than there are: never.
  uint32_t hostThreads = 1;
  /// Whether what a rank has received comes after what its sender did before. Without it only what
  /// a rank does itself gives an order, which is what P2 asks of a program.
  bool ordersAcrossRanks = true;
  /// Sends wait for their receives, whatever the seed.
  bool rendezvous = false;
  /// Communicators may have ranks in other processes (Bridge.h).
  bool spansProcesses = false;
  /// By GPU of this process: which one it is of the machine; empty: the same numbers.
  std::vector<int> gpusOfMachine = {};
  /// So much of its GPU is in use by each communicator.
  size_t communicatorBytes = 0;
};

class SoftGpu {
public:
  explicit SoftGpu(SoftGpuOptions options = {});
  SoftGpu(const SoftGpu &) = delete;
  SoftGpu &operator=(const SoftGpu &) = delete;
  ~SoftGpu();

  void addKernel(SoftKernel kernel);
  const runtime::cuda::DriverApi &getDriver() const { return driver; }
  const runtime::cuda::NcclApi &getNccl() const { return nccl; }
  const runtime::cuda::CublasApi &getCublas() const { return cublas; }

  /// What was wrong so far, each finding once, in order; looks at the order of communicators too.
  std::vector<std::string> getReports() const;
  /// Operations that have run.
  uint64_t getNumRun() const;
  /// How often a function was called.
  uint32_t getNumCalls(const std::string &function) const;

  struct State;

private:
  std::unique_ptr<State> state;
  runtime::cuda::DriverApi driver;
  runtime::cuda::NcclApi nccl;
  runtime::cuda::CublasApi cublas;
};

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_SUPPORT_SOFTGPU_SOFTGPU_H
