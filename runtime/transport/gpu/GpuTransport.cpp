//===- GpuTransport.cpp - channels between ranks on one GPU --------------------===//

#include "dualpipe/Runtime/Cuda/GpuTransport.h"

#include "runtime/transport/ChannelSequences.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace dualpipe::runtime::cuda {

using program::kNone;

/// How often a host thread that waits for another one looks whether the run has failed.
static constexpr std::chrono::milliseconds kLook{1};

namespace {

/// A rank that has come to a transfer or reduction. `ready` has been recorded on its stream; it
/// goes on once `done` is set, an event of the rank that came last.
struct Arrival {
  Stream stream = nullptr;
  Event ready = nullptr;
  Event done = nullptr;
  bool released = false;
  std::string failure;  ///< of whoever came last
  void *data = nullptr; ///< of a transfer
  size_t bytes = 0;
  bool isSend = false;
  StageCopy *copy = nullptr; ///< of a reduction
};

/// Where the host threads of a channel or of a reduction meet. Its ends come in any order, each
/// once, before the first of them comes again.
struct Meeting {
  explicit Meeting(size_t numMembers) : arrivals(numMembers, nullptr) {}

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Arrival *> arrivals; ///< by member; null where it is not here
  size_t numHere = 0;
};

/// A rank's own events at a meeting. They are recorded again the next time: by then everybody has
/// put his waits for them on his stream, since he had to come again.
struct End {
  Meeting *meeting;
  uint32_t member;
  OwnedEvent ready, done;
};

class GpuTransport : public Transport {
public:
  GpuTransport(CudaDevice &device, SumFunction sum) : device(device), sum(std::move(sum)) {}
  ~GpuTransport() override {
    const ContextScope scope(device.getGpu()); // for the events
    channels.clear();
    reductions.clear();
  }

  Status send(uint32_t stream, uint32_t command, uint32_t channel, const void *data,
              size_t bytes) override {
    // Arrivals have one pointer for both directions; a sent buffer is only read.
    return transfer(stream, command, channel, const_cast<void *>(data), bytes, true);
  }
  Status recv(uint32_t stream, uint32_t command, uint32_t channel, void *data,
              size_t bytes) override {
    return transfer(stream, command, channel, data, bytes, false);
  }
  Status reduce(uint32_t stream, uint32_t command, uint32_t group, StageCopy &copy) override;

  Status addChannel(uint32_t channel, Meeting &meeting, uint32_t member) {
    return add(channels, channel, meeting, member);
  }
  Status addReduction(uint32_t group, Meeting &meeting, uint32_t member) {
    return add(reductions, group, meeting, member);
  }

private:
  using Ends = std::map<uint32_t, End>;

  Status add(Ends &ends, uint32_t number, Meeting &meeting, uint32_t member);
  Status transfer(uint32_t stream, uint32_t command, uint32_t channel, void *data, size_t bytes,
                  bool isSend);
  Status meet(uint32_t command, End &end, Arrival &mine);
  Status waitForLast(uint32_t command, End &end, Arrival &mine, std::unique_lock<std::mutex> &lock);
  Status completeAll(End &end, Arrival &mine);
  Status copy(Arrival &mine, const Arrival &other);
  Status checkCall(DriverStatus status, const char *name) {
    return check(device.getDriver(), status, name);
  }

  CudaDevice &device;
  SumFunction sum;
  Ends channels, reductions;
};

} // namespace

Status GpuTransport::add(Ends &ends, uint32_t number, Meeting &meeting, uint32_t member) {
  Result<OwnedEvent> ready = OwnedEvent::create(device.getDriver());
  if (!ready.ok())
    return ready.getStatus();
  Result<OwnedEvent> done = OwnedEvent::create(device.getDriver());
  if (!done.ok())
    return done.getStatus();
  ends.emplace(number, End{&meeting, member, std::move(*ready), std::move(*done)});
  return Status::success();
}

Status GpuTransport::transfer(uint32_t stream, uint32_t command, uint32_t channel, void *data,
                              size_t bytes, bool isSend) {
  Arrival mine;
  mine.stream = device.getStream(stream);
  mine.data = data;
  mine.bytes = bytes;
  mine.isSend = isSend;
  return meet(command, channels.find(channel)->second, mine);
}

Status GpuTransport::reduce(uint32_t stream, uint32_t command, uint32_t group, StageCopy &copy) {
  Arrival mine;
  mine.stream = device.getStream(stream);
  mine.copy = &copy;
  return meet(command, reductions.find(group)->second, mine);
}

/// The last one puts the work on its stream; the others' streams wait for it.
Status GpuTransport::meet(uint32_t command, End &end, Arrival &mine) {
  Meeting &meeting = *end.meeting;
  mine.ready = end.ready.get();
  std::unique_lock lock(meeting.mutex);
  const bool isLast = meeting.numHere + 1 == meeting.arrivals.size();
  if (!isLast) {
    if (Status status =
            checkCall(device.getDriver().eventRecord(mine.ready, mine.stream), "cuEventRecord");
        !status.ok())
      return status;
    meeting.arrivals[end.member] = &mine;
    ++meeting.numHere;
    return waitForLast(command, end, mine, lock);
  }
  meeting.arrivals[end.member] = &mine;
  Status status = completeAll(end, mine);
  for (Arrival *&arrival : meeting.arrivals) {
    arrival->done = end.done.get();
    if (!status.ok())
      arrival->failure = status.message();
    arrival->released = true;
    arrival = nullptr;
  }
  meeting.numHere = 0;
  meeting.changed.notify_all();
  return status;
}

Status GpuTransport::waitForLast(uint32_t command, End &end, Arrival &mine,
                                 std::unique_lock<std::mutex> &lock) {
  Meeting &meeting = *end.meeting;
  while (!meeting.changed.wait_for(lock, kLook, [&] { return mine.released; })) {
    lock.unlock();
    const bool good = device.poll();
    lock.lock();
    if (good || mine.released)
      continue;
    meeting.arrivals[end.member] = nullptr;
    --meeting.numHere;
    return Status::failure(
        fmt::format("command {} was stopped while it waited for another rank", command));
  }
  if (!mine.failure.empty()) // whichever of the two reports first, it names the cause
    return Status::failure(
        fmt::format("command {} failed at its other end: {}", command, mine.failure));
  return checkCall(device.getDriver().streamWaitEvent(mine.stream, mine.done, 0),
                   "cuStreamWaitEvent");
}

/// With the meeting's lock: the others stand still meanwhile.
Status GpuTransport::completeAll(End &end, Arrival &mine) {
  const DriverApi &driver = device.getDriver();
  std::vector<StageCopy *> copies;
  for (Arrival *other : end.meeting->arrivals) {
    copies.push_back(other->copy);
    if (other == &mine)
      continue;
    if (Status status =
            checkCall(driver.streamWaitEvent(mine.stream, other->ready, 0), "cuStreamWaitEvent");
        !status.ok())
      return status;
    if (!mine.copy)
      if (Status status = copy(mine, *other); !status.ok())
        return status;
  }
  if (mine.copy)
    if (Status status = sum(mine.stream, copies); !status.ok())
      return status;
  return checkCall(driver.eventRecord(end.done.get(), mine.stream), "cuEventRecord");
}

Status GpuTransport::copy(Arrival &mine, const Arrival &other) {
  if (mine.bytes != other.bytes)
    return Status::failure(fmt::format("a transfer has {} bytes at one end and {} at the other",
                                       mine.bytes, other.bytes));
  if (mine.bytes == 0)
    return Status::success();
  const auto to = reinterpret_cast<DevicePointer>(mine.isSend ? other.data : mine.data);
  const auto from = reinterpret_cast<DevicePointer>(mine.isSend ? mine.data : other.data);
  return checkCall(device.getDriver().memcpyDtoDAsync(to, from, mine.bytes, mine.stream),
                   "cuMemcpyDtoDAsync");
}

struct GpuHub::State {
  explicit State(const program::SharedInfo &shared) : shared(shared), sequences(shared) {
    for (size_t i = 0; i != shared.channels.size(); ++i)
      channels.emplace_back(2);
    for (const program::ReduceGroup &group : shared.reduceGroups)
      reductions.emplace_back(group.ranks.size());
  }

  const program::SharedInfo &shared;
  ChannelSequences sequences;
  std::deque<Meeting> channels, reductions;
  std::optional<int> gpu; ///< of the ranks so far
};

GpuHub::GpuHub(const program::SharedInfo &shared) : state(std::make_unique<State>(shared)) {}
GpuHub::~GpuHub() = default;

Result<std::unique_ptr<Transport>> GpuHub::connect(const program::RankProgram &rank,
                                                   CudaDevice &device, SumFunction sum) {
  const program::SharedInfo &shared = state->shared;
  const int gpu = device.getGpu().getOrdinal();
  if (state->gpu.value_or(gpu) != gpu)
    return Status::failure(
        fmt::format("rank {} is on GPU {} and others are on GPU {}: without NCCL "
                    "all ranks must be on one GPU",
                    rank.rank, gpu, *state->gpu));
  state->gpu = gpu;
  if (Status status = state->sequences.add(rank); !status.ok())
    return status;
  const ContextScope scope(device.getGpu());
  if (!scope.getStatus().ok())
    return scope.getStatus();
  auto transport = std::make_unique<GpuTransport>(device, std::move(sum));
  for (uint32_t i = 0; i != shared.channels.size(); ++i) {
    const program::Channel &channel = shared.channels[i];
    if (channel.source != rank.rank && channel.destination != rank.rank)
      continue;
    const uint32_t member = channel.source == rank.rank ? 0 : 1;
    if (Status status = transport->addChannel(i, state->channels[i], member); !status.ok())
      return status;
  }
  for (uint32_t i = 0; i != shared.reduceGroups.size(); ++i) {
    const uint32_t member = findMember(shared.reduceGroups[i], rank.rank);
    if (member == kNone)
      continue;
    if (Status status = transport->addReduction(i, state->reductions[i], member); !status.ok())
      return status;
  }
  return std::unique_ptr<Transport>(std::move(transport));
}

} // namespace dualpipe::runtime::cuda
