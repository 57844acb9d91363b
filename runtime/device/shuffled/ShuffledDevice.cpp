//===- ShuffledDevice.cpp - one rank's ends of the shuffled order -----------===//

#include "dualpipe/Runtime/ShuffledDevice.h"
#include "ShuffledState.h"

#include "dualpipe/Runtime/AlignedBuffer.h"

#include <fmt/format.h>

#include <algorithm>

namespace dualpipe::runtime {

using program::CommandOp;
using program::kNone;
using program::StreamKind;

class ShuffledDevice : public Device {
public:
  ShuffledDevice(ShuffledHub::State &hub, const program::RankProgram &rank, uint32_t firstStream)
      : hub(hub), rank(rank), firstStream(firstStream), lastRecord(rank.numEvents, kNever) {}

  Result<void *> allocate(size_t bytes) override;
  Status beginStep() override;
  Status launch(uint32_t stream, uint32_t command, LaunchFunction function, void *context) override;
  Status record(uint32_t stream, uint32_t command, uint32_t event) override;
  Status wait(uint32_t stream, uint32_t command, uint32_t event) override;
  bool synchronize() override { return hub.runAll(); }
  void abort() override { hub.hasFailed = true; }
  DevicePosition getPosition() const override;

private:
  static constexpr size_t kNever = ~size_t(0);

  ShuffledHub::State &hub;
  const program::RankProgram &rank;
  const uint32_t firstStream; ///< of the rank, among those of the hub
  std::vector<AlignedBuffer> memory;
  std::vector<size_t> lastRecord; ///< by event: the last one issued in this step, or kNever
  uint64_t numIssued = 0;
};

Result<void *> ShuffledDevice::allocate(size_t bytes) {
  AlignedBuffer buffer(bytes);
  if (!buffer.ok())
    return Status::failure(
        fmt::format("rank {} has not enough memory for {} bytes", rank.rank, bytes));
  memory.push_back(std::move(buffer));
  return memory.back().data();
}

Status ShuffledDevice::beginStep() {
  std::fill(lastRecord.begin(), lastRecord.end(), kNever);
  return Status::success();
}

/// The members of a pair come one by one, in an order of their own.
Status ShuffledDevice::launch(uint32_t stream, uint32_t command, LaunchFunction function,
                              void *context) {
  std::vector<uint32_t> members = {command};
  if (const program::Command &pair = rank.commands[command]; pair.op == CommandOp::Pair) {
    members.clear();
    for (uint32_t i = 0; i != pair.arg; ++i)
      members.insert(members.begin() + ptrdiff_t(hub.dice.below(i + 1)), command + 1 + i);
  }
  for (uint32_t member : members)
    hub.add(firstStream + stream,
            {.op = CommandOp::Launch, .command = member, .function = function, .context = context});
  return Status::success();
}

Status ShuffledDevice::record(uint32_t stream, uint32_t command, uint32_t event) {
  lastRecord[event] = hub.recorded.size();
  hub.recorded.push_back(false);
  hub.add(firstStream + stream,
          {.op = CommandOp::Record, .command = command, .target = lastRecord[event]});
  return Status::success();
}

Status ShuffledDevice::wait(uint32_t stream, uint32_t command, uint32_t event) {
  if (lastRecord[event] != kNever)
    hub.add(firstStream + stream,
            {.op = CommandOp::Wait, .command = command, .target = lastRecord[event]});
  return Status::success();
}

DevicePosition ShuffledDevice::getPosition() const {
  DevicePosition position;
  for (size_t i = 0; i != rank.streams.size(); ++i) {
    const std::deque<ShuffledTask> &tasks = hub.streams[firstStream + i].tasks;
    position.streams.push_back(tasks.empty() ? kNone : tasks.front().command);
    position.progress -= tasks.size(); // wraps: only its growth means anything
  }
  return position;
}

class ShuffledTransport : public Transport {
public:
  ShuffledTransport(ShuffledHub::State &hub, uint32_t firstStream)
      : hub(hub), firstStream(firstStream) {}

  Status send(uint32_t stream, uint32_t command, uint32_t channel, const void *data,
              size_t bytes) override {
    // Tasks have one pointer for both directions; a sent buffer is only read.
    hub.add(firstStream + stream, {.op = CommandOp::Send,
                                   .command = command,
                                   .target = channel,
                                   .data = const_cast<void *>(data),
                                   .bytes = bytes,
                                   .eager = hub.dice.below(2) < hub.eagerSends});
    return Status::success();
  }
  Status recv(uint32_t stream, uint32_t command, uint32_t channel, void *data,
              size_t bytes) override {
    hub.add(firstStream + stream, {.op = CommandOp::Recv,
                                   .command = command,
                                   .target = channel,
                                   .data = data,
                                   .bytes = bytes});
    return Status::success();
  }
  Status reduce(uint32_t stream, uint32_t command, uint32_t group, StageCopy &copy) override {
    hub.add(firstStream + stream,
            {.op = CommandOp::Reduce, .command = command, .target = group, .copy = &copy});
    return Status::success();
  }

private:
  ShuffledHub::State &hub;
  const uint32_t firstStream;
};

ShuffledHub::ShuffledHub(const program::SharedInfo &shared, FailureSink &failures, uint64_t seed)
    : state(std::make_unique<State>(shared, failures, seed)) {}
ShuffledHub::~ShuffledHub() = default;

bool ShuffledHub::isStuck() const { return state->stuck; }

ShuffledHub::Rank ShuffledHub::connect(const program::RankProgram &rank) {
  const uint32_t firstStream = uint32_t(state->streams.size());
  for (const program::Stream &stream : rank.streams) {
    const uint32_t number = uint32_t(state->streams.size());
    if (stream.kind == StreamKind::Recv)
      state->receivers[stream.target] = number;
    else if (stream.kind == StreamKind::Reduce)
      state->members[stream.target].push_back(number); // in the order of the ranks
    state->streams.push_back({rank.rank, {}, state->dice.draw()});
  }
  return {std::make_unique<ShuffledDevice>(*state, rank, firstStream),
          std::make_unique<ShuffledTransport>(*state, firstStream)};
}

} // namespace dualpipe::runtime
