//===- Contention.cpp - virtual time where ranks share cores or links -------===//
//
// Who gets a core or a link depends on who else wants it at that time, so here things
// happen in the order of time: a queue has what comes next. Each stream stands at one
// command; it goes on as far as nothing has to be waited for. Without contention the
// times are those of Simulation.cpp (a test compares them).
//
//===----------------------------------------------------------------------===//

#include "Contention.h"

#include "Cores.h"
#include "RunBook.h"

#include "dualpipe/Program/Verify.h"

#include <fmt/format.h>

#include <queue>
#include <tuple>

namespace dualpipe::runtime {

using program::Command;
using program::CommandOp;
using program::Function;
using program::kNone;
using program::RankProgram;

namespace {

/// A stream of a rank, at the command that it has come to.
struct Stream {
  uint32_t rank = 0;
  uint32_t at = kNone;
  Clock next; ///< the next transfer may start
  Clock done; ///< all that was begun is complete
  /// Of the compute that it is in, or the transfer that waits for a link.
  Clock start;
  uint32_t nextWaiter = kNone; ///< at the same event
};

struct Event {
  Clock clock;
  bool isRecorded = false;
  uint32_t firstWaiter = kNone;
};

struct Channel {
  Clock free;
  uint32_t standing = kNone; ///< the stream of the end that came first
};

struct Group {
  std::vector<uint32_t> standing;
  Clock last;
};

/// What happens next, in this order at one time.
enum class Kind : uint8_t { CoresFree, ComputeEnds, TransferStarts, ComputeStarts };

struct Happening {
  Ticks time;
  Kind kind;
  uint32_t number;  ///< node, or stream
  uint32_t version; ///< of what was known of the cores of the node
  auto operator<=>(const Happening &) const = default;
};

class Contention {
public:
  Contention(const program::Program &program, const SimulationCosts &costs,
             const CostTables &tables, bool keepTimes, const OnProgress &onProgress);
  Result<Simulation> run();

private:
  void addRank(uint32_t rank);
  const Command &getCommand(const Stream &stream) const {
    return program.ranks[stream.rank].commands[stream.at];
  }
  CommandRef getRef(const Stream &stream) const { return {stream.rank, stream.at}; }
  Event &getEvent(const Stream &stream) {
    return events[firstEvent[stream.rank] + getCommand(stream).arg];
  }
  const program::Transfer &getTransfer(const Stream &stream) const {
    return program.ranks[stream.rank].transfers[getCommand(stream).arg];
  }

  void goOn(uint32_t first);
  bool runCommand(uint32_t stream);
  void step(uint32_t stream);
  void push(Ticks time, Kind kind, uint32_t number, uint32_t version = 0) {
    queue.push({time, kind, number, version});
  }
  void handle(const Happening &happening);

  bool isComputeOfNoTime(const Stream &stream) const;
  ComputeTime getTime(const Stream &stream) const;
  void startCompute(Ticks now, uint32_t stream);
  void freeCores(const Happening &happening);
  void lookAtCores(uint32_t node);
  void endCompute(Ticks now, uint32_t stream);
  void countCompute(const Stream &stream);

  bool record(uint32_t stream);
  bool wait(uint32_t stream);
  bool meet(uint32_t stream);
  bool needsLink(uint32_t channel) const;
  void startTransfer(Ticks now, uint32_t sender);
  void completeTransfer(uint32_t sender, uint32_t receiver, Clock start);
  bool reduce(uint32_t stream);
  void finish(Stream &stream, Ticks start, const Clock &end, CommandRef after);
  void keep(CommandRef ref, Ticks start, Ticks end, CommandRef after);
  Result<Simulation> describeStuck() const;

  const program::Program &program;
  const SimulationCosts &costs;
  const CostTables &tables;
  const bool keepTimes;
  ProgressCounter progress;

  std::vector<Stream> streams; ///< of all ranks, rank by rank
  std::vector<uint32_t> firstStream, firstEvent;
  std::vector<std::vector<uint32_t>> nextOnStream; ///< by rank and command
  std::vector<Event> events;
  std::vector<Channel> channels;
  std::vector<uint32_t> receivers; ///< by channel, while its transfer waits for a link
  std::vector<Group> groups;
  std::vector<HeldWork> held;
  std::vector<Cores> nodes;
  std::vector<uint32_t> versions;                       ///< by node
  std::map<std::pair<uint32_t, uint32_t>, Clock> links; ///< free, by nodes of both ends
  std::vector<uint32_t> ready;                          ///< streams that can go on
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> queue;
  Simulation result;
};

} // namespace

Contention::Contention(const program::Program &program, const SimulationCosts &costs,
                       const CostTables &tables, bool keepTimes, const OnProgress &onProgress)
    : program(program), costs(costs), tables(tables), keepTimes(keepTimes),
      progress(program, onProgress), nextOnStream(program.ranks.size()),
      channels(program.shared.channels.size()), receivers(program.shared.channels.size(), kNone),
      groups(program.shared.reduceGroups.size()), held(program.ranks.size()),
      nodes(tables.getNumNodes(), Cores(costs.cores)), versions(nodes.size(), 0) {
  result.ranks.resize(program.ranks.size());
  result.commands.resize(keepTimes ? program.ranks.size() : 0);
  for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
    addRank(rank);
}

/// Links the commands of each stream. The launches of a pair run with it.
void Contention::addRank(uint32_t rank) {
  const RankProgram &own = program.ranks[rank];
  firstStream.push_back(uint32_t(streams.size()));
  firstEvent.push_back(uint32_t(events.size()));
  streams.resize(streams.size() + own.streams.size());
  events.resize(events.size() + own.numEvents);
  std::vector<uint32_t> &next = nextOnStream[rank];
  next.assign(own.commands.size(), kNone);
  std::vector<uint32_t> last(own.streams.size(), kNone);
  for (uint32_t i = 0; i != own.commands.size(); ++i) {
    const Command &command = own.commands[i];
    uint32_t &before = last[command.stream];
    (before == kNone ? streams[firstStream[rank] + command.stream].at : next[before]) = i;
    before = i;
    if (command.op == CommandOp::Pair)
      i += command.arg;
  }
  for (size_t i = 0; i != own.streams.size(); ++i)
    streams[firstStream[rank] + i].rank = rank;
  if (keepTimes)
    result.commands[rank].resize(own.commands.size());
}

//===----------------------------------------------------------------------===//
// The order of things
//===----------------------------------------------------------------------===//

Result<Simulation> Contention::run() {
  for (uint32_t stream = 0; stream != streams.size(); ++stream)
    goOn(stream);
  while (!queue.empty()) {
    const Happening happening = queue.top();
    queue.pop();
    handle(happening);
  }
  for (const Stream &stream : streams)
    if (stream.at != kNone)
      return describeStuck();
  return std::move(result);
}

/// The stream and all whom it lets go on, as far as they come without time passing.
void Contention::goOn(uint32_t first) {
  ready.push_back(first);
  while (!ready.empty()) {
    const uint32_t stream = ready.back();
    ready.pop_back();
    while (streams[stream].at != kNone && runCommand(stream))
      step(stream);
  }
}

void Contention::step(uint32_t stream) {
  progress.add(1);
  Stream &own = streams[stream];
  own.at = nextOnStream[own.rank][own.at];
}

void Contention::handle(const Happening &happening) {
  switch (happening.kind) {
  case Kind::CoresFree:
    return freeCores(happening);
  case Kind::ComputeEnds:
    return endCompute(happening.time, happening.number);
  case Kind::TransferStarts:
    return startTransfer(happening.time, happening.number);
  case Kind::ComputeStarts:
    return startCompute(happening.time, happening.number);
  }
}

/// False where the stream has to stand at the command.
bool Contention::runCommand(uint32_t number) {
  Stream &stream = streams[number];
  switch (getCommand(stream).op) {
  case CommandOp::Launch:
  case CommandOp::Pair:
  case CommandOp::Step:
    if (isComputeOfNoTime(stream)) {
      keep(getRef(stream), stream.done.time, stream.done.time, stream.done.by);
      return true;
    }
    push(stream.done.time, Kind::ComputeStarts, number);
    return false;
  case CommandOp::Send:
  case CommandOp::Recv:
    return meet(number);
  case CommandOp::Record:
    return record(number);
  case CommandOp::Wait:
    return wait(number);
  case CommandOp::Reduce:
    return reduce(number);
  case CommandOp::Group:
    return true;
  }
  return true;
}

void Contention::keep(CommandRef ref, Ticks start, Ticks end, CommandRef after) {
  result.makespan = std::max(result.makespan, end);
  if (keepTimes)
    result.commands[ref.rank][ref.command] = {start, end, after};
}

void Contention::finish(Stream &stream, Ticks start, const Clock &end, CommandRef after) {
  keep(getRef(stream), start, end.time, after);
  stream.next = stream.done = end;
}

/// The first stream that stands says enough: a verified program never comes here.
Result<Simulation> Contention::describeStuck() const {
  for (const Stream &stream : streams)
    if (stream.at != kNone)
      return Status::failure(fmt::format(
          "the program cannot finish, it stands at {}",
          program::describeCommand(program.shared, program.ranks[stream.rank], stream.at)));
  return Simulation();
}

//===----------------------------------------------------------------------===//
// Computes
//===----------------------------------------------------------------------===//

ComputeTime Contention::getTime(const Stream &stream) const {
  const RankProgram &own = program.ranks[stream.rank];
  const Command &command = getCommand(stream);
  if (command.op == CommandOp::Launch)
    return tables.get(own.launches[command.arg]);
  if (command.op == CommandOp::Pair)
    return tables.getPair(own, stream.at + 1, command.arg);
  const Ticks time = tables.getStep(command.arg);
  return {time, time};
}

bool Contention::isComputeOfNoTime(const Stream &stream) const { return getTime(stream).time == 0; }

/// First the part that needs a core, then the rest.
void Contention::startCompute(Ticks now, uint32_t number) {
  Stream &stream = streams[number];
  stream.start = {now, stream.done.by};
  const ComputeTime time = getTime(stream);
  if (costs.cores == 0 || time.cpu == 0) {
    push(now + time.time, Kind::ComputeEnds, number);
    return;
  }
  const uint32_t node = tables.getNode(stream.rank);
  nodes[node].add(now, time.cpu, number);
  lookAtCores(node);
}

/// What was known before of the next end no longer holds.
void Contention::lookAtCores(uint32_t node) {
  ++versions[node];
  if (!nodes[node].isIdle())
    push(nodes[node].getNextEnd(), Kind::CoresFree, node, versions[node]);
}

void Contention::freeCores(const Happening &happening) {
  const uint32_t node = happening.number;
  if (happening.version != versions[node])
    return;
  uint32_t stream = kNone;
  while (nodes[node].takeEnded(happening.time, stream)) {
    const ComputeTime time = getTime(streams[stream]);
    push(happening.time + time.time - time.cpu, Kind::ComputeEnds, stream);
  }
  lookAtCores(node);
}

void Contention::countCompute(const Stream &stream) {
  const Command &command = getCommand(stream);
  RankTimes &times = result.ranks[stream.rank];
  if (command.op == CommandOp::Launch)
    held[stream.rank].count(program, stream.rank, stream.at, 1, times);
  if (command.op == CommandOp::Pair)
    held[stream.rank].count(program, stream.rank, stream.at + 1, command.arg, times);
}

void Contention::endCompute(Ticks now, uint32_t number) {
  Stream &stream = streams[number];
  const Clock start = stream.start;
  const Ticks time = getTime(stream).time;
  addCompute(result.ranks[stream.rank], start.time, now, time);
  result.ranks[stream.rank].contended += now - start.time - time;
  countCompute(stream);
  const CommandRef self = getRef(stream);
  const uint32_t numMembers = getCommand(stream).op == CommandOp::Pair ? getCommand(stream).arg : 0;
  for (uint32_t i = 1; i <= numMembers; ++i)
    keep({self.rank, self.command + i}, start.time, now, start.by);
  finish(stream, start.time, {now, self}, start.by);
  step(number);
  goOn(number);
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

bool Contention::record(uint32_t number) {
  Stream &stream = streams[number];
  Event &event = getEvent(stream);
  keep(getRef(stream), stream.done.time, stream.done.time, stream.done.by);
  event.clock = stream.done;
  event.isRecorded = true;
  for (uint32_t waiter = event.firstWaiter; waiter != kNone; waiter = streams[waiter].nextWaiter)
    ready.push_back(waiter);
  event.firstWaiter = kNone;
  return true;
}

bool Contention::wait(uint32_t number) {
  Stream &stream = streams[number];
  Event &event = getEvent(stream);
  if (!event.isRecorded) {
    stream.nextWaiter = std::exchange(event.firstWaiter, number);
    return false;
  }
  stream.next.raise(event.clock);
  stream.done.raise(event.clock);
  keep(getRef(stream), stream.done.time, stream.done.time, stream.done.by);
  return true;
}

//===----------------------------------------------------------------------===//
// Transfers and reductions
//===----------------------------------------------------------------------===//

bool Contention::needsLink(uint32_t channel) const {
  const program::Channel &own = program.shared.channels[channel];
  return costs.sharedLinks && tables.getNode(own.source) != tables.getNode(own.destination);
}

/// The first end stands, the second lets both go on, at once or when the link is theirs.
bool Contention::meet(uint32_t number) {
  const uint32_t channel = getTransfer(streams[number]).channel;
  Channel &state = channels[channel];
  if (state.standing == kNone) {
    state.standing = number;
    return false;
  }
  const bool isSend = getCommand(streams[number]).op == CommandOp::Send;
  const uint32_t other = std::exchange(state.standing, kNone);
  const uint32_t sender = isSend ? number : other, receiver = isSend ? other : number;
  Clock start = streams[sender].next;
  start.raise(streams[receiver].next);
  start.raise(state.free);
  if (needsLink(channel)) {
    streams[sender].start = start;
    receivers[channel] = receiver;
    push(start.time, Kind::TransferStarts, sender);
    return false;
  }
  completeTransfer(sender, receiver, start);
  step(other);
  ready.push_back(other);
  return true;
}

void Contention::startTransfer(Ticks, uint32_t sender) {
  const program::Transfer &transfer = getTransfer(streams[sender]);
  const program::Channel &channel = program.shared.channels[transfer.channel];
  const uint32_t receiver = receivers[transfer.channel];
  Clock &link = links[{tables.getNode(channel.source), tables.getNode(channel.destination)}];
  Clock start = streams[sender].start;
  start.raise(link);
  link = {start.time + tables.get(transfer).occupancy, getRef(streams[sender])};
  completeTransfer(sender, receiver, start);
  step(sender);
  step(receiver);
  ready.push_back(receiver);
  goOn(sender);
}

void Contention::completeTransfer(uint32_t sender, uint32_t receiver, Clock start) {
  const program::Transfer &transfer = getTransfer(streams[sender]);
  const TransferTime time = tables.get(transfer);
  const Ticks free = start.time + time.occupancy, end = free + time.latency;
  channels[transfer.channel].free = {free, getRef(streams[sender])};
  for (const uint32_t number : {sender, receiver}) {
    Stream &stream = streams[number];
    const CommandRef self = getRef(stream);
    keep(self, start.time, end, start.by);
    stream.next = {free, self};
    if (end >= stream.done.time)
      stream.done = {end, self};
  }
  ++result.ranks[streams[sender].rank].sends;
}

bool Contention::reduce(uint32_t number) {
  const RankProgram &own = program.ranks[streams[number].rank];
  const program::Reduction &reduction = own.reductions[getCommand(streams[number]).arg];
  Group &group = groups[reduction.group];
  group.standing.push_back(number);
  group.last.raise(streams[number].done);
  if (group.standing.size() != program.shared.reduceGroups[reduction.group].ranks.size())
    return false;
  const Ticks end = group.last.time + tables.get(reduction);
  for (const uint32_t member : group.standing) {
    Stream &stream = streams[member];
    finish(stream, group.last.time, {end, getRef(stream)}, group.last.by);
    if (member == number)
      continue; // the last to come goes on by itself
    step(member);
    ready.push_back(member);
  }
  group = Group();
  return true;
}

Result<Simulation> simulateContention(const program::Program &program, const SimulationCosts &costs,
                                      const CostTables &tables, bool keepTimes,
                                      const OnProgress &onProgress) {
  return Contention(program, costs, tables, keepTimes, onProgress).run();
}

} // namespace dualpipe::runtime
