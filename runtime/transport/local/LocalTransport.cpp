//===- LocalTransport.cpp - channels between ranks of one process -----------===//

#include "dualpipe/Runtime/LocalTransport.h"

#include "dualpipe/Runtime/Numerics.h"
#include "runtime/device/cpu/CpuStream.h"
#include "runtime/transport/ChannelSequences.h"

#include <atomic>
#include <cstring>
#include <deque>
#include <map>

namespace dualpipe::runtime {

namespace {

/// One transfer at a time: null, or the stream of the end that came first. Its
/// current operation says where its buffer is.
struct LocalChannel {
  std::atomic<CpuStream *> first{nullptr};
};

/// The members of a reduction as they arrive.
struct LocalReduction {
  explicit LocalReduction(size_t numMembers) : streams(numMembers), copies(numMembers) {}

  std::vector<CpuStream *> streams; ///< by member, in ascending order of rank
  std::vector<StageCopy *> copies;
  std::atomic<uint32_t> arrived{0};
};

/// One member's place in a reduction.
struct MemberEnd {
  LocalReduction *reduction = nullptr;
  uint32_t member = 0;
};

} // namespace

struct LocalHub::State {
  explicit State(const program::SharedInfo &shared)
      : shared(shared), channels(shared.channels.size()), sequences(shared) {
    for (const program::ReduceGroup &group : shared.reduceGroups)
      reductions.emplace_back(group.ranks.size());
  }

  const program::SharedInfo &shared;
  std::vector<LocalChannel> channels;
  std::deque<LocalReduction> reductions;
  ChannelSequences sequences;
};

/// Tensors without bytes have no memory.
static void copyBytes(void *to, const void *from, size_t bytes) {
  if (bytes != 0)
    std::memcpy(to, from, bytes);
}

/// When a transfer began, as far as anybody wants to know.
static int64_t getBegin(const CpuStream &stream) {
  return stream.getDevice().getRecorder() ? RankRecorder::getTime() : 0;
}

/// The command that a stream is in ends now. Its rank stands still until it goes on.
static void recordEnd(const CpuStream &stream, int64_t begin, int64_t end) {
  stream.getDevice().getRecorder()->recordTransfer(stream.getCurrent().command, begin, end);
}

/// Copies, and records that for both ends.
static void transfer(const CpuStream &sender, const CpuStream &receiver) {
  const Operation &send = sender.getCurrent();
  const int64_t begin = getBegin(sender);
  copyBytes(receiver.getCurrent().data, send.data, send.bytes);
  if (!sender.getDevice().getRecorder())
    return;
  const int64_t end = RankRecorder::getTime();
  recordEnd(sender, begin, end);
  recordEnd(receiver, begin, end);
}

static bool runSend(const Operation &operation, CpuStream &stream, Worklist &work) {
  auto &channel = *static_cast<LocalChannel *>(operation.target);
  CpuStream *receiver = nullptr;
  if (channel.first.compare_exchange_strong(receiver, &stream, std::memory_order_acq_rel))
    return false;
  // Cleared before the receiver goes on: its next receive finds the channel empty.
  channel.first.store(nullptr, std::memory_order_release);
  transfer(stream, *receiver);
  work.push(*receiver);
  return true;
}

static bool runRecv(const Operation &operation, CpuStream &stream, Worklist &work) {
  auto &channel = *static_cast<LocalChannel *>(operation.target);
  CpuStream *sender = nullptr;
  if (channel.first.compare_exchange_strong(sender, &stream, std::memory_order_acq_rel))
    return false;
  channel.first.store(nullptr, std::memory_order_release);
  transfer(*sender, stream);
  work.push(*sender);
  return true;
}

static bool runReduce(const Operation &operation, CpuStream &stream, Worklist &work) {
  const auto &end = *static_cast<MemberEnd *>(operation.target);
  LocalReduction &reduction = *end.reduction;
  const uint32_t numMembers = uint32_t(reduction.streams.size());
  reduction.streams[end.member] = &stream;
  reduction.copies[end.member] = static_cast<StageCopy *>(operation.data);
  if (reduction.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 != numMembers)
    return false;
  // The others are parked: this thread has the reduction and their gradients to itself.
  const int64_t begin = getBegin(stream);
  if (Status status = sumGradients(reduction.copies); !status.ok()) {
    stream.getDevice().getFailures().fail(std::move(status));
    return false;
  }
  if (stream.getDevice().getRecorder()) {
    const int64_t now = RankRecorder::getTime();
    for (const CpuStream *member : reduction.streams)
      recordEnd(*member, begin, now);
  }
  reduction.arrived.store(0, std::memory_order_relaxed);
  for (uint32_t member = 0; member != numMembers; ++member)
    if (member != end.member)
      work.push(*reduction.streams[member]);
  return true;
}

namespace {

class LocalTransport : public Transport {
public:
  LocalTransport(std::vector<LocalChannel> &channels, std::map<uint32_t, MemberEnd> ends,
                 CpuDevice &device)
      : channels(channels), ends(std::move(ends)), device(device) {}

  Status send(uint32_t stream, uint32_t command, uint32_t channel, const void *data,
              size_t bytes) override {
    // Operations have one pointer for both directions; a sent buffer is only read.
    device.issue(stream, {runSend, &channels[channel], const_cast<void *>(data), bytes, command});
    return Status::success();
  }
  Status recv(uint32_t stream, uint32_t command, uint32_t channel, void *data,
              size_t bytes) override {
    device.issue(stream, {runRecv, &channels[channel], data, bytes, command});
    return Status::success();
  }
  Status reduce(uint32_t stream, uint32_t command, uint32_t group, StageCopy &copy) override {
    device.issue(stream, {runReduce, &ends[group], &copy, 0, command});
    return Status::success();
  }

private:
  std::vector<LocalChannel> &channels;
  std::map<uint32_t, MemberEnd> ends; ///< by reduce group
  CpuDevice &device;
};

} // namespace

LocalHub::LocalHub(const program::SharedInfo &shared) : state(std::make_unique<State>(shared)) {}
LocalHub::~LocalHub() = default;

Result<std::unique_ptr<Transport>> LocalHub::connect(const program::RankProgram &rank,
                                                     CpuDevice &device) {
  const program::SharedInfo &shared = state->shared;
  if (Status status = state->sequences.add(rank); !status.ok())
    return status;
  std::map<uint32_t, MemberEnd> ends;
  for (uint32_t group = 0; group != shared.reduceGroups.size(); ++group)
    if (const uint32_t member = findMember(shared.reduceGroups[group], rank.rank);
        member != program::kNone)
      ends[group] = {&state->reductions[group], member};
  return std::unique_ptr<Transport>(
      std::make_unique<LocalTransport>(state->channels, std::move(ends), device));
}

} // namespace dualpipe::runtime
