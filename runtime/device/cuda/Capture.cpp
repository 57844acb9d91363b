//===- Capture.cpp - a capture of streams, and the graph it leaves ----------------===//

#include "runtime/device/cuda/Capture.h"

#include <fmt/format.h>

namespace dualpipe::runtime::cuda {

// What stage functions do, as ends of sentences.
static constexpr const char *kUsesLegacy =
    "uses the legacy stream (stream 0): a function uses only "
    "the stream that it is given";
static constexpr const char *kBreaks = "makes a call that a capture does not allow: it allocates, "
                                       "waits, or asks whether something is done";

Result<OwnedStream> OwnedStream::create(const DriverApi &driver, unsigned flags) {
  Stream stream = nullptr;
  if (Status status = check(driver, driver.streamCreateWithPriority(&stream, flags, 0),
                            "cuStreamCreateWithPriority for a capture");
      !status.ok())
    return status;
  return OwnedStream(driver, stream);
}

/// Ends a capture and throws away what it has taken down.
static DriverStatus discard(const DriverApi &driver, Stream stream) {
  Graph graph = nullptr;
  const DriverStatus status = driver.streamEndCapture(stream, &graph);
  if (graph)
    driver.graphDestroy(graph);
  return status;
}

//===--- The legacy stream --------------------------------------------------===//

Result<LegacySentry> LegacySentry::create(const DriverApi &driver) {
  Result<OwnedStream> stream = OwnedStream::create(driver, kStreamDefault);
  if (!stream.ok())
    return stream.getStatus();
  return LegacySentry(driver, std::move(*stream));
}

/// Relaxed: it forbids nothing else.
Status LegacySentry::begin() {
  return check(*driver, driver->streamBeginCapture(stream.get(), CaptureMode::Relaxed),
               "cuStreamBeginCapture");
}

bool LegacySentry::wasUsed() const {
  CaptureStatus status = CaptureStatus::Active;
  return driver->streamIsCapturing(stream.get(), &status) == DriverStatus::Success &&
         status == CaptureStatus::Invalidated;
}

bool LegacySentry::end() {
  return discard(*driver, stream.get()) == DriverStatus::StreamCaptureInvalidated;
}

//===--- A step -------------------------------------------------------------===//

Result<std::unique_ptr<StepCapture>> StepCapture::create(const GpuContext &gpu) {
  const DriverApi &driver = gpu.getDriver();
  Result<OwnedStream> origin = OwnedStream::create(driver, kStreamNonBlocking);
  if (!origin.ok())
    return origin.getStatus();
  Result<LegacySentry> sentry = LegacySentry::create(driver);
  if (!sentry.ok())
    return sentry.getStatus();
  Result<OwnedEvent> forked = OwnedEvent::create(driver);
  if (!forked.ok())
    return forked.getStatus();
  return std::unique_ptr<StepCapture>(
      new StepCapture(gpu, {std::move(*origin), std::move(*sentry), std::move(*forked)}));
}

StepCapture::~StepCapture() {
  drop();
  const ContextScope scope(gpu);
  parts.reset();
}

Status StepCapture::begin(CaptureMode mode) {
  if (Status status = parts->sentry.begin(); !status.ok())
    return status;
  Status status =
      check(driver, driver.streamBeginCapture(parts->origin.get(), mode), "cuStreamBeginCapture");
  if (!status.ok()) {
    parts->sentry.end();
    return status;
  }
  status =
      check(driver, driver.eventRecord(parts->forked.get(), parts->origin.get()), "cuEventRecord");
  if (!status.ok())
    (void)end(false); // this failure is told
  return status;
}

Status StepCapture::fork(std::span<const Stream> streams) const {
  for (const Stream stream : streams)
    if (Status status = check(driver, driver.streamWaitEvent(stream, parts->forked.get(), 0),
                              "cuStreamWaitEvent at the beginning of a capture");
        !status.ok())
      return status;
  return Status::success();
}

void StepCapture::addJoin(Event join) {
  const std::lock_guard lock(mutex);
  joins.push_back(join);
}

void StepCapture::addReady(Event event) {
  const std::lock_guard lock(mutex);
  ready.push_back(event);
}

Status StepCapture::end(bool keeps) {
  const std::lock_guard lock(mutex);
  Status joined = Status::success();
  for (const Event join : std::exchange(joins, {}))
    if (keeps && joined.ok())
      joined = check(driver, driver.streamWaitEvent(parts->origin.get(), join, 0),
                     "cuStreamWaitEvent at the end of a capture");
  Graph graph = nullptr;
  const DriverStatus ended = driver.streamEndCapture(parts->origin.get(), &graph);
  const bool usedLegacy = parts->sentry.end();
  Status status = !keeps || !joined.ok() ? std::move(joined)
                  : usedLegacy           ? Status::failure(fmt::format("something {}", kUsesLegacy))
                                         : check(driver, ended, "cuStreamEndCapture");
  if (status.ok() && keeps)
    status = instantiate(graph);
  if (graph)
    driver.graphDestroy(graph);
  return status;
}

/// Kernels keep the priorities of their streams: what holds up a transfer holds up another rank.
Status StepCapture::instantiate(Graph graph) {
  return check(driver, driver.graphInstantiate(&executable, graph, kGraphUseNodePriority),
               "cuGraphInstantiateWithFlags");
}

const char *StepCapture::findBreach(Stream stream) const {
  CaptureStatus status = CaptureStatus::Active;
  const bool isBroken = driver.streamIsCapturing(stream, &status) != DriverStatus::Success ||
                        status != CaptureStatus::Active;
  return parts->sentry.wasUsed() ? kUsesLegacy : isBroken ? kBreaks : "";
}

Status StepCapture::launch() {
  const std::lock_guard lock(mutex);
  if (!executable)
    return Status::failure("the captured step was dropped, since the run has failed");
  for (const Event event : std::exchange(ready, {}))
    if (Status status = check(driver, driver.streamWaitEvent(parts->origin.get(), event, 0),
                              "cuStreamWaitEvent before a captured step");
        !status.ok())
      return status;
  return check(driver, driver.graphLaunch(executable, parts->origin.get()), "cuGraphLaunch");
}

/// A graph that is at work goes when it is done.
void StepCapture::drop() {
  const std::lock_guard lock(mutex);
  if (!executable)
    return;
  const ContextScope scope(gpu);
  driver.graphExecDestroy(std::exchange(executable, nullptr));
}

void StepCapture::abandon() {
  parts->origin.abandon();
  parts->sentry.abandon();
}

//===--- A call -------------------------------------------------------------===//

Status TrialCapture::begin(Stream stream, CaptureMode mode) {
  if (Status status = sentry.begin(); !status.ok())
    return status;
  Status status = check(driver, driver.streamBeginCapture(stream, mode), "cuStreamBeginCapture");
  if (!status.ok())
    sentry.end();
  return status;
}

TrialCapture::Outcome TrialCapture::end(Stream stream, Status status) {
  const DriverStatus ended = discard(driver, stream);
  return {sentry.end(), ended, std::move(status)};
}

std::string TrialCapture::describe(const Outcome &outcome, bool worksRelaxed) {
  const char *did = outcome.usedLegacy ? kUsesLegacy
                    : outcome.ended == DriverStatus::StreamCaptureUnjoined
                        ? "leaves work on a stream of its own: a function that forks from its "
                          "stream joins it again by an event"
                    : worksRelaxed
                        ? "allocates or frees memory, or makes another call that is in no stream"
                    : outcome.ended == DriverStatus::StreamCaptureInvalidated
                        ? "waits for its stream or for an event, or asks whether they are done"
                        : "fails while it is captured";
  return outcome.status.ok() ? did : fmt::format("{} ({})", did, outcome.status.message());
}

} // namespace dualpipe::runtime::cuda
