//===- VerifyProgress.cpp - D3: every program finishes under rendezvous -----===//
//
// Runs the lists as if each rank had one queue and every transfer were a
// rendezvous: a rank stands at one unit (a transfer, a reduction or a group)
// until all its meetings are complete, and a meeting is complete once every
// participant stands at it. Nothing depends on time here, so if some rank gets
// stuck, the lists have a cycle, and ranks that wait for each other show it.
//
//===----------------------------------------------------------------------===//

#include "Facts.h"
#include "dualpipe/Support/ShortestCycle.h"

#include <fmt/format.h>

#include <map>

namespace dualpipe::program {

namespace {

/// A transfer or a reduction: what several ranks must come to.
struct Meeting {
  uint32_t place;   ///< channel or reduce group
  uint32_t missing; ///< participants that do not stand at it yet
  bool reduces;
};

/// A meeting in a rank's list.
struct Entry {
  uint32_t meeting;
  uint32_t command;
  bool endsUnit; ///< the next entry is waited for separately
};

/// A rank's list and how far the rank came.
struct Queue {
  std::vector<Entry> entries;
  size_t begin = 0; ///< the unit that the rank stands at
  size_t end = 0;
  size_t open = 0; ///< its meetings that are not complete

  bool isFinished() const { return begin == entries.size(); }
};

/// "Rank `from` cannot go on from `command` before rank `to` does."
struct WaitsFor {
  uint32_t from;
  uint32_t to;
  uint32_t command;
};

class ProgressChecker {
public:
  ProgressChecker(const SharedInfo &shared, const std::vector<const RankProgram *> &ranks)
      : shared(shared), ranks(ranks), queues(ranks.size()), transfers(shared.channels.size()),
        reductions(shared.reduceGroups.size()) {
    for (uint32_t rank = 0; rank != ranks.size(); ++rank)
      fillQueue(rank);
  }
  Verdict run();

private:
  /// How many meetings a rank has had so far, by channel and then by group.
  using Counts = std::map<size_t, size_t>;

  uint32_t getMeeting(std::vector<uint32_t> &known, size_t index, const Meeting &fresh);
  uint32_t findMeeting(uint32_t rank, const Command &command, Counts &counts);
  void fillQueue(uint32_t rank);
  void enterUnit(uint32_t rank);
  void complete(const Meeting &meeting);
  template <typename Visit> void forParticipants(const Meeting &meeting, Visit visit) const;
  bool standsAt(uint32_t rank, uint32_t meeting) const;
  std::vector<WaitsFor> getWaits(uint32_t rank) const;
  std::vector<WaitsFor> findCycle(uint32_t start, size_t shorterThan) const;
  Violation describeShortestCycle() const;

  const SharedInfo &shared;
  const std::vector<const RankProgram *> &ranks;
  std::vector<Queue> queues;
  std::vector<Meeting> meetings;
  std::vector<std::vector<uint32_t>> transfers;  ///< meetings by channel, in order
  std::vector<std::vector<uint32_t>> reductions; ///< meetings by group, in order
  std::vector<uint32_t> worklist;                ///< ranks whose unit is complete
};

} // namespace

uint32_t ProgressChecker::getMeeting(std::vector<uint32_t> &known, size_t index,
                                     const Meeting &fresh) {
  if (index == known.size()) {
    known.push_back(uint32_t(meetings.size()));
    meetings.push_back(fresh);
  }
  return known[index];
}

/// The k-th send of a channel meets the k-th receive, the k-th reduction of a
/// group meets that of the other members. A rank is at one end of a channel only.
uint32_t ProgressChecker::findMeeting(uint32_t rank, const Command &command, Counts &counts) {
  if (command.op == CommandOp::Reduce) {
    const uint32_t group = ranks[rank]->reductions[command.arg].group;
    const uint32_t members = uint32_t(shared.reduceGroups[group].ranks.size());
    return getMeeting(reductions[group], counts[shared.channels.size() + group]++,
                      {group, members, true});
  }
  const uint32_t channel = ranks[rank]->transfers[command.arg].channel;
  return getMeeting(transfers[channel], counts[channel]++, {channel, 2, false});
}

void ProgressChecker::fillQueue(uint32_t rank) {
  Counts counts;
  const std::vector<Command> &commands = ranks[rank]->commands;
  uint32_t groupEnd = 0;
  for (uint32_t i = 0; i != commands.size(); ++i) {
    const Command &command = commands[i];
    if (command.op == CommandOp::Group)
      groupEnd = i + 1 + command.arg;
    if (command.op == CommandOp::Send || command.op == CommandOp::Recv ||
        command.op == CommandOp::Reduce)
      queues[rank].entries.push_back({findMeeting(rank, command, counts), i, i + 1 >= groupEnd});
  }
}

template <typename Visit>
void ProgressChecker::forParticipants(const Meeting &meeting, Visit visit) const {
  if (meeting.reduces) {
    for (uint32_t rank : shared.reduceGroups[meeting.place].ranks)
      visit(rank);
    return;
  }
  visit(shared.channels[meeting.place].source);
  visit(shared.channels[meeting.place].destination);
}

/// The rank comes to its next unit, which may complete meetings there.
void ProgressChecker::enterUnit(uint32_t rank) {
  Queue &queue = queues[rank];
  queue.begin = queue.end;
  if (queue.isFinished())
    return;
  while (!queue.entries[queue.end++].endsUnit)
    ;
  queue.open = queue.end - queue.begin;
  for (size_t i = queue.begin; i != queue.end; ++i) {
    Meeting &meeting = meetings[queue.entries[i].meeting];
    if (--meeting.missing == 0)
      complete(meeting);
  }
}

void ProgressChecker::complete(const Meeting &meeting) {
  forParticipants(meeting, [&](uint32_t rank) {
    if (--queues[rank].open == 0)
      worklist.push_back(rank);
  });
}

Verdict ProgressChecker::run() {
  for (uint32_t rank = 0; rank != queues.size(); ++rank)
    enterUnit(rank);
  while (!worklist.empty()) {
    const uint32_t rank = worklist.back();
    worklist.pop_back();
    enterUnit(rank);
  }
  for (const Queue &queue : queues)
    if (!queue.isFinished())
      return describeShortestCycle();
  return {};
}

bool ProgressChecker::standsAt(uint32_t rank, uint32_t meeting) const {
  const Queue &queue = queues[rank];
  for (size_t i = queue.begin; i != queue.end; ++i)
    if (queue.entries[i].meeting == meeting)
      return true;
  return false;
}

/// What a stuck rank waits for: participants of its meetings that stand before them.
std::vector<WaitsFor> ProgressChecker::getWaits(uint32_t rank) const {
  std::vector<WaitsFor> waits;
  const Queue &queue = queues[rank];
  for (size_t i = queue.begin; i != queue.end; ++i) {
    const Entry &entry = queue.entries[i];
    if (meetings[entry.meeting].missing == 0)
      continue;
    forParticipants(meetings[entry.meeting], [&](uint32_t other) {
      if (!standsAt(other, entry.meeting))
        waits.push_back({rank, other, entry.command});
    });
  }
  return waits;
}

std::vector<WaitsFor> ProgressChecker::findCycle(uint32_t start, size_t shorterThan) const {
  return findCycleThrough<WaitsFor>(
      start, shorterThan, [&](uint32_t rank) { return getWaits(rank); },
      [](const WaitsFor &wait) { return wait.from; }, [](const WaitsFor &wait) { return wait.to; });
}

Violation ProgressChecker::describeShortestCycle() const {
  std::vector<WaitsFor> shortest;
  size_t shorterThan = queues.size() + 1;
  for (uint32_t rank = 0; rank != queues.size(); ++rank) {
    if (queues[rank].isFinished())
      continue;
    std::vector<WaitsFor> cycle = findCycle(rank, shorterThan);
    if (cycle.empty())
      continue;
    shorterThan = cycle.size();
    shortest = std::move(cycle);
  }
  // Ends that verifyMatching would have reported: a rank waits for one that has finished.
  if (shortest.empty())
    return violation("D3", kNone, kNone, "a transfer never finds its other end");
  Violation found = violation("D3", shortest.front().from, shortest.front().command,
                              fmt::format("the program cannot finish: {} commands wait for each "
                                          "other in a circle",
                                          shortest.size()));
  for (const WaitsFor &wait : shortest)
    found.notes.push_back(
        {{wait.from, wait.command}, fmt::format("waits for rank {} to come to it", wait.to)});
  return found;
}

Verdict verifyProgress(const SharedInfo &shared, const std::vector<const RankProgram *> &ranks) {
  return ProgressChecker(shared, ranks).run();
}

} // namespace dualpipe::program
