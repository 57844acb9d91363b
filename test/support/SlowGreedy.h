//===- SlowGreedy.h - list scheduling written down word by word -------------===//
//
// The semantics of `greedy` as docs/rules.md states them, with nothing clever: at
// every time every rank looks at every micro-batch, and every count is made from
// the whole history. For comparison with the real one on small schedules.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_TEST_SUPPORT_SLOWGREEDY_H
#define DUALPIPE_TEST_SUPPORT_SLOWGREEDY_H

#include "dualpipe/Schedule/Greedy.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace dualpipe::test {

class SlowGreedy {
public:
  SlowGreedy(Schedule &schedule, const GreedyRules &rules, const Costs &costs)
      : schedule(schedule), rules(rules), costs(costs) {}

  /// \returns whether no rank is stuck at the end.
  bool run() {
    for (uint32_t rank = 0; rank != schedule.numRanks; ++rank)
      for (size_t op = 0; op != schedule.ranks[rank].size(); ++op)
        reserved.insert(opAt(rank, op));
    std::vector<size_t> next(schedule.numRanks), fixed(schedule.numRanks);
    std::vector<Ticks> freeAt(schedule.numRanks, 0);
    for (uint32_t rank = 0; rank != schedule.numRanks; ++rank)
      fixed[rank] = schedule.ranks[rank].size();
    times.insert(0);
    while (!times.empty()) {
      Ticks now = last = *times.begin();
      times.erase(times.begin());
      for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
        if (freeAt[rank] > now)
          continue;
        std::vector<Op> group;
        RankOrder &order = schedule.ranks[rank];
        if (next[rank] != fixed[rank])
          group = nextFixed(rank, next[rank], now);
        else if (!isStopped(rank))
          group = choose(rank, now);
        if (group.empty())
          continue;
        freeAt[rank] = now + duration(group);
        if (next[rank] != fixed[rank])
          next[rank] = order.groupEnd(next[rank]);
        for (Op op : group) {
          history[op] = {now, freeAt[rank]};
          times.insert(freeAt[rank]);
          times.insert(freeAt[rank] + costs.getTransfer());
        }
      }
    }
    for (uint32_t rank = 0; rank != schedule.numRanks; ++rank)
      if (!rules.ranks[rank].choices.empty() && !isStopped(rank) &&
          (next[rank] != fixed[rank] || isHeldBack(rank)))
        return false;
    return true;
  }

private:
  using Op = std::tuple<OpKind, uint32_t, uint32_t>; // kind, stage, micro-batch
  struct Span {
    Ticks start, end;
  };

  Op opAt(uint32_t rank, size_t i) const {
    const RankOrder &order = schedule.ranks[rank];
    return {order.kind[i], order.stage[i], order.microbatch[i]};
  }
  const Pipeline &pipelineOf(uint32_t mb) const {
    return schedule.pipelines[schedule.findPipeline(mb)];
  }

  /// When one of the ops was started or ended at the latest, if at all.
  std::optional<Span> find(std::initializer_list<OpKind> kinds, uint32_t stage, uint32_t mb) const {
    for (OpKind kind : kinds)
      if (auto found = history.find({kind, stage, mb}); found != history.end())
        return found->second;
    return std::nullopt;
  }
  static constexpr std::initializer_list<OpKind> kForward = {OpKind::Forward};
  static constexpr std::initializer_list<OpKind> kInputGrad = {OpKind::Backward,
                                                               OpKind::BackwardInput};
  static constexpr std::initializer_list<OpKind> kWeightGrad = {OpKind::Backward,
                                                                OpKind::BackwardWeight};

  bool isReady(Op op, Ticks now) const {
    auto [kind, stage, mb] = op;
    const Pipeline &pipeline = pipelineOf(mb);
    uint32_t rank = pipeline.getRank(stage);
    auto arrived = [&](std::initializer_list<OpKind> kinds, uint32_t from) {
      std::optional<Span> span = find(kinds, from, mb);
      Ticks latency = pipeline.getRank(from) == rank ? 0 : costs.getTransfer();
      return span && span->end + latency <= now;
    };
    switch (kind) {
    case OpKind::Forward:
      return stage == pipeline.firstStage || arrived(kForward, stage - 1);
    case OpKind::BackwardWeight:
      return arrived({OpKind::BackwardInput}, stage);
    default:
      return arrived(kForward, stage) &&
             (stage == pipeline.getLastStage() || arrived(kInputGrad, stage + 1));
    }
  }

  bool isTaken(Op op) const {
    auto [kind, stage, mb] = op;
    auto has = [&](OpKind other) { return reserved.count({other, stage, mb}) != 0; };
    switch (kind) {
    case OpKind::Forward:
      return has(OpKind::Forward);
    case OpKind::BackwardWeight:
      return has(OpKind::Backward) || has(OpKind::BackwardWeight);
    default:
      return has(OpKind::Backward) || has(OpKind::BackwardInput);
    }
  }

  Ticks duration(const std::vector<Op> &group) const {
    if (costs.fused && group.size() > 1)
      return *costs.fused;
    Ticks sum = 0;
    for (auto [kind, stage, mb] : group)
      sum += costs.get(kind, stage);
    return sum;
  }

  std::vector<Op> nextFixed(uint32_t rank, size_t begin, Ticks now) const {
    std::vector<Op> group;
    for (size_t i = begin; i != schedule.ranks[rank].groupEnd(begin); ++i) {
      if (!isReady(opAt(rank, i), now))
        return {};
      group.push_back(opAt(rank, i));
    }
    return group;
  }

  static bool begins(OpKind op, OpKind limit) {
    switch (limit) {
    case OpKind::Forward:
      return op == OpKind::Forward;
    case OpKind::BackwardWeight:
      return op == OpKind::BackwardWeight || op == OpKind::Backward;
    default:
      return op == OpKind::Backward || op == OpKind::BackwardInput;
    }
  }

  /// Whether `op` may start beside `chosen`.
  bool isAllowed(Op op, uint32_t pipeline, uint32_t rank, const std::vector<Op> &chosen,
                 Ticks now) const {
    for (const Limit &limit : rules.ranks[rank].limits) {
      auto [kind, stage, mb] = op;
      if (!begins(kind, limit.from) || std::find(limit.chunks.begin(), limit.chunks.end(),
                                                 ChunkRef{pipeline, stage}) == limit.chunks.end())
        continue;
      if (countBetween(limit, chosen, now) + 1 > limit.most)
        return false;
    }
    auto [kind, stage, mb] = op;
    int64_t takes = kind == OpKind::Forward         ? schedule.memory.getActivation(stage)
                    : kind == OpKind::BackwardInput ? schedule.memory.getContext(stage)
                                                    : 0;
    std::optional<int64_t> most = schedule.memory.getLimit(rank);
    return !most || takes == 0 || countHeld(rank, chosen, now) + takes <= *most;
  }

  int64_t countBetween(const Limit &limit, const std::vector<Op> &chosen, Ticks now) const {
    auto toKinds = limit.to == OpKind::Forward         ? kForward
                   : limit.to == OpKind::BackwardInput ? kInputGrad
                                                       : kWeightGrad;
    int64_t count = 0;
    for (ChunkRef chunk : limit.chunks) {
      const Pipeline &pipeline = schedule.pipelines[chunk.pipeline];
      for (uint32_t i = 0; i != pipeline.numMicrobatches; ++i) {
        uint32_t mb = pipeline.firstMicrobatch + i;
        auto isBegin = [&](Op op) {
          auto [kind, stage, other] = op;
          return begins(kind, limit.from) && stage == chunk.stage && other == mb;
        };
        bool begun = std::any_of(chosen.begin(), chosen.end(), isBegin);
        for (const auto &[op, span] : history)
          begun |= isBegin(op);
        std::optional<Span> to = find(toKinds, chunk.stage, mb);
        count += begun && !(to && to->end <= now);
      }
    }
    return count;
  }

  int64_t countHeld(uint32_t rank, const std::vector<Op> &chosen, Ticks now) const {
    int64_t held = 0;
    auto add = [&](Op op) {
      auto [kind, stage, mb] = op;
      if (pipelineOf(mb).getRank(stage) != rank)
        return;
      std::optional<Span> done = find(kWeightGrad, stage, mb);
      if (done && done->end <= now)
        return;
      if (kind == OpKind::Forward)
        held += schedule.memory.getActivation(stage);
      if (kind == OpKind::BackwardInput)
        held += schedule.memory.getContext(stage);
    };
    for (const auto &[op, span] : history)
      add(op);
    for (Op op : chosen)
      add(op);
    return held;
  }

  std::optional<Op> pick(const Member &member, uint32_t rank, const std::vector<Op> &chosen,
                         Ticks now) const {
    for (uint32_t i = 0; i != schedule.numMicrobatches; ++i)
      for (ChunkRef chunk : member.chunks) {
        const Pipeline &pipeline = schedule.pipelines[chunk.pipeline];
        if (i >= pipeline.numMicrobatches)
          continue;
        Op op{member.kind, chunk.stage, pipeline.firstMicrobatch + i};
        bool isChosen = std::any_of(chosen.begin(), chosen.end(), [&](Op other) {
          return std::get<1>(other) == std::get<1>(op) && std::get<2>(other) == std::get<2>(op);
        });
        if (!isChosen && !isTaken(op) && isReady(op, now) &&
            isAllowed(op, chunk.pipeline, rank, chosen, now))
          return op;
      }
    return std::nullopt;
  }

  std::vector<Op> choose(uint32_t rank, Ticks now) {
    for (const Choice &choice : rules.ranks[rank].choices) {
      std::vector<Op> chosen;
      for (const Member &member : choice.members)
        if (std::optional<Op> op = pick(member, rank, chosen, now))
          chosen.push_back(*op);
      if (chosen.size() != choice.members.size())
        continue;
      RankOrder &order = schedule.ranks[rank];
      uint32_t group = 0;
      for (uint32_t other : order.group)
        if (other != RankOrder::kAlone)
          group = std::max(group, other + 1);
      for (Op op : chosen) {
        auto [kind, stage, mb] = op;
        order.push(kind, stage, mb, chosen.size() == 1 ? RankOrder::kAlone : group, choice.loc);
        reserved.insert(op);
      }
      return chosen;
    }
    return {};
  }

  bool isStopped(uint32_t rank) const {
    for (const Stop &stop : rules.ranks[rank].stops) {
      int64_t count = 0;
      for (ChunkRef chunk : stop.what.chunks)
        for (const auto &[op, span] : history) {
          auto [kind, stage, mb] = op;
          count += begins(kind, stop.what.kind) && stage == chunk.stage &&
                   schedule.findPipeline(mb) == chunk.pipeline;
        }
      if (count >= stop.count)
        return true;
    }
    return false;
  }

  /// Whether something is ready for the rank although nothing runs any more.
  bool isHeldBack(uint32_t rank) const {
    for (const Choice &choice : rules.ranks[rank].choices)
      if (choice.members.size() == 1)
        for (ChunkRef chunk : choice.members[0].chunks) {
          const Pipeline &pipeline = schedule.pipelines[chunk.pipeline];
          for (uint32_t i = 0; i != pipeline.numMicrobatches; ++i) {
            Op op{choice.members[0].kind, chunk.stage, pipeline.firstMicrobatch + i};
            if (!isTaken(op) && isReady(op, last))
              return true;
          }
        }
    return false;
  }

  Schedule &schedule;
  const GreedyRules &rules;
  const Costs &costs;
  std::set<Ticks> times;
  Ticks last = 0;
  std::set<Op> reserved;
  std::map<Op, Span> history;
};

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_SUPPORT_SLOWGREEDY_H
