//===- PruneEvents.cpp - waits that others imply ----------------------------===//
//
// Every stream has a clock: for each stream of the rank, how many of its
// commands have finished before the stream's next one begins. A wait that stays
// counts as a command: what is recorded after it says more than what is recorded
// before it. A record keeps the clock of its stream, a wait merges the record's
// clock into its own stream.
// A wait whose record lies within the clock says nothing new. Waits that stand
// together before one command are judged together, so that the strongest stay.
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Transforms/Passes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace dualpipe {
#define GEN_PASS_DEF_STREAMPRUNEEVENTS
#include "lib/Transforms/Passes.h.inc"
} // namespace dualpipe

using namespace dualpipe;
using namespace mlir;

namespace {

class EventPruner {
public:
  explicit EventPruner(stream::ProgramOp program)
      : program(program), numStreams(program.getStreams().size()),
        clocks(numStreams * numStreams, 0), issued(numStreams, 0), pending(numStreams) {}

  FailureOr<PrunedEvents> run();

private:
  /// A record: its stream, and how many commands and waits of it come before.
  struct Event {
    uint32_t stream;
    uint32_t time;
    size_t clock; ///< where its clock begins in `eventClocks`
  };

  LogicalResult visit(Operation &op);
  void recordEvent(stream::RecordOp op);
  void settleWaits(uint32_t stream);
  bool isImplied(uint32_t stream, ArrayRef<stream::WaitOp> waits, size_t index) const;
  const Event &getEvent(stream::WaitOp wait) const {
    return events[eventNumbers.find(wait.getEvent())->second];
  }
  uint32_t *getClock(uint32_t stream) { return &clocks[stream * numStreams]; }

  stream::ProgramOp program;
  size_t numStreams;
  std::vector<uint32_t> clocks;
  std::vector<uint32_t> issued; ///< by stream: commands so far, with the waits that stay
  std::vector<SmallVector<stream::WaitOp, 4>> pending;
  std::vector<Event> events;
  std::vector<uint32_t> eventClocks;
  llvm::DenseMap<Value, uint32_t> eventNumbers;
  std::vector<stream::RecordOp> records;
  PrunedEvents pruned;
};

} // namespace

/// The stream of a command, or nothing for a phase mark.
static std::optional<uint32_t> getStream(Operation &op) {
  if (auto launch = dyn_cast<stream::LaunchOp>(op))
    return launch.getStream();
  if (auto wait = dyn_cast<stream::WaitOp>(op))
    return wait.getStream();
  if (auto record = dyn_cast<stream::RecordOp>(op))
    return record.getStream();
  if (auto send = dyn_cast<stream::SendOp>(op))
    return send.getStream();
  if (auto recv = dyn_cast<stream::RecvOp>(op))
    return recv.getStream();
  if (auto pair = dyn_cast<stream::PairOp>(op))
    return pair.getStream();
  if (auto group = dyn_cast<stream::GroupOp>(op))
    return group.getStream();
  if (auto reduce = dyn_cast<stream::ReduceOp>(op))
    return reduce.getStream();
  if (auto step = dyn_cast<stream::StepOp>(op))
    return step.getStream();
  return std::nullopt;
}

void EventPruner::recordEvent(stream::RecordOp op) {
  uint32_t stream = op.getStream();
  eventNumbers.try_emplace(op.getEvent(), static_cast<uint32_t>(events.size()));
  events.push_back({stream, issued[stream], eventClocks.size()});
  const uint32_t *clock = getClock(stream);
  eventClocks.insert(eventClocks.end(), clock, clock + numStreams);
  eventClocks[events.back().clock + stream] = issued[stream];
  records.push_back(op);
}

/// Known already by the stream itself, or once one of the other waits is over.
/// Waits that were removed are null.
bool EventPruner::isImplied(uint32_t stream, ArrayRef<stream::WaitOp> waits, size_t index) const {
  stream::WaitOp wait = waits[index];
  const Event &event = getEvent(wait);
  if (event.stream == stream || clocks[stream * numStreams + event.stream] >= event.time)
    return true;
  for (auto [other, otherWait] : llvm::enumerate(waits))
    if (other != index && otherWait &&
        eventClocks[getEvent(otherWait).clock + event.stream] >= event.time)
      return true;
  return false;
}

/// Judges the waits that stand before the stream's next command.
void EventPruner::settleWaits(uint32_t stream) {
  SmallVector<stream::WaitOp, 4> &waits = pending[stream];
  uint32_t *clock = getClock(stream);
  for (size_t i = 0; i < waits.size(); ++i) {
    if (!isImplied(stream, waits, i))
      continue;
    waits[i].erase();
    waits[i] = {};
    ++pruned.waits;
  }
  for (stream::WaitOp wait : waits) {
    if (!wait)
      continue;
    const uint32_t *eventClock = &eventClocks[getEvent(wait).clock];
    for (size_t other = 0; other < numStreams; ++other)
      clock[other] = std::max(clock[other], eventClock[other]);
    ++issued[stream];
  }
  waits.clear();
}

LogicalResult EventPruner::visit(Operation &op) {
  std::optional<uint32_t> stream = getStream(op);
  if (!stream)
    return success();
  if (*stream >= numStreams)
    return op.emitOpError("stands on stream ")
           << *stream << ", expected one of the " << numStreams << " streams of the rank";
  if (auto wait = dyn_cast<stream::WaitOp>(op)) {
    pending[*stream].push_back(wait);
    return success();
  }
  settleWaits(*stream);
  if (auto record = dyn_cast<stream::RecordOp>(op))
    recordEvent(record);
  else
    ++issued[*stream];
  return success();
}

FailureOr<PrunedEvents> EventPruner::run() {
  for (Operation &op : llvm::make_early_inc_range(*program.getBody()))
    if (failed(visit(op)))
      return failure();
  for (uint32_t stream = 0; stream < numStreams; ++stream)
    settleWaits(stream);
  for (stream::RecordOp record : records) {
    if (!record.getEvent().use_empty())
      continue;
    record.erase();
    ++pruned.records;
  }
  return pruned;
}

FailureOr<PrunedEvents> dualpipe::pruneEvents(stream::ProgramOp program) {
  return EventPruner(program).run();
}

namespace {
struct StreamPruneEventsPass : dualpipe::impl::StreamPruneEventsBase<StreamPruneEventsPass> {
  void runOnOperation() override {
    FailureOr<PrunedEvents> pruned = pruneEvents(getOperation());
    if (failed(pruned))
      return signalPassFailure();
    numWaits += pruned->waits;
    numRecords += pruned->records;
  }
};
} // namespace
