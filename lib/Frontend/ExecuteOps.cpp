//===- ExecuteOps.cpp - ops take their micro-batches -----------------------===//

#include "RankInterpreter.h"
#include "SuggestPlacement.h"

#include "llvm/ADT/StringExtras.h"

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::Twine;

/// Times have a meaning in a timeline only. False where there is none.
bool RankInterpreter::rejectTime(const Expr *time, bool inGaps, SourceLoc loc) {
  if (!time && !inGaps) [[likely]]
    return false;
  error(time ? time->loc : loc, llvm::StringRef(time ? "'at'" : "'in gaps'") +
                                    " has a meaning in a timeline only; the ops of a rank run in "
                                    "the order of the text");
  return true;
}

void RankInterpreter::executeOp(const OpStmt &op) {
  if (rejectTime(op.time, op.inGaps, op.loc))
    return;
  if (op.op == OpKind::BackwardWeight)
    return executeWeight(op);
  OpKind kind = op.op;
  Chunk *chunk = evaluateChunk(*op.chunk);
  bool faulty = chunk == nullptr;
  if (op.split) {
    std::optional<bool> split = evaluateBoolean(*op.split, "as the condition of 'split'");
    faulty |= !split;
    kind = split.value_or(false) ? OpKind::BackwardInput : OpKind::Backward;
  }
  if (!chunk)
    return;
  // Taken even where `split` is faulty, so that the counter stays in step.
  std::optional<uint32_t> microbatch = takeMicrobatch(op, *chunk);
  if (faulty || !microbatch)
    return;
  if (kind == OpKind::BackwardInput)
    addPending(*chunk, *microbatch);
  emit(op, kind, *chunk, *microbatch);
}

/// False once there are too many.
bool RankInterpreter::count(uint64_t &number, uint64_t most, const char *what, SourceLoc loc) {
  if (++number <= most) [[likely]]
    return true;
  error(loc, "rank " + Twine(*rank) + " has more than " + Twine(most) + " " + what +
                 ", far more than its stages have micro-batches");
  stopped = true;
  return false;
}

void RankInterpreter::emit(const OpStmt &op, OpKind kind, const Chunk &chunk, uint32_t microbatch) {
  if (!count(numOps, maxOps, "ops", op.loc))
    return;
  ++numMembers;
  order.enterPhase(phase);
  const PipelineInfo &pipeline = world.pipelines[chunk.pipeline];
  order.push(kind, pipeline.firstStage + chunk.stage, pipeline.firstMicrobatch + microbatch, group,
             locations[op.id]);
}

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

RankInterpreter::Chunk *RankInterpreter::evaluateChunk(const Expr &expr) {
  Value value = evaluate(expr);
  if (value.is(Value::Kind::Pipeline))
    return getOnlyChunk(value.getPipeline(), expr.loc);
  if (value.is(Value::Kind::Chunk))
    return getChunk(value.getPipeline(), value.getStage(), expr.loc);
  reportKind(expr.loc, "a pipeline or chunk", value, "after the op");
  return nullptr;
}

/// `0, 1, 2 and 5 more`
static std::string listNumbers(llvm::ArrayRef<uint32_t> numbers) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(numbers.size(), kShown); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  if (numbers.size() > kShown)
    text += " and " + std::to_string(numbers.size() - kShown) + " more";
  return text;
}

/// A bare name means the only stage of the pipeline on this rank.
RankInterpreter::Chunk *RankInterpreter::getOnlyChunk(uint32_t pipeline, SourceLoc loc) {
  const PipelineInfo &info = world.pipelines[pipeline];
  llvm::ArrayRef<uint32_t> stages = info.getStagesOn(*rank);
  if (stages.size() == 1) [[likely]]
    return &chunks[firstChunk[pipeline]];
  Diagnostic *diagnostic;
  if (stages.empty()) {
    std::vector<uint32_t> ranks(info.placement);
    llvm::sort(ranks);
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    diagnostic = error(loc, "rank " + Twine(*rank) + " holds no stage of pipeline '" + info.name +
                                "', which is placed on " +
                                (ranks.size() == 1 ? "rank " : "ranks ") + listNumbers(ranks));
  } else {
    diagnostic = error(loc, "rank " + Twine(*rank) + " holds " + Twine(stages.size()) +
                                " stages of pipeline '" + info.name + "' (" + listNumbers(stages) +
                                "); name one of them, as in '" + info.name + "[0]'");
  }
  if (diagnostic)
    diagnostic->note(info.loc, "'" + info.name + "' is declared here");
  return nullptr;
}

RankInterpreter::Chunk *RankInterpreter::getChunk(uint32_t pipeline, uint32_t stage,
                                                  SourceLoc loc) {
  const PipelineInfo &info = world.pipelines[pipeline];
  if (info.placement[stage] == *rank)
    return &chunks[firstChunk[pipeline] + info.ordinal[stage]];
  if (Diagnostic *diagnostic =
          error(loc, "stage " + Twine(stage) + " of pipeline '" + info.name + "' is on rank " +
                         Twine(info.placement[stage]) + ", not on rank " + Twine(*rank))) {
    diagnostic->note(info.loc, "'" + info.name + "' is declared here");
    suggestPlacement(*diagnostic, world, info, stage, *rank);
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Micro-batches
//===----------------------------------------------------------------------===//

/// The micro-batch that `@` names, or the next one of the op's counter.
std::optional<uint32_t> RankInterpreter::takeMicrobatch(const OpStmt &op, Chunk &chunk) {
  if (op.microbatch)
    return nameMicrobatch(*op.microbatch, chunk);
  bool forward = op.op == OpKind::Forward;
  uint32_t &next = forward ? chunk.nextForward : chunk.nextBackward;
  const std::vector<bool> &done = forward ? chunk.forwardDone : chunk.backwardDone;
  while (next < done.size() && done[next])
    ++next;
  if (next < world.pipelines[chunk.pipeline].numMicrobatches) [[likely]]
    return next++;
  bool &faulty = forward ? chunk.forwardFaulty : chunk.backwardFaulty;
  if (!faulty)
    reportExhausted(op, chunk);
  faulty = true;
  return std::nullopt;
}

void RankInterpreter::reportExhausted(const OpStmt &op, const Chunk &chunk) {
  const PipelineInfo &info = world.pipelines[chunk.pipeline];
  const char *what = op.op == OpKind::Forward ? "forward" : "backward";
  if (Diagnostic *diagnostic =
          error(op.loc, "rank " + Twine(*rank) + ": no micro-batch is left for this op; all " +
                            Twine(info.numMicrobatches) + " of pipeline '" + info.name +
                            "' have had their " + what + " in stage " + Twine(chunk.stage)))
    diagnostic->note(info.loc, "'" + info.name + "' is declared here");
}

std::optional<uint32_t> RankInterpreter::nameMicrobatch(const Expr &expr, const Chunk &chunk) {
  std::optional<int64_t> microbatch = evaluateInteger(expr, "as a micro-batch");
  if (!microbatch)
    return std::nullopt;
  const PipelineInfo &info = world.pipelines[chunk.pipeline];
  if (*microbatch >= 0 && *microbatch < int64_t(info.numMicrobatches))
    return uint32_t(*microbatch);
  if (Diagnostic *diagnostic =
          error(expr.loc, "rank " + Twine(*rank) + ": micro-batch " + Twine(*microbatch) +
                              " is outside 0 to " + Twine(info.numMicrobatches - 1) +
                              " of pipeline '" + info.name + "'"))
    diagnostic->note(info.loc, "'" + info.name + "' is declared here");
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Weight halves
//===----------------------------------------------------------------------===//

void RankInterpreter::addPending(Chunk &chunk, uint32_t microbatch) {
  uint32_t number = pending.size();
  pending.push_back({uint32_t(&chunk - chunks.data()), microbatch, kNone, false});
  if (chunk.firstPending == kNone)
    chunk.firstPending = number;
  else
    pending[chunk.lastPending].next = number;
  chunk.lastPending = number;
}

void RankInterpreter::executeWeight(const OpStmt &op) {
  Pending *half = findPending(op);
  if (!half)
    return;
  half->done = true;
  emit(op, OpKind::BackwardWeight, chunks[half->chunk], half->microbatch);
}

/// The weight half that the op names: the oldest of the rank, the oldest of a
/// chunk, or that of a micro-batch.
RankInterpreter::Pending *RankInterpreter::findPending(const OpStmt &op) {
  if (op.chunk) {
    Chunk *chunk = evaluateChunk(*op.chunk);
    return chunk ? findPendingOf(op, *chunk) : nullptr;
  }
  while (oldestPending < pending.size() && pending[oldestPending].done)
    ++oldestPending;
  if (oldestPending < pending.size()) [[likely]]
    return &pending[oldestPending];
  reportNothingPending(op, nullptr);
  return nullptr;
}

RankInterpreter::Pending *RankInterpreter::findPendingOf(const OpStmt &op, Chunk &chunk) {
  while (chunk.firstPending != kNone && pending[chunk.firstPending].done)
    chunk.firstPending = pending[chunk.firstPending].next;
  std::optional<uint32_t> microbatch;
  if (op.microbatch && !(microbatch = nameMicrobatch(*op.microbatch, chunk)))
    return nullptr;
  for (uint32_t at = chunk.firstPending; at != kNone; at = pending[at].next) {
    if (!pending[at].done && (!microbatch || pending[at].microbatch == *microbatch))
      return &pending[at];
    if (!spend(1, op.loc))
      return nullptr;
  }
  reportNothingPending(op, &chunk);
  return nullptr;
}

/// Silent after any other fault of the rank: that may be why nothing is pending.
void RankInterpreter::reportNothingPending(const OpStmt &op, const Chunk *chunk) {
  if (!findings.empty())
    return;
  std::string of;
  if (chunk)
    of = (" of pipeline '" + world.pipelines[chunk->pipeline].name + "', stage " +
          Twine(chunk->stage) + ",")
             .str();
  error(op.loc, "rank " + Twine(*rank) + ": no weight half" + of +
                    (op.microbatch ? " with this micro-batch" : "") +
                    " is pending; a 'bwd_input' or a split 'bwd' must come before it");
}
