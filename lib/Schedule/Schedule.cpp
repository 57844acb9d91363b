//===- Schedule.cpp - look-ups on order tables ------------------------------===//

#include "dualpipe/Schedule/Schedule.h"

#include <algorithm>
#include <utility>

using namespace dualpipe;

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
  auto startsAfter = [](uint32_t number, const Pipeline &p) { return number < p.firstMicrobatch; };
  auto after = std::upper_bound(pipelines.begin(), pipelines.end(), mb, startsAfter);
  if (after == pipelines.begin() || !std::prev(after)->holdsMicrobatch(mb))
    return pipelines.size();
  return size_t(std::prev(after) - pipelines.begin());
}

size_t Schedule::getNumOps() const {
  size_t count = 0;
  for (const RankOrder &rank : ranks)
    count += rank.size();
  return count;
}

/// The phases that still have ops, each where it begins now.
static void keepPhases(const RankOrder &order, const std::vector<uint32_t> &newPlace,
                       RankOrder &kept) {
  for (size_t i = 0; i != order.phases.size(); ++i) {
    uint32_t begin = newPlace[order.phases[i].begin];
    uint32_t end =
        i + 1 == order.phases.size() ? uint32_t(kept.size()) : newPlace[order.phases[i + 1].begin];
    bool goesOn = !kept.phases.empty() && kept.phases.back().name == order.phases[i].name;
    if (begin != end && !goesOn)
      kept.phases.push_back({order.phases[i].name, begin});
  }
}

/// Forgets the names of phases that no rank enters any more, and that a rank is in no
/// phase before its first one.
static void dropPhaseNames(Schedule &schedule) {
  std::vector<uint32_t> numbers(schedule.phaseNames.size(), 0);
  for (RankOrder &order : schedule.ranks) {
    if (!order.phases.empty() && schedule.phaseNames[order.phases.front().name].empty())
      order.phases.erase(order.phases.begin());
    for (const RankOrder::Phase &phase : order.phases)
      numbers[phase.name] = 1;
  }
  std::vector<std::string> names;
  for (size_t i = 0; i != numbers.size(); ++i)
    if (std::exchange(numbers[i], uint32_t(names.size())) != 0)
      names.push_back(std::move(schedule.phaseNames[i]));
  schedule.phaseNames = std::move(names);
  for (RankOrder &order : schedule.ranks)
    for (RankOrder::Phase &phase : order.phases)
      phase.name = numbers[phase.name];
}

/// Numbers the groups anew; one that has a single op left is that op.
static void renumberGroups(RankOrder &order) {
  uint32_t next = 0;
  for (size_t begin = 0, end; begin != order.size(); begin = end) {
    end = order.groupEnd(begin);
    uint32_t group = end - begin > 1 ? next++ : RankOrder::kAlone;
    std::fill(order.group.begin() + begin, order.group.begin() + end, group);
  }
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
  keepPhases(order, newPlace, kept);
  renumberGroups(kept);
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
  dropPhaseNames(schedule);
}
