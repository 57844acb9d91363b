//===- ProgramWalk.h - what a compiled program takes in virtual time --------===//
//
// Walks the commands of all ranks of a program with given times: streams in
// order, events, rendezvous channels. It knows nothing of the schedule, so what
// it finds can be compared with what the schedule allows.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_TEST_SUPPORT_PROGRAMWALK_H
#define DUALPIPE_TEST_SUPPORT_PROGRAMWALK_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Schedule/OpKind.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dualpipe::test {

/// What a stage function does in the words of a schedule.
inline OpKind toKind(program::Function function) {
  switch (function) {
  case program::Function::Forward:
    return OpKind::Forward;
  case program::Function::BackwardInput:
    return OpKind::BackwardInput;
  case program::Function::BackwardWeight:
    return OpKind::BackwardWeight;
  default:
    return OpKind::Backward;
  }
}

struct WalkCosts {
  /// Time of the launches [first, first + count) of a rank, which run as one.
  std::function<int64_t(uint32_t rank, const program::Launch *first, size_t count)> compute;
  /// From the start of a transfer to its data's arrival.
  int64_t latency = 0;
  /// Whether a channel is busy for the whole latency or can have the next
  /// transfer under way.
  bool latencyOccupiesChannel = false;
};

struct WalkResult {
  int64_t makespan = 0; ///< end of the last launch
  std::string stuck;    ///< where the walk cannot go on; empty where it finished
};

class ProgramWalk {
public:
  ProgramWalk(const program::Program &program, const WalkCosts &costs)
      : program(program), costs(costs) {}

  WalkResult run();

private:
  /// A stream's commands and how far it has come. The next transfer may begin at
  /// `next`; all that was begun is complete at `done`.
  struct StreamState {
    std::vector<uint32_t> commands;
    size_t at = 0;
    int64_t next = 0, done = 0;
  };
  struct ChannelState {
    std::optional<int64_t> sender, receiver;       ///< when that end arrived
    bool senderLeft = false, receiverLeft = false; ///< the transfer under way
    int64_t free = 0;
    int64_t begin = 0;
  };
  struct GroupState {
    size_t arrived = 0, left = 0;
    int64_t time = 0;
    std::vector<bool> isHere;
  };

  bool advance(uint32_t rank, StreamState &stream);
  bool transfer(const program::RankProgram &rank, StreamState &stream, uint32_t index, bool isSend);
  bool reduce(const program::RankProgram &rank, StreamState &stream, uint32_t index);
  void launch(uint32_t rank, StreamState &stream, uint32_t first, size_t count);

  const program::Program &program;
  const WalkCosts &costs;
  std::vector<std::vector<StreamState>> streams;
  std::vector<std::vector<std::optional<int64_t>>> events;
  std::vector<ChannelState> channels;
  std::vector<GroupState> groups;
  int64_t makespan = 0;
};

inline WalkResult ProgramWalk::run() {
  channels.resize(program.shared.channels.size());
  for (const program::ReduceGroup &group : program.shared.reduceGroups)
    groups.emplace_back().isHere.resize(group.ranks.size());
  for (const program::RankProgram &rank : program.ranks) {
    streams.emplace_back(rank.streams.size());
    events.emplace_back(rank.numEvents);
    for (uint32_t i = 0; i != rank.commands.size(); ++i)
      streams.back()[rank.commands[i].stream].commands.push_back(i);
  }
  for (bool progress = true; progress;) {
    progress = false;
    for (uint32_t rank = 0; rank != streams.size(); ++rank)
      for (StreamState &stream : streams[rank])
        while (stream.at != stream.commands.size() && advance(rank, stream))
          progress = true;
  }
  WalkResult result{makespan, ""};
  for (uint32_t rank = 0; rank != streams.size(); ++rank)
    for (size_t s = 0; s != streams[rank].size(); ++s)
      if (streams[rank][s].at != streams[rank][s].commands.size())
        result.stuck += "rank " + std::to_string(rank) + " stream " + std::to_string(s) +
                        " command " +
                        std::to_string(streams[rank][s].commands[streams[rank][s].at]) + "\n";
  return result;
}

/// Runs the stream's next command; false where it has to wait.
inline bool ProgramWalk::advance(uint32_t rank, StreamState &stream) {
  const program::RankProgram &self = program.ranks[rank];
  const program::Command &command = self.commands[stream.commands[stream.at]];
  switch (command.op) {
  case program::CommandOp::Launch:
    launch(rank, stream, command.arg, 1);
    break;
  case program::CommandOp::Pair:
    launch(rank, stream, self.commands[stream.commands[stream.at + 1]].arg, command.arg);
    stream.at += command.arg;
    break;
  case program::CommandOp::Send:
  case program::CommandOp::Recv:
    if (!transfer(self, stream, command.arg, command.op == program::CommandOp::Send))
      return false;
    break;
  case program::CommandOp::Record:
    events[rank][command.arg] = stream.done;
    break;
  case program::CommandOp::Wait: {
    std::optional<int64_t> event = events[rank][command.arg];
    if (!event)
      return false;
    stream.next = std::max(stream.next, *event);
    stream.done = std::max(stream.done, *event);
    break;
  }
  case program::CommandOp::Reduce:
    if (!reduce(self, stream, command.arg))
      return false;
    break;
  case program::CommandOp::Group:
  case program::CommandOp::Step:
    break;
  }
  ++stream.at;
  return true;
}

inline void ProgramWalk::launch(uint32_t rank, StreamState &stream, uint32_t first, size_t count) {
  const program::Launch *launches = &program.ranks[rank].launches[first];
  bool isLoad = launches->function == program::Function::LoadInput ||
                launches->function == program::Function::LoadLabels;
  if (isLoad)
    return;
  stream.done = std::max(stream.next, stream.done) + costs.compute(rank, launches, count);
  stream.next = stream.done;
  makespan = std::max(makespan, stream.done);
}

inline bool ProgramWalk::transfer(const program::RankProgram &rank, StreamState &stream,
                                  uint32_t index, bool isSend) {
  ChannelState &channel = channels[rank.transfers[index].channel];
  std::optional<int64_t> &mine = isSend ? channel.sender : channel.receiver;
  bool &mineLeft = isSend ? channel.senderLeft : channel.receiverLeft;
  bool &otherLeft = isSend ? channel.receiverLeft : channel.senderLeft;
  if (mineLeft)
    return false; // the other end has yet to leave the transfer before
  if (!mine)
    mine = stream.next;
  if (!channel.sender || !channel.receiver)
    return false;
  if (!otherLeft) {
    channel.begin = std::max({*channel.sender, *channel.receiver, channel.free});
    channel.free = channel.begin + (costs.latencyOccupiesChannel ? costs.latency : 0);
  }
  stream.next = channel.free;
  stream.done = std::max(stream.done, channel.begin + costs.latency);
  mineLeft = true;
  if (otherLeft) {
    channel.sender.reset();
    channel.receiver.reset();
    channel.senderLeft = channel.receiverLeft = false;
  }
  return true;
}

inline bool ProgramWalk::reduce(const program::RankProgram &rank, StreamState &stream,
                                uint32_t index) {
  uint32_t id = rank.reductions[index].group;
  GroupState &group = groups[id];
  const std::vector<uint32_t> &members = program.shared.reduceGroups[id].ranks;
  size_t me = std::find(members.begin(), members.end(), rank.rank) - members.begin();
  if (!group.isHere[me]) {
    if (group.left != 0)
      return false; // the previous reduction of the group is not over
    group.isHere[me] = true;
    group.time = std::max(group.time, stream.done);
    ++group.arrived;
  }
  if (group.arrived != members.size())
    return false;
  stream.next = stream.done = group.time;
  group.isHere[me] = false;
  if (++group.left == members.size()) {
    group.left = group.arrived = 0;
    group.time = 0;
  }
  return true;
}

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_SUPPORT_PROGRAMWALK_H
