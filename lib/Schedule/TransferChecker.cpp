//===- TransferChecker.cpp - D1 to D3 on transfers that a schedule places ---===//

#include "Findings.h"
#include "dualpipe/Schedule/Describe.h"
#include "dualpipe/Schedule/Transfers.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <tuple>

using namespace dualpipe;
using Transfer = RankOrder::Transfer;

namespace {

/// One end of a transfer by its place: rank and index in the rank's transfers.
struct EndRef {
  uint32_t rank;
  uint32_t end;
};

class TransferChecker {
public:
  TransferChecker(const OpIndex &index, DiagnosticSink &sink)
      : index(index), schedule(index.getSchedule()), sink(sink), places(schedule) {}

  void run();

private:
  using Note = Findings::Note;

  void report(const char *id, SourceLoc loc, const std::string &message,
              const std::vector<Note> &notes);
  const Transfer &get(EndRef ref) const { return schedule.ranks[ref.rank].transfers[ref.end]; }
  SourceLoc getLoc(EndRef ref) const { return schedule.locations[get(ref).loc]; }
  SourceLoc getLoc(OpRef ref) const { return schedule.getLoc(ref.rank, ref.op); }
  std::string describe(EndRef ref) const { return dualpipe::describe(get(ref)); }
  std::string describe(OpRef ref) const {
    return dualpipe::describe(schedule.ranks[ref.rank], ref.op);
  }
  EndRef getOther(EndRef ref) const;

  void placeEnd(EndRef ref);
  std::string findFault(EndRef ref, const TransferOps &ops, std::vector<Note> &notes) const;
  std::string findMisplacement(EndRef ref, OpRef here, std::vector<Note> &notes) const;
  void requireEnds();
  void requireEndsOf(OpRef producer, OpRef consumer);

  void checkChannels();
  void checkChannel(const std::vector<EndRef> &sends, const std::vector<EndRef> &recvs);

  void checkProgress();
  std::vector<uint32_t> runQueues() const;
  std::vector<EndRef> findCycleFrom(uint32_t rank, const std::vector<uint32_t> &heads) const;
  void reportCycle(const std::vector<EndRef> &cycle, const std::vector<uint32_t> &heads);

  const OpIndex &index;
  const Schedule &schedule;
  DiagnosticSink &sink;
  TransferIndex places;
  Findings findings;
};

} // namespace

void TransferChecker::report(const char *id, SourceLoc loc, const std::string &message,
                             const std::vector<Note> &notes) {
  findings.report(id, loc, fmt::format("{}: {}", id, message), notes);
}

EndRef TransferChecker::getOther(EndRef ref) const {
  TransferOps ops = findOps(index, get(ref));
  if (get(ref).isSend)
    return {ops.consumer.rank, places.getRecv(ops.producer)};
  return {ops.producer.rank, places.getSend(ops.producer)};
}

//===----------------------------------------------------------------------===//
// D1: two ends for what is needed elsewhere, and none for anything else
//===----------------------------------------------------------------------===//

/// What is wrong with the value that an end names; empty where nothing is.
std::string TransferChecker::findFault(EndRef ref, const TransferOps &ops,
                                       std::vector<Note> &notes) const {
  const Transfer &end = get(ref);
  OpRef here = end.isSend ? ops.producer : ops.consumer;
  OpRef there = end.isSend ? ops.consumer : ops.producer;
  if (!here.isValid())
    return fmt::format("the schedule has no such {}", end.isGrad ? "backward" : "forward");
  if (here.rank != ref.rank) {
    notes.push_back({getLoc(here), fmt::format("{} is here", describe(here))});
    return fmt::format("it belongs on rank {}, where that stage is", here.rank);
  }
  if (!there.isValid())
    return fmt::format("stage {} is the {} of its pipeline", end.stage,
                       end.isSend == end.isGrad ? "first" : "last");
  if (there.rank != ref.rank)
    return "";
  notes.push_back({getLoc(there), fmt::format("{} is here", describe(there))});
  return "the other stage is on this rank too, and the value is handed over without a transfer";
}

/// How an end stands on the wrong side of the op that makes or needs the value.
std::string TransferChecker::findMisplacement(EndRef ref, OpRef here,
                                              std::vector<Note> &notes) const {
  const Transfer &end = get(ref);
  const RankOrder &order = schedule.ranks[ref.rank];
  bool isInside = end.before != 0 && end.before != order.size() &&
                  order.group[end.before] != RankOrder::kAlone &&
                  order.group[end.before] == order.group[end.before - 1];
  if (isInside)
    return "stands between the members of a fused group";
  if (end.isSend == (end.before > here.op))
    return "";
  notes.push_back({getLoc(here), fmt::format("{} is here", describe(here))});
  return end.isSend ? "stands before the op that makes the value"
                    : "stands after the op that needs the value";
}

void TransferChecker::placeEnd(EndRef ref) {
  const Transfer &end = get(ref);
  std::vector<Note> notes;
  auto complain = [&](const std::string &what) {
    report("D1", getLoc(ref),
           fmt::format("rank {}: {} {}", ref.rank, dualpipe::describe(end), what), notes);
  };
  TransferOps ops = findOps(index, end);
  if (std::string fault = findFault(ref, ops, notes); !fault.empty())
    return complain("has nothing to transfer: " + fault);
  uint32_t &place = end.isSend ? places.getSend(ops.producer) : places.getRecv(ops.producer);
  if (place != TransferIndex::kNowhere) {
    notes.push_back({getLoc(EndRef{ref.rank, place}), "it stands here already"});
    return complain("stands a second time");
  }
  place = ref.end;
  std::string where = findMisplacement(ref, end.isSend ? ops.producer : ops.consumer, notes);
  if (!where.empty())
    complain(where);
}

void TransferChecker::requireEnds() {
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank)
    for (uint32_t op = 0; op != schedule.ranks[rank].size(); ++op) {
      OpRef consumer = index.getConsumer(rank, op);
      if (consumer.isValid() && consumer.rank != rank)
        requireEndsOf({rank, op}, consumer);
    }
}

void TransferChecker::requireEndsOf(OpRef producer, OpRef consumer) {
  auto require = [&](bool isSend, uint32_t place) {
    if (place != TransferIndex::kNowhere)
      return;
    OpRef here = isSend ? producer : consumer, there = isSend ? consumer : producer;
    const RankOrder &order = schedule.ranks[here.rank];
    bool isGrad = order.kind[here.op] != OpKind::Forward;
    Transfer end{isSend, isGrad, order.stage[here.op], order.microbatch[here.op], 0, 0};
    report("D1", getLoc(here),
           fmt::format("rank {}: {} is missing: rank {} {}", here.rank, dualpipe::describe(end),
                       there.rank, isSend ? "needs the value" : "makes the value"),
           {{getLoc(there), fmt::format("{} is here", describe(there))}});
  };
  require(true, places.getSend(producer));
  require(false, places.getRecv(producer));
}

//===----------------------------------------------------------------------===//
// D2: a channel is first in, first out
//===----------------------------------------------------------------------===//

void TransferChecker::checkChannels() {
  // By source, destination and kind, as the lowering has them.
  std::map<std::tuple<uint32_t, uint32_t, bool>, std::vector<EndRef>> sends, recvs;
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank)
    for (uint32_t i = 0; i != schedule.ranks[rank].transfers.size(); ++i) {
      EndRef ref{rank, i};
      TransferOps ops = findOps(index, get(ref));
      auto &ends = get(ref).isSend ? sends : recvs;
      ends[{ops.producer.rank, ops.consumer.rank, get(ref).isGrad}].push_back(ref);
    }
  for (const auto &[channel, ends] : sends)
    checkChannel(ends, recvs.at(channel));
}

/// Compares the two ends up to the first difference: what follows is out of step.
void TransferChecker::checkChannel(const std::vector<EndRef> &sends,
                                   const std::vector<EndRef> &recvs) {
  for (size_t i = 0; i != sends.size(); ++i) {
    EndRef expected = getOther(sends[i]), got = recvs[i];
    if (expected.end == got.end)
      continue;
    report("D2", getLoc(got),
           fmt::format("rank {}: {} comes before {}, but rank {} sends the other way round; one "
                       "kind of value from one rank to another arrives in the order of the sends",
                       got.rank, describe(got), describe(expected), sends[i].rank),
           {{getLoc(sends[i]), fmt::format("rank {}: {} is here, before {}", sends[i].rank,
                                           describe(sends[i]), describe(getOther(got)))}});
    return;
  }
}

//===----------------------------------------------------------------------===//
// D3: no cycle, each rank as one queue
//===----------------------------------------------------------------------===//

/// Computes never wait here: what they need has been received before them. So a rank's
/// queue is its list of transfers, and a transfer happens when both ends come first.
/// \returns the first end on each rank that never happens; their number where all do.
std::vector<uint32_t> TransferChecker::runQueues() const {
  std::vector<uint32_t> heads(schedule.numRanks, 0);
  std::vector<uint32_t> ready;
  for (uint32_t rank = schedule.numRanks; rank-- > 0;)
    ready.push_back(rank);
  while (!ready.empty()) {
    uint32_t rank = ready.back();
    ready.pop_back();
    while (heads[rank] != schedule.ranks[rank].transfers.size()) {
      EndRef other = getOther({rank, heads[rank]});
      if (heads[other.rank] != other.end)
        break;
      ++heads[rank];
      ++heads[other.rank];
      ready.push_back(other.rank);
    }
  }
  return heads;
}

/// Follows from rank to rank what each waits for, up to the first rank that comes twice.
std::vector<EndRef> TransferChecker::findCycleFrom(uint32_t rank,
                                                   const std::vector<uint32_t> &heads) const {
  std::vector<EndRef> path;
  std::vector<std::optional<size_t>> seen(schedule.numRanks);
  while (!seen[rank]) {
    seen[rank] = path.size();
    path.push_back({rank, heads[rank]});
    rank = getOther(path.back()).rank;
  }
  return {path.begin() + *seen[rank], path.end()};
}

void TransferChecker::checkProgress() {
  std::vector<uint32_t> heads = runQueues();
  std::vector<EndRef> shortest;
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    if (heads[rank] == schedule.ranks[rank].transfers.size())
      continue;
    std::vector<EndRef> cycle = findCycleFrom(rank, heads);
    if (shortest.empty() || cycle.size() < shortest.size())
      shortest = std::move(cycle);
  }
  if (!shortest.empty())
    reportCycle(shortest, heads);
}

void TransferChecker::reportCycle(const std::vector<EndRef> &cycle,
                                  const std::vector<uint32_t> &heads) {
  std::vector<Note> notes;
  for (EndRef ref : cycle) {
    EndRef other = getOther(ref);
    EndRef first{other.rank, heads[other.rank]};
    notes.push_back({getLoc(ref), fmt::format("rank {}: {} waits for {} on rank {}", ref.rank,
                                              describe(ref), describe(other), other.rank)});
    notes.push_back({getLoc(other), fmt::format("rank {}: {} stands after {}", other.rank,
                                                describe(other), describe(first))});
  }
  constexpr size_t kMaxNotes = 20;
  size_t shown = std::min(notes.size(), kMaxNotes);
  size_t left = notes.size() - shown;
  notes.resize(shown);
  if (left != 0)
    notes.push_back(
        {notes.back().loc, fmt::format("{} more steps of the circle are not shown", left)});
  report(
      "D3", getLoc(cycle.front()),
      fmt::format("the transfers cannot finish: {} ranks wait for each other in a circle; a send "
                  "may block until its receive is reached",
                  cycle.size()),
      notes);
}

void TransferChecker::run() {
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank)
    for (uint32_t i = 0; i != schedule.ranks[rank].transfers.size(); ++i)
      placeEnd({rank, i});
  requireEnds();
  if (findings.empty())
    checkChannels();
  if (findings.empty())
    checkProgress();
  findings.flush(sink, schedule.loc);
}

void dualpipe::checkTransfers(const OpIndex &index, DiagnosticSink &sink) {
  TransferChecker(index, sink).run();
}
