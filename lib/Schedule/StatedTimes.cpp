//===- StatedTimes.cpp - orders from the times of a timeline ----------------===//

#include "dualpipe/Schedule/StatedTimes.h"

#include <algorithm>
#include <deque>
#include <map>

using namespace dualpipe;

namespace {

/// Builds the order of one rank.
class RankBuilder {
public:
  RankBuilder(const Costs &costs, RankOrder &order) : costs(costs), order(order) {
    for (uint32_t used : order.group)
      if (used != RankOrder::kAlone)
        nextGroup = std::max(nextGroup, used + 1);
  }

  void addTimed(const TimedOp &op) { timed.push_back(&op); }
  void addHalf(const TimedOp &op) { halves.emplace(std::pair(op.stage, op.microbatch), &op); }
  void build();

private:
  void releaseEarlierHalves();
  size_t getGroupEnd(size_t begin) const;
  Ticks getDuration(size_t begin, size_t end) const;
  void fill(Ticks from, int64_t until);
  void push(const TimedOp &op, uint32_t group);
  void release(const TimedOp &inputHalf);

  const Costs &costs;
  RankOrder &order;
  std::vector<const TimedOp *> timed;
  /// Halves whose input half has not run yet.
  std::map<std::pair<uint32_t, uint32_t>, const TimedOp *> halves;
  /// Halves that may run, the oldest first.
  std::deque<const TimedOp *> ready;
  uint32_t nextGroup = 0;
};

} // namespace

size_t RankBuilder::getGroupEnd(size_t begin) const {
  size_t end = begin + 1;
  if (timed[begin]->group != RankOrder::kAlone)
    while (end != timed.size() && timed[end]->group == timed[begin]->group)
      ++end;
  return end;
}

Ticks RankBuilder::getDuration(size_t begin, size_t end) const {
  if (end - begin > 1 && costs.fused)
    return *costs.fused;
  Ticks sum = 0;
  for (size_t i = begin; i != end; ++i)
    sum += costs.get(timed[i]->kind, timed[i]->stage);
  return sum;
}

void RankBuilder::push(const TimedOp &op, uint32_t group) {
  uint32_t recorded = order.phases.empty() ? TimedOp::kNoPhase : order.phases.back().name;
  if (op.phase != recorded)
    order.phases.push_back({op.phase, static_cast<uint32_t>(order.size())});
  order.push(op.kind, op.stage, op.microbatch, group, op.loc);
}

/// The weight half of `inputHalf` may run from now on.
void RankBuilder::release(const TimedOp &inputHalf) {
  auto half = halves.find({inputHalf.stage, inputHalf.microbatch});
  if (inputHalf.kind != OpKind::BackwardInput || half == halves.end())
    return;
  ready.push_back(half->second);
  halves.erase(half);
}

/// Input halves of earlier sections come before all that is timed here.
void RankBuilder::releaseEarlierHalves() {
  for (size_t op = 0; op != order.size(); ++op) {
    TimedOp earlier;
    earlier.kind = order.kind[op];
    earlier.stage = order.stage[op];
    earlier.microbatch = order.microbatch[op];
    release(earlier);
  }
}

/// Puts ready halves between `from` and the time `until`.
void RankBuilder::fill(Ticks from, int64_t until) {
  Ticks limit = until * Costs::kTicksPerUnit;
  while (!ready.empty()) {
    auto fits = [&](const TimedOp *half) {
      return costs.get(half->kind, half->stage) <= limit - from;
    };
    auto half = std::find_if(ready.begin(), ready.end(), fits);
    if (half == ready.end())
      break;
    from += costs.get((*half)->kind, (*half)->stage);
    push(**half, RankOrder::kAlone);
    ready.erase(half);
  }
}

void RankBuilder::build() {
  auto isEarlier = [](const TimedOp *a, const TimedOp *b) { return a->time < b->time; };
  std::stable_sort(timed.begin(), timed.end(), isEarlier);
  releaseEarlierHalves();
  for (size_t begin = 0, end; begin != timed.size(); begin = end) {
    end = getGroupEnd(begin);
    uint32_t group = end - begin > 1 ? nextGroup++ : RankOrder::kAlone;
    for (size_t i = begin; i != end; ++i)
      push(*timed[i], group);
    for (size_t i = begin; i != end; ++i)
      release(*timed[i]);
    if (end == timed.size() || ready.empty())
      continue;
    Ticks stop = timed[begin]->time * Costs::kTicksPerUnit + getDuration(begin, end);
    fill(stop, timed[end]->time);
  }
  for (const TimedOp *half : ready)
    push(*half, RankOrder::kAlone);
  // Without an input half: the checker says what is wrong.
  for (const auto &[place, half] : halves)
    push(*half, RankOrder::kAlone);
}

void dualpipe::appendByTime(Schedule &schedule, const std::vector<TimedOp> &ops,
                            const Costs &costs) {
  std::vector<RankBuilder> builders;
  builders.reserve(schedule.numRanks);
  for (RankOrder &order : schedule.ranks)
    builders.emplace_back(costs, order);
  for (const TimedOp &op : ops) {
    if (op.inGaps)
      builders[op.rank].addHalf(op);
    else
      builders[op.rank].addTimed(op);
  }
  for (RankBuilder &builder : builders)
    builder.build();
}
