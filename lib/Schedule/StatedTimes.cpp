//===- StatedTimes.cpp - orders from the times of a timeline ----------------===//

#include "dualpipe/Schedule/StatedTimes.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <utility>

using namespace dualpipe;

namespace {

/// Halves that may run, by what they take; of each duration the oldest first. There are no more
/// durations than stages on the rank.
class ReadyHalves {
public:
  void add(const TimedOp *half, Ticks duration) { byDuration[duration].push_back({next++, half}); }
  bool empty() const { return byDuration.empty(); }
  /// Takes the oldest that lasts no longer than `room`, with its duration; null where none does.
  std::pair<const TimedOp *, Ticks> takeOldest(Ticks room);

private:
  struct Entry {
    uint64_t age;
    const TimedOp *half;
  };
  std::map<Ticks, std::deque<Entry>> byDuration;
  uint64_t next = 0;
};

/// Builds the order of one rank.
class RankBuilder {
public:
  RankBuilder(const Costs &costs, RankOrder &order) : costs(costs), order(order) {
    for (uint32_t used : order.group)
      if (used != RankOrder::kAlone)
        nextGroup = std::max(nextGroup, used + 1);
  }

  void addTimed(const TimedOp &op) { timed.push_back(&op); }
  void addHalf(const TimedOp &op) { halves.push_back(&op); }
  void build();

private:
  void releaseEarlierHalves();
  size_t getGroupEnd(size_t begin) const;
  Ticks getDuration(size_t begin, size_t end) const;
  void fill(Ticks from, Ticks until);
  void push(const TimedOp &op, uint32_t group);
  void release(OpKind kind, uint32_t stage, uint32_t mb);

  const Costs &costs;
  RankOrder &order;
  std::vector<const TimedOp *> timed;
  /// By stage and micro-batch.
  std::vector<const TimedOp *> halves;
  std::vector<bool> released;
  ReadyHalves ready;
  uint32_t nextGroup = 0;
};

} // namespace

std::pair<const TimedOp *, Ticks> ReadyHalves::takeOldest(Ticks room) {
  auto oldest = byDuration.end();
  for (auto it = byDuration.begin(); it != byDuration.end() && it->first <= room; ++it)
    if (oldest == byDuration.end() || it->second.front().age < oldest->second.front().age)
      oldest = it;
  if (oldest == byDuration.end())
    return {nullptr, 0};
  std::pair<const TimedOp *, Ticks> taken{oldest->second.front().half, oldest->first};
  oldest->second.pop_front();
  if (oldest->second.empty())
    byDuration.erase(oldest);
  return taken;
}

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
  order.enterPhase(op.phase);
  order.push(op.kind, op.stage, op.microbatch, group, op.loc);
}

static auto getPlace(uint32_t stage, uint32_t mb) { return std::pair(stage, mb); }

static bool standsBefore(const TimedOp *a, const TimedOp *b) {
  return getPlace(a->stage, a->microbatch) < getPlace(b->stage, b->microbatch);
}

/// After an input half its weight half may run. One that is stated twice is released once: the
/// other goes to the end, where the checker finds it.
void RankBuilder::release(OpKind kind, uint32_t stage, uint32_t mb) {
  if (kind != OpKind::BackwardInput)
    return;
  TimedOp wanted;
  wanted.stage = stage;
  wanted.microbatch = mb;
  auto half = std::lower_bound(halves.begin(), halves.end(), &wanted, standsBefore);
  if (half == halves.end() || standsBefore(&wanted, *half) || released[half - halves.begin()])
    return;
  released[half - halves.begin()] = true;
  ready.add(*half, costs.get((*half)->kind, (*half)->stage));
}

/// Input halves of earlier sections come before all that is timed here.
void RankBuilder::releaseEarlierHalves() {
  for (size_t op = 0; op != order.size(); ++op)
    release(order.kind[op], order.stage[op], order.microbatch[op]);
}

/// Puts ready halves between two times.
void RankBuilder::fill(Ticks from, Ticks until) {
  while (true) {
    auto [half, duration] = ready.takeOldest(until - from);
    if (!half)
      return;
    push(*half, RankOrder::kAlone);
    from += duration;
  }
}

void RankBuilder::build() {
  auto isEarlier = [](const TimedOp *a, const TimedOp *b) { return a->time < b->time; };
  std::stable_sort(timed.begin(), timed.end(), isEarlier);
  std::stable_sort(halves.begin(), halves.end(), standsBefore);
  released.resize(halves.size());
  releaseEarlierHalves();
  for (size_t begin = 0, end; begin != timed.size(); begin = end) {
    end = getGroupEnd(begin);
    uint32_t group = end - begin > 1 ? nextGroup++ : RankOrder::kAlone;
    for (size_t i = begin; i != end; ++i)
      push(*timed[i], group);
    for (size_t i = begin; i != end; ++i)
      release(timed[i]->kind, timed[i]->stage, timed[i]->microbatch);
    if (end == timed.size() || ready.empty())
      continue;
    Ticks stop = timed[begin]->time * Costs::kTicksPerUnit + getDuration(begin, end);
    fill(stop, timed[end]->time * Costs::kTicksPerUnit);
  }
  fill(0, std::numeric_limits<Ticks>::max());
  // Without an input half, or stated twice: the checker says what is wrong.
  for (size_t i = 0; i != halves.size(); ++i)
    if (!released[i])
      push(*halves[i], RankOrder::kAlone);
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
