//===- Relaxation.h - visiting a schedule in dependence order ---------------===//
//
// Program order and data dependences make a graph whose nodes are the groups of
// a schedule (a fused group or an op on its own). This visits every node after
// all that it depends on, in time linear in the ops, and says what is left when
// the graph has a cycle.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_SCHEDULE_RELAXATION_H
#define DUALPIPE_SCHEDULE_RELAXATION_H

#include "dualpipe/Schedule/OpIndex.h"

#include <vector>

namespace dualpipe {

/// Calls `visit(rank, begin, end)` for each group of ops in a dependence order
/// that depends on the schedule alone.
/// \returns for each rank the first op that could not be visited; the rank's
/// number of ops where all were.
template <typename Visit>
std::vector<size_t> visitInDependenceOrder(const OpIndex &index, Visit visit) {
  const Schedule &schedule = index.getSchedule();
  std::vector<size_t> next(schedule.numRanks, 0);
  std::vector<uint32_t> ready;
  ready.reserve(schedule.numRanks);
  for (uint32_t r = schedule.numRanks; r-- > 0;)
    ready.push_back(r);

  auto hasRun = [&](OpRef ref) { return !ref.isValid() || next[ref.rank] > ref.op; };
  auto inputsArePresent = [&](uint32_t rank, size_t begin, size_t end) {
    for (size_t op = begin; op != end; ++op)
      if (!hasRun(index.getProducer(rank, op)))
        return false;
    return true;
  };

  while (!ready.empty()) {
    uint32_t rank = ready.back();
    ready.pop_back();
    const RankOrder &order = schedule.ranks[rank];
    while (next[rank] < order.size()) {
      size_t begin = next[rank], end = order.groupEnd(begin);
      if (!inputsArePresent(rank, begin, end))
        break;
      visit(rank, begin, end);
      next[rank] = end;
      // Only a rank that stands at the consumer of what was just made can go on.
      for (size_t op = begin; op != end; ++op) {
        OpRef consumer = index.getConsumer(rank, op);
        if (!consumer.isValid() || consumer.rank == rank)
          continue;
        const RankOrder &other = schedule.ranks[consumer.rank];
        size_t at = next[consumer.rank];
        if (at <= consumer.op && consumer.op < other.groupEnd(at))
          ready.push_back(consumer.rank);
      }
    }
  }
  return next;
}

} // namespace dualpipe

#endif // DUALPIPE_SCHEDULE_RELAXATION_H
