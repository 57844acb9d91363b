//===- Device.h - where one rank computes: streams, events, memory ----------===//
//
// The executor issues a step's commands to a device in the order of the
// program, without waiting for any of them, as a CUDA host does; `synchronize`
// then waits for the whole step. Streams, events and commands keep the numbers
// that they have in the program.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_DEVICE_H
#define DUALPIPE_RUNTIME_DEVICE_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Support/Status.h"
#include "dualpipe/stage.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace dualpipe::runtime {

/// Takes the first failure of a run and stops every rank. Called from any thread.
class FailureSink {
public:
  virtual ~FailureSink() = default;
  virtual void fail(Status status) = 0;
};

/// Where a device stands, for the watchdog. Read while it runs: a snapshot that
/// may be torn between streams.
struct DevicePosition {
  /// By stream: the command that it is in or comes to next; program::kNone where it has none.
  std::vector<uint32_t> streams;
  /// Grows with every command that begins.
  uint64_t progress = 0;
};

/// One rank's place of execution. `allocate` comes from the thread that prepares
/// the run, before the rank's own thread exists; all other calls but
/// `getPosition` and `abort` come from the rank's own.
class Device {
public:
  virtual ~Device() = default;

  /// Zeroed memory, aligned to kTensorAlignment, that lives as long as the
  /// device. Fails where memory runs out. 0 bytes give null.
  virtual Result<void *> allocate(size_t bytes) = 0;

  /// Where the memory of `allocate` is.
  virtual DLDevice getPlace() const { return {kDLCPU, 0}; }
  /// What a stage function on a stream gets as `dp_call::stream`.
  virtual void *getNativeStream(uint32_t stream) const {
    (void)stream;
    return nullptr;
  }
  /// Copies between memory of the host and memory of the device, and waits for it. From the thread
  /// that prepares or follows up a run, or from the rank's own.
  virtual Status upload(void *to, const void *from, size_t bytes) { return copy(to, from, bytes); }
  virtual Status download(void *to, const void *from, size_t bytes) {
    return copy(to, from, bytes);
  }

  /// Starts a step: all streams are empty, all events pending.
  virtual Status beginStep() = 0;
  /// A function of the host or the device that runs when its stream comes to it.
  using LaunchFunction = Status (*)(void *context, uint32_t command);
  virtual Status launch(uint32_t stream, uint32_t command, LaunchFunction function,
                        void *context) = 0;
  virtual Status record(uint32_t stream, uint32_t command, uint32_t event) = 0;
  virtual Status wait(uint32_t stream, uint32_t command, uint32_t event) = 0;
  /// Waits until all that was issued in this step has finished. False after a
  /// failure, which the sink has then; the device cannot be used again.
  virtual bool synchronize() = 0;
  /// The thread is through with the step, and with what it copied after it.
  virtual void endStep() {}

  /// Makes a running or later `synchronize` return false soon. From any thread.
  virtual void abort() = 0;
  virtual DevicePosition getPosition() const = 0;

private:
  /// Where the device's memory is the host's.
  static Status copy(void *to, const void *from, size_t bytes) {
    if (bytes != 0)
      std::memcpy(to, from, bytes);
    return Status::success();
  }
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_DEVICE_H
