//===- Greedy.cpp - orders by rules: list scheduling over all ranks ---------===//

#include "dualpipe/Schedule/Greedy.h"
#include "ListScheduler.h"
#include "dualpipe/Schedule/Describe.h"

#include <fmt/format.h>

using namespace dualpipe;

namespace {

/// Ranks that are shown when the rules get stuck.
constexpr size_t kMaxRanksShown = 8;

/// Says why the ranks that still take part cannot go on.
class StuckReport {
public:
  StuckReport(const Schedule &schedule, const GreedyRules &rules, const ListScheduler &scheduler)
      : schedule(schedule), rules(rules), scheduler(scheduler) {}

  /// Reports to `sink` and returns true where a rank can never go on.
  bool report(DiagnosticSink &sink) const;

private:
  using Note = Diagnostic::Note;

  bool takesPart(uint32_t rank) const {
    return !rules.ranks[rank].choices.empty() && !scheduler.isStopped(rank);
  }
  std::optional<Note> explain(uint32_t rank) const;
  std::optional<Note> explainFixedOp(uint32_t rank) const;
  std::optional<Note> explainHold(uint32_t rank) const;
  std::optional<Note> explainWait(uint32_t rank) const;
  std::string describe(OpKind kind, const ChunkState &chunk, uint32_t mb) const;
  std::string describeNeed(OpKind kind, const ChunkState &chunk, uint32_t mb) const;
  bool isLeft(OpKind kind, const ChunkState &chunk, uint32_t mb) const;

  const Schedule &schedule;
  const GreedyRules &rules;
  const ListScheduler &scheduler;
};

} // namespace

bool StuckReport::report(DiagnosticSink &sink) const {
  // A rank that merely waits is not stuck: the op that it waits for may be left to a
  // later section. One that is held back, or not through with what is fixed, is.
  bool isEarlier = false, isHeld = false;
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    isEarlier |= explainFixedOp(rank).has_value();
    isHeld |= explainHold(rank).has_value();
  }
  if (!isEarlier && !isHeld)
    return false;

  Diagnostic &error =
      sink.error(rules.loc, isHeld ? "the rules of 'greedy' get stuck: no rank can go on"
                                   : "what earlier sections state cannot finish under these rules");
  size_t shown = 0, more = 0;
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank)
    if (std::optional<Note> note = explain(rank)) {
      if (shown == kMaxRanksShown)
        ++more;
      else if (++shown)
        error.note(note->loc, note->message);
    }
  if (more != 0)
    error.note(rules.loc, fmt::format("{} more ranks cannot go on", more));
  return true;
}

std::optional<Diagnostic::Note> StuckReport::explain(uint32_t rank) const {
  if (std::optional<Note> note = explainFixedOp(rank))
    return note;
  if (std::optional<Note> note = explainHold(rank))
    return note;
  return explainWait(rank);
}

/// An op of an earlier section that has not run keeps the rules from starting.
std::optional<Diagnostic::Note> StuckReport::explainFixedOp(uint32_t rank) const {
  std::optional<size_t> left = scheduler.getFixedOpLeft(rank);
  if (!left || !takesPart(rank))
    return std::nullopt;
  for (size_t i = *left; i != schedule.ranks[rank].groupEnd(*left); ++i) {
    ChunkOp op = scheduler.getFixedOp(rank, i);
    const ChunkState &chunk = scheduler.getChunks()[op.chunk];
    if (!chunk.isReady(op.kind, op.mb))
      return Note{schedule.getLoc(rank, i),
                  fmt::format("rank {}: {} of an earlier section waits for {}", rank,
                              describe(op.kind, chunk, op.mb),
                              describeNeed(op.kind, chunk, op.mb))};
  }
  return std::nullopt;
}

/// An op that is ready, but not allowed.
std::optional<Diagnostic::Note> StuckReport::explainHold(uint32_t rank) const {
  if (!takesPart(rank) || scheduler.getFixedOpLeft(rank))
    return std::nullopt;
  for (const Choice &choice : rules.ranks[rank].choices) {
    // A group is taken where there is one; its members need not all find partners.
    const Member &member = choice.members.front();
    if (choice.members.size() != 1)
      continue;
    for (ChunkRef ref : member.chunks) {
      const ChunkState &chunk = scheduler.getChunks()[scheduler.findChunk(ref)];
      const MicrobatchQueue &ready = chunk.ready[getProducts(member.kind).first];
      std::optional<ListScheduler::Hold> hold = scheduler.findHold(member.kind, chunk);
      if (ready.empty() || !hold)
        continue;
      std::string op = describe(member.kind, chunk, ready.top());
      if (!hold->limit)
        return Note{schedule.memory.loc,
                    fmt::format("rank {}: with {} it would hold {} units, the memory limit is {}",
                                rank, op, hold->memory, *schedule.memory.getLimit(rank))};
      return Note{hold->limit->loc,
                  fmt::format("rank {}: {} is held back by the limit {}..{} <= {}", rank, op,
                              getKeyword(hold->limit->from), getKeyword(hold->limit->to),
                              hold->limit->most)};
    }
  }
  return std::nullopt;
}

/// The first op that the rank would take if it could.
std::optional<Diagnostic::Note> StuckReport::explainWait(uint32_t rank) const {
  if (!takesPart(rank))
    return std::nullopt;
  for (const Choice &choice : rules.ranks[rank].choices)
    for (const Member &member : choice.members)
      for (ChunkRef ref : member.chunks) {
        const ChunkState &chunk = scheduler.getChunks()[scheduler.findChunk(ref)];
        for (uint32_t mb = 0; mb != chunk.progress.size(); ++mb)
          if (isLeft(member.kind, chunk, mb))
            return Note{schedule.locations[choice.loc],
                        fmt::format("rank {}: {} waits for {}", rank,
                                    describe(member.kind, chunk, mb),
                                    describeNeed(member.kind, chunk, mb))};
      }
  return std::nullopt;
}

/// Whether the op has yet to become ready. A weight half is only awaited once its
/// backward is known to be split.
bool StuckReport::isLeft(OpKind kind, const ChunkState &chunk, uint32_t mb) const {
  auto lacks = [&](uint8_t bit) { return !(chunk.progress[mb] & bit); };
  if (chunk.isReady(kind, mb))
    return false;
  if (kind == OpKind::Forward)
    return lacks(ForwardTaken);
  if (kind == OpKind::BackwardWeight)
    return !lacks(BackwardTaken) && lacks(WeightTaken);
  return lacks(BackwardTaken);
}

std::string StuckReport::describe(OpKind kind, const ChunkState &chunk, uint32_t mb) const {
  return dualpipe::describe(kind, chunk.ref.stage,
                            schedule.pipelines[chunk.ref.pipeline].firstMicrobatch + mb);
}

std::string StuckReport::describeNeed(OpKind kind, const ChunkState &chunk, uint32_t mb) const {
  if (kind == OpKind::BackwardWeight)
    return "its input half";
  bool isForward = kind == OpKind::Forward;
  if (!isForward && !(chunk.progress[mb] & ForwardDone))
    return "its forward";
  uint32_t stage = isForward ? chunk.ref.stage - 1 : chunk.ref.stage + 1;
  return fmt::format("{} of stage {} from rank {}", isForward ? "the output" : "the input gradient",
                     stage, schedule.pipelines[chunk.ref.pipeline].getRank(stage));
}

//===----------------------------------------------------------------------===//
// Entry
//===----------------------------------------------------------------------===//

/// A limit begins with an op that comes before the one it ends with.
static bool checkLimits(const GreedyRules &rules, DiagnosticSink &sink) {
  size_t before = sink.numErrors();
  for (const RankRules &rank : rules.ranks) {
    for (const Limit &limit : rank.limits) {
      Products from = getProducts(limit.from), to = getProducts(limit.to);
      if (from.first > to.first + to.count - 1)
        sink.error(limit.loc, fmt::format("this limit is on {}..{}, expected it to begin with the "
                                          "op that runs first",
                                          getKeyword(limit.from), getKeyword(limit.to)));
    }
    // The same text gives the rules of every rank: once is enough.
    if (sink.numErrors() != before)
      return false;
  }
  return true;
}

bool dualpipe::extendGreedily(Schedule &schedule, const GreedyRules &rules, const Costs &costs,
                              DiagnosticSink &sink) {
  uint64_t numOps = 0;
  for (const Pipeline &pipeline : schedule.pipelines)
    numOps += uint64_t(3) * pipeline.numStages * pipeline.numMicrobatches;
  if (Status status = costs.checkRange(numOps); !status) {
    sink.error(schedule.loc, "the costs to plan with: " + status.message());
    return false;
  }
  if (!checkLimits(rules, sink))
    return false;
  ListScheduler scheduler(schedule, rules, costs);
  scheduler.run();
  return !StuckReport(schedule, rules, scheduler).report(sink);
}
