//===- VerifyMemory.cpp - P4: slots = peak of the liveness + spares ---------===//
//
// A value lives from the command that writes its slot to the last one that reads
// it before the next write. Two passes over the list: the first finds where every
// value ends, the second counts. What a unit (one command, a pair, a group) writes
// comes to life before what it reads for the last time goes.
//
//===----------------------------------------------------------------------===//

#include "Facts.h"

#include "dualpipe/Program/Memory.h"

#include <fmt/format.h>

namespace dualpipe::program {

namespace {

/// The lifetimes of a rank's values, in the order of their writes.
class Lifetimes {
public:
  Lifetimes(const SharedInfo &shared, const RankProgram &rank)
      : shared(shared), rank(rank), current(rank.getNumSlots(), kNone) {
    for (uint32_t i = 0; i != rank.commands.size();) {
      const uint32_t unit = i, end = i + 1 + getBracketSize(rank.commands[i]);
      for (uint32_t member = unit; member != end; ++member)
        addReads(unit, rank.commands[member]);
      for (; i != end; ++i)
        addWrites(unit, rank.commands[i]);
    }
  }
  std::vector<Lifetime> take() { return std::move(lifetimes); }

private:
  void read(uint32_t unit, uint32_t slot) {
    if (current[slot] != kNone)
      lifetimes[current[slot]].end = unit;
  }
  void write(uint32_t unit, uint32_t slot) {
    current[slot] = uint32_t(lifetimes.size());
    lifetimes.push_back({slot, unit, unit});
  }
  template <typename Visit> void forSlots(uint32_t roles, const Launch &launch, Visit visit) {
    for (unsigned kind = 0; kind != kNumSlotKinds; ++kind)
      if (roles & (1u << kind))
        visit(launch.slots[kind]);
  }
  void addReads(uint32_t unit, const Command &command);
  void addWrites(uint32_t unit, const Command &command);

  const SharedInfo &shared;
  const RankProgram &rank;
  std::vector<Lifetime> lifetimes;
  std::vector<uint32_t> current; ///< by slot: the lifetime of the value in it
};

} // namespace

void Lifetimes::addReads(uint32_t unit, const Command &command) {
  if (command.op == CommandOp::Send)
    read(unit, rank.transfers[command.arg].slot);
  if (command.op != CommandOp::Launch)
    return;
  const Launch &launch = rank.launches[command.arg];
  forSlots(getRoles(shared, launch).reads, launch, [&](uint32_t slot) { read(unit, slot); });
}

void Lifetimes::addWrites(uint32_t unit, const Command &command) {
  if (command.op == CommandOp::Recv)
    write(unit, rank.transfers[command.arg].slot);
  if (command.op != CommandOp::Launch)
    return;
  const Launch &launch = rank.launches[command.arg];
  forSlots(getRoles(shared, launch).writes, launch, [&](uint32_t slot) { write(unit, slot); });
}

std::vector<Lifetime> findLifetimes(const RankProgram &rank, const SharedInfo &shared) {
  return Lifetimes(shared, rank).take();
}

namespace {

/// Counts the values of every class that live at once.
class Counter {
public:
  Counter(SlotUse &use, std::vector<uint64_t> sizes)
      : use(use), sizes(std::move(sizes)), live(use.classes.size()) {}

  void begin(uint32_t slotClass, uint32_t unit) {
    ClassUse &entry = use.classes[slotClass];
    if (++live[slotClass] > entry.peak) {
      entry.peak = live[slotClass];
      entry.peakCommand = unit;
    }
    bytes += sizes[slotClass];
    if (bytes <= use.liveBytes)
      return;
    use.liveBytes = bytes;
    use.liveCommand = unit;
  }
  void end(uint32_t slotClass) {
    --live[slotClass];
    bytes -= sizes[slotClass];
  }

private:
  SlotUse &use;
  std::vector<uint64_t> sizes; ///< of one slot, by class
  std::vector<uint32_t> live;
  uint64_t bytes = 0;
};

} // namespace

namespace {
/// By unit, the lifetimes that end there: a list for each, all of them in two arrays.
class Ends {
public:
  Ends(const std::vector<Lifetime> &lifetimes, size_t numCommands)
      : first(numCommands, kNone), next(lifetimes.size()) {
    for (uint32_t i = 0; i != lifetimes.size(); ++i)
      next[i] = std::exchange(first[lifetimes[i].end], i);
  }
  template <typename Visit> void visit(uint32_t unit, Visit at) const {
    for (uint32_t i = first[unit]; i != kNone; i = next[i])
      at(i);
  }

private:
  std::vector<uint32_t> first, next;
};
} // namespace

static std::vector<uint32_t> getClassOfSlots(const RankProgram &rank) {
  std::vector<uint32_t> classes;
  for (uint32_t i = 0; i != rank.slotClasses.size(); ++i)
    classes.insert(classes.end(), rank.slotClasses[i].count, i);
  return classes;
}

static std::vector<uint64_t> startReport(const RankProgram &rank, const SlotSize &size,
                                         SlotUse &use) {
  std::vector<uint64_t> sizes;
  use.rank = rank.rank;
  for (const SlotClass &slotClass : rank.slotClasses) {
    sizes.push_back(size ? size(slotClass.kind, slotClass.sizeGroup) : 1);
    use.classes.emplace_back().slotClass = slotClass;
    use.classes.back().slotBytes = sizes.back();
    use.classes.back().allocatedBytes = sizes.back() * slotClass.count;
    use.arenaBytes += use.classes.back().allocatedBytes;
  }
  return sizes;
}

SlotUse measureSlots(const RankProgram &rank, const SharedInfo &shared, const SlotSize &size) {
  SlotUse use;
  const std::vector<uint64_t> sizes = startReport(rank, size, use);
  const std::vector<Lifetime> lifetimes = findLifetimes(rank, shared);
  const Ends ends(lifetimes, rank.commands.size());
  const std::vector<uint32_t> classOf = getClassOfSlots(rank);
  Counter counter(use, sizes);
  size_t next = 0;
  for (uint32_t unit = 0; unit != rank.commands.size(); ++unit) {
    for (; next != lifetimes.size() && lifetimes[next].begin == unit; ++next)
      counter.begin(classOf[lifetimes[next].slot], unit);
    ends.visit(unit, [&](uint32_t i) { counter.end(classOf[lifetimes[i].slot]); });
  }
  for (size_t i = 0; i != sizes.size(); ++i)
    use.classes[i].peakBytes = sizes[i] * use.classes[i].peak;
  return use;
}

Verdict verifyMemory(const SharedInfo &shared, const RankProgram &rank) {
  for (const ClassUse &use : measureSlots(rank, shared).classes) {
    const SlotClass &slotClass = use.slotClass;
    if (slotClass.count - slotClass.spares == use.peak)
      continue;
    return violation("P4", rank.rank, use.peakCommand,
                     fmt::format("slot class {} of size group {} has {} slots, {} of them spare, "
                                 "expected {}: {} hold values at once here, at most",
                                 getName(slotClass.kind), slotClass.sizeGroup, slotClass.count,
                                 slotClass.spares, uint64_t(use.peak) + slotClass.spares,
                                 use.peak));
  }
  return {};
}

} // namespace dualpipe::program
