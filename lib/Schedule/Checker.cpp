//===- Checker.cpp - the invariants of a schedule ---------------------------===//

#include "dualpipe/Schedule/Checker.h"
#include "Findings.h"
#include "dualpipe/Schedule/Describe.h"
#include "dualpipe/Schedule/Memory.h"
#include "dualpipe/Schedule/Relaxation.h"
#include "dualpipe/Schedule/Transfers.h"
#include "dualpipe/Support/ShortestCycle.h"

#include <algorithm>
#include <fmt/format.h>

using namespace dualpipe;

namespace {

/// Notes of a cycle that are shown.
constexpr size_t kMaxNotes = 20;

/// An op where its rank is stuck, and the op whose product it needs.
struct Wait {
  OpRef op;
  OpRef producer;
};

class Checker {
public:
  Checker(const Schedule &schedule, DiagnosticSink &sink)
      : schedule(schedule), index(schedule), sink(sink) {}

  OpIndex run() {
    placeOps();
    requireEveryOp();
    if (findings.empty())
      checkOrderOnRanks();
    if (findings.empty())
      checkGroups();
    if (findings.empty())
      checkCycles();
    findings.flush(sink, schedule.loc);
    if (findings.empty() && schedule.ownsTransfers)
      checkTransfers(index, sink);
    if (!sink.hasErrors())
      checkMemory(schedule, sink);
    return std::move(index);
  }

private:
  using Note = Findings::Note;

  /// Reports a finding against the invariant `id`; findings at one place are told apart by `what`.
  template <typename... Notes>
  void report(const char *id, const std::string &what, SourceLoc loc, const std::string &message,
              Notes... notes) {
    findings.report(id + what, loc, fmt::format("{}: {}", id, message), {notes...});
  }

  SourceLoc getLoc(OpRef ref) const { return schedule.getLoc(ref.rank, ref.op); }
  std::string describe(OpRef ref) const {
    return dualpipe::describe(schedule.ranks[ref.rank], ref.op);
  }

  void placeOps();
  void placeOp(uint32_t rank, uint32_t op);
  bool claim(Product product, const char *id, uint32_t rank, uint32_t op);
  void requireEveryOp();
  void requireOps(const Pipeline &pipeline, uint32_t stage);
  void checkOrderOnRanks();
  void checkGroups();
  void checkMembers(uint32_t rank, size_t a, size_t b);
  void checkCycles();

  // Cycles. `stuck` is the first op of each rank that can never run.
  std::vector<std::vector<Wait>> findWaits(const std::vector<size_t> &stuck) const;
  std::vector<Note> explainCycle(const std::vector<Wait> &cycle,
                                 const std::vector<size_t> &stuck) const;
  void reportCycle(const std::vector<Wait> &cycle, const std::vector<size_t> &stuck);

  const Schedule &schedule;
  OpIndex index;
  DiagnosticSink &sink;
  Findings findings;
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
        id, "none", loc,
        fmt::format("rank {}: no pipeline has both stage {} and micro-batch {}", rank, stage, mb));
    return;
  }
  const Pipeline &pipeline = schedule.pipelines[p];
  if (pipeline.getRank(stage) != rank) {
    report(id, "rank", loc,
           fmt::format("rank {}: {} belongs on rank {}", rank, dualpipe::describe(kind, stage, mb),
                       pipeline.getRank(stage)),
           Note{pipeline.loc, fmt::format("'{}' places its stages here", pipeline.name)});
    return;
  }
  if (kind != OpKind::Forward && !schedule.training) {
    report(id, "forward only", loc,
           fmt::format("rank {}: {} in a schedule that runs forward only", rank,
                       dualpipe::describe(kind, stage, mb)));
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
  report(id, what, schedule.getLoc(rank, op),
         fmt::format("rank {}: {} computes its {} a second time", rank, describe(here), what),
         Note{getLoc(*place), fmt::format("computed by {} here", describe(*place))});
  return false;
}

void Checker::requireEveryOp() {
  for (const Pipeline &pipeline : schedule.pipelines)
    for (uint32_t s = 0; s != pipeline.numStages; ++s)
      requireOps(pipeline, pipeline.firstStage + s);
}

/// "4", "4 to 7", "0, 2 and 4 to 7": numbers in ascending order.
static std::string listRanges(const std::vector<uint32_t> &numbers) {
  constexpr size_t kMaxRanges = 4;
  std::vector<std::string> ranges;
  for (size_t i = 0, end; i != numbers.size(); i = end) {
    end = i + 1;
    while (end != numbers.size() && numbers[end] == numbers[end - 1] + 1)
      ++end;
    ranges.push_back(end - i == 1 ? fmt::format("{}", numbers[i])
                                  : fmt::format("{} to {}", numbers[i], numbers[end - 1]));
  }
  if (ranges.size() > kMaxRanges) {
    ranges.resize(kMaxRanges);
    ranges.push_back("others");
  }
  std::string text = ranges.front();
  for (size_t i = 1; i != ranges.size(); ++i)
    text += (i + 1 == ranges.size() ? " and " : ", ") + ranges[i];
  return text;
}

/// What is missing in a stage makes one finding: a rank that runs too little usually
/// does so for many micro-batches.
void Checker::requireOps(const Pipeline &pipeline, uint32_t stage) {
  std::vector<uint32_t> forward, backward, inputHalf, weightHalf;
  for (uint32_t m = 0; m != pipeline.numMicrobatches; ++m) {
    uint32_t mb = pipeline.firstMicrobatch + m;
    if (!index.find(Product::Output, stage, mb)->isValid())
      forward.push_back(mb);
    if (!schedule.training)
      continue;
    bool input = index.find(Product::InputGrad, stage, mb)->isValid();
    bool weight = index.find(Product::WeightGrad, stage, mb)->isValid();
    if (!input && !weight)
      backward.push_back(mb);
    else if (!input)
      inputHalf.push_back(mb);
    else if (!weight)
      weightHalf.push_back(mb);
  }
  uint32_t rank = pipeline.getRank(stage);
  auto missing = [&](const char *id, const char *what, const std::vector<uint32_t> &mbs) {
    if (mbs.empty())
      return;
    // What is there of the backward is the place to look at.
    OpRef half = *index.find(Product::InputGrad, stage, mbs.front());
    SourceLoc loc = half.isValid() ? getLoc(half) : schedule.loc;
    report(id, what, loc,
           fmt::format("rank {} never runs the {} of stage {}, micro-batch{} {} (pipeline '{}')",
                       rank, what, stage, mbs.size() == 1 ? "" : "es", listRanges(mbs),
                       pipeline.name),
           Note{pipeline.loc,
                fmt::format("'{}' places stage {} on rank {}", pipeline.name, stage, rank)});
  };
  missing("S1", "forward", forward);
  missing("S2", "backward", backward);
  missing("S2", "input half of the backward", inputHalf);
  missing("S2", "weight half of the backward", weightHalf);
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
      report("S3", "order", schedule.getLoc(rank, op),
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
    report("S3", why, getLoc(second),
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

/// What keeps each stuck rank where it stands: products that another rank, or the
/// rank itself further on, has not made.
std::vector<std::vector<Wait>> Checker::findWaits(const std::vector<size_t> &stuck) const {
  std::vector<std::vector<Wait>> waits(schedule.numRanks);
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    if (stuck[rank] == schedule.ranks[rank].size())
      continue;
    size_t end = schedule.ranks[rank].groupEnd(stuck[rank]);
    for (size_t op = stuck[rank]; op != end; ++op) {
      OpRef producer = index.getProducer(rank, op);
      if (producer.isValid() && producer.op >= stuck[producer.rank])
        waits[rank].push_back({{rank, uint32_t(op)}, producer});
    }
  }
  return waits;
}

/// A rank that is stuck stands before everything that follows in its order, so one
/// wait per rank tells the whole story: a cycle over few ranks is a short one.
void Checker::checkCycles() {
  std::vector<size_t> stuck = visitInDependenceOrder(index, [](uint32_t, size_t, size_t) {});
  std::vector<std::vector<Wait>> waits = findWaits(stuck);
  std::vector<Wait> shortest;
  size_t shorterThan = schedule.numRanks + 1;
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    std::vector<Wait> cycle = findCycleThrough<Wait>(
        rank, shorterThan, [&](uint32_t from) -> auto & { return waits[from]; },
        [](const Wait &wait) { return wait.op.rank; },
        [](const Wait &wait) { return wait.producer.rank; });
    if (cycle.empty())
      continue;
    shorterThan = cycle.size();
    shortest = std::move(cycle);
  }
  if (!shortest.empty())
    reportCycle(shortest, stuck);
}

/// A note for each wait, and for each run of program order from a product back to
/// where its rank stands.
std::vector<Checker::Note> Checker::explainCycle(const std::vector<Wait> &cycle,
                                                 const std::vector<size_t> &stuck) const {
  std::vector<Note> notes;
  for (size_t i = 0; i != cycle.size(); ++i) {
    auto [op, producer] = cycle[i];
    notes.push_back({getLoc(op), fmt::format("rank {}: {} waits for {} on rank {}", op.rank,
                                             describe(op), describe(producer), producer.rank)});
    OpRef next = cycle[(i + 1) % cycle.size()].op;
    if (producer.op >= schedule.ranks[next.rank].groupEnd(stuck[next.rank]))
      notes.push_back({getLoc(producer),
                       fmt::format("rank {0}: {1} waits for {2} which stands before it on rank "
                                   "{0}",
                                   next.rank, describe(producer), describe(next))});
  }
  return notes;
}

void Checker::reportCycle(const std::vector<Wait> &cycle, const std::vector<size_t> &stuck) {
  std::vector<Note> notes = explainCycle(cycle, stuck);
  size_t shown = std::min(notes.size(), kMaxNotes);
  std::vector<Note> first(notes.begin(), notes.begin() + shown);
  if (shown != notes.size())
    first.push_back({notes[shown].loc,
                     fmt::format("{} more ops of the circle are not shown", notes.size() - shown)});
  findings.report(
      "S4", notes.front().loc,
      fmt::format("S4: the schedule cannot finish: {} ops wait for each other in a circle",
                  notes.size()),
      std::move(first));
}

OpIndex dualpipe::checkSchedule(const Schedule &schedule, DiagnosticSink &sink) {
  return Checker(schedule, sink).run();
}
