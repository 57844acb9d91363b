//===- ShuffledState.cpp - what may run now, and which of it does -----------===//

#include "ShuffledState.h"

#include "dualpipe/Runtime/Numerics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace dualpipe::runtime {

using program::CommandOp;
using program::kNone;

/// An even choice alone would seldom hold a stream back for long, which is what it takes to see
/// that something waits for the wrong event.
static constexpr size_t kPicksPerDraw[] = {1, 8, 64};

ShuffledHub::State::State(const program::SharedInfo &shared, FailureSink &failures, uint64_t seed)
    : shared(shared), failures(failures), dice(seed),
      picksPerDraw(kPicksPerDraw[dice.below(std::size(kPicksPerDraw))]),
      eagerSends(unsigned(dice.below(3))), inFlight(shared.channels.size()),
      receivers(shared.channels.size(), kNone), members(shared.reduceGroups.size()) {}

void ShuffledHub::State::add(uint32_t stream, ShuffledTask task) {
  streams[stream].tasks.push_back(std::move(task));
}

/// Whether the receiver of a channel stands at a receive that has nothing coming yet.
bool ShuffledHub::State::isExpected(uint32_t channel) const {
  if (receivers[channel] == kNone || !inFlight[channel].empty())
    return false;
  const std::deque<ShuffledTask> &tasks = streams[receivers[channel]].tasks;
  return !tasks.empty() && tasks.front().op == CommandOp::Recv;
}

bool ShuffledHub::State::hasAllMembers(uint32_t group) const {
  if (members[group].size() != shared.reduceGroups[group].ranks.size())
    return false;
  return std::all_of(members[group].begin(), members[group].end(), [&](uint32_t stream) {
    const std::deque<ShuffledTask> &tasks = streams[stream].tasks;
    return !tasks.empty() && tasks.front().op == CommandOp::Reduce;
  });
}

bool ShuffledHub::State::canRun(const ShuffledTask &task) const {
  switch (task.op) {
  case CommandOp::Wait:
    return recorded[task.target];
  case CommandOp::Send:
    return task.eager || isExpected(uint32_t(task.target));
  case CommandOp::Recv:
    return !inFlight[task.target].empty();
  case CommandOp::Reduce:
    return hasAllMembers(uint32_t(task.target));
  default:
    return true;
  }
}

/// The stream of highest priority, of those whose first task can run.
size_t ShuffledHub::State::choose(const std::vector<uint32_t> &ready) {
  if (dice.below(picksPerDraw) == 0)
    for (ShuffledStream &stream : streams)
      stream.priority = dice.draw();
  return *std::max_element(ready.begin(), ready.end(), [&](uint32_t a, uint32_t b) {
    return streams[a].priority < streams[b].priority;
  });
}

bool ShuffledHub::State::runAll() {
  std::vector<uint32_t> ready;
  stuck = false;
  while (!hasFailed) {
    bool isDone = true;
    ready.clear();
    for (uint32_t i = 0; i != streams.size(); ++i) {
      if (streams[i].tasks.empty())
        continue;
      isDone = false;
      if (canRun(streams[i].tasks.front()))
        ready.push_back(i);
    }
    if (isDone)
      return true;
    if (ready.empty()) {
      stuck = true;
      return false;
    }
    if (Status status = runTask(streams[choose(ready)]); !status.ok()) {
      hasFailed = true;
      failures.fail(std::move(status));
    }
  }
  return false;
}

Status ShuffledHub::State::runTask(ShuffledStream &stream) {
  const ShuffledTask task = stream.tasks.front();
  if (task.op == CommandOp::Reduce) // takes the tasks of all members
    return runReduce(uint32_t(task.target));
  stream.tasks.pop_front();
  switch (task.op) {
  case CommandOp::Launch:
    return task.function(task.context, task.command);
  case CommandOp::Record:
    recorded[task.target] = true;
    return Status::success();
  case CommandOp::Send:
  case CommandOp::Recv:
    return runTransfer(task);
  default:
    return Status::success();
  }
}

Status ShuffledHub::State::runTransfer(const ShuffledTask &task) {
  InFlight &channel = inFlight[task.target];
  if (task.op == CommandOp::Send) {
    const auto *bytes = static_cast<const std::byte *>(task.data);
    channel.emplace_back(bytes, bytes + task.bytes);
    return Status::success();
  }
  const std::vector<std::byte> data = std::move(channel.front());
  channel.pop_front();
  if (data.size() != task.bytes)
    return Status::failure(fmt::format("{} bytes arrived on channel {}, expected {}", data.size(),
                                       task.target, task.bytes));
  if (task.bytes != 0)
    std::memcpy(task.data, data.data(), task.bytes);
  return Status::success();
}

/// At one moment for all members: whatever is not ordered with one of them comes before or after.
Status ShuffledHub::State::runReduce(uint32_t group) {
  std::vector<StageCopy *> copies;
  for (uint32_t stream : members[group]) {
    copies.push_back(streams[stream].tasks.front().copy);
    streams[stream].tasks.pop_front();
  }
  return sumGradients(copies);
}

} // namespace dualpipe::runtime
