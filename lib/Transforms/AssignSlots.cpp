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

#include <deque>
#include <set>

namespace dualpipe {
#define GEN_PASS_DEF_PIPEASSIGNSLOTS
#include "lib/Transforms/Passes.h.inc"
} // namespace dualpipe

using namespace dualpipe;
using namespace mlir;
using program::SlotKind;

namespace {

/// Numbers of the slot classes of a rank: by kind, then by size group.
class ClassNumbers {
public:
  explicit ClassNumbers(const program::Contract &model) : model(model) {}

  uint32_t size() const { return program::kNumSlotKinds * model.numSizeGroups; }
  /// The class of what belongs to `stage`: values to the stage that makes them, and
  /// what comes in to the stage that it comes for.
  uint32_t find(SlotKind kind, uint32_t stage) const {
    return static_cast<uint32_t>(kind) * model.numSizeGroups + model.getSizeGroup(stage);
  }
  SlotKind getKind(uint32_t number) const {
    return static_cast<SlotKind>(number / model.numSizeGroups);
  }
  uint32_t getSizeGroup(uint32_t number) const { return number % model.numSizeGroups; }

private:
  const program::Contract &model;
};

/// Number by class.
using ByClass = std::vector<uint32_t>;

/// From the point that defines a value to the point of its last use.
struct Lifetime {
  uint32_t slotClass;
  bool isLoaded; ///< written by the rank's own `pipe.input`
  uint32_t begin;
  uint32_t end;
};

/// The lifetimes on a rank in order of definition.
class Liveness {
public:
  Liveness(pipe::RankOp rank, const ClassNumbers &classes);

  llvm::ArrayRef<Lifetime> getLifetimes() const { return lifetimes; }
  /// Calls `allocate(value)` and `release(value)` in the order of time: at each
  /// point the results first, then the values used for the last time.
  void sweep(llvm::function_ref<void(uint32_t)> allocate,
             llvm::function_ref<void(uint32_t)> release) const;

private:
  void use(Operation &op, uint32_t point);
  void define(Operation &op, uint32_t point);
  void define(Operation &op, ResultRange results, uint32_t point);
  void sortByEnd();

  const ClassNumbers &classes;
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

/// The kind of slot of what an op yields: what comes in differs from what is computed
/// here.
static SlotKind getSlotKind(Operation &op, Type type) {
  bool comesIn = isa<pipe::RecvOp, pipe::InputOp>(op);
  if (isa<pipe::ActType>(type))
    return comesIn ? SlotKind::Input : SlotKind::Output;
  if (isa<pipe::GradType>(type))
    return comesIn ? SlotKind::GradOutput : SlotKind::GradInput;
  if (isa<pipe::SavedType>(type))
    return SlotKind::Saved;
  return isa<pipe::WctxType>(type) ? SlotKind::WeightContext : SlotKind::Labels;
}

/// The stage that the values of an op belong to: a send has that of its producer.
static uint32_t getStage(Operation &op) {
  if (auto send = dyn_cast<pipe::SendOp>(op))
    return send.getKind() == TransferKind::Activation ? send.getStage() - 1 : send.getStage() + 1;
  if (auto compute = dyn_cast<pipe::ComputeOpInterface>(op))
    return compute.getStage();
  if (auto recv = dyn_cast<pipe::RecvOp>(op))
    return recv.getStage();
  return cast<pipe::InputOp>(op).getStage();
}

void Liveness::use(Operation &op, uint32_t point) {
  for (Value operand : op.getOperands())
    lifetimes[numbers.find(operand)->second].end = point;
}

/// What `op` yields, under the names of `results`.
void Liveness::define(Operation &op, ResultRange results, uint32_t point) {
  for (OpResult result : results) {
    numbers.try_emplace(result, static_cast<uint32_t>(lifetimes.size()));
    lifetimes.push_back({classes.find(getSlotKind(op, result.getType()), getStage(op)),
                         isa<pipe::InputOp>(op), point, point});
  }
}

void Liveness::define(Operation &op, uint32_t point) {
  auto fused = dyn_cast<pipe::FusedFbOp>(op);
  if (!fused)
    return define(op, op.getResults(), point);
  ResultRange results = op.getResults();
  for (Operation &member : fused.getBody()->without_terminator()) {
    define(member, results.take_front(member.getNumResults()), point);
    results = results.drop_front(member.getNumResults());
  }
}

Liveness::Liveness(pipe::RankOp rank, const ClassNumbers &classes) : classes(classes) {
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

static ByClass findPeaks(const Liveness &liveness, const ClassNumbers &classes) {
  ByClass live(classes.size()), peak(classes.size());
  auto classOf = [&](uint32_t value) { return liveness.getLifetimes()[value].slotClass; };
  liveness.sweep(
      [&](uint32_t value) {
        uint32_t number = classOf(value);
        peak[number] = std::max(peak[number], ++live[number]);
      },
      [&](uint32_t value) { --live[classOf(value)]; });
  return peak;
}

/// How many channels of the rank read or write slots of each class.
static ByClass countChannels(pipe::RankOp rank, const ClassNumbers &classes) {
  std::set<std::pair<uint32_t, uint32_t>> channels; // class and peer
  for (Operation &op : *rank.getBody()) {
    if (auto recv = dyn_cast<pipe::RecvOp>(op)) {
      SlotKind kind = getSlotKind(op, recv.getValue().getType());
      channels.emplace(classes.find(kind, recv.getStage()), recv.getPeer());
    } else if (auto send = dyn_cast<pipe::SendOp>(op)) {
      channels.emplace(classes.find(getChannelKind(send.getKind()), getStage(op)), send.getPeer());
    }
  }
  ByClass count(classes.size());
  for (const auto &[slotClass, peer] : channels)
    ++count[slotClass];
  return count;
}

static FailureOr<SlotClassList> makeClasses(pipe::RankOp rank, const ClassNumbers &classes,
                                            const ByClass &peaks, unsigned spares) {
  const ByClass channels = countChannels(rank, classes);
  SlotClassList list;
  for (uint32_t number = 0; number < classes.size(); ++number) {
    if (peaks[number] == 0)
      continue;
    SlotKind kind = classes.getKind(number);
    uint64_t extra = uint64_t(channels[number]) * spares;
    if (extra > kMaxSpares)
      return emitRankError(rank, rank)
             << "spares of " << spares << " for each of " << channels[number] << " channels give "
             << getKeyword(kind) << " " << extra << " spare slots, expected at most " << kMaxSpares;
    uint32_t numSpares = static_cast<uint32_t>(extra);
    list.classes.push_back(
        {kind, classes.getSizeGroup(number), peaks[number] + numSpares, numSpares});
  }
  if (failed(verifySlotClasses(rank, list)))
    return failure();
  return list;
}

/// The slot of every value, by number. A value that comes from another stream
/// gets the slot that has been free the longest, so that it waits for a reader
/// that has long finished. What the rank loads itself waits for nothing, whatever
/// slot it gets: it takes the one freed last and leaves the others to receives.
static std::vector<uint32_t> allocate(const Liveness &liveness, const ByClass &peaks,
                                      const SlotClassList &list) {
  // The classes of the list are those with a peak, in their order.
  std::vector<SlotPool> pools;
  ByClass poolNumbers(peaks.size());
  uint32_t firstSlot = 0, nextClass = 0;
  for (auto [number, peak] : llvm::enumerate(peaks)) {
    if (peak == 0)
      continue;
    poolNumbers[number] = nextClass;
    uint32_t count = list.classes[nextClass++].count;
    pools.emplace_back(firstSlot, count);
    firstSlot += count;
  }
  llvm::ArrayRef<Lifetime> lifetimes = liveness.getLifetimes();
  auto poolOf = [&](uint32_t value) -> SlotPool & {
    return pools[poolNumbers[lifetimes[value].slotClass]];
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

/// The model contract names the size group of every stage that the rank has values of.
static LogicalResult verifyStages(pipe::RankOp rank) {
  const size_t numStages = rank.getModel().sizeGroup.size();
  WalkResult result = rank.getBodyRegion().walk([&](Operation *op) {
    if (!isa<pipe::ComputeOpInterface, pipe::SendOp, pipe::RecvOp, pipe::InputOp>(op) ||
        getStage(*op) < numStages)
      return WalkResult::advance();
    emitRankError(rank, op) << describeOp(op) << ": the model of the rank names the size groups of "
                            << numStages << " stages only";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult dualpipe::assignSlots(pipe::RankOp rank, unsigned spares) {
  if (spares > kMaxSpares)
    return emitRankError(rank, rank)
           << "spares of " << spares << " for each channel, expected at most " << kMaxSpares;
  if (failed(verifyDataflowPhase(rank)))
    return failure();
  if (!rank.getModel().sizeGroup.empty() && failed(verifyStages(rank)))
    return failure();
  const ClassNumbers classes(rank.getModel());
  const Liveness liveness(rank, classes);
  const ByClass peaks = findPeaks(liveness, classes);
  FailureOr<SlotClassList> list = makeClasses(rank, classes, peaks, spares);
  if (failed(list))
    return failure();
  record(rank, allocate(liveness, peaks, *list));
  rank.setSlots(*list);
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
