//===- VerifyQueues.cpp - D3 for streams folded into hardware queues --------===//
//
// Runs the program under rendezvous with the queues that a device has, onto which
// the streams are folded. The host never blocks, so every queue holds its
// commands from the beginning; a queue goes on when its front command has finished.
//
//   launch, pair, step, record   finish at the front of their queue
//   wait                         once the event's record has finished
//   send, recv, reduce           once all partners stand at the front of theirs
//   group                        once all of its transfers have
//
// What can finish goes on being able to until it does: nothing takes away a record
// or a partner that has come. So two commands that can both finish may do so in
// either order with the same result, and the commands that finish at all are the
// same in every run: one run decides. Slots are finite by the events that order
// their reuse.
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Program/Queues.h"
#include "dualpipe/Support/ShortestCycle.h"

#include "Facts.h"

#include <fmt/format.h>

namespace dualpipe::program {

namespace {

/// What a queue handles at once: one command, or a bracket with its members.
struct Unit {
  uint32_t queue;
  uint32_t rank;    ///< index into the given ranks
  uint32_t command; ///< the first
  uint32_t size;
  uint32_t open = 0; ///< meetings that it waits for
};

/// A transfer or a reduction.
struct Meeting {
  uint32_t missing = 0; ///< partners that are not at the front yet
  std::vector<uint32_t> units;
};

struct Queue {
  std::vector<uint32_t> units;
  size_t front = 0;

  bool isFinished() const { return front == units.size(); }
};

/// "The front of one queue waits for a unit that stands behind the front of another."
struct Hold {
  uint32_t from;    ///< queue
  uint32_t to;      ///< queue
  uint32_t command; ///< of the front of `from`
  uint32_t unit;    ///< what it waits for
};

class QueueChecker {
public:
  QueueChecker(const SharedInfo &shared, const std::vector<const RankProgram *> &ranks,
               const QueueFolding &folding);
  Verdict run();

private:
  struct Event {
    uint32_t unit = kNone; ///< that records it
    bool isRecorded = false;
    std::vector<uint32_t> waiters;
  };

  void addRank(uint32_t rank);
  void addUnit(uint32_t rank, uint32_t command, uint32_t size);
  void joinMeeting(const RankProgram &program, const Command &command,
                   std::vector<uint32_t> &counts);
  uint32_t getMeeting(uint32_t place, uint32_t number);
  Event &getEvent(const Unit &unit) {
    return events[unit.rank][ranks[unit.rank]->commands[unit.command].arg];
  }
  const Event &getEvent(const Unit &unit) const {
    return events[unit.rank][ranks[unit.rank]->commands[unit.command].arg];
  }
  CommandOp getOp(const Unit &unit) const { return ranks[unit.rank]->commands[unit.command].op; }

  void reachFront(uint32_t queue);
  void meet(uint32_t unit);
  void release(uint32_t unit);
  std::vector<Hold> getHolds(uint32_t queue) const;
  std::vector<Hold> findCycle(uint32_t start, size_t shorterThan) const;
  Violation describeShortestCycle() const;
  std::string describeHold(const Hold &hold) const;

  const SharedInfo &shared;
  const std::vector<const RankProgram *> &ranks;
  const QueueFolding &folding;
  std::vector<Unit> units;
  std::vector<Queue> queues;
  std::vector<uint32_t> firstQueue; ///< by rank
  std::vector<std::vector<Event>> events;
  std::vector<Meeting> meetings;
  std::vector<std::vector<uint32_t>> places; ///< meetings by channel, then by group, in order
  std::vector<std::vector<uint32_t>> joined; ///< meetings by unit
  std::vector<uint32_t> worklist;            ///< queues whose front has finished
};

} // namespace

QueueChecker::QueueChecker(const SharedInfo &shared, const std::vector<const RankProgram *> &ranks,
                           const QueueFolding &folding)
    : shared(shared), ranks(ranks), folding(folding),
      places(shared.channels.size() + shared.reduceGroups.size()) {
  for (uint32_t rank = 0; rank != ranks.size(); ++rank)
    addRank(rank);
}

void QueueChecker::addRank(uint32_t rank) {
  const RankProgram &program = *ranks[rank];
  firstQueue.push_back(uint32_t(queues.size()));
  queues.resize(queues.size() + program.streams.size());
  events.emplace_back(program.numEvents);
  std::vector<uint32_t> counts(places.size(), 0);
  for (uint32_t i = 0; i != program.commands.size();) {
    const uint32_t size = 1 + getBracketSize(program.commands[i]);
    addUnit(rank, i, size);
    for (const uint32_t end = i + size; i != end; ++i)
      joinMeeting(program, program.commands[i], counts);
  }
}

/// The newest unit takes part in what the command is an end of.
void QueueChecker::joinMeeting(const RankProgram &program, const Command &command,
                               std::vector<uint32_t> &counts) {
  uint32_t place;
  if (command.op == CommandOp::Send || command.op == CommandOp::Recv)
    place = program.transfers[command.arg].channel;
  else if (command.op == CommandOp::Reduce)
    place = uint32_t(shared.channels.size()) + program.reductions[command.arg].group;
  else
    return;
  const uint32_t meeting = getMeeting(place, counts[place]++);
  ++meetings[meeting].missing;
  meetings[meeting].units.push_back(uint32_t(units.size()) - 1);
  joined.back().push_back(meeting);
  ++units.back().open;
}

void QueueChecker::addUnit(uint32_t rank, uint32_t command, uint32_t size) {
  const Command &what = ranks[rank]->commands[command];
  const uint32_t queue = firstQueue[rank] + folding.getQueue(*ranks[rank], what.stream);
  queues[queue].units.push_back(uint32_t(units.size()));
  if (what.op == CommandOp::Record)
    events[rank][what.arg].unit = uint32_t(units.size());
  units.push_back({queue, rank, command, size});
  joined.emplace_back();
}

/// The k-th send of a channel meets its k-th receive; reductions likewise. A rank is at one end
/// of a channel only.
uint32_t QueueChecker::getMeeting(uint32_t place, uint32_t number) {
  if (number == places[place].size()) {
    places[place].push_back(uint32_t(meetings.size()));
    meetings.emplace_back();
  }
  return places[place][number];
}

/// The front of the queue is done: the queue is to move on.
void QueueChecker::release(uint32_t unit) { worklist.push_back(units[unit].queue); }

void QueueChecker::meet(uint32_t unit) {
  for (uint32_t meeting : joined[unit])
    if (--meetings[meeting].missing == 0)
      for (uint32_t partner : meetings[meeting].units)
        if (--units[partner].open == 0)
          release(partner);
}

/// A unit comes to the front of its queue.
void QueueChecker::reachFront(uint32_t queue) {
  if (queues[queue].isFinished())
    return;
  const uint32_t number = queues[queue].units[queues[queue].front];
  const Unit &unit = units[number];
  if (!joined[number].empty())
    return meet(number);
  if (getOp(unit) == CommandOp::Wait && !getEvent(unit).isRecorded) {
    getEvent(unit).waiters.push_back(number);
    return;
  }
  if (getOp(unit) == CommandOp::Record) {
    getEvent(unit).isRecorded = true;
    for (uint32_t waiter : getEvent(unit).waiters)
      release(waiter);
  }
  release(number);
}

Verdict QueueChecker::run() {
  for (uint32_t queue = 0; queue != queues.size(); ++queue)
    reachFront(queue);
  while (!worklist.empty()) {
    const uint32_t queue = worklist.back();
    worklist.pop_back();
    ++queues[queue].front;
    reachFront(queue);
  }
  for (const Queue &queue : queues)
    if (!queue.isFinished())
      return describeShortestCycle();
  return {};
}

/// What the front of a stuck queue waits for: units that are not at the front of theirs.
std::vector<Hold> QueueChecker::getHolds(uint32_t queue) const {
  if (queues[queue].isFinished())
    return {};
  const uint32_t front = queues[queue].units[queues[queue].front];
  const Unit &unit = units[front];
  std::vector<Hold> holds;
  const auto add = [&](uint32_t command, uint32_t other) {
    const Queue &place = queues[units[other].queue];
    if (!place.isFinished() && place.units[place.front] < other)
      holds.push_back({queue, units[other].queue, command, other});
  };
  if (getOp(unit) == CommandOp::Wait)
    add(unit.command, getEvent(unit).unit);
  const bool isBracket = unit.size > 1;
  for (size_t i = 0; i != joined[front].size(); ++i)
    for (uint32_t other : meetings[joined[front][i]].units)
      if (meetings[joined[front][i]].missing != 0 && other != front)
        add(unit.command + uint32_t(i) + isBracket, other);
  return holds;
}

std::vector<Hold> QueueChecker::findCycle(uint32_t start, size_t shorterThan) const {
  return findCycleThrough<Hold>(
      start, shorterThan, [&](uint32_t queue) { return getHolds(queue); },
      [](const Hold &hold) { return hold.from; }, [](const Hold &hold) { return hold.to; });
}

std::string QueueChecker::describeHold(const Hold &hold) const {
  const Unit &unit = units[hold.unit];
  const Queue &place = queues[hold.to];
  return fmt::format("waits for command {} of rank {}, which stands behind command {} in queue {}",
                     unit.command, ranks[unit.rank]->rank, units[place.units[place.front]].command,
                     hold.to - firstQueue[unit.rank]);
}

Violation QueueChecker::describeShortestCycle() const {
  std::vector<Hold> shortest;
  size_t shorterThan = queues.size() + 1;
  for (uint32_t queue = 0; queue != queues.size(); ++queue) {
    std::vector<Hold> cycle = findCycle(queue, shorterThan);
    if (cycle.empty())
      continue;
    shorterThan = cycle.size();
    shortest = std::move(cycle);
  }
  // Ends that verifyMatching would have reported: a unit waits for one that does not exist.
  if (shortest.empty())
    return violation("D3", kNone, kNone, "a transfer never finds its other end");
  const auto place = [&](const Hold &hold) {
    const Queue &queue = queues[hold.from];
    return CommandRef{ranks[units[queue.units[queue.front]].rank]->rank, hold.command};
  };
  const CommandRef first = place(shortest.front());
  Violation found = violation(
      "D3", first.rank, first.command,
      fmt::format("the program cannot finish {}: {} commands wait for each other in a circle",
                  folding.name, shortest.size()));
  for (const Hold &hold : shortest)
    found.notes.push_back({place(hold), describeHold(hold)});
  return found;
}

Verdict verifyFolding(const SharedInfo &shared, const std::vector<const RankProgram *> &ranks,
                      const QueueFolding &folding) {
  return QueueChecker(shared, ranks, folding).run();
}

Verdict verifyQueues(const SharedInfo &shared, const std::vector<const RankProgram *> &ranks,
                     uint32_t numQueues) {
  if (numQueues == 0)
    return verifyFolding(shared, ranks,
                         {[](const RankProgram &, uint32_t stream) { return stream; },
                          "with a queue for every stream"});
  return verifyFolding(
      shared, ranks,
      {[numQueues](const RankProgram &, uint32_t stream) { return stream % numQueues; },
       fmt::format("with {} hardware queues per rank", numQueues)});
}

} // namespace dualpipe::program
