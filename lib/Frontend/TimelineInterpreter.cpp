//===- TimelineInterpreter.cpp - runs a timeline for all ranks -------------===//

#include "TimelineInterpreter.h"

#include <algorithm>

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::Twine;

namespace {
/// A timeline takes the steps of all ranks: more where there are more ops to state.
constexpr uint64_t kStepsPerOp = 32;
constexpr uint64_t kMaxSteps = uint64_t(1) << 31;
} // namespace

TimelineInterpreter::TimelineInterpreter(const Evaluator &setUp, const LocationTable &locations)
    : StatementInterpreter(setUp, std::nullopt), locations(locations) {
  for (const PipelineInfo &pipeline : world.pipelines)
    maxOps += uint64_t(pipeline.numStages) * pipeline.numMicrobatches * 3;
  setSteps(std::clamp(maxOps * kStepsPerOp, world.limits.maxSteps, kMaxSteps));
}

void TimelineInterpreter::run(const TimelineItem &timeline) {
  enterFrame(timeline.numSlots);
  execute(timeline.body);
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

void TimelineInterpreter::executeEvery(const EveryStmt &every) {
  std::optional<int64_t> period = evaluateInteger(*every.period, "as the period of 'every'");
  std::optional<int64_t> begin = 0, end = world.numMicrobatches;
  if (every.begin) {
    begin = evaluateInteger(*every.begin, "as the first value of 'every'");
    end = evaluateInteger(*every.end, "as the end of 'every'");
  }
  if (!period || !begin || !end)
    return;
  if (*end < *begin) {
    error(every.loc,
          "the range " + Twine(*begin) + ".." + Twine(*end) + " of 'every' has a negative length");
    return;
  }
  int64_t outer = offset;
  loop(Context::Kind::Every, every, every.counter.name, *begin, *end, every.body, [&](int64_t i) {
    setLocal(every.counter, Value::ofInteger(i));
    int64_t shift = 0;
    if (__builtin_mul_overflow(i, *period, &shift) ||
        __builtin_add_overflow(outer, shift, &offset)) {
      error(every.loc, "the time of this block does not fit in 64 bits");
      stopped = true;
    }
  });
  offset = outer;
}

/// The time of an op or a pair, with what `every` adds.
std::optional<int64_t> TimelineInterpreter::evaluateTime(const Expr *time, SourceLoc loc) {
  if (!time) {
    error(loc, "an op of a timeline needs its time: 'at' and an integer");
    return std::nullopt;
  }
  std::optional<int64_t> value = evaluateInteger(*time, "as a time");
  int64_t sum = 0;
  if (!value)
    return std::nullopt;
  bool overflows = __builtin_add_overflow(*value, offset, &sum);
  if (!overflows && sum <= TimedOp::kMaxTime && sum >= -TimedOp::kMaxTime)
    return sum;
  error(time->loc, "the time is out of range; the largest is " + Twine(TimedOp::kMaxTime));
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// A chunk, or the pipeline where it has one stage only.
std::optional<Value> TimelineInterpreter::evaluateChunk(const Expr &expr) {
  Value value = evaluate(expr);
  if (value.is(Value::Kind::Chunk))
    return value;
  if (!value.is(Value::Kind::Pipeline)) {
    reportKind(expr.loc, "a pipeline or chunk", value, "after the op");
    return std::nullopt;
  }
  const PipelineInfo &info = world.pipelines[value.getPipeline()];
  if (info.numStages == 1)
    return Value::ofChunk(value.getPipeline(), 0);
  error(expr.loc, "a timeline is of all ranks, so its ops name their stage, as in '" + info.name +
                      ".stage(s)'");
  return std::nullopt;
}

std::optional<uint32_t> TimelineInterpreter::evaluateMicrobatch(const OpStmt &op,
                                                                const PipelineInfo &pipeline) {
  if (!op.microbatch) {
    error(op.loc, "an op of a timeline names its micro-batch: '@' and an integer");
    return std::nullopt;
  }
  std::optional<int64_t> microbatch = evaluateInteger(*op.microbatch, "as a micro-batch");
  if (!microbatch)
    return std::nullopt;
  if (*microbatch >= 0 && *microbatch < int64_t(pipeline.numMicrobatches))
    return uint32_t(*microbatch);
  if (Diagnostic *diagnostic =
          error(op.microbatch->loc, "micro-batch " + Twine(*microbatch) + " is outside 0 to " +
                                        Twine(pipeline.numMicrobatches - 1) + " of pipeline '" +
                                        pipeline.name + "'"))
    diagnostic->note(pipeline.loc, "'" + pipeline.name + "' is declared here");
  return std::nullopt;
}

/// The kind of the op, where `split` is known.
std::optional<OpKind> TimelineInterpreter::evaluateKind(const OpStmt &op) {
  if (!op.split)
    return op.op;
  std::optional<bool> split = evaluateBoolean(*op.split, "as the condition of 'split'");
  if (!split)
    return std::nullopt;
  return *split ? OpKind::BackwardInput : OpKind::Backward;
}

/// Members of a pair have the time of the pair.
bool TimelineInterpreter::checkTime(const OpStmt &op) {
  if (!isInFused() || (!op.time && !op.inGaps))
    return true;
  error(op.time ? op.time->loc : op.loc, "the time of a fused op is that of its group: write it "
                                         "after the '}' of 'fused'");
  return false;
}

void TimelineInterpreter::executeOp(const OpStmt &op) {
  if (!op.chunk) {
    error(op.loc, "an op of a timeline names its stage, as in 'p.stage(s)'");
    return;
  }
  std::optional<Value> chunk = evaluateChunk(*op.chunk);
  if (!chunk || !checkTime(op))
    return;
  const PipelineInfo &pipeline = world.pipelines[chunk->getPipeline()];
  std::optional<uint32_t> microbatch = evaluateMicrobatch(op, pipeline);
  std::optional<OpKind> kind = evaluateKind(op);
  std::optional<int64_t> time = isInFused() ? groupTime
                                : op.inGaps ? 0
                                            : evaluateTime(op.time, op.loc);
  if (!microbatch || !kind || !time)
    return;
  if (ops.size() >= maxOps) {
    error(op.loc, "the timeline has more than " + Twine(maxOps) +
                      " ops, far more than its stages have micro-batches");
    stopped = true;
    return;
  }
  ops.push_back({*time, *kind, op.inGaps, pipeline.placement[chunk->getStage()],
                 pipeline.firstStage + chunk->getStage(), pipeline.firstMicrobatch + *microbatch,
                 group, locations[op.id], phase});
}

void TimelineInterpreter::executeFused(const FusedStmt &fused) {
  if (isInFused()) {
    error(fused.loc, "'fused' must not stand inside 'fused'");
    return;
  }
  std::optional<int64_t> time = evaluateTime(fused.time, fused.loc);
  if (!time)
    return;
  size_t begin = ops.size();
  size_t faultsBefore = findings.size();
  group = nextGroup++;
  groupTime = *time;
  execute(fused.body);
  group = RankOrder::kAlone;
  // A member that could not be run has been reported.
  if (findings.size() == faultsBefore)
    checkGroup(begin, fused.loc);
}

/// Members of a group are several, and on one rank.
bool TimelineInterpreter::checkGroup(size_t begin, SourceLoc loc) {
  size_t members = ops.size() - begin;
  if (members < 2 || members > world.limits.maxFusedOps) {
    error(loc,
          "'fused' takes 2 to " + Twine(world.limits.maxFusedOps) + " ops, got " + Twine(members));
    return false;
  }
  for (size_t i = begin + 1; i != ops.size(); ++i) {
    if (ops[i].rank == ops[begin].rank)
      continue;
    error(loc, "ops of 'fused' run on one rank, got rank " + Twine(ops[begin].rank) + " and rank " +
                   Twine(ops[i].rank));
    return false;
  }
  return true;
}

void TimelineInterpreter::executeTransfer(const TransferStmt &transfer) {
  error(transfer.loc, "transfers are placed in the program of a rank; a timeline derives them");
}
