//===- Simulation.cpp - a program in virtual time ---------------------------===//
//
// Each rank's list is walked in the order in which the host issues it. A command
// starts when its stream is free and what it waits for has ended, so its time
// follows from the times of earlier commands of the list and, for a transfer or a
// reduction, of its other ends. A rank that comes to one whose other ends are not
// there yet stands there until the last of them comes. By D3 no rank stands for
// ever. Nothing in this depends on which rank is walked first: no clock, no queue
// of things to happen, and a rank's list is read once, from front to back.
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Runtime/Simulation.h"

#include "Contention.h"
#include "CostTables.h"
#include "RunBook.h"

#include "dualpipe/Program/Verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

namespace dualpipe::runtime {

using program::Command;
using program::CommandOp;
using program::Function;
using program::kNone;
using program::Launch;
using program::RankProgram;
using program::SlotKind;
using program::StreamKind;

namespace {

/// The two directions in which values flow. In a pair that starts separately, what
/// flows in one direction concerns the members of that direction only.
enum Direction { kActivations, kGradients, kNumDirections };

/// How far a stream has come.
struct StreamState {
  Clock next; ///< the next transfer may start
  Clock done; ///< all that was begun is complete
  /// With separate starts, on a compute stream: what has been waited for since the
  /// last compute and concerns one direction only, and the ends of the pair just run.
  Clock waits[kNumDirections];
  Clock results[kNumDirections];
};

/// A rank's list, how far it has been walked, and what the rank holds.
struct RankState {
  uint32_t at = 0;
  std::vector<StreamState> streams;
  std::vector<Ticks> events;
  std::vector<uint32_t> eventBy;                               ///< with kept times
  std::vector<std::array<Clock, kNumDirections>> eventResults; ///< with separate starts
  HeldWork held;
};

/// A channel, at one end of which a rank may stand.
struct ChannelState {
  Clock free;                ///< the next transfer may start
  uint32_t standing = kNone; ///< the rank that stands here
  bool standsAtSend = false;
};

/// A reduce group and the ranks that stand at its next reduction.
struct GroupState {
  std::vector<uint32_t> standing;
  Clock last;
};

class Simulator {
public:
  Simulator(const program::Program &program, const SimulationCosts &costs, const CostTables &tables,
            bool keepTimes, const OnProgress &onProgress);
  Result<Simulation> run();

private:
  bool separate() const { return costs.pairStart == PairStart::Separate; }
  /// Whether results of a pair are there at different times.
  bool byDirection() const { return separate() || costs.hasOffsets(); }
  std::optional<Direction> getDirection(uint32_t rank, uint32_t command) const;
  const Launch &getLaunch(uint32_t rank, uint32_t command) const {
    const RankProgram &own = program.ranks[rank];
    return own.launches[own.commands[command].arg];
  }

  void walk(uint32_t rank);
  bool runCommand(uint32_t rank);
  bool runTransfer(uint32_t rank, const program::Transfer &transfer, bool isSend);
  bool runReduction(uint32_t rank, const program::Reduction &reduction);
  void runLaunch(uint32_t rank, StreamState &stream);
  void runPair(uint32_t rank, StreamState &stream, uint32_t numLaunches);
  void runJointly(uint32_t rank, StreamState &stream, uint32_t numLaunches, Ticks time);
  void runSeparately(uint32_t rank, StreamState &stream, uint32_t numLaunches, Ticks time);
  void runStep(uint32_t rank, StreamState &stream, uint32_t stage);
  void record(uint32_t rank, StreamState &stream, uint32_t event);
  void wait(uint32_t rank, StreamState &stream, uint32_t event);
  void waitByDirection(uint32_t rank, StreamState &stream, uint32_t event);

  void completeTransfer(uint32_t sender, uint32_t receiver, ChannelState &channel,
                        const TransferTime &time);
  void completeReduction(GroupState &group, Ticks time);
  StreamState &getStream(uint32_t rank) {
    return states[rank].streams[program.ranks[rank].commands[states[rank].at].stream];
  }
  void count(uint32_t rank, uint32_t first, uint32_t numLaunches) {
    states[rank].held.count(program, rank, first, numLaunches, result.ranks[rank]);
  }
  void addCompute(uint32_t rank, Ticks start, Ticks end, Ticks busy) {
    runtime::addCompute(result.ranks[rank], start, end, busy);
  }
  void keep(uint32_t rank, uint32_t command, Ticks start, Ticks end, CommandRef after);
  Status describeStuck() const;

  const program::Program &program;
  const SimulationCosts &costs;
  const bool keepTimes;
  ProgressCounter progress;
  const bool backwardReadsActivations;
  const CostTables &tables;
  std::vector<RankState> states;
  std::vector<ChannelState> channels;
  std::vector<GroupState> groups;
  std::vector<uint32_t> ready; ///< ranks that can go on
  Simulation result;
};

} // namespace

static bool readsActivations(const program::Contract &contract) {
  constexpr uint32_t kActivationSlots =
      (1u << unsigned(SlotKind::Input)) | (1u << unsigned(SlotKind::Output));
  return ((contract.backwardReads | contract.backwardInputReads | contract.backwardWeightReads) &
          kActivationSlots) != 0;
}

Simulator::Simulator(const program::Program &program, const SimulationCosts &costs,
                     const CostTables &tables, bool keepTimes, const OnProgress &onProgress)
    : program(program), costs(costs), keepTimes(keepTimes), progress(program, onProgress),
      backwardReadsActivations(readsActivations(program.shared.contract)), tables(tables),
      states(program.ranks.size()), channels(program.shared.channels.size()),
      groups(program.shared.reduceGroups.size()) {}

/// The direction of the channel that the stream of a command serves, if any.
std::optional<Direction> Simulator::getDirection(uint32_t rank, uint32_t command) const {
  const RankProgram &own = program.ranks[rank];
  const program::Stream &stream = own.streams[own.commands[command].stream];
  if (stream.kind != StreamKind::Send && stream.kind != StreamKind::Recv)
    return std::nullopt;
  return program.shared.channels[stream.target].kind == SlotKind::Output ? kActivations
                                                                         : kGradients;
}

//===----------------------------------------------------------------------===//
// Walking
//===----------------------------------------------------------------------===//

Result<Simulation> Simulator::run() {
  result.ranks.resize(states.size());
  result.commands.resize(keepTimes ? states.size() : 0);
  for (uint32_t rank = 0; rank != states.size(); ++rank) {
    const RankProgram &own = program.ranks[rank];
    states[rank].streams.resize(own.streams.size());
    states[rank].events.resize(own.numEvents);
    states[rank].eventBy.resize(keepTimes ? own.numEvents : 0, kNone);
    states[rank].eventResults.resize(byDirection() ? own.numEvents : 0);
    if (keepTimes)
      result.commands[rank].resize(own.commands.size());
  }
  for (uint32_t rank = 0; rank != states.size(); ++rank) {
    walk(rank);
    while (!ready.empty()) {
      const uint32_t next = ready.back();
      ready.pop_back();
      walk(next);
    }
  }
  for (uint32_t rank = 0; rank != states.size(); ++rank)
    if (states[rank].at != program.ranks[rank].commands.size())
      return describeStuck();
  return std::move(result);
}

/// Walks a rank's list until it ends or the rank has to stand somewhere.
void Simulator::walk(uint32_t rank) {
  const size_t end = program.ranks[rank].commands.size();
  const uint32_t begin = states[rank].at;
  while (states[rank].at != end && runCommand(rank))
    ++states[rank].at;
  progress.add(states[rank].at - begin);
}

/// Runs the command that a rank has come to; false where it stands there.
bool Simulator::runCommand(uint32_t rank) {
  const RankProgram &own = program.ranks[rank];
  const Command &command = own.commands[states[rank].at];
  StreamState &stream = states[rank].streams[command.stream];
  switch (command.op) {
  case CommandOp::Launch:
    runLaunch(rank, stream);
    return true;
  case CommandOp::Pair:
    runPair(rank, stream, command.arg);
    return true;
  case CommandOp::Send:
  case CommandOp::Recv:
    return runTransfer(rank, own.transfers[command.arg], command.op == CommandOp::Send);
  case CommandOp::Record:
    record(rank, stream, command.arg);
    return true;
  case CommandOp::Wait:
    wait(rank, stream, command.arg);
    return true;
  case CommandOp::Reduce:
    return runReduction(rank, own.reductions[command.arg]);
  case CommandOp::Step:
    runStep(rank, stream, command.arg);
    return true;
  case CommandOp::Group: // one stream, one channel: its transfers run one after the other
    return true;
  }
  return true;
}

void Simulator::keep(uint32_t rank, uint32_t command, Ticks start, Ticks end, CommandRef after) {
  result.makespan = std::max(result.makespan, end);
  if (keepTimes)
    result.commands[rank][command] = {start, end, after};
}

/// The first rank that stands says enough: a verified program never comes here.
Status Simulator::describeStuck() const {
  for (uint32_t rank = 0; rank != states.size(); ++rank)
    if (states[rank].at != program.ranks[rank].commands.size())
      return Status::failure(fmt::format(
          "the program cannot finish, it stands at {}",
          program::describeCommand(program.shared, program.ranks[rank], states[rank].at)));
  return Status::success();
}

//===----------------------------------------------------------------------===//
// Computes
//===----------------------------------------------------------------------===//

/// All that a compute has to wait for, of any direction.
static Clock takeWaits(StreamState &stream) {
  Clock all = stream.done;
  for (Clock &wait : stream.waits) {
    all.raise(wait);
    wait = Clock();
  }
  return all;
}

static void finishAt(StreamState &stream, const Clock &end) {
  stream.next = stream.done = end;
  for (Clock &direction : stream.results)
    direction = end;
}

void Simulator::runLaunch(uint32_t rank, StreamState &stream) {
  const uint32_t index = states[rank].at;
  const Launch &launch = getLaunch(rank, index);
  const Ticks time = tables.get(launch).time;
  const bool isLoad =
      launch.function == Function::LoadInput || launch.function == Function::LoadLabels;
  if (isLoad && time == 0)
    return keep(rank, index, stream.done.time, stream.done.time, stream.done.by);
  const Clock start = takeWaits(stream);
  const Ticks end = start.time + time;
  finishAt(stream, {end, {rank, index}});
  addCompute(rank, start.time, end, end - start.time);
  count(rank, index, 1);
  keep(rank, index, start.time, end, start.by);
}

/// The launches of a pair stand behind it.
void Simulator::runPair(uint32_t rank, StreamState &stream, uint32_t numLaunches) {
  const uint32_t first = states[rank].at + 1;
  const Ticks time = tables.getPair(program.ranks[rank], first, numLaunches).time;
  if (separate())
    runSeparately(rank, stream, numLaunches, time);
  else
    runJointly(rank, stream, numLaunches, time);
  count(rank, first, numLaunches);
  states[rank].at += numLaunches;
}

void Simulator::runJointly(uint32_t rank, StreamState &stream, uint32_t numLaunches, Ticks time) {
  const uint32_t index = states[rank].at;
  const Clock start = takeWaits(stream);
  const Ticks end = start.time + time;
  finishAt(stream, {end, {rank, index}});
  // Never later than the pair itself.
  stream.results[kActivations].time = start.time + std::min(time, costs.forwardDone.value_or(time));
  stream.results[kGradients].time = start.time + std::min(time, costs.backwardDone.value_or(time));
  addCompute(rank, start.time, end, time);
  for (uint32_t i = 0; i <= numLaunches; ++i)
    keep(rank, index + i, start.time, end, start.by);
}

/// The rank is busy for the time of the pair from the first start on, longer where a
/// member that started late takes longer.
void Simulator::runSeparately(uint32_t rank, StreamState &stream, uint32_t numLaunches,
                              Ticks time) {
  const uint32_t index = states[rank].at;
  Clock ends[kNumDirections], first;
  Ticks end = 0;
  for (uint32_t i = 1; i <= numLaunches; ++i) {
    const Launch &launch = getLaunch(rank, index + i);
    const Direction direction = launch.function == Function::Forward ? kActivations : kGradients;
    Clock start = stream.done;
    start.raise(stream.waits[direction]);
    const Ticks ownEnd = start.time + tables.get(launch).time;
    keep(rank, index + i, start.time, ownEnd, start.by);
    ends[direction].raise({ownEnd, {rank, index + i}});
    end = std::max(end, ownEnd);
    if (i == 1 || start.time < first.time)
      first = start;
  }
  end = std::max(end, first.time + time);
  takeWaits(stream);
  finishAt(stream, {end, {rank, index}});
  std::copy(ends, ends + kNumDirections, stream.results);
  addCompute(rank, first.time, end, time);
  keep(rank, index, first.time, end, first.by);
}

/// A step that takes no time waits for its reduction and delays nothing.
void Simulator::runStep(uint32_t rank, StreamState &stream, uint32_t stage) {
  const uint32_t index = states[rank].at;
  const Clock start = takeWaits(stream);
  const Ticks time = tables.getStep(stage), end = start.time + time;
  finishAt(stream, {end, {rank, index}});
  if (time != 0)
    addCompute(rank, start.time, end, time);
  keep(rank, index, start.time, end, start.by);
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

/// An event of a channel's stream concerns the channel's direction alone, one of a
/// compute stream has the results of a pair that ran just before by direction.
void Simulator::record(uint32_t rank, StreamState &stream, uint32_t event) {
  RankState &state = states[rank];
  const uint32_t index = state.at;
  keep(rank, index, stream.done.time, stream.done.time, stream.done.by);
  state.events[event] = stream.done.time;
  if (keepTimes)
    state.eventBy[event] = stream.done.by.command;
  if (!byDirection())
    return;
  std::array<Clock, kNumDirections> &results = state.eventResults[event];
  if (std::optional<Direction> direction = getDirection(rank, index))
    results[*direction] = stream.done;
  else
    std::copy(stream.results, stream.results + kNumDirections, results.begin());
}

void Simulator::wait(uint32_t rank, StreamState &stream, uint32_t event) {
  const RankState &state = states[rank];
  const uint32_t index = state.at;
  if (byDirection())
    waitByDirection(rank, stream, event);
  else {
    const Clock reached{state.events[event], {rank, keepTimes ? state.eventBy[event] : kNone}};
    stream.next.raise(reached);
    stream.done.raise(reached);
  }
  keep(rank, index, stream.done.time, stream.done.time, stream.done.by);
}

void Simulator::waitByDirection(uint32_t rank, StreamState &stream, uint32_t event) {
  const RankState &state = states[rank];
  const Command &command = program.ranks[rank].commands[state.at];
  const std::array<Clock, kNumDirections> &results = state.eventResults[event];
  const StreamKind kind = program.ranks[rank].streams[command.stream].kind;
  const std::optional<Direction> own = getDirection(rank, state.at);
  for (Direction direction : {kActivations, kGradients}) {
    if (kind == StreamKind::Compute) {
      stream.waits[direction].raise(results[direction]);
      continue;
    }
    // A slot of an activation may be read by the backward too.
    const bool concerns =
        !own || *own == direction || (kind == StreamKind::Recv && backwardReadsActivations);
    if (!concerns)
      continue;
    stream.next.raise(results[direction]);
    stream.done.raise(results[direction]);
  }
}

//===----------------------------------------------------------------------===//
// Transfers and reductions
//===----------------------------------------------------------------------===//

/// The first end stands, the second completes the transfer for both.
bool Simulator::runTransfer(uint32_t rank, const program::Transfer &transfer, bool isSend) {
  ChannelState &state = channels[transfer.channel];
  if (state.standing == kNone || state.standsAtSend == isSend) {
    state.standing = rank;
    state.standsAtSend = isSend;
    return false;
  }
  const uint32_t other = std::exchange(state.standing, kNone);
  completeTransfer(isSend ? rank : other, isSend ? other : rank, state, tables.get(transfer));
  ++states[other].at;
  ready.push_back(other);
  return true;
}

void Simulator::completeTransfer(uint32_t sender, uint32_t receiver, ChannelState &channel,
                                 const TransferTime &time) {
  StreamState &sends = getStream(sender), &receives = getStream(receiver);
  Clock start = sends.next;
  start.raise(receives.next);
  start.raise(channel.free);
  const Ticks free = start.time + time.occupancy;
  const Ticks end = free + time.latency;
  channel.free = {free, {sender, states[sender].at}};
  for (uint32_t rank : {sender, receiver}) {
    StreamState &stream = getStream(rank);
    const CommandRef self{rank, states[rank].at};
    stream.next = {free, self};
    // Times of one stream never go back: the later of two equal ones is the cause.
    if (end >= stream.done.time)
      stream.done = {end, self};
    keep(rank, self.command, start.time, end, start.by);
  }
  ++result.ranks[sender].sends;
}

bool Simulator::runReduction(uint32_t rank, const program::Reduction &reduction) {
  GroupState &state = groups[reduction.group];
  state.standing.push_back(rank);
  state.last.raise(getStream(rank).done);
  if (state.standing.size() != program.shared.reduceGroups[reduction.group].ranks.size())
    return false;
  completeReduction(state, tables.get(reduction));
  // The last to come goes on by itself.
  state.standing.pop_back();
  for (uint32_t other : state.standing) {
    ++states[other].at;
    ready.push_back(other);
  }
  state.standing.clear();
  state.last = Clock();
  return true;
}

void Simulator::completeReduction(GroupState &group, Ticks time) {
  const Ticks end = group.last.time + time;
  for (uint32_t rank : group.standing) {
    const CommandRef self{rank, states[rank].at};
    finishAt(getStream(rank), {end, self});
    keep(rank, self.command, group.last.time, end, group.last.by);
  }
}

Result<Simulation> simulate(const program::Program &program, const SimulationCosts &costs,
                            bool keepTimes, const OnProgress &onProgress) {
  const CostTables tables(program, costs);
  if (Status status = tables.check(); !status)
    return status;
  if (costs.hasContention())
    return simulateContention(program, costs, tables, keepTimes, onProgress);
  return Simulator(program, costs, tables, keepTimes, onProgress).run();
}

} // namespace dualpipe::runtime
