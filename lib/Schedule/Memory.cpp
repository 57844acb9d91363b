//===- Memory.cpp - what the ranks hold, and whether they may ----------------===//

#include "dualpipe/Schedule/Memory.h"
#include "dualpipe/Schedule/Describe.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

using namespace dualpipe;

/// After this many ranks the rest is only counted.
static constexpr size_t kMaxFindings = 20;

MemoryPeak dualpipe::findMemoryPeak(const Schedule &schedule, uint32_t rank) {
  const RankOrder &order = schedule.ranks[rank];
  const MemoryPlan &memory = schedule.memory;
  MemoryPeak peak;
  int64_t held = 0;
  for (size_t begin = 0, end; begin != order.size(); begin = end) {
    end = order.groupEnd(begin);
    int64_t before = held;
    for (size_t op = begin; op != end; ++op)
      held += memory.getTaken(order.kind[op], order.stage[op]);
    if (held > peak.units)
      peak = {held, begin};
    for (size_t op = begin; op != end; ++op)
      held -= memory.getFreed(order.kind[op], order.stage[op]);
    if (!schedule.training)
      held = before;
  }
  return peak;
}

namespace {
/// Micro-batches of a stage that a rank holds.
struct Held {
  int64_t activations = 0, contexts = 0;
};
} // namespace

/// What `rank` holds while the group that begins at op `at` runs, by stage.
static std::map<uint32_t, Held> findHeld(const Schedule &schedule, uint32_t rank, size_t at) {
  const RankOrder &order = schedule.ranks[rank];
  std::map<uint32_t, Held> held;
  // Before the group; running forward only nothing is left from there.
  for (size_t op = 0; schedule.training && op != at; ++op) {
    OpKind kind = order.kind[op];
    Held &stage = held[order.stage[op]];
    stage.activations += kind == OpKind::Forward;
    stage.activations -= kind == OpKind::Backward || kind == OpKind::BackwardWeight;
    stage.contexts += kind == OpKind::BackwardInput;
    stage.contexts -= kind == OpKind::BackwardWeight;
  }
  for (size_t op = at; op != order.groupEnd(at); ++op) {
    held[order.stage[op]].activations += order.kind[op] == OpKind::Forward;
    held[order.stage[op]].contexts += order.kind[op] == OpKind::BackwardInput;
  }
  return held;
}

static std::string describeHeld(const Schedule &schedule, uint32_t rank, size_t at) {
  std::string text;
  for (const auto &[stage, held] : findHeld(schedule, rank, at)) {
    auto add = [&](int64_t count, const char *what, int64_t units) {
      if (count != 0 && units != 0)
        text += fmt::format("{}{} {} of stage {} with {} each", text.empty() ? "" : ", ", count,
                            count == 1 ? what : std::string(what) + "s", stage, units);
    };
    add(held.activations, "activation", schedule.memory.getActivation(stage));
    add(held.contexts, "weight context", schedule.memory.getContext(stage));
  }
  return text;
}

void dualpipe::checkMemory(const Schedule &schedule, DiagnosticSink &sink) {
  size_t findings = 0;
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    std::optional<int64_t> limit = schedule.memory.getLimit(rank);
    if (!limit)
      continue;
    MemoryPeak peak = findMemoryPeak(schedule, rank);
    if (peak.units <= std::max<int64_t>(*limit, 0) || ++findings > kMaxFindings)
      continue;
    const RankOrder &order = schedule.ranks[rank];
    sink.error(schedule.getLoc(rank, peak.op),
               fmt::format("S5: rank {}: expected at most {} units of memory, got {} at {}", rank,
                           *limit, peak.units, describe(order, peak.op)))
        .note(schedule.memory.loc, "held there: " + describeHeld(schedule, rank, peak.op));
  }
  if (findings > kMaxFindings)
    sink.error(schedule.loc, fmt::format("S5: {} more ranks hold more than their limit",
                                         findings - kMaxFindings));
}
