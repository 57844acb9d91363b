//===- Occupancy.cpp - what a rank holds, over time -------------------------===//

#include "Occupancy.h"

#include <algorithm>

namespace dualpipe::runtime {

using program::Command;
using program::CommandOp;
using program::Function;
using program::kNone;
using program::RankProgram;
using program::SlotClass;

namespace {

/// A step of a curve: `kind` is a SlotKind, or kActivation.
struct Change {
  Ticks time;
  bool begins;
  unsigned kind;
  uint64_t bytes;
};
constexpr unsigned kActivation = program::kNumSlotKinds;

} // namespace

CommandTime getUnitTime(const RankProgram &rank, const std::vector<CommandTime> &times,
                        uint32_t unit) {
  const Command &command = rank.commands[unit];
  const bool isBracket = command.op == CommandOp::Pair || command.op == CommandOp::Group;
  if (!isBracket || command.arg == 0)
    return times[unit];
  CommandTime whole = times[unit + 1];
  for (uint32_t i = unit + 2; i <= unit + command.arg; ++i) {
    whole.start = std::min(whole.start, times[i].start);
    whole.end = std::max(whole.end, times[i].end);
  }
  return whole;
}

static void addSlots(const RankProgram &rank, const program::SharedInfo &shared,
                     const std::vector<CommandTime> &times, const program::SlotSize &size,
                     std::vector<Change> &changes) {
  std::vector<const SlotClass *> classOf;
  for (const SlotClass &slotClass : rank.slotClasses)
    classOf.insert(classOf.end(), slotClass.count, &slotClass);
  for (const program::Lifetime &life : program::findLifetimes(rank, shared)) {
    const SlotClass &slotClass = *classOf[life.slot];
    const uint64_t bytes = size ? size(slotClass.kind, slotClass.sizeGroup) : 0;
    const unsigned kind = unsigned(slotClass.kind);
    changes.push_back({getUnitTime(rank, times, life.begin).start, true, kind, bytes});
    changes.push_back({getUnitTime(rank, times, life.end).end, false, kind, bytes});
  }
}

/// Further components of a stage belong to the op of the first.
static void addActivations(const RankProgram &rank, bool training,
                           const std::vector<CommandTime> &times, std::vector<Change> &changes) {
  uint32_t pairEnd = 0;
  CommandTime pair;
  for (uint32_t i = 0; i != rank.commands.size(); ++i) {
    const Command &command = rank.commands[i];
    if (command.op == CommandOp::Pair) {
      pair = getUnitTime(rank, times, i);
      pairEnd = i + 1 + command.arg;
    }
    if (command.op != CommandOp::Launch || rank.launches[command.arg].component != 0)
      continue;
    const Function function = rank.launches[command.arg].function;
    const CommandTime time = i < pairEnd ? pair : times[i];
    const bool isForward = function == Function::Forward;
    if (isForward)
      changes.push_back({time.start, true, kActivation, 0});
    if (function == Function::Backward || function == Function::BackwardWeight ||
        (isForward && !training))
      changes.push_back({time.end, false, kActivation, 0});
  }
}

static void apply(const Change &change, Occupancy &now) {
  const uint32_t step = change.begins ? 1 : -1u;
  if (change.kind == kActivation) {
    now.activations += step;
    return;
  }
  now.slots[change.kind] += step;
  now.bytes[change.kind] += change.begins ? change.bytes : -change.bytes;
}

/// Ends before begins. What takes no time then ends before it begins, and the count comes back at
/// the same moment, of which only the last state is kept.
static void order(std::vector<Change> &changes) {
  std::stable_sort(changes.begin(), changes.end(), [](const Change &a, const Change &b) {
    return a.time != b.time ? a.time < b.time : a.begins < b.begins;
  });
}

std::vector<Occupancy> measureOccupancy(const RankProgram &rank, const program::SharedInfo &shared,
                                        const std::vector<CommandTime> &times,
                                        const program::SlotSize &size) {
  std::vector<Change> changes;
  addSlots(rank, shared, times, size, changes);
  addActivations(rank, shared.training, times, changes);
  order(changes);
  std::vector<Occupancy> curve;
  Occupancy now;
  for (const Change &change : changes) {
    apply(change, now);
    now.time = change.time;
    if (!curve.empty() && curve.back().time == now.time)
      curve.back() = now;
    else
      curve.push_back(now);
  }
  return curve;
}

} // namespace dualpipe::runtime
