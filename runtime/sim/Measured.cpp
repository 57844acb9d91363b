//===- Measured.cpp - a run on a device, as a simulation shows it -----------===//
//
// A recording has begins and ends alone. What a command waited for follows from the
// program: the command before it on its stream, the events that its stream has
// waited for, the other ends of its transfer or reduction. The one that ended last is
// the cause.
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Runtime/Measured.h"

#include "RunBook.h"

#include <fmt/format.h>

#include <algorithm>

namespace dualpipe::runtime {

using program::Command;
using program::CommandOp;
using program::RankProgram;

namespace {

/// A command that has ended, and when.
struct Ended {
  Ticks time = 0;
  CommandRef by;

  void raise(const Ended &other) {
    if (!other.by.isNone() && (by.isNone() || other.time > time))
      *this = other;
  }
};

/// Fills in a `Simulation`, rank by rank, then what reaches over ranks.
class Reading {
public:
  Reading(const program::Program &program, const StepRecording &recording);
  Simulation take();

private:
  void readRank(uint32_t rank);
  void readCommand(uint32_t rank, uint32_t index, Ended &stream);
  void readMembers(uint32_t rank, uint32_t pair, uint32_t numMembers);
  void count(uint32_t rank, uint32_t index);
  void addCompute(uint32_t rank, uint32_t index);
  void addTransfer(uint32_t rank, uint32_t index, bool isSend);
  void addReduction(uint32_t rank, uint32_t index);
  uint32_t getArg(uint32_t rank, uint32_t index) const {
    return program.ranks[rank].commands[index].arg;
  }
  void joinEnds(const std::vector<std::vector<CommandRef>> &ends);
  CommandTime &at(CommandRef ref) { return result.commands[ref.rank][ref.command]; }

  const program::Program &program;
  const StepRecording &recording;
  Simulation result;
  std::vector<Ended> events;
  HeldWork held;
  /// By channel, both ends of its transfers: [2 * channel] the sends.
  std::vector<std::vector<CommandRef>> transfers;
  /// By reduce group: by reduction, its members.
  std::vector<std::vector<std::vector<CommandRef>>> reductions;
  std::vector<uint32_t> numReductions; ///< of the rank so far, by reduce group
};

} // namespace

Reading::Reading(const program::Program &program, const StepRecording &recording)
    : program(program), recording(recording), transfers(2 * program.shared.channels.size()),
      reductions(program.shared.reduceGroups.size()) {
  result.ranks.resize(program.ranks.size());
  result.commands.resize(program.ranks.size());
}

Simulation Reading::take() {
  for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
    readRank(rank);
  for (size_t channel = 0; channel != program.shared.channels.size(); ++channel) {
    std::vector<std::vector<CommandRef>> ends;
    const std::vector<CommandRef> &sends = transfers[2 * channel],
                                  &recvs = transfers[2 * channel + 1];
    for (size_t i = 0; i != std::min(sends.size(), recvs.size()); ++i)
      ends.push_back({sends[i], recvs[i]});
    joinEnds(ends);
  }
  for (const std::vector<std::vector<CommandRef>> &group : reductions)
    joinEnds(group);
  return std::move(result);
}

/// The ends of one transfer or reduction have waited for the last of what any waited for.
void Reading::joinEnds(const std::vector<std::vector<CommandRef>> &ends) {
  for (const std::vector<CommandRef> &members : ends) {
    Ended last;
    for (CommandRef member : members)
      if (const CommandRef after = at(member).after; !after.isNone())
        last.raise({at(after).end, after});
    for (CommandRef member : members)
      at(member).after = last.by;
  }
}

void Reading::addCompute(uint32_t rank, uint32_t index) {
  const CommandTime &time = result.commands[rank][index];
  const Ticks wall = time.end - time.start, own = recording.ranks[rank][index].own;
  runtime::addCompute(result.ranks[rank], time.start, time.end, own);
  result.ranks[rank].contended += wall - own;
}

/// The members of a group come to its reductions in one order (D1).
void Reading::addReduction(uint32_t rank, uint32_t index) {
  const uint32_t group = program.ranks[rank].reductions[getArg(rank, index)].group;
  const size_t number = numReductions[group]++;
  reductions[group].resize(std::max(reductions[group].size(), number + 1));
  reductions[group][number].push_back({rank, index});
}

void Reading::addTransfer(uint32_t rank, uint32_t index, bool isSend) {
  const uint32_t channel = program.ranks[rank].transfers[getArg(rank, index)].channel;
  transfers[2 * size_t(channel) + !isSend].push_back({rank, index});
  result.ranks[rank].sends += isSend;
}

/// Says what the rank has done with a command whose times are in.
void Reading::count(uint32_t rank, uint32_t index) {
  const Command &command = program.ranks[rank].commands[index];
  switch (command.op) {
  case CommandOp::Launch:
    addCompute(rank, index);
    return held.count(program, rank, index, 1, result.ranks[rank]);
  case CommandOp::Pair:
    addCompute(rank, index);
    return held.count(program, rank, index + 1, command.arg, result.ranks[rank]);
  case CommandOp::Step:
    return addCompute(rank, index);
  case CommandOp::Send:
  case CommandOp::Recv:
    return addTransfer(rank, index, command.op == CommandOp::Send);
  case CommandOp::Reduce:
    return addReduction(rank, index);
  case CommandOp::Group:
  case CommandOp::Record:
  case CommandOp::Wait:
    return;
  }
}

void Reading::readCommand(uint32_t rank, uint32_t index, Ended &stream) {
  const Command &command = program.ranks[rank].commands[index];
  CommandTime &time = result.commands[rank][index];
  switch (command.op) {
  case CommandOp::Wait:
    stream.raise(events[command.arg]);
    time = {stream.time, stream.time, stream.by};
    return;
  case CommandOp::Record:
    events[command.arg] = stream;
    time = {stream.time, stream.time, stream.by};
    return;
  case CommandOp::Group:
    time = {stream.time, stream.time, stream.by};
    return;
  default:
    const CommandSpan &span = recording.ranks[rank][index];
    time = {span.begin, span.end, stream.by};
    result.makespan = std::max(result.makespan, time.end);
    stream = {time.end, {rank, index}};
    count(rank, index);
  }
}

/// The members stand behind their pair; those of a fused function have its times.
void Reading::readMembers(uint32_t rank, uint32_t pair, uint32_t numMembers) {
  const CommandTime whole = result.commands[rank][pair];
  for (uint32_t i = pair + 1; i <= pair + numMembers; ++i) {
    const CommandSpan &span = recording.ranks[rank][i];
    result.commands[rank][i] =
        span.end == 0 ? whole : CommandTime{span.begin, span.end, whole.after};
  }
}

void Reading::readRank(uint32_t rank) {
  const RankProgram &own = program.ranks[rank];
  std::vector<Ended> streams(own.streams.size());
  events.assign(own.numEvents, Ended());
  numReductions.assign(program.shared.reduceGroups.size(), 0);
  held = HeldWork();
  result.commands[rank].resize(own.commands.size());
  for (uint32_t i = 0; i != own.commands.size(); ++i) {
    const Command &command = own.commands[i];
    readCommand(rank, i, streams[command.stream]);
    if (command.op != CommandOp::Pair)
      continue;
    readMembers(rank, i, command.arg);
    i += command.arg;
  }
}

static bool fits(const program::Program &program, const StepRecording &recording) {
  if (recording.ranks.size() != program.ranks.size())
    return false;
  for (size_t rank = 0; rank != program.ranks.size(); ++rank)
    if (recording.ranks[rank].size() != program.ranks[rank].commands.size())
      return false;
  return true;
}

Result<Simulation> readRecording(const program::Program &program, const StepRecording &recording) {
  if (recording.ranks.empty())
    return Status::failure("the recording is empty: no step was recorded");
  if (!fits(program, recording))
    return Status::failure(fmt::format("the recording of step {} is not of this program: it has "
                                       "other ranks or commands",
                                       recording.step));
  return Reading(program, recording).take();
}

} // namespace dualpipe::runtime
