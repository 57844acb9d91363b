//===- Timeline.cpp - the global timeline of a schedule ---------------------===//

#include "TimelineKey.h"
#include "dualpipe/Schedule/Relaxation.h"

#include <algorithm>
#include <tuple>

using namespace dualpipe;

StageCopies dualpipe::getStageCopies(const Schedule &schedule) {
  StageCopies copies(schedule.numStages);
  for (const Pipeline &pipeline : schedule.pipelines)
    for (uint32_t s = 0; s != pipeline.numStages; ++s)
      copies[pipeline.firstStage + s].push_back(pipeline.placement[s]);
  for (std::vector<uint32_t> &ranks : copies) {
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  }
  return copies;
}

Timeline::Timeline(const OpIndex &index, const Costs &costs)
    : index(index), copies(getStageCopies(index.getSchedule())) {
  const Schedule &schedule = index.getSchedule();
  start.resize(schedule.numRanks);
  end.resize(schedule.numRanks);
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    size_t ops = schedule.ranks[rank].size();
    start[rank].resize(ops);
    end[rank].resize(ops);
  }

  visitInDependenceOrder(index, [&](uint32_t rank, size_t first, size_t last) {
    Ticks from = first == 0 ? 0 : end[rank][first - 1];
    for (size_t op = first; op != last; ++op) {
      OpRef producer = index.getProducer(rank, op);
      if (!producer.isValid())
        continue;
      Ticks latency = producer.rank == rank ? 0 : costs.getTransfer();
      from = std::max(from, end[producer.rank][producer.op] + latency);
    }
    Ticks to = from + costs.getGroup(schedule.ranks[rank], first, last);
    std::fill(start[rank].begin() + first, start[rank].begin() + last, from);
    std::fill(end[rank].begin() + first, end[rank].begin() + last, to);
    makespan = std::max(makespan, to);
  });
  if (schedule.training)
    findLastGradients();
  if (schedule.ownsTransfers)
    placeOwnTransfers();
}

/// For each stage the op that completes its gradient, over all copies.
void Timeline::findLastGradients() {
  const Schedule &schedule = index.getSchedule();
  lastGradient.resize(schedule.numStages);
  auto isLater = [&](OpRef a, OpRef b) {
    return std::tie(end[a.rank][a.op], a.rank, a.op) > std::tie(end[b.rank][b.op], b.rank, b.op);
  };
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    const RankOrder &order = schedule.ranks[rank];
    for (uint32_t op = 0; op != order.size(); ++op) {
      if (order.kind[op] != OpKind::Backward && order.kind[op] != OpKind::BackwardWeight)
        continue;
      OpRef here{rank, op};
      OpRef &last = lastGradient[order.stage[op]];
      if (!last.isValid() || isLater(here, last))
        last = here;
    }
  }
}

/// Sends of what this rank's ops make and receives of what they need.
void Timeline::addTransfers(uint32_t rank, std::vector<Placed> &list) const {
  using Kind = TimelineEntry::Kind;
  const Schedule &schedule = index.getSchedule();
  auto keyOf = [&](OpRef producer) {
    return Key{end[producer.rank][producer.op], Key::Transfer, producer};
  };
  const RankOrder &order = schedule.ranks[rank];
  for (uint32_t op = 0; op != order.size(); ++op) {
    bool isGrad = order.kind[op] != OpKind::Forward;
    uint32_t mb = order.microbatch[op];
    OpRef producer = index.getProducer(rank, op);
    if (producer.isValid() && producer.rank != rank)
      list.push_back({keyOf(producer),
                      {Kind::Recv, isGrad, op, order.stage[op], mb, producer.rank, order.loc[op]}});
    OpRef consumer = index.getConsumer(rank, op);
    if (consumer.isValid() && consumer.rank != rank)
      list.push_back({keyOf({rank, op}),
                      {Kind::Send, isGrad, op, schedule.ranks[consumer.rank].stage[consumer.op], mb,
                       consumer.rank, order.loc[op]}});
  }
}

/// Reductions of the stages held here, and at the very end one optimizer step
/// for each, in the order in which their gradients are complete.
void Timeline::addReductions(uint32_t rank, std::vector<Placed> &list) const {
  using Kind = TimelineEntry::Kind;
  const RankOrder &order = index.getSchedule().ranks[rank];
  std::vector<uint32_t> lastHere(copies.size(), ~0u);
  for (uint32_t op = 0; op != order.size(); ++op)
    if (order.kind[op] == OpKind::Backward || order.kind[op] == OpKind::BackwardWeight)
      lastHere[order.stage[op]] = op;
  for (uint32_t stage = 0; stage != copies.size(); ++stage) {
    uint32_t op = lastHere[stage];
    if (op == ~0u)
      continue;
    OpRef last = lastGradient[stage];
    Key key{end[last.rank][last.op], Key::Reduction, last};
    if (copies[stage].size() > 1)
      list.push_back({key, {Kind::Reduce, false, op, stage, 0, 0, order.loc[op]}});
    Key atTheEnd = key;
    atTheEnd.time += makespan + 1;
    list.push_back({atTheEnd, {Kind::Step, false, op, stage, 0, 0, order.loc[op]}});
  }
}

std::vector<TimelineEntry> Timeline::project(uint32_t rank) const {
  if (!ownLists.empty())
    return ownLists[rank];
  const Schedule &schedule = index.getSchedule();
  const RankOrder &order = schedule.ranks[rank];
  std::vector<Placed> list;
  list.reserve(order.size() * 3);
  for (size_t op = 0; op != order.size(); op = order.groupEnd(op))
    list.push_back({{start[rank][op], Key::Compute, {rank, uint32_t(op)}},
                    {TimelineEntry::Kind::Compute, false, uint32_t(op), order.stage[op],
                     order.microbatch[op], rank, order.loc[op]}});
  addTransfers(rank, list);
  if (schedule.training)
    addReductions(rank, list);

  std::sort(list.begin(), list.end(),
            [](const Placed &a, const Placed &b) { return a.key < b.key; });
  std::vector<TimelineEntry> entries;
  entries.reserve(list.size());
  for (const Placed &placed : list)
    entries.push_back(placed.entry);
  return entries;
}
