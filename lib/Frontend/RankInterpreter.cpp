//===- RankInterpreter.cpp - where a rank's program begins, groups, transfers ===//

#include "RankInterpreter.h"

#include <algorithm>

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::Twine;

RankInterpreter::RankInterpreter(const Evaluator &setUp, uint32_t rank,
                                 const LocationTable &locations, RankOrder soFar)
    : StatementInterpreter(setUp, rank), locations(locations), order(std::move(soFar)) {
  uint64_t expected = 0;
  for (const auto &pipeline : world.pipelines) {
    firstChunk.push_back(chunks.size());
    uint32_t number = &pipeline - world.pipelines.data();
    for (uint32_t stage : pipeline.getStagesOn(rank)) {
      chunks.push_back({number, stage});
      // A forward, two halves and four transfers for each micro-batch, with room
      // for the duplicates that the checker reports.
      maxOps += uint64_t(pipeline.numMicrobatches) * 3;
      maxTransfers += uint64_t(pipeline.numMicrobatches) * 4;
      expected += uint64_t(pipeline.numMicrobatches) * 2;
    }
  }
  if (order.size() != 0) {
    goOn();
    return;
  }
  // Splits come on top, commonly few of them. A number out of all proportion is
  // more likely wrong than meant.
  reserveOrder(std::min<uint64_t>(expected + expected / 8, 1 << 20));
}

void RankInterpreter::reserveOrder(uint64_t numOps) {
  order.kind.reserve(numOps);
  order.stage.reserve(numOps);
  order.microbatch.reserve(numOps);
  order.group.reserve(numOps);
  order.loc.reserve(numOps);
}

void RankInterpreter::run(const RankItem &program) {
  enterFrame(program.numSlots);
  setLocal(program.rank, Value::ofInteger(*rank));
  execute(program.body);
}

//===----------------------------------------------------------------------===//
// What earlier sections have done
//===----------------------------------------------------------------------===//

void RankInterpreter::goOn() {
  numOps = order.size();
  numTransfers = order.transfers.size();
  // Of each chunk and micro-batch the pending weight half.
  std::vector<std::vector<uint32_t>> pendingOf;
  for (Chunk &chunk : chunks) {
    uint32_t count = world.pipelines[chunk.pipeline].numMicrobatches;
    chunk.forwardDone.resize(count);
    chunk.backwardDone.resize(count);
    for (std::vector<bool> &done : chunk.transferDone)
      done.resize(count);
    pendingOf.emplace_back(count, kNone);
  }
  for (size_t op = 0; op != order.size(); ++op) {
    markDone(op, pendingOf);
    if (order.group[op] != RankOrder::kAlone)
      nextGroup = std::max(nextGroup, order.group[op] + 1);
  }
  for (const RankOrder::Transfer &transfer : order.transfers)
    markDone(transfer);
}

size_t RankInterpreter::findChunk(uint32_t globalStage, uint32_t globalMicrobatch) const {
  auto startsAfter = [](uint32_t mb, const PipelineInfo &p) { return mb < p.firstMicrobatch; };
  auto after = std::upper_bound(world.pipelines.begin(), world.pipelines.end(), globalMicrobatch,
                                startsAfter);
  const PipelineInfo &pipeline = *std::prev(after);
  return firstChunk[&pipeline - world.pipelines.data()] +
         pipeline.ordinal[globalStage - pipeline.firstStage];
}

void RankInterpreter::markDone(size_t op, std::vector<std::vector<uint32_t>> &pendingOf) {
  size_t number = findChunk(order.stage[op], order.microbatch[op]);
  Chunk &chunk = chunks[number];
  uint32_t microbatch = order.microbatch[op] - world.pipelines[chunk.pipeline].firstMicrobatch;
  uint32_t &half = pendingOf[number][microbatch];
  switch (order.kind[op]) {
  case OpKind::Forward:
    chunk.forwardDone[microbatch] = true;
    return;
  case OpKind::BackwardInput:
    half = pending.size();
    addPending(chunk, microbatch);
    chunk.backwardDone[microbatch] = true;
    return;
  case OpKind::Backward:
    chunk.backwardDone[microbatch] = true;
    return;
  case OpKind::BackwardWeight:
    if (half != kNone)
      pending[half].done = true;
    return;
  }
}

void RankInterpreter::markDone(const RankOrder::Transfer &transfer) {
  Chunk &chunk = chunks[findChunk(transfer.stage, transfer.microbatch)];
  unsigned kind = getTransferKind(transfer.isSend, transfer.isGrad);
  chunk.transferDone[kind][transfer.microbatch - world.pipelines[chunk.pipeline].firstMicrobatch] =
      true;
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

void RankInterpreter::executeFused(const FusedStmt &stmt) {
  if (isInFused()) {
    error(stmt.loc, "'fused' must not stand inside 'fused'");
    return;
  }
  if (rejectTime(stmt.time, false, stmt.loc))
    return;
  size_t begin = order.size();
  size_t faultsBefore = findings.size();
  group = nextGroup++;
  numMembers = 0;
  execute(stmt.body);
  // A member that could not be run has been reported.
  if (numMembers < 2 && findings.size() == faultsBefore)
    error(stmt.loc, getPrefix() + "'fused' takes 2 or more ops, got " + Twine(numMembers));
  if (numMembers > world.limits.maxFusedOps)
    error(stmt.loc, getPrefix() + "'fused' takes at most " + Twine(world.limits.maxFusedOps) +
                        " ops, got " + Twine(numMembers));
  closeGroup(begin);
}

/// A group of which fewer than two members are left is none.
void RankInterpreter::closeGroup(size_t begin) {
  group = RankOrder::kAlone;
  size_t members = order.size() - begin;
  if (members >= 2)
    return;
  --nextGroup;
  if (members == 1)
    order.group.back() = RankOrder::kAlone;
}

void RankInterpreter::executeEvery(const EveryStmt &every) {
  error(every.loc, "'every' has a meaning in a timeline only; use 'repeat' or 'for'");
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

void RankInterpreter::executeTransfer(const TransferStmt &transfer) {
  if (isInFused()) {
    error(transfer.loc, "a transfer must not stand inside 'fused'");
    return;
  }
  Chunk *chunk = evaluateChunk(*transfer.chunk);
  if (!chunk)
    return;
  std::optional<uint32_t> microbatch = takeTransfer(transfer, *chunk);
  if (!microbatch || !count(numTransfers, maxTransfers, "transfers", transfer.loc))
    return;
  const PipelineInfo &pipeline = world.pipelines[chunk->pipeline];
  order.pushTransfer(transfer.isSend, transfer.isGrad, pipeline.firstStage + chunk->stage,
                     pipeline.firstMicrobatch + *microbatch, locations[transfer.id]);
}

/// The micro-batch that `@` names, or the next one of the transfer's own counter.
std::optional<uint32_t> RankInterpreter::takeTransfer(const TransferStmt &transfer, Chunk &chunk) {
  if (transfer.microbatch)
    return nameMicrobatch(*transfer.microbatch, chunk);
  unsigned kind = getTransferKind(transfer.isSend, transfer.isGrad);
  const PipelineInfo &info = world.pipelines[chunk.pipeline];
  const std::vector<bool> &done = chunk.transferDone[kind];
  while (chunk.nextTransfer[kind] < done.size() && done[chunk.nextTransfer[kind]])
    ++chunk.nextTransfer[kind];
  if (chunk.nextTransfer[kind] < info.numMicrobatches)
    return chunk.nextTransfer[kind]++;
  if (!chunk.transferFaulty[kind])
    if (Diagnostic *diagnostic =
            error(transfer.loc, getPrefix() + "no micro-batch is left for this transfer; all " +
                                    Twine(info.numMicrobatches) + " of pipeline '" + info.name +
                                    "' have had theirs in stage " + Twine(chunk.stage)))
      diagnostic->note(info.loc, "'" + info.name + "' is declared here");
  chunk.transferFaulty[kind] = true;
  return std::nullopt;
}
