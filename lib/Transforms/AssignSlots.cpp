//===- AssignSlots.cpp - slots by liveness over the issue order -------------===//
//
// Liveness is taken off the IR once, into arrays; the peak of each class and the
// slots follow from two sweeps over those. The points of time are the ops that
// stand on the rank itself, so a fused group is one.
//
//===----------------------------------------------------------------------===//

#include "DescribePipe.h"
#include "dualpipe/Transforms/Passes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <array>
#include <deque>
#include <set>

namespace dualpipe {
#define GEN_PASS_DEF_PIPEASSIGNSLOTS
#include "lib/Transforms/Passes.h.inc"
} // namespace dualpipe

using namespace dualpipe;
using namespace mlir;
using program::SlotKind;

/// Number by slot kind.
template <typename T> using ByKind = std::array<T, program::kNumSlotKinds>;

namespace {

/// From the point that defines a value to the point of its last use.
struct Lifetime {
  SlotKind kind;
  bool isLoaded; ///< written by the rank's own `pipe.input`
  uint32_t begin;
  uint32_t end;
};

/// The lifetimes on a rank in order of definition.
class Liveness {
public:
  explicit Liveness(pipe::RankOp rank);

  llvm::ArrayRef<Lifetime> getLifetimes() const { return lifetimes; }
  /// Calls `allocate(value)` and `release(value)` in the order of time: at each
  /// point the results first, then the values used for the last time.
  void sweep(llvm::function_ref<void(uint32_t)> allocate,
             llvm::function_ref<void(uint32_t)> release) const;

private:
  void use(Operation &op, uint32_t point);
  void define(Operation &op, uint32_t point);
  void sortByEnd();

  std::vector<Lifetime> lifetimes;
  std::vector<uint32_t> byEnd; ///< lifetimes, ordered by their end
  uint32_t numPoints = 0;
  llvm::DenseMap<Value, uint32_t> numbers;
};

/// Free slots of one class, the one that has been free the longest first.
class SlotPool {
public:
  SlotPool(uint32_t firstSlot, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
      free.push_back(firstSlot + i);
  }
  uint32_t takeOldest() {
    uint32_t slot = free.front();
    free.pop_front();
    return slot;
  }
  uint32_t takeNewest() {
    uint32_t slot = free.back();
    free.pop_back();
    return slot;
  }
  void giveBack(uint32_t slot) { free.push_back(slot); }

private:
  std::deque<uint32_t> free;
};

} // namespace

//===----------------------------------------------------------------------===//
// Liveness
//===----------------------------------------------------------------------===//

/// The class of a value: what comes in differs from what is computed here.
static SlotKind getSlotKind(OpResult value) {
  bool comesIn = isa<pipe::RecvOp, pipe::InputOp>(value.getOwner());
  Type type = value.getType();
  if (isa<pipe::ActType>(type))
    return comesIn ? SlotKind::Input : SlotKind::Output;
  if (isa<pipe::GradType>(type))
    return comesIn ? SlotKind::GradOutput : SlotKind::GradInput;
  if (isa<pipe::SavedType>(type))
    return SlotKind::Saved;
  return isa<pipe::WctxType>(type) ? SlotKind::WeightContext : SlotKind::Labels;
}

void Liveness::use(Operation &op, uint32_t point) {
  for (Value operand : op.getOperands())
    lifetimes[numbers.find(operand)->second].end = point;
}

void Liveness::define(Operation &op, uint32_t point) {
  for (OpResult result : op.getResults()) {
    numbers.try_emplace(result, static_cast<uint32_t>(lifetimes.size()));
    lifetimes.push_back({getSlotKind(result), isa<pipe::InputOp>(op), point, point});
  }
}

Liveness::Liveness(pipe::RankOp rank) {
  for (Operation &op : *rank.getBody()) {
    if (auto fused = dyn_cast<pipe::FusedFbOp>(op))
      for (Operation &member : fused.getBody()->without_terminator())
        use(member, numPoints);
    use(op, numPoints);
    define(op, numPoints);
    ++numPoints;
  }
  sortByEnd();
}

/// A counting sort: linear, and stable in the order of definition.
void Liveness::sortByEnd() {
  std::vector<uint32_t> starts(numPoints + 1, 0);
  for (const Lifetime &lifetime : lifetimes)
    ++starts[lifetime.end + 1];
  for (uint32_t point = 0; point < numPoints; ++point)
    starts[point + 1] += starts[point];
  byEnd.resize(lifetimes.size());
  for (auto [value, lifetime] : llvm::enumerate(lifetimes))
    byEnd[starts[lifetime.end]++] = static_cast<uint32_t>(value);
}

void Liveness::sweep(llvm::function_ref<void(uint32_t)> allocate,
                     llvm::function_ref<void(uint32_t)> release) const {
  uint32_t nextBegin = 0, nextEnd = 0;
  const uint32_t numValues = static_cast<uint32_t>(lifetimes.size());
  for (uint32_t point = 0; point < numPoints; ++point) {
    for (; nextBegin < numValues && lifetimes[nextBegin].begin == point; ++nextBegin)
      allocate(nextBegin);
    for (; nextEnd < numValues && lifetimes[byEnd[nextEnd]].end == point; ++nextEnd)
      release(byEnd[nextEnd]);
  }
}

//===----------------------------------------------------------------------===//
// Assignment
//===----------------------------------------------------------------------===//

static ByKind<uint32_t> findPeaks(const Liveness &liveness) {
  ByKind<uint32_t> live{}, peak{};
  auto kindOf = [&](uint32_t value) {
    return static_cast<unsigned>(liveness.getLifetimes()[value].kind);
  };
  liveness.sweep(
      [&](uint32_t value) {
        unsigned kind = kindOf(value);
        peak[kind] = std::max(peak[kind], ++live[kind]);
      },
      [&](uint32_t value) { --live[kindOf(value)]; });
  return peak;
}

/// How many channels of the rank read or write slots of each kind.
static ByKind<uint32_t> countChannels(pipe::RankOp rank) {
  std::set<std::pair<SlotKind, uint32_t>> channels; // kind and peer
  for (Operation &op : *rank.getBody()) {
    if (auto recv = dyn_cast<pipe::RecvOp>(op))
      channels.emplace(getSlotKind(op.getResult(0)), recv.getPeer());
    else if (auto send = dyn_cast<pipe::SendOp>(op))
      channels.emplace(getChannelKind(send.getKind()), send.getPeer());
  }
  ByKind<uint32_t> count{};
  for (const auto &[kind, peer] : channels)
    ++count[static_cast<unsigned>(kind)];
  return count;
}

static FailureOr<SlotClassList> makeClasses(pipe::RankOp rank, const ByKind<uint32_t> &peaks,
                                            const ByKind<uint32_t> &channels, unsigned spares) {
  SlotClassList list;
  for (unsigned index = 0; index < program::kNumSlotKinds; ++index) {
    if (peaks[index] == 0)
      continue;
    SlotKind kind = static_cast<SlotKind>(index);
    uint64_t extra = uint64_t(channels[index]) * spares;
    if (extra > kMaxSpares)
      return emitRankError(rank, rank)
             << "spares of " << spares << " for each of " << channels[index] << " channels give "
             << getKeyword(kind) << " " << extra << " spare slots, expected at most " << kMaxSpares;
    uint32_t numSpares = static_cast<uint32_t>(extra);
    list.classes.push_back({kind, /*sizeGroup=*/0, peaks[index] + numSpares, numSpares});
  }
  if (failed(verifySlotClasses(rank, list)))
    return failure();
  return list;
}

/// The slot of every value, by number. A value that comes from another stream
/// gets the slot that has been free the longest, so that it waits for a reader
/// that has long finished. What the rank loads itself waits for nothing, whatever
/// slot it gets: it takes the one freed last and leaves the others to receives.
static std::vector<uint32_t> allocate(const Liveness &liveness, const SlotClassList &classes) {
  std::vector<SlotPool> pools(program::kNumSlotKinds, SlotPool(0, 0));
  uint32_t firstSlot = 0;
  for (const program::SlotClass &slotClass : classes.classes) {
    pools[static_cast<unsigned>(slotClass.kind)] = SlotPool(firstSlot, slotClass.count);
    firstSlot += slotClass.count;
  }
  llvm::ArrayRef<Lifetime> lifetimes = liveness.getLifetimes();
  auto poolOf = [&](uint32_t value) -> SlotPool & {
    return pools[static_cast<unsigned>(lifetimes[value].kind)];
  };
  std::vector<uint32_t> slots(lifetimes.size());
  liveness.sweep(
      [&](uint32_t value) {
        SlotPool &pool = poolOf(value);
        slots[value] = lifetimes[value].isLoaded ? pool.takeNewest() : pool.takeOldest();
      },
      [&](uint32_t value) { poolOf(value).giveBack(slots[value]); });
  return slots;
}

static void setSlots(Operation &op, ArrayRef<uint32_t> slots) {
  if (auto compute = dyn_cast<pipe::ComputeOpInterface>(op))
    compute.setSlots(slots);
  else if (auto recv = dyn_cast<pipe::RecvOp>(op))
    recv.setSlots(slots);
  else if (auto input = dyn_cast<pipe::InputOp>(op))
    input.setSlots(slots);
}

/// Writes the slots to the ops, which stand in the order of the values' numbers.
/// The members of a fused group hold the slots of its results.
static void record(pipe::RankOp rank, ArrayRef<uint32_t> slots) {
  auto take = [&](Operation &op) {
    setSlots(op, slots.take_front(op.getNumResults()));
    slots = slots.drop_front(op.getNumResults());
  };
  for (Operation &op : *rank.getBody()) {
    if (auto fused = dyn_cast<pipe::FusedFbOp>(op))
      for (Operation &member : fused.getBody()->without_terminator())
        take(member);
    else
      take(op);
  }
}

LogicalResult dualpipe::assignSlots(pipe::RankOp rank, unsigned spares) {
  if (spares > kMaxSpares)
    return emitRankError(rank, rank)
           << "spares of " << spares << " for each channel, expected at most " << kMaxSpares;
  if (failed(verifyDataflowPhase(rank)))
    return failure();
  Liveness liveness(rank);
  FailureOr<SlotClassList> classes =
      makeClasses(rank, findPeaks(liveness), countChannels(rank), spares);
  if (failed(classes))
    return failure();
  record(rank, allocate(liveness, *classes));
  rank.setSlots(*classes);
  return success();
}

namespace {
struct PipeAssignSlotsPass : dualpipe::impl::PipeAssignSlotsBase<PipeAssignSlotsPass> {
  using PipeAssignSlotsBase::PipeAssignSlotsBase;

  void runOnOperation() override {
    if (failed(assignSlots(getOperation(), spares)))
      return signalPassFailure();
    for (const program::SlotClass &slotClass : getOperation().getSlots().classes) {
      numSlots += slotClass.count;
      numSpares += slotClass.spares;
    }
  }
};
} // namespace
