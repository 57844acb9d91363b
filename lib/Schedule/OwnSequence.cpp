//===- OwnSequence.cpp - one sequence around hand-placed transfers ----------===//
//
// A schedule that places its transfers fixes the order of computes and transfers on
// each rank. One sequence over all ranks that keeps all these orders, with both ends
// of a transfer as one event, is found by taking the earliest event of those that come
// next on all their ranks. Reductions enter it when the last of their producers has
// run, so every list is again a projection of one sequence.
//
//===----------------------------------------------------------------------===//

#include "TimelineKey.h"
#include "dualpipe/Schedule/Transfers.h"

#include <algorithm>
#include <queue>

using namespace dualpipe;
using Kind = TimelineEntry::Kind;

namespace dualpipe {

class OwnSequence {
public:
  explicit OwnSequence(const Timeline &timeline)
      : timeline(timeline), index(timeline.index), schedule(index.getSchedule()), places(schedule),
        heads(schedule.numRanks), lists(schedule.numRanks) {}

  std::vector<std::vector<TimelineEntry>> run();

private:
  using Key = Timeline::Key;
  /// What comes next on a rank: the transfer, where it stands before the op.
  struct Head {
    uint32_t op = 0;
    uint32_t transfer = 0;
  };

  void setUp();
  void placeEnds(uint32_t rank);
  void findReductions(uint32_t rank);
  bool isAtTransfer(uint32_t rank, uint32_t end) const;
  void offerHead(uint32_t rank);
  void takeCompute(OpRef first);
  void takeTransfer(OpRef producer);
  void takeReduction(OpRef last);
  void countGradient(uint32_t rank, uint32_t op);

  const Timeline &timeline;
  const OpIndex &index;
  const Schedule &schedule;
  TransferIndex places;
  std::vector<Head> heads;
  std::vector<std::vector<TimelineEntry>> lists;
  std::vector<size_t> gradientsLeft; ///< by stage, over all copies
  /// By rank, as on a derived timeline, in its order.
  std::vector<std::vector<TimelineEntry>> reductions, steps;
  std::priority_queue<Key, std::vector<Key>, bool (*)(const Key &, const Key &)> ready{
      [](const Key &a, const Key &b) { return b < a; }};
};

} // namespace dualpipe

static bool makesWeightGrad(OpKind kind) {
  return kind == OpKind::Backward || kind == OpKind::BackwardWeight;
}

void OwnSequence::placeEnds(uint32_t rank) {
  const std::vector<RankOrder::Transfer> &transfers = schedule.ranks[rank].transfers;
  for (uint32_t i = 0; i != transfers.size(); ++i) {
    OpRef producer = findOps(index, transfers[i]).producer;
    (transfers[i].isSend ? places.getSend(producer) : places.getRecv(producer)) = i;
  }
}

void OwnSequence::findReductions(uint32_t rank) {
  const RankOrder &order = schedule.ranks[rank];
  for (uint32_t op = 0; op != order.size(); ++op)
    if (makesWeightGrad(order.kind[op]))
      ++gradientsLeft[order.stage[op]];

  std::vector<Timeline::Placed> list;
  timeline.addReductions(rank, list);
  std::sort(list.begin(), list.end(), [](const auto &a, const auto &b) { return a.key < b.key; });
  for (const Timeline::Placed &placed : list)
    (placed.entry.kind == Kind::Step ? steps : reductions)[rank].push_back(placed.entry);
}

void OwnSequence::setUp() {
  gradientsLeft.resize(schedule.numStages);
  reductions.resize(schedule.numRanks);
  steps.resize(schedule.numRanks);
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    placeEnds(rank);
    if (schedule.training)
      findReductions(rank);
  }
}

/// The rank has come to this end of a transfer, and no further.
bool OwnSequence::isAtTransfer(uint32_t rank, uint32_t end) const {
  const Head &head = heads[rank];
  return head.transfer == end && schedule.ranks[rank].transfers[end].before == head.op;
}

/// Makes what comes next on the rank ready, if all other ranks have come to it too.
void OwnSequence::offerHead(uint32_t rank) {
  const RankOrder &order = schedule.ranks[rank];
  const Head &head = heads[rank];
  if (head.transfer != order.transfers.size() && isAtTransfer(rank, head.transfer)) {
    auto [producer, consumer] = findOps(index, order.transfers[head.transfer]);
    if (isAtTransfer(producer.rank, places.getSend(producer)) &&
        isAtTransfer(consumer.rank, places.getRecv(producer)))
      ready.push({timeline.getEnd(producer.rank, producer.op), Key::Transfer, producer});
    return;
  }
  if (head.op != order.size())
    ready.push({timeline.getStart(rank, head.op), Key::Compute, {rank, head.op}});
}

void OwnSequence::countGradient(uint32_t rank, uint32_t op) {
  const RankOrder &order = schedule.ranks[rank];
  uint32_t stage = order.stage[op];
  if (!makesWeightGrad(order.kind[op]) || --gradientsLeft[stage] != 0 ||
      timeline.copies[stage].size() == 1)
    return;
  OpRef last = timeline.lastGradient[stage];
  ready.push({timeline.getEnd(last.rank, last.op), Key::Reduction, last});
}

void OwnSequence::takeCompute(OpRef first) {
  const RankOrder &order = schedule.ranks[first.rank];
  uint32_t end = uint32_t(order.groupEnd(first.op));
  lists[first.rank].push_back({Kind::Compute, false, first.op, order.stage[first.op],
                               order.microbatch[first.op], first.rank, order.loc[first.op]});
  for (uint32_t op = first.op; op != end; ++op)
    countGradient(first.rank, op);
  heads[first.rank].op = end;
  offerHead(first.rank);
}

void OwnSequence::takeTransfer(OpRef producer) {
  OpRef consumer = index.getConsumer(producer.rank, producer.op);
  const RankOrder &from = schedule.ranks[producer.rank], &to = schedule.ranks[consumer.rank];
  // Where two ranks come from one transfer to the next, both offer it.
  if (!isAtTransfer(producer.rank, places.getSend(producer)))
    return;
  const RankOrder::Transfer &send = from.transfers[places.getSend(producer)];
  const RankOrder::Transfer &recv = to.transfers[places.getRecv(producer)];
  lists[producer.rank].push_back(
      {Kind::Send, send.isGrad, producer.op, recv.stage, send.microbatch, consumer.rank, send.loc});
  lists[consumer.rank].push_back(
      {Kind::Recv, send.isGrad, consumer.op, recv.stage, send.microbatch, producer.rank, recv.loc});
  ++heads[producer.rank].transfer;
  ++heads[consumer.rank].transfer;
  offerHead(producer.rank);
  offerHead(consumer.rank);
}

void OwnSequence::takeReduction(OpRef last) {
  uint32_t stage = schedule.ranks[last.rank].stage[last.op];
  for (uint32_t rank : timeline.copies[stage])
    for (const TimelineEntry &entry : reductions[rank])
      if (entry.stage == stage)
        lists[rank].push_back(entry);
}

std::vector<std::vector<TimelineEntry>> OwnSequence::run() {
  setUp();
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank)
    offerHead(rank);
  while (!ready.empty()) {
    Key key = ready.top();
    ready.pop();
    switch (key.kind) {
    case Key::Transfer:
      takeTransfer(key.op);
      break;
    case Key::Reduction:
      takeReduction(key.op);
      break;
    case Key::Compute:
      takeCompute(key.op);
      break;
    }
  }
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank)
    lists[rank].insert(lists[rank].end(), steps[rank].begin(), steps[rank].end());
  return std::move(lists);
}

void Timeline::placeOwnTransfers() { ownLists = OwnSequence(*this).run(); }
