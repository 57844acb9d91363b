//===- CpuDevice.cpp - the CPU as a device ----------------------------------===//

#include "dualpipe/Runtime/CpuDevice.h"
#include "CpuStream.h"

#include "dualpipe/Runtime/AlignedBuffer.h"

#include <fmt/format.h>

namespace dualpipe::runtime {

using program::CommandOp;
using program::kNone;
using program::StreamKind;

/// A command of the compute queue.
struct ComputeOperation {
  CommandOp op; ///< Launch, Record or Wait
  uint32_t stream;
  uint32_t command;
  uint32_t event;
  Device::LaunchFunction function;
  void *context;
};

struct CpuDevice::State {
  State(const program::RankProgram &rank, const CpuDeviceOptions &options)
      : rank(rank), events(rank.numEvents), thread(options.spins),
        jitter(options.jitterSeed * 1000003 + rank.rank, options.jitterMicroseconds) {}

  bool runCompute(const ComputeOperation &operation, FailureSink &failures);
  bool waitFor(Event &event);
  bool finishStreams();

  const program::RankProgram &rank;
  std::vector<AlignedBuffer> memory;
  std::vector<Event> events;
  /// By stream of the program; null for compute streams.
  std::vector<std::unique_ptr<CpuStream>> streams;
  /// By stream of the program: the command of each operation, for `getPosition`.
  std::vector<std::vector<uint32_t>> commands;
  std::vector<ComputeOperation> compute;
  std::atomic<uint32_t> computeCommand{kNone}; ///< where the compute queue is
  std::atomic<uint64_t> computeProgress{0};
  std::atomic<uint32_t> openStreams{0}; ///< streams that have not finished the step
  ComputeThread thread;
  Jitter jitter;
};

/// The commands of every stream that become operations of it, in order.
static std::vector<std::vector<uint32_t>> listCommands(const program::RankProgram &rank) {
  std::vector<std::vector<uint32_t>> commands(rank.streams.size());
  for (uint32_t i = 0; i != rank.commands.size(); ++i)
    if (rank.commands[i].op != CommandOp::Pair && rank.commands[i].op != CommandOp::Group)
      commands[rank.commands[i].stream].push_back(i);
  return commands;
}

CpuDevice::CpuDevice(const program::RankProgram &rank, FailureSink &failures,
                     const CpuDeviceOptions &options)
    : failures(failures), state(std::make_unique<State>(rank, options)) {
  state->commands = listCommands(rank);
  size_t numCompute = 0;
  for (size_t i = 0; i != rank.streams.size(); ++i) {
    state->streams.emplace_back();
    if (rank.streams[i].kind == StreamKind::Compute) {
      numCompute += state->commands[i].size();
      continue;
    }
    // One more: the operation that ends a step.
    state->streams.back() = std::make_unique<CpuStream>(
        *this, state->commands[i].size() + 1,
        Jitter((options.jitterSeed * 1000003 + rank.rank) * 1000003 + i + 1,
               options.jitterMicroseconds));
  }
  state->compute.reserve(numCompute);
}

CpuDevice::~CpuDevice() = default;

Result<void *> CpuDevice::allocate(size_t bytes) {
  AlignedBuffer buffer(bytes);
  if (!buffer.ok())
    return Status::failure(
        fmt::format("rank {} has not enough memory for {} bytes", state->rank.rank, bytes));
  state->memory.push_back(std::move(buffer));
  return state->memory.back().data();
}

Status CpuDevice::beginStep() {
  for (Event &event : state->events)
    event.reset();
  uint32_t numStreams = 0;
  for (const std::unique_ptr<CpuStream> &stream : state->streams)
    if (stream) {
      stream->begin();
      ++numStreams;
    }
  state->openStreams.store(numStreams, std::memory_order_relaxed);
  state->compute.clear();
  return Status::success();
}

void CpuDevice::issue(uint32_t stream, const Operation &operation) {
  Worklist work;
  state->streams[stream]->issue(operation, work);
  runWorklist(work);
}

Status CpuDevice::launch(uint32_t stream, uint32_t command, LaunchFunction function,
                         void *context) {
  state->compute.push_back({CommandOp::Launch, stream, command, 0, function, context});
  return Status::success();
}

static bool runRecord(const Operation &operation, CpuStream &, Worklist &work) {
  static_cast<Event *>(operation.target)->record(work);
  return true;
}

static bool runWait(const Operation &operation, CpuStream &stream, Worklist &) {
  return !static_cast<Event *>(operation.target)->park(stream);
}

Status CpuDevice::record(uint32_t stream, uint32_t command, uint32_t event) {
  if (state->streams[stream])
    issue(stream, {runRecord, &state->events[event], nullptr, 0, command});
  else
    state->compute.push_back({CommandOp::Record, stream, command, event, nullptr, nullptr});
  return Status::success();
}

Status CpuDevice::wait(uint32_t stream, uint32_t command, uint32_t event) {
  if (state->streams[stream])
    issue(stream, {runWait, &state->events[event], nullptr, 0, command});
  else
    state->compute.push_back({CommandOp::Wait, stream, command, event, nullptr, nullptr});
  return Status::success();
}

bool CpuDevice::State::waitFor(Event &event) { return !event.park(thread) || thread.sleep(); }

bool CpuDevice::State::runCompute(const ComputeOperation &operation, FailureSink &failures) {
  computeCommand.store(operation.command, std::memory_order_relaxed);
  computeProgress.store(computeProgress.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  jitter.maybePause();
  if (operation.op == CommandOp::Wait)
    return waitFor(events[operation.event]);
  if (operation.op == CommandOp::Record) {
    Worklist work;
    events[operation.event].record(work);
    runWorklist(work);
    return true;
  }
  Status status = operation.function(operation.context, operation.command);
  if (status.ok())
    return true;
  failures.fail(std::move(status));
  return false;
}

static bool runStepEnd(const Operation &operation, CpuStream &stream, Worklist &) {
  auto *openStreams = static_cast<std::atomic<uint32_t> *>(operation.target);
  auto *thread = static_cast<ComputeThread *>(operation.data);
  stream.finish();
  if (openStreams->fetch_sub(1, std::memory_order_acq_rel) == 1)
    thread->wake();
  return false;
}

bool CpuDevice::State::finishStreams() {
  bool any = false;
  for (const std::unique_ptr<CpuStream> &stream : streams) {
    if (!stream)
      continue;
    any = true;
    Worklist work;
    stream->issue({runStepEnd, &openStreams, &thread, 0, kNone}, work);
    runWorklist(work);
  }
  // The last stream to finish wakes the thread, also where that was this thread itself.
  return !any || thread.sleep();
}

bool CpuDevice::synchronize() {
  for (const ComputeOperation &operation : state->compute)
    if (state->thread.isAborted() || !state->runCompute(operation, failures))
      return false;
  state->computeCommand.store(kNone, std::memory_order_relaxed);
  return state->finishStreams();
}

void CpuDevice::abort() { state->thread.abort(); }

DevicePosition CpuDevice::getPosition() const {
  DevicePosition position;
  position.progress = state->computeProgress.load(std::memory_order_relaxed);
  for (size_t i = 0; i != state->streams.size(); ++i) {
    if (!state->streams[i]) {
      const uint32_t command = state->computeCommand.load(std::memory_order_relaxed);
      const bool here = command != kNone && state->rank.commands[command].stream == i;
      position.streams.push_back(here ? command : kNone);
      continue;
    }
    const size_t begun = state->streams[i]->getPosition();
    const std::vector<uint32_t> &commands = state->commands[i];
    position.streams.push_back(begun == 0 || begun > commands.size() ? kNone : commands[begun - 1]);
    position.progress += begun;
  }
  return position;
}

} // namespace dualpipe::runtime
