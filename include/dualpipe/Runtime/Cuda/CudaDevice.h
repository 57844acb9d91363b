//===- CudaDevice.h - a GPU as a device --------------------------------------===//
//
// One rank on a GPU. Its host thread issues the commands of a step in the order
// of the program: streams and events of the program are CUDA's, a launch calls
// its stage function at once, which puts kernels on the stream that it is given.
// Several ranks may share a GPU. Never run on a GPU so far.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_CUDA_CUDADEVICE_H
#define DUALPIPE_RUNTIME_CUDA_CUDADEVICE_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Cuda/Api.h"
#include "dualpipe/Runtime/Device.h"
#include "dualpipe/Runtime/Recording.h"

#include <memory>
#include <string>

namespace dualpipe::runtime::cuda {

/// The primary context of a GPU, kept while the object lives. Move-only.
class GpuContext {
public:
  static Result<GpuContext> create(const DriverApi &driver, int ordinal);
  GpuContext(GpuContext &&other) noexcept;
  GpuContext &operator=(GpuContext &&) = delete;
  ~GpuContext();

  const DriverApi &getDriver() const { return *driver; }
  Context get() const { return context; }
  int getOrdinal() const { return ordinal; }
  Status getAttribute(DeviceAttribute attribute, int &value) const;

private:
  GpuContext(const DriverApi &driver, DeviceId device, int ordinal, Context context)
      : driver(&driver), device(device), ordinal(ordinal), context(context) {}

  const DriverApi *driver;
  DeviceId device;
  int ordinal;
  Context context;
};

/// Makes a context the thread's own while the object lives, then that of before again.
class ContextScope {
public:
  explicit ContextScope(const GpuContext &gpu);
  ContextScope(const ContextScope &) = delete;
  ContextScope &operator=(const ContextScope &) = delete;
  ~ContextScope() { driver.ctxSetCurrent(previous); }

  const Status &getStatus() const { return status; }

private:
  const DriverApi &driver;
  Context previous = nullptr;
  Status status = Status::success();
};

struct CudaDeviceOptions {
  /// How long a copy outside of a step may take. Steps are watched by the session.
  double timeoutSeconds = 120;
};

/// Looks after the commands of a step while they are captured.
class CaptureWatch {
public:
  /// After a command that calls stage functions, which has ended with `status`: the failure of the
  /// capture, where it has failed.
  virtual Status checkLaunch(uint32_t stream, uint32_t command, Status status) = 0;
  /// Whether the capture has failed on another rank. From the rank's thread.
  virtual bool isStopped() const = 0;

protected:
  ~CaptureWatch() = default;
};

class CudaDevice : public Device {
public:
  /// Creates streams and events: communication above compute in priority. `rank`, `failures` and
  /// `gpu` outlive the device. Programs must have passed verifyRanges (Verify.h).
  static Result<std::unique_ptr<CudaDevice>> create(const program::RankProgram &rank,
                                                    FailureSink &failures, const GpuContext &gpu,
                                                    const CudaDeviceOptions &options);
  /// After a failure or an abort the GPU may still be at work: then streams and memory are left to
  /// the end of the process, since freeing them would wait.
  ~CudaDevice() override;

  /// Takes the times of commands for `recorder`, which outlives the device. Before the first step.
  Status record(RankRecorder &recorder);

  Result<void *> allocate(size_t bytes) override;
  Status upload(void *to, const void *from, size_t bytes) override;
  Status download(void *to, const void *from, size_t bytes) override;
  DLDevice getPlace() const override;
  void *getNativeStream(uint32_t stream) const override;

  DirectEvents *getDirectEvents() override;
  Status beginStep() override;
  Status launch(uint32_t stream, uint32_t command, LaunchFunction function, void *context) override;
  Status record(uint32_t stream, uint32_t command, uint32_t event) override;
  Status wait(uint32_t stream, uint32_t command, uint32_t event) override;
  bool marksCommands() const override;
  Status mark(uint32_t stream, uint32_t command, CommandEdge edge) override;
  Status takeTimes() override;
  bool synchronize() override;
  void endStep() override;
  void abort() override;
  DevicePosition getPosition() const override;

  /// For transports: the stream and the names of commands, and a look at the GPU while the host
  /// waits for another rank: false once the run has been stopped, after telling the sink where a
  /// stream has failed.
  Stream getStream(uint32_t stream) const;
  /// The stream of `upload` and `download`.
  Stream getCopyStream() const;
  const DriverApi &getDriver() const;
  const GpuContext &getGpu() const;
  FailureSink &getFailures() const;
  bool poll();
  bool isAborted() const;

  /// For graphs. While there is a watch commands are captured, and the GPU is not asked for
  /// anything, which would break the capture; null ends that.
  void setCapture(CaptureWatch *watch);
  /// The step has been launched on this stream, and on no other, until the next one begins.
  void followGraph(Stream stream);
  void setGraphPosition(GraphPosition position);
  /// For transports with errors of their own: called at every poll from the rank's thread.
  void setErrorPoll(Status (*function)(void *context), void *context);

private:
  struct State;
  explicit CudaDevice(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

/// Whether an event keeps the time at which it came.
enum class EventClock : uint8_t { None, Kept };

/// Owns an event. Move-only.
class OwnedEvent {
public:
  static Result<OwnedEvent> create(const DriverApi &driver, EventClock clock = EventClock::None);
  OwnedEvent(OwnedEvent &&other) noexcept : driver(other.driver), event(other.event) {
    other.event = nullptr;
  }
  OwnedEvent &operator=(OwnedEvent &&) = delete;
  ~OwnedEvent() {
    if (event)
      driver->eventDestroy(event);
  }
  Event get() const { return event; }

private:
  OwnedEvent(const DriverApi &driver, Event event) : driver(&driver), event(event) {}
  const DriverApi *driver;
  Event event;
};

} // namespace dualpipe::runtime::cuda

#endif // DUALPIPE_RUNTIME_CUDA_CUDADEVICE_H
