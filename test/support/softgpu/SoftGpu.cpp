//===- SoftGpu.cpp - GPUs made of software, behind the tables of CUDA -------===//

#include "Bridge.h"
#include "State.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>

namespace dualpipe::test {

using namespace softgpu;

namespace softgpu {

static std::atomic<SoftGpu::State *> current{nullptr};
static std::atomic<uint64_t> numGenerations{0};

SoftGpu::State *getCurrent() { return current.load(std::memory_order_acquire); }

std::shared_ptr<const std::string> makeName(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

/// Tells the device that a thread has ended.
namespace {
struct ThreadEnd {
  uint64_t generation = 0;
  ~ThreadEnd() {
    SoftGpu::State *state = getCurrent();
    if (!state || state->generation != generation)
      return;
    const std::lock_guard lock(state->mutex);
    const auto found = state->threads.find(std::this_thread::get_id());
    if (found == state->threads.end())
      return;
    if (found->second->groupDepth != 0)
      state->report("a host thread ends and leaves a group open (ncclGroupStart without its "
                    "ncclGroupEnd)");
    ++state->changes;
    const std::unique_ptr<HostThread> ended = std::move(found->second);
    if (ended->hasUsedGpu)
      ++state->numEnded;
    state->threads.erase(found);
    // Who started it joins it, and knows then what it knew.
    if (const auto starter = state->threads.find(state->starter); starter != state->threads.end())
      starter->second->clock.join(ended->clock);
  }
};
} // namespace

Call::Call(const char *name, Kind kind)
    : state(*getCurrent()), lock(state.mutex), thread(state.getThread()) {
  if (kind == Change)
    ++state.changes;
  const uint32_t number = ++state.calls[name];
  for (const SoftFault &planted : state.options.faults)
    if (planted.function == name && planted.number == number)
      fault = planted.status;
}

} // namespace softgpu

SoftGpu::State::State(SoftGpuOptions given)
    : options(std::move(given)), generation(++softgpu::numGenerations), dice(options.seed),
      lazy(dice.below(2) == 0), picksPerDraw(size_t(1) << dice.below(7)),
      usedBytes(size_t(options.numGpus)),
      bridge(options.spansProcesses ? std::make_unique<softgpu::Bridge>(*this) : nullptr) {}

SoftGpu::State::~State() {
  bridge.reset(); // its threads use the rest
  for (const auto &[handle, exec] : executables)
    exec->last = nullptr; // a run that has not ended keeps it
  for (SoftEvent *event : events)
    delete event;
  for (SoftComm *comm : comms)
    delete comm;
  for (const auto &[begin, allocation] : allocations)
    std::free(reinterpret_cast<void *>(begin));
}

HostThread &SoftGpu::State::getThread() {
  thread_local ThreadEnd end;
  end.generation = generation;
  std::unique_ptr<HostThread> &thread = threads[std::this_thread::get_id()];
  if (thread)
    return *thread;
  thread = std::make_unique<HostThread>();
  if (threads.size() == 1)
    starter = std::this_thread::get_id();
  else if (const auto found = threads.find(starter); found != threads.end())
    thread->clock = found->second->clock;
  return *thread;
}

void SoftGpu::State::report(std::string text) {
  if (reported.insert(text).second)
    reports.push_back(std::move(text));
}

SoftGpu::SoftGpu(SoftGpuOptions options)
    : state(std::make_unique<State>(std::move(options))),
      driver(makeDriver(state->options.driverVersion)), nccl(makeNccl(state->options.ncclVersion)),
      cublas(makeCublas(state->options.cublasVersion)) {
  State *expected = nullptr;
  if (!softgpu::current.compare_exchange_strong(expected, state.get()))
    throw std::runtime_error("there is a SoftGpu already; one at a time");
}

SoftGpu::~SoftGpu() { softgpu::current.store(nullptr); }

void SoftGpu::addKernel(SoftKernel kernel) {
  const std::lock_guard lock(state->mutex);
  const std::string name = kernel.name;
  state->kernels[name] = std::make_shared<const SoftKernel>(std::move(kernel));
}

std::vector<std::string> SoftGpu::getReports() const {
  const std::lock_guard lock(state->mutex);
  for (const auto &[id, thread] : state->threads)
    if (thread->groupDepth != 0)
      state->report("a host thread leaves a group open (ncclGroupStart without its ncclGroupEnd)");
  if (!state->captures.empty())
    state->report("a capture is never ended (cuStreamBeginCapture without its cuStreamEndCapture)");
  state->reportOrders();
  return state->reports;
}

uint64_t SoftGpu::getNumRun() const {
  const std::lock_guard lock(state->mutex);
  return state->numRun;
}

uint32_t SoftGpu::getNumCalls(const std::string &function) const {
  const std::lock_guard lock(state->mutex);
  const auto found = state->calls.find(function);
  return found == state->calls.end() ? 0 : found->second;
}

} // namespace dualpipe::test
