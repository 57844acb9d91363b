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
#include "dualpipe/Runtime/Direct.h"
#include "dualpipe/Runtime/Memory.h"
#include "dualpipe/Support/Status.h"
#include "dualpipe/stage.h"

#include <cstdint>
#include <vector>

namespace dualpipe::runtime {

/// Takes the first failure of a run and stops every rank. Called from any thread.
class FailureSink {
public:
  virtual ~FailureSink() = default;
  virtual void fail(Status status) = 0;
};

/// Where a rank stands with a captured step.
enum class GraphPosition {
  None,     ///< its commands are issued, or nothing runs
  Waits,    ///< for the other ranks, before a captured step
  Captures, ///< commands are taken down
  Runs      ///< it has been launched: which commands it has come to does not show
};

/// Where a device stands, for the watchdog. Read while it runs: a snapshot that
/// may be torn between streams.
struct DevicePosition {
  /// By stream: the command that it is in or comes to next; program::kNone where it has none.
  std::vector<uint32_t> streams;
  /// Grows with every command that begins.
  uint64_t progress = 0;
  /// But for `None` the streams say nothing.
  GraphPosition graph = GraphPosition::None;
};

enum class CommandEdge : uint8_t { Begin, End };

/// One rank's place of execution. `allocate` comes from the thread that prepares
/// the run, before the rank's own thread exists; `upload` and `download` from there, from the one
/// that follows it up, or from the rank's own; all other calls but `getPosition` and `abort` from
/// the rank's own.
class Device : public Memory {
public:
  /// What a stage function on a stream gets as `dp_call::stream`.
  virtual void *getNativeStream(uint32_t stream) const {
    (void)stream;
    return nullptr;
  }

  /// For code that calls the driver itself, between `beginStep` and `synchronize`; null where there
  /// is no driver.
  virtual DirectEvents *getDirectEvents() { return nullptr; }

  /// Starts a step: all streams are empty, all events pending.
  virtual Status beginStep() = 0;
  /// A function of the host or the device that runs when its stream comes to it.
  using LaunchFunction = Status (*)(void *context, uint32_t command);
  virtual Status launch(uint32_t stream, uint32_t command, LaunchFunction function,
                        void *context) = 0;
  virtual Status record(uint32_t stream, uint32_t command, uint32_t event) = 0;
  virtual Status wait(uint32_t stream, uint32_t command, uint32_t event) = 0;
  /// Whether a recorder gets its times from the device, by marks in its streams: those of every
  /// command that takes time, or of the members of a group.
  virtual bool marksCommands() const { return false; }
  virtual Status mark(uint32_t stream, uint32_t command, CommandEdge edge) {
    (void)stream, (void)command, (void)edge;
    return Status::success();
  }
  /// After `synchronize`: gives the recorder the times of what was marked.
  virtual Status takeTimes() { return Status::success(); }
  /// Waits until all that was issued in this step has finished. False after a
  /// failure, which the sink has then; the device cannot be used again.
  virtual bool synchronize() = 0;
  /// The thread is through with the step, and with what it copied after it.
  virtual void endStep() {}

  /// Makes a running or later `synchronize` return false soon. From any thread.
  virtual void abort() = 0;
  virtual DevicePosition getPosition() const = 0;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_DEVICE_H
