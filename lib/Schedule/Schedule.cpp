//===- Schedule.cpp - names and look-ups of order tables --------------------===//

#include "dualpipe/Schedule/Schedule.h"

using namespace dualpipe;

const char *dualpipe::getKeyword(OpKind kind) {
  switch (kind) {
  case OpKind::Forward:
    return "fwd";
  case OpKind::Backward:
    return "bwd";
  case OpKind::BackwardInput:
    return "bwd_input";
  case OpKind::BackwardWeight:
    return "bwd_weight";
  }
  return "";
}

char dualpipe::getLetter(OpKind kind) {
  switch (kind) {
  case OpKind::Forward:
    return 'F';
  case OpKind::Backward:
    return 'B';
  case OpKind::BackwardInput:
    return 'I';
  case OpKind::BackwardWeight:
    return 'W';
  }
  return '?';
}

int64_t MemoryPlan::getTaken(OpKind kind, uint32_t stage) const {
  if (kind == OpKind::Forward)
    return getActivation(stage);
  return kind == OpKind::BackwardInput ? getContext(stage) : 0;
}

int64_t MemoryPlan::getFreed(OpKind kind, uint32_t stage) const {
  if (kind == OpKind::Backward)
    return getActivation(stage);
  return kind == OpKind::BackwardWeight ? getActivation(stage) + getContext(stage) : 0;
}

size_t Schedule::findPipeline(uint32_t mb) const {
  for (size_t i = 0; i != pipelines.size(); ++i)
    if (pipelines[i].holdsMicrobatch(mb))
      return i;
  return pipelines.size();
}

size_t Schedule::getNumOps() const {
  size_t count = 0;
  for (const RankOrder &rank : ranks)
    count += rank.size();
  return count;
}

/// The forwards of a rank, with phases and transfers moved to where they stand now.
static RankOrder keepForwards(const RankOrder &order) {
  RankOrder kept;
  std::vector<uint32_t> newPlace(order.size() + 1);
  for (size_t op = 0; op != order.size(); ++op) {
    newPlace[op] = uint32_t(kept.size());
    if (order.kind[op] == OpKind::Forward)
      kept.push(order.kind[op], order.stage[op], order.microbatch[op], order.group[op],
                order.loc[op]);
  }
  newPlace[order.size()] = uint32_t(kept.size());
  for (const RankOrder::Phase &phase : order.phases)
    kept.phases.push_back({phase.name, newPlace[phase.begin]});
  for (RankOrder::Transfer transfer : order.transfers) {
    transfer.before = newPlace[transfer.before];
    if (!transfer.isGrad)
      kept.transfers.push_back(transfer);
  }
  return kept;
}

void dualpipe::dropBackward(Schedule &schedule) {
  schedule.training = false;
  for (RankOrder &order : schedule.ranks)
    order = keepForwards(order);
}
