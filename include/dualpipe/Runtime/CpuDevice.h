//===- CpuDevice.h - the CPU as a device ------------------------------------===//
//
// Compute commands of a rank run on the thread that synchronises, whatever
// compute stream they stand on, in issue order. Communication streams are
// passive state machines: whichever thread completes what a stream waits for
// carries it on, so a rank costs one thread.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_CPUDEVICE_H
#define DUALPIPE_RUNTIME_CPUDEVICE_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Device.h"
#include "dualpipe/Runtime/Recording.h"

#include <memory>

namespace dualpipe::runtime {

/// How a CPU device waits.
struct CpuDeviceOptions {
  /// How often a compute thread looks at what it waits for before it sleeps.
  /// More than 0 pays only where the machine has cores to spare.
  uint32_t spins = 0;
  /// For tests: random pauses of up to this before commands of every stream.
  uint32_t jitterMicroseconds = 0;
  uint64_t jitterSeed = 0;
};

/// What a communication stream does when it comes to a command; see
/// runtime/device/cpu/CpuStream.h.
struct Operation;
class CpuStream;

/// `rank` must have passed the checks of Verify.h and outlive the device, as
/// must the sink.
class CpuDevice : public Device {
public:
  CpuDevice(const program::RankProgram &rank, FailureSink &failures,
            const CpuDeviceOptions &options);
  ~CpuDevice() override;

  Result<void *> allocate(size_t bytes) override;
  Status beginStep() override;
  Status launch(uint32_t stream, uint32_t command, LaunchFunction function, void *context) override;
  Status record(uint32_t stream, uint32_t command, uint32_t event) override;
  Status wait(uint32_t stream, uint32_t command, uint32_t event) override;
  bool synchronize() override;
  void abort() override;
  DevicePosition getPosition() const override;

  /// Adds an operation to a communication stream and advances what it can. For transports.
  void issue(uint32_t stream, const Operation &operation);
  FailureSink &getFailures() const { return failures; }

  /// Takes the times of the rank, or is null. For transports; set before the first step.
  RankRecorder *getRecorder() const { return recorder; }
  void setRecorder(RankRecorder *taker) { recorder = taker; }

private:
  struct State;

  FailureSink &failures;
  RankRecorder *recorder = nullptr;
  std::unique_ptr<State> state;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_CPUDEVICE_H
