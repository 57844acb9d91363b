//===- Gaps.cpp - weight halves where a rank would wait ----------------------===//

#include "dualpipe/Schedule/Gaps.h"
#include "dualpipe/Schedule/Timeline.h"

#include <map>
#include <queue>

using namespace dualpipe;

namespace {

/// Rebuilds the order of one rank with its floating halves.
class RankFiller {
public:
  RankFiller(const Schedule &schedule, uint32_t rank, const Timeline &timeline, const Costs &costs)
      : old(schedule.ranks[rank]), rank(rank), timeline(timeline), costs(costs) {}

  RankOrder fill(const std::vector<FloatingHalf> &halves);

private:
  /// A half whose `bwd_input` has run.
  struct Pending {
    size_t age;
    const FloatingHalf *half;
  };

  void fillGap(Ticks gap);
  bool placeOldest(Ticks &gap);
  void copyGroup(size_t begin, size_t end);
  void placeRest();
  void place(const FloatingHalf &half);
  void enterPhase(uint32_t phase);

  const RankOrder &old;
  uint32_t rank;
  const Timeline &timeline;
  const Costs &costs;
  RankOrder order;
  /// Halves whose `bwd_input` has not been met, by stage and micro-batch, in the
  /// order in which they were given.
  std::map<std::pair<uint32_t, uint32_t>, std::vector<const FloatingHalf *>> later;
  /// Halves of one stage take equally long: its oldest stands for all.
  std::map<uint32_t, std::queue<Pending>> pending;
  size_t nextPhase = 0;
  uint32_t oldPhase = ~0u;
};

} // namespace

RankOrder RankFiller::fill(const std::vector<FloatingHalf> &halves) {
  for (const FloatingHalf &half : halves)
    later[{half.stage, half.microbatch}].push_back(&half);
  Ticks free = 0;
  for (size_t begin = 0, end; begin != old.size(); begin = end) {
    end = old.groupEnd(begin);
    fillGap(timeline.getStart(rank, begin) - free);
    copyGroup(begin, end);
    free = timeline.getEnd(rank, begin);
  }
  placeRest();
  return std::move(order);
}

void RankFiller::fillGap(Ticks gap) {
  while (gap > 0 && placeOldest(gap))
    ;
}

/// Places the oldest half that fits into `gap` and takes its time off.
bool RankFiller::placeOldest(Ticks &gap) {
  std::queue<Pending> *oldest = nullptr;
  for (auto &[stage, queue] : pending)
    if (!queue.empty() && costs.get(OpKind::BackwardWeight, stage) <= gap &&
        (!oldest || queue.front().age < oldest->front().age))
      oldest = &queue;
  if (!oldest)
    return false;
  gap -= costs.get(OpKind::BackwardWeight, oldest->front().half->stage);
  place(*oldest->front().half);
  oldest->pop();
  return true;
}

void RankFiller::copyGroup(size_t begin, size_t end) {
  for (size_t op = begin; op != end; ++op) {
    while (nextPhase != old.phases.size() && old.phases[nextPhase].begin <= op)
      oldPhase = old.phases[nextPhase++].name;
    enterPhase(oldPhase);
    order.push(old.kind[op], old.stage[op], old.microbatch[op], old.group[op], old.loc[op]);
    if (old.kind[op] != OpKind::BackwardInput)
      continue;
    auto found = later.find({old.stage[op], old.microbatch[op]});
    if (found == later.end())
      continue;
    for (const FloatingHalf *half : found->second)
      pending[half->stage].push({op, half});
    later.erase(found);
  }
}

/// The end of the order: what found no gap, then what has no `bwd_input`.
void RankFiller::placeRest() {
  std::map<size_t, std::vector<const FloatingHalf *>> byAge;
  for (auto &[stage, queue] : pending)
    for (; !queue.empty(); queue.pop())
      byAge[queue.front().age].push_back(queue.front().half);
  for (const auto &[age, halves] : byAge)
    for (const FloatingHalf *half : halves)
      place(*half);
  for (const auto &[key, halves] : later)
    for (const FloatingHalf *half : halves)
      place(*half);
}

void RankFiller::place(const FloatingHalf &half) {
  enterPhase(half.phase);
  order.push(OpKind::BackwardWeight, half.stage, half.microbatch, RankOrder::kAlone, half.loc);
}

void RankFiller::enterPhase(uint32_t phase) {
  uint32_t current = order.phases.empty() ? ~0u : order.phases.back().name;
  if (phase != current)
    order.phases.push_back({phase, uint32_t(order.size())});
}

/// Where the ops stand that other ranks wait for.
static OpIndex indexOps(const Schedule &schedule) {
  OpIndex index(schedule);
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    const RankOrder &order = schedule.ranks[rank];
    for (uint32_t op = 0; op != order.size(); ++op) {
      bool isForward = order.kind[op] == OpKind::Forward;
      if (order.kind[op] == OpKind::BackwardWeight)
        continue;
      Product product = isForward ? Product::Output : Product::InputGrad;
      OpRef *place = index.find(product, order.stage[op], order.microbatch[op]);
      if (place && !place->isValid())
        *place = {rank, op};
    }
  }
  return index;
}

void dualpipe::placeInGaps(Schedule &schedule, const std::vector<FloatingHalf> &halves,
                           const Costs &costs) {
  std::vector<std::vector<FloatingHalf>> byRank(schedule.numRanks);
  for (const FloatingHalf &half : halves)
    byRank[half.rank].push_back(half);
  OpIndex index = indexOps(schedule);
  Timeline timeline(index, costs);
  std::vector<RankOrder> filled;
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank)
    filled.push_back(RankFiller(schedule, rank, timeline, costs).fill(byRank[rank]));
  schedule.ranks = std::move(filled);
}
