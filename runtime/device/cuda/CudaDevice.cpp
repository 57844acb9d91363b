//===- CudaDevice.cpp - a GPU as a device ------------------------------------===//

#include "dualpipe/Runtime/Cuda/CudaDevice.h"

#include "StreamTimes.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace dualpipe::runtime::cuda {

using program::CommandOp;
using program::kNone;
using program::StreamKind;
using Clock = std::chrono::steady_clock;

/// Looks at the GPU before the host begins to sleep between two, and how long it sleeps: a step
/// ends at most so much later than it could.
static constexpr uint32_t kSpins = 200;
static constexpr std::chrono::microseconds kPause{20};

/// A record of an event in a stream, and the command that comes after it there.
struct Milestone {
  uint32_t event;
  uint32_t next; ///< kNone where it is the last
};

struct CudaDevice::State : DirectEvents {
  State(const program::RankProgram &rank, FailureSink &failures, const GpuContext &gpu,
        const CudaDeviceOptions &options)
      : rank(rank), failures(failures), gpu(gpu), driver(gpu.getDriver()), options(options),
        positions(rank.streams.size()) {}

  Status createStreams();
  Status createEvents();
  void listMilestones();
  Status waitFor(Stream stream, const char *what);
  /// Copies by what `issue` calls, the driver's function of this name, and waits for it.
  template <typename Copy>
  Status copy(size_t bytes, const char *name, const char *what, Copy &&issue);
  Status fail(DriverStatus status, uint32_t stream, uint32_t command);
  DriverStatus findPending(uint32_t &stream);
  void advancePositions();
  bool report(Status status);
  bool reportStream(DriverStatus status, uint32_t stream);

  Record getRecord() const override;
  Wait getWait() const override;
  std::span<Stream const> getStreams() const override { return {streams}; }
  std::span<Event const> getEvents() const override { return {events}; }
  uint8_t *getRecorded() override { return recorded.data(); }
  Status describe(const char *name, int status) const override {
    return check(driver, DriverStatus(status), name);
  }

  const program::RankProgram &rank;
  FailureSink &failures;
  const GpuContext &gpu;
  const DriverApi &driver;
  const CudaDeviceOptions options;

  std::vector<DevicePointer> memory;
  std::vector<Stream> streams; ///< those of the program, then one for copies outside of steps
  std::vector<Event> events;
  std::vector<std::vector<Milestone>> milestones; ///< by stream
  std::vector<uint32_t> firstCommands;            ///< by stream
  std::vector<uint32_t> passed;                   ///< by stream: milestones that are behind it
  std::vector<uint8_t> recorded;                  ///< by event: in this step
  std::vector<std::atomic<uint32_t>> positions;   ///< for getPosition
  std::atomic<uint64_t> progress{0};
  std::atomic<bool> aborted{false};
  std::unique_ptr<StreamTimes> times; ///< null where nothing is recorded
  std::atomic<GraphPosition> graphPosition{GraphPosition::None};
  CaptureWatch *capture = nullptr; ///< while commands are captured
  Stream graphStream = nullptr;    ///< where the step has been launched as a graph
  Status (*pollErrors)(void *context) = nullptr;
  void *pollContext = nullptr;
};

//===--- Setting up ---------------------------------------------------------===//

/// A blocked transfer costs little; a compute that holds up a transfer holds up another rank. So
/// communication goes first. Lower numbers are higher priorities.
Status CudaDevice::State::createStreams() {
  int least = 0, greatest = 0;
  if (Status status = check(driver, driver.ctxGetStreamPriorityRange(&least, &greatest),
                            "cuCtxGetStreamPriorityRange");
      !status.ok())
    return status;
  for (size_t i = 0; i <= rank.streams.size(); ++i) {
    const bool computes = i == rank.streams.size() || rank.streams[i].kind == StreamKind::Compute;
    Stream stream = nullptr;
    if (Status status = check(driver,
                              driver.streamCreateWithPriority(&stream, kStreamNonBlocking,
                                                              computes ? least : greatest),
                              fmt::format("cuStreamCreateWithPriority for rank {}", rank.rank));
        !status.ok())
      return status;
    streams.push_back(stream);
  }
  return Status::success();
}

Status CudaDevice::State::createEvents() {
  for (uint32_t i = 0; i != rank.numEvents; ++i) {
    Event event = nullptr;
    if (Status status = check(driver, driver.eventCreate(&event, kEventDisableTiming),
                              fmt::format("cuEventCreate for rank {}", rank.rank));
        !status.ok())
      return status;
    events.push_back(event);
  }
  recorded.resize(events.size());
  return Status::success();
}

void CudaDevice::State::listMilestones() {
  milestones.resize(rank.streams.size());
  firstCommands.resize(rank.streams.size(), kNone);
  passed.resize(rank.streams.size());
  for (uint32_t i = 0; i != rank.commands.size(); ++i) {
    const program::Command &command = rank.commands[i];
    if (command.op == CommandOp::Group)
      continue;
    if (firstCommands[command.stream] == kNone)
      firstCommands[command.stream] = i;
    std::vector<Milestone> &own = milestones[command.stream];
    if (!own.empty() && own.back().next == kNone)
      own.back().next = i;
    if (command.op == CommandOp::Record)
      own.push_back({command.arg, kNone});
  }
  for (std::atomic<uint32_t> &position : positions)
    position.store(kNone, std::memory_order_relaxed);
}

CudaDevice::CudaDevice(std::unique_ptr<State> state) : state(std::move(state)) {}

Result<std::unique_ptr<CudaDevice>> CudaDevice::create(const program::RankProgram &rank,
                                                       FailureSink &failures, const GpuContext &gpu,
                                                       const CudaDeviceOptions &options) {
  const ContextScope scope(gpu);
  if (!scope.getStatus().ok())
    return scope.getStatus();
  auto state = std::make_unique<State>(rank, failures, gpu, options);
  state->listMilestones();
  State &made = *state;
  std::unique_ptr<CudaDevice> device(new CudaDevice(std::move(state)));
  if (Status status = made.createStreams(); !status.ok())
    return status;
  if (Status status = made.createEvents(); !status.ok())
    return status;
  return device;
}

CudaDevice::~CudaDevice() {
  const ContextScope scope(state->gpu);
  state->times.reset();
  if (state->aborted.load(std::memory_order_acquire))
    return;
  for (const Event event : state->events)
    state->driver.eventDestroy(event);
  for (const Stream stream : state->streams)
    state->driver.streamDestroy(stream);
  for (const DevicePointer pointer : state->memory)
    state->driver.memFree(pointer);
}

//===--- Memory -------------------------------------------------------------===//

Result<void *> CudaDevice::allocate(size_t bytes) {
  if (bytes == 0)
    return static_cast<void *>(nullptr);
  const ContextScope scope(state->gpu);
  if (!scope.getStatus().ok())
    return scope.getStatus();
  const DriverApi &driver = state->driver;
  DevicePointer pointer = 0;
  const DriverStatus allocated = driver.memAlloc(&pointer, bytes);
  if (allocated != DriverStatus::Success) {
    size_t free = 0, total = 0;
    const bool known = driver.memGetInfo(&free, &total) == DriverStatus::Success;
    return check(driver, allocated,
                 fmt::format("cuMemAlloc of {} bytes for rank {} on GPU {}{}", bytes,
                             state->rank.rank, state->gpu.getOrdinal(),
                             known ? fmt::format(", which has {} of {} free,", free, total) : ""));
  }
  state->memory.push_back(pointer);
  const Stream stream = state->streams.back();
  if (Status status =
          check(driver, driver.memsetD8Async(pointer, 0, bytes, stream), "cuMemsetD8Async");
      !status.ok())
    return status;
  if (Status status = state->waitFor(stream, "clearing memory"); !status.ok())
    return status;
  return reinterpret_cast<void *>(pointer);
}

/// For what is outside of steps. Polls, so that it can end.
Status CudaDevice::State::waitFor(Stream stream, const char *what) {
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(options.timeoutSeconds));
  for (uint32_t looks = 0;; ++looks) {
    const DriverStatus status = driver.streamQuery(stream);
    if (status != DriverStatus::NotReady)
      return check(driver, status, fmt::format("rank {}: {}", rank.rank, what));
    if (aborted.load(std::memory_order_acquire))
      return Status::failure(fmt::format("rank {}: {} was stopped", rank.rank, what));
    if (Clock::now() >= end)
      return Status::failure(fmt::format("rank {}: {} on GPU {} has not ended after {} s",
                                         rank.rank, what, gpu.getOrdinal(),
                                         options.timeoutSeconds));
    if (looks >= kSpins)
      std::this_thread::sleep_for(kPause);
  }
}

template <typename Copy>
Status CudaDevice::State::copy(size_t bytes, const char *name, const char *what, Copy &&issue) {
  if (bytes == 0)
    return Status::success();
  const ContextScope scope(gpu);
  if (!scope.getStatus().ok())
    return scope.getStatus();
  const Stream stream = streams.back();
  if (Status status = check(driver, issue(stream), name); !status.ok())
    return status;
  return waitFor(stream, what);
}

Status CudaDevice::upload(void *to, const void *from, size_t bytes) {
  return state->copy(bytes, "cuMemcpyHtoDAsync", "a copy to the GPU", [&](Stream stream) {
    return state->driver.memcpyHtoDAsync(reinterpret_cast<DevicePointer>(to), from, bytes, stream);
  });
}

Status CudaDevice::download(void *to, const void *from, size_t bytes) {
  return state->copy(bytes, "cuMemcpyDtoHAsync", "a copy from the GPU", [&](Stream stream) {
    return state->driver.memcpyDtoHAsync(to, reinterpret_cast<DevicePointer>(from), bytes, stream);
  });
}

//===--- Issuing ------------------------------------------------------------===//

DLDevice CudaDevice::getPlace() const { return {kDLCUDA, state->gpu.getOrdinal()}; }
void *CudaDevice::getNativeStream(uint32_t stream) const { return state->streams[stream]; }
Stream CudaDevice::getStream(uint32_t stream) const { return state->streams[stream]; }
Stream CudaDevice::getCopyStream() const { return state->streams.back(); }
const DriverApi &CudaDevice::getDriver() const { return state->driver; }
const GpuContext &CudaDevice::getGpu() const { return state->gpu; }
FailureSink &CudaDevice::getFailures() const { return state->failures; }
bool CudaDevice::isAborted() const { return state->aborted.load(std::memory_order_acquire); }

void CudaDevice::setErrorPoll(Status (*function)(void *), void *context) {
  state->pollErrors = function;
  state->pollContext = context;
}

/// The driver's own functions, whose enumerations are passed as numbers.
CudaDevice::State::Record CudaDevice::State::getRecord() const {
  return reinterpret_cast<Record>(driver.eventRecord);
}
CudaDevice::State::Wait CudaDevice::State::getWait() const {
  return reinterpret_cast<Wait>(driver.streamWaitEvent);
}
DirectEvents *CudaDevice::getDirectEvents() { return state.get(); }

/// The context stays the thread's until `endStep`.
Status CudaDevice::beginStep() {
  std::fill(state->passed.begin(), state->passed.end(), 0);
  std::fill(state->recorded.begin(), state->recorded.end(), false);
  state->graphStream = nullptr;
  for (size_t i = 0; i != state->positions.size(); ++i)
    state->positions[i].store(state->firstCommands[i], std::memory_order_relaxed);
  Status status =
      check(state->driver, state->driver.ctxSetCurrent(state->gpu.get()), "cuCtxSetCurrent");
  if (!status.ok() || !state->times)
    return status;
  const Stream stream = getCopyStream();
  return state->times->beginStep(
      stream, [&] { return state->waitFor(stream, "taking the time at which a step begins"); });
}

Status CudaDevice::launch(uint32_t stream, uint32_t command, LaunchFunction function,
                          void *context) {
  Status status = function(context, command);
  return state->capture ? state->capture->checkLaunch(stream, command, std::move(status))
                        : std::move(status);
}

void CudaDevice::setCapture(CaptureWatch *watch) { state->capture = watch; }

void CudaDevice::followGraph(Stream stream) {
  state->graphStream = stream;
  setGraphPosition(GraphPosition::Runs);
}

void CudaDevice::setGraphPosition(GraphPosition position) {
  state->graphPosition.store(position, std::memory_order_relaxed);
  state->progress.fetch_add(1, std::memory_order_relaxed);
}

Status CudaDevice::State::fail(DriverStatus status, uint32_t stream, uint32_t command) {
  return check(driver, status,
               fmt::format("rank {}: issuing command {} to stream {} ({}) of GPU {}", rank.rank,
                           command, stream, program::getName(rank.streams[stream].kind),
                           gpu.getOrdinal()));
}

Status CudaDevice::record(uint32_t stream, uint32_t command, uint32_t event) {
  const DriverStatus status =
      state->driver.eventRecord(state->events[event], state->streams[stream]);
  if (status != DriverStatus::Success)
    return state->fail(status, stream, command);
  state->recorded[event] = true;
  return Status::success();
}

Status CudaDevice::wait(uint32_t stream, uint32_t command, uint32_t event) {
  const DriverStatus status =
      state->driver.streamWaitEvent(state->streams[stream], state->events[event], 0);
  return status == DriverStatus::Success ? Status::success() : state->fail(status, stream, command);
}

//===--- Recording ----------------------------------------------------------===//

Status CudaDevice::record(RankRecorder &recorder) {
  const ContextScope scope(state->gpu);
  if (!scope.getStatus().ok())
    return scope.getStatus();
  Result<std::unique_ptr<StreamTimes>> times =
      StreamTimes::create(state->driver, state->rank, recorder);
  if (!times.ok())
    return times.getStatus();
  state->times = std::move(*times);
  return Status::success();
}

bool CudaDevice::marksCommands() const { return state->times != nullptr; }

Status CudaDevice::mark(uint32_t stream, uint32_t command, CommandEdge edge) {
  const DriverStatus status = state->times->mark(state->streams[stream], command, edge);
  return status == DriverStatus::Success ? Status::success() : state->fail(status, stream, command);
}

Status CudaDevice::takeTimes() {
  return state->times ? state->times->endStep() : Status::success();
}

//===--- Waiting ------------------------------------------------------------===//

bool CudaDevice::State::report(Status status) {
  aborted.store(true, std::memory_order_release);
  failures.fail(std::move(status));
  return false;
}

/// The first stream of the program with something left, or that has failed.
DriverStatus CudaDevice::State::findPending(uint32_t &stream) {
  if (graphStream)
    return driver.streamQuery(graphStream);
  for (; stream != rank.streams.size(); ++stream)
    if (const DriverStatus status = driver.streamQuery(streams[stream]);
        status != DriverStatus::Success)
      return status;
  return DriverStatus::Success;
}

/// Where the streams are, from the events that have come. An error shows at the next poll.
void CudaDevice::State::advancePositions() {
  if (graphStream)
    return; // events of a captured step cannot be asked for
  for (size_t i = 0; i != milestones.size(); ++i) {
    const std::vector<Milestone> &own = milestones[i];
    while (passed[i] != own.size() && recorded[own[passed[i]].event] &&
           driver.eventQuery(events[own[passed[i]].event]) == DriverStatus::Success) {
      positions[i].store(own[passed[i]].next, std::memory_order_relaxed);
      progress.fetch_add(1, std::memory_order_relaxed);
      ++passed[i];
    }
  }
}

/// The error of a stream; CUDA may say it once only.
bool CudaDevice::State::reportStream(DriverStatus status, uint32_t stream) {
  if (graphStream)
    return report(
        check(driver, status,
              fmt::format("rank {}: a captured step on GPU {}", rank.rank, gpu.getOrdinal())));
  return report(check(driver, status,
                      fmt::format("rank {}: stream {} ({}) of GPU {}", rank.rank, stream,
                                  program::getName(rank.streams[stream].kind), gpu.getOrdinal())));
}

bool CudaDevice::poll() {
  if (isAborted())
    return false;
  if (state->capture)
    return !state->capture->isStopped();
  uint32_t stream = 0;
  const DriverStatus status = state->findPending(stream);
  if (status != DriverStatus::Success && status != DriverStatus::NotReady)
    return state->reportStream(status, stream);
  if (state->pollErrors)
    if (Status failed = state->pollErrors(state->pollContext); !failed.ok())
      return state->report(std::move(failed));
  state->advancePositions();
  return true;
}

bool CudaDevice::synchronize() {
  uint32_t stream = 0; // those before it are done
  for (uint32_t looks = 0;; ++looks) {
    const DriverStatus status = state->findPending(stream);
    if (status == DriverStatus::Success)
      break;
    if (status != DriverStatus::NotReady)
      return state->reportStream(status, stream);
    if (isAborted())
      return false;
    if (looks < kSpins)
      continue;
    // Every stream and every communicator: an error does not wait for the one that is looked at.
    if (!poll())
      return false;
    std::this_thread::sleep_for(kPause);
  }
  for (std::atomic<uint32_t> &position : state->positions)
    position.store(kNone, std::memory_order_relaxed);
  state->graphPosition.store(GraphPosition::None, std::memory_order_relaxed);
  state->progress.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void CudaDevice::endStep() { state->driver.ctxSetCurrent(nullptr); }

void CudaDevice::abort() { state->aborted.store(true, std::memory_order_release); }

DevicePosition CudaDevice::getPosition() const {
  DevicePosition position;
  position.progress = state->progress.load(std::memory_order_relaxed);
  position.graph = state->graphPosition.load(std::memory_order_relaxed);
  for (const std::atomic<uint32_t> &at : state->positions)
    position.streams.push_back(at.load(std::memory_order_relaxed));
  return position;
}

} // namespace dualpipe::runtime::cuda
