//===- Checker.cpp - the invariants of a schedule ---------------------------===//

#include "dualpipe/Schedule/Checker.h"
#include "dualpipe/Schedule/Relaxation.h"

#include <fmt/format.h>
#include <map>
#include <set>

using namespace dualpipe;

namespace {

/// After this many findings the rest is only counted: one slip in a loop makes
/// thousands.
constexpr size_t kMaxFindings = 20;

std::string describe(OpKind kind, uint32_t stage, uint32_t mb) {
  return fmt::format("{} of stage {}, micro-batch {}", getKeyword(kind), stage, mb);
}

class Checker {
public:
  Checker(const Schedule &schedule, DiagnosticSink &sink)
      : schedule(schedule), index(schedule), sink(sink) {}

  OpIndex run() {
    size_t before = sink.numErrors();
    placeOps();
    requireEveryOp();
    if (sink.numErrors() == before)
      checkOrderOnRanks();
    if (sink.numErrors() == before)
      checkGroups();
    if (sink.numErrors() == before)
      checkCycles();
    if (findings > kMaxFindings)
      sink.error(schedule.loc, fmt::format("{} more findings of this kind are not shown",
                                           findings - kMaxFindings));
    return std::move(index);
  }

private:
  /// Reports a finding, or only counts it once there are many.
  template <typename... Notes>
  void report(const char *id, SourceLoc loc, const std::string &message, Notes... notes) {
    if (++findings > kMaxFindings)
      return;
    Diagnostic &diagnostic = sink.error(loc, fmt::format("{}: {}", id, message));
    (diagnostic.note(notes.first, notes.second), ...);
  }

  using Note = std::pair<SourceLoc, std::string>;

  SourceLoc getLoc(OpRef ref) const { return schedule.getLoc(ref.rank, ref.op); }
  std::string describe(OpRef ref) const {
    const RankOrder &order = schedule.ranks[ref.rank];
    return ::describe(order.kind[ref.op], order.stage[ref.op], order.microbatch[ref.op]);
  }

  void placeOps();
  void placeOp(uint32_t rank, uint32_t op);
  bool claim(Product product, const char *id, uint32_t rank, uint32_t op);
  void requireEveryOp();
  void requireOp(const Pipeline &pipeline, uint32_t stage, uint32_t mb);
  void checkOrderOnRanks();
  void checkGroups();
  void checkMembers(uint32_t rank, size_t a, size_t b);
  void checkCycles();

  // Graph of groups, for cycles only.
  std::vector<OpRef> getPredecessors(OpRef group) const;
  OpRef groupOf(OpRef op) const;
  std::vector<OpRef> findCycleThrough(OpRef start) const;

  const Schedule &schedule;
  OpIndex index;
  DiagnosticSink &sink;
  size_t findings = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// S1, S2: every op once, on its rank
//===----------------------------------------------------------------------===//

void Checker::placeOps() {
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank)
    for (uint32_t op = 0; op != schedule.ranks[rank].size(); ++op)
      placeOp(rank, op);
}

void Checker::placeOp(uint32_t rank, uint32_t op) {
  const RankOrder &order = schedule.ranks[rank];
  OpKind kind = order.kind[op];
  uint32_t stage = order.stage[op], mb = order.microbatch[op];
  const char *id = kind == OpKind::Forward ? "S1" : "S2";
  SourceLoc loc = schedule.getLoc(rank, op);

  size_t p = schedule.findPipeline(mb);
  if (p == schedule.pipelines.size() || !schedule.pipelines[p].holdsStage(stage)) {
    report(
        id, loc,
        fmt::format("rank {}: no pipeline has both stage {} and micro-batch {}", rank, stage, mb));
    return;
  }
  const Pipeline &pipeline = schedule.pipelines[p];
  if (pipeline.getRank(stage) != rank) {
    report(id, loc,
           fmt::format("rank {}: {} belongs on rank {}", rank, ::describe(kind, stage, mb),
                       pipeline.getRank(stage)),
           Note{pipeline.loc, fmt::format("'{}' places its stages here", pipeline.name)});
    return;
  }
  if (kind != OpKind::Forward && !schedule.training) {
    report(id, loc,
           fmt::format("rank {}: {} in a schedule that runs forward only", rank,
                       ::describe(kind, stage, mb)));
    return;
  }
  switch (kind) {
  case OpKind::Forward:
    claim(Product::Output, id, rank, op);
    return;
  case OpKind::Backward:
    // A second `bwd` is one finding, not two.
    if (claim(Product::InputGrad, id, rank, op))
      claim(Product::WeightGrad, id, rank, op);
    return;
  case OpKind::BackwardInput:
    claim(Product::InputGrad, id, rank, op);
    return;
  case OpKind::BackwardWeight:
    claim(Product::WeightGrad, id, rank, op);
    return;
  }
}

/// Enters the op as the one that makes `product`; reports it where another does.
bool Checker::claim(Product product, const char *id, uint32_t rank, uint32_t op) {
  const RankOrder &order = schedule.ranks[rank];
  OpRef *place = index.find(product, order.stage[op], order.microbatch[op]);
  OpRef here{rank, op};
  if (!place->isValid()) {
    *place = here;
    return true;
  }
  const char *what = product == Product::Output      ? "forward"
                     : product == Product::InputGrad ? "input gradient"
                                                     : "weight gradient";
  report(id, schedule.getLoc(rank, op),
         fmt::format("rank {}: {} computes its {} a second time", rank, describe(here), what),
         Note{getLoc(*place), fmt::format("computed by {} here", describe(*place))});
  return false;
}

void Checker::requireEveryOp() {
  for (const Pipeline &pipeline : schedule.pipelines)
    for (uint32_t s = 0; s != pipeline.numStages; ++s)
      for (uint32_t m = 0; m != pipeline.numMicrobatches; ++m)
        requireOp(pipeline, pipeline.firstStage + s, pipeline.firstMicrobatch + m);
}

void Checker::requireOp(const Pipeline &pipeline, uint32_t stage, uint32_t mb) {
  uint32_t rank = pipeline.getRank(stage);
  auto missing = [&](const char *id, const char *what) {
    report(id, schedule.loc,
           fmt::format("rank {} never runs the {} of stage {}, micro-batch {} (pipeline '{}')",
                       rank, what, stage, mb, pipeline.name),
           Note{pipeline.loc,
                fmt::format("'{}' places stage {} on rank {}", pipeline.name, stage, rank)});
  };
  if (!index.find(Product::Output, stage, mb)->isValid())
    missing("S1", "forward");
  if (!schedule.training)
    return;
  bool input = index.find(Product::InputGrad, stage, mb)->isValid();
  bool weight = index.find(Product::WeightGrad, stage, mb)->isValid();
  if (!input && !weight)
    missing("S2", "backward");
  else if (!input)
    missing("S2", "input half of the backward");
  else if (!weight)
    missing("S2", "weight half of the backward");
}

//===----------------------------------------------------------------------===//
// S3: order on a rank, independence in a group
//===----------------------------------------------------------------------===//

void Checker::checkOrderOnRanks() {
  if (!schedule.training)
    return;
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    const RankOrder &order = schedule.ranks[rank];
    for (uint32_t op = 0; op != order.size(); ++op) {
      if (order.kind[op] == OpKind::Forward)
        continue;
      bool isWeight = order.kind[op] == OpKind::BackwardWeight;
      OpRef before = *index.find(isWeight ? Product::InputGrad : Product::Output, order.stage[op],
                                 order.microbatch[op]);
      if (before.op < op)
        continue;
      report("S3", schedule.getLoc(rank, op),
             fmt::format("rank {}: {} stands before its {}", rank, describe(OpRef{rank, op}),
                         isWeight ? "input half" : "forward"),
             Note{getLoc(before), isWeight ? "its input half is here" : "its forward is here"});
    }
  }
}

void Checker::checkGroups() {
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    const RankOrder &order = schedule.ranks[rank];
    for (size_t begin = 0, end; begin != order.size(); begin = end) {
      end = order.groupEnd(begin);
      for (size_t a = begin; a != end; ++a)
        for (size_t b = a + 1; b != end; ++b)
          checkMembers(rank, a, b);
    }
  }
}

void Checker::checkMembers(uint32_t rank, size_t a, size_t b) {
  const RankOrder &order = schedule.ranks[rank];
  OpRef first{rank, uint32_t(a)}, second{rank, uint32_t(b)};
  auto complain = [&](const std::string &why) {
    report("S3", getLoc(second),
           fmt::format("rank {}: {} and {} cannot be fused: {}", rank, describe(first),
                       describe(second), why),
           Note{getLoc(first), "the other member is here"});
  };
  bool sameStage = order.stage[a] == order.stage[b];
  if (sameStage && order.microbatch[a] == order.microbatch[b])
    return complain("both work on the same micro-batch of one stage");
  if (index.getProducer(rank, b) == first)
    return complain("the second needs the result of the first");
  if (index.getProducer(rank, a) == second)
    return complain("the first needs the result of the second");
  auto makesWeightGrad = [&](size_t op) {
    return order.kind[op] == OpKind::Backward || order.kind[op] == OpKind::BackwardWeight;
  };
  if (sameStage && makesWeightGrad(a) && makesWeightGrad(b))
    complain("both add to the gradients of one stage");
}

//===----------------------------------------------------------------------===//
// S4: cycles
//===----------------------------------------------------------------------===//

OpRef Checker::groupOf(OpRef op) const {
  const RankOrder &order = schedule.ranks[op.rank];
  if (order.group[op.op] != RankOrder::kAlone)
    while (op.op > 0 && order.group[op.op - 1] == order.group[op.op])
      --op.op;
  return op;
}

std::vector<OpRef> Checker::getPredecessors(OpRef group) const {
  std::vector<OpRef> result;
  const RankOrder &order = schedule.ranks[group.rank];
  for (size_t op = group.op, end = order.groupEnd(group.op); op != end; ++op)
    if (OpRef producer = index.getProducer(group.rank, op); producer.isValid())
      result.push_back(groupOf(producer));
  if (group.op > 0)
    result.push_back(groupOf({group.rank, group.op - 1}));
  return result;
}

/// Breadth first against the edges, so the first way back is a shortest cycle
/// through `start`. Each op of the result waits for the next; empty where there
/// is none.
std::vector<OpRef> Checker::findCycleThrough(OpRef start) const {
  auto key = [](OpRef ref) { return std::pair(ref.rank, ref.op); };
  std::map<std::pair<uint32_t, uint32_t>, OpRef> waiter;
  std::vector<OpRef> queue{start};
  for (size_t i = 0; i != queue.size(); ++i) {
    OpRef at = queue[i];
    for (OpRef predecessor : getPredecessors(at)) {
      if (predecessor == start) {
        std::vector<OpRef> cycle;
        for (; !(at == start); at = waiter[key(at)])
          cycle.push_back(at);
        cycle.push_back(start);
        return {cycle.rbegin(), cycle.rend()};
      }
      if (waiter.emplace(key(predecessor), at).second)
        queue.push_back(predecessor);
    }
  }
  return {};
}

void Checker::checkCycles() {
  std::vector<size_t> stuck = visitInDependenceOrder(index, [](uint32_t, size_t, size_t) {});
  std::vector<OpRef> shortest;
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    if (stuck[rank] == schedule.ranks[rank].size())
      continue;
    std::vector<OpRef> cycle = findCycleThrough({rank, uint32_t(stuck[rank])});
    if (!cycle.empty() && (shortest.empty() || cycle.size() < shortest.size()))
      shortest = std::move(cycle);
  }
  if (shortest.empty())
    return;

  auto explain = [&](size_t i) {
    OpRef op = shortest[i], next = shortest[(i + 1) % shortest.size()];
    // A group is shown by the member that the edge concerns.
    const char *why = op.rank == next.rank ? "which stands before it on rank" : "on rank";
    for (size_t m = op.op, end = schedule.ranks[op.rank].groupEnd(op.op); m != end; ++m) {
      OpRef producer = index.getProducer(op.rank, m);
      if (producer.isValid() && groupOf(producer) == next) {
        op.op = m;
        next = producer;
        why = "on rank";
        break;
      }
    }
    return Note{getLoc(op), fmt::format("rank {}: {} waits for {} {} {}", op.rank, describe(op),
                                        describe(next), why, next.rank)};
  };
  ++findings;
  Diagnostic &diagnostic = sink.error(
      getLoc(shortest[0]),
      fmt::format("S4: the schedule cannot finish: {} ops wait for each other in a circle",
                  shortest.size()));
  for (size_t i = 0; i != shortest.size(); ++i) {
    Note note = explain(i);
    diagnostic.note(note.first, note.second);
  }
}

OpIndex dualpipe::checkSchedule(const Schedule &schedule, DiagnosticSink &sink) {
  return Checker(schedule, sink).run();
}
