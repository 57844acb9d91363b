//===- Capture.h - a capture of streams, and the graph it leaves ------------------===//

#ifndef DUALPIPE_RUNTIME_DEVICE_CUDA_CAPTURE_H
#define DUALPIPE_RUNTIME_DEVICE_CUDA_CAPTURE_H

#include "dualpipe/Runtime/Cuda/CudaDevice.h"

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dualpipe::runtime::cuda {

/// Owns a stream. Move-only.
class OwnedStream {
public:
  static Result<OwnedStream> create(const DriverApi &driver, unsigned flags);
  OwnedStream(OwnedStream &&other) noexcept
      : driver(other.driver), stream(std::exchange(other.stream, nullptr)) {}
  OwnedStream &operator=(OwnedStream &&) = delete;
  ~OwnedStream() {
    if (stream)
      driver->streamDestroy(stream);
  }
  Stream get() const { return stream; }
  /// Leaves it to the end of the process: it may be at work.
  void abandon() { stream = nullptr; }

private:
  OwnedStream(const DriverApi &driver, Stream stream) : driver(&driver), stream(stream) {}
  const DriverApi *driver;
  Stream stream;
};

/// Tells the use of the legacy stream. Work there is in no order with streams that do not wait for
/// it, as all of ours, so a capture would miss it without a word. While a stream that does wait for
/// it is being captured CUDA refuses it (CUDA C++ Programming Guide, "Prohibited and Unhandled
/// Operations"): a capture of such a stream, with nothing in it, stands beside the real one.
class LegacySentry {
public:
  static Result<LegacySentry> create(const DriverApi &driver);
  Status begin();
  /// Whether anybody has used it since.
  bool wasUsed() const;
  /// Ends the capture. True where it was used.
  bool end();
  void abandon() { stream.abandon(); }

private:
  LegacySentry(const DriverApi &driver, OwnedStream stream)
      : driver(&driver), stream(std::move(stream)) {}
  const DriverApi *driver;
  OwnedStream stream;
};

/// A capture that begins on a stream of its own, from which others fork and which they join again.
/// The graph is launched on that stream, too.
class StepCapture {
public:
  /// In the context that is current, of `gpu`, which outlives it.
  static Result<std::unique_ptr<StepCapture>> create(const GpuContext &gpu);
  ~StepCapture();

  /// `begin` and `end` on one thread; between them other threads may fork their streams, and issue.
  Status begin(CaptureMode mode);
  Status fork(std::span<const Stream> streams) const;
  /// The end of a stream, which has been recorded. From any thread.
  void addJoin(Event join);
  /// Without `keeps` what was captured is thrown away. Ends the capture on every path.
  Status end(bool keeps);
  /// How a stage function that was called for `stream` has broken the capture; empty where it has
  /// not, as far as that can be seen before the end.
  const char *findBreach(Stream stream) const;

  /// The next launch comes after this record. From any thread.
  void addReady(Event event);
  /// From any thread. Fails once the graph has been dropped.
  Status launch();
  void drop();
  Stream getStream() const { return parts->origin.get(); }
  /// After a failure: leaves streams that may be at work.
  void abandon();

private:
  struct Parts {
    OwnedStream origin;
    LegacySentry sentry;
    OwnedEvent forked;
  };
  StepCapture(const GpuContext &gpu, Parts parts)
      : gpu(gpu), driver(gpu.getDriver()), parts(std::move(parts)) {}
  Status instantiate(Graph graph);

  const GpuContext &gpu;
  const DriverApi &driver;
  std::optional<Parts> parts; ///< until they go, in their context
  std::mutex mutex;           ///< guards what follows
  std::vector<Event> joins, ready;
  GraphExec executable = nullptr;
};

/// The capture of one call of a stage function, which is thrown away: what it did that a capture
/// does not allow, and what it said itself where it failed; empty where all is well, or nothing can
/// be captured at all. `call` puts work on `stream`.
class TrialCapture {
public:
  TrialCapture(const DriverApi &driver, LegacySentry &sentry) : driver(driver), sentry(sentry) {}
  template <typename Call> std::string find(Stream stream, Call &&call);

private:
  struct Outcome {
    bool usedLegacy = false;
    DriverStatus ended = DriverStatus::Success;
    Status status = Status::success();

    bool isGood() const { return !usedLegacy && ended == DriverStatus::Success && status.ok(); }
  };
  Status begin(Stream stream, CaptureMode mode);
  Outcome end(Stream stream, Status status);
  static std::string describe(const Outcome &outcome, bool worksRelaxed);

  const DriverApi &driver;
  LegacySentry &sentry;
};

/// Twice where it fails: in relaxed mode an allocation goes through, and a wait does not.
template <typename Call> std::string TrialCapture::find(Stream stream, Call &&call) {
  if (!begin(stream, CaptureMode::ThreadLocal).ok())
    return ""; // not the function's fault
  const Outcome outcome = end(stream, call());
  if (outcome.isGood())
    return "";
  const bool worksRelaxed =
      begin(stream, CaptureMode::Relaxed).ok() && end(stream, call()).isGood();
  return describe(outcome, worksRelaxed);
}

} // namespace dualpipe::runtime::cuda

#endif // DUALPIPE_RUNTIME_DEVICE_CUDA_CAPTURE_H
