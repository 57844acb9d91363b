//===- AsSoonAsPossible.h - the best that an order allows -------------------===//
//
// The makespan of a schedule when every op starts as soon as its rank is free
// and its inputs have arrived: no slots, no streams, no program. The rules are
// those of the published golden values (a fused group is one op with joint start
// and end; a transfer between ranks costs pure latency), and in addition a
// channel may carry one transfer at a time.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_TEST_SUPPORT_ASSOONASPOSSIBLE_H
#define DUALPIPE_TEST_SUPPORT_ASSOONASPOSSIBLE_H

#include "dualpipe/Schedule/Schedule.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

namespace dualpipe::test {

struct AsapCosts {
  /// Time of the ops [begin, end) of a rank's order, one group.
  std::function<int64_t(uint32_t rank, size_t begin, size_t end)> group;
  int64_t latency = 0;
  bool latencyOccupiesChannel = false;
};

struct AsapResult {
  int64_t makespan = 0;
  std::vector<std::vector<int64_t>> starts; ///< by rank and group of its order
  std::vector<int64_t> busy;                ///< by rank
  std::vector<int64_t> span;                ///< by rank, from the first start to the last end
  std::vector<unsigned> peak;               ///< activations alive at once, by rank
  std::vector<unsigned> deepestQueue;       ///< pending weight halves, by rank
  std::vector<unsigned> sends;              ///< by rank
};

/// Aborts the test (through an exception of `at`) on a schedule that is not valid.
inline AsapResult runAsSoonAsPossible(const Schedule &schedule, const AsapCosts &costs) {
  using Key = std::tuple<bool, uint32_t, uint32_t>; // gradient?, consumer's stage, micro-batch
  struct Product {
    uint32_t rank;
    int64_t arrival, localEnd;
  };
  std::map<Key, Product> products;
  std::map<std::tuple<uint32_t, uint32_t, bool>, int64_t> channelFree;
  AsapResult result;
  size_t numRanks = schedule.numRanks;
  result.starts.resize(numRanks);
  result.busy.resize(numRanks);
  result.span.resize(numRanks);
  result.peak.resize(numRanks);
  result.deepestQueue.resize(numRanks);
  result.sends.resize(numRanks);
  std::vector<size_t> at(numRanks);
  std::vector<int64_t> free(numRanks), firstStart(numRanks);
  std::vector<int> alive(numRanks), queue(numRanks);

  auto tryGroup = [&](uint32_t rank) {
    const RankOrder &order = schedule.ranks[rank];
    size_t begin = at[rank], end = order.groupEnd(begin);
    int64_t start = free[rank];
    for (size_t op = begin; op != end; ++op) {
      uint32_t stage = order.stage[op], mb = order.microbatch[op];
      const Pipeline &pipeline = schedule.pipelines.at(schedule.findPipeline(mb));
      bool isForward = order.kind[op] == OpKind::Forward;
      if (order.kind[op] == OpKind::BackwardWeight ||
          stage == (isForward ? pipeline.firstStage : pipeline.getLastStage()))
        continue;
      auto found = products.find({!isForward, stage, mb});
      if (found == products.end())
        return false;
      const Product &product = found->second;
      start = std::max(start, product.rank == rank ? product.localEnd : product.arrival);
    }
    int64_t finish = start + costs.group(rank, begin, end);
    result.starts[rank].push_back(start);
    result.busy[rank] += finish - start;
    if (begin == 0)
      firstStart[rank] = start;
    result.span[rank] = finish - firstStart[rank];
    free[rank] = finish;
    at[rank] = end;
    result.makespan = std::max(result.makespan, finish);
    for (size_t op = begin; op != end; ++op)
      if (order.kind[op] == OpKind::Forward)
        result.peak[rank] = std::max<unsigned>(result.peak[rank], ++alive[rank]);
    for (size_t op = begin; op != end; ++op) {
      uint32_t stage = order.stage[op], mb = order.microbatch[op];
      const Pipeline &pipeline = schedule.pipelines.at(schedule.findPipeline(mb));
      bool isForward = order.kind[op] == OpKind::Forward;
      if (order.kind[op] == OpKind::BackwardInput)
        result.deepestQueue[rank] = std::max<unsigned>(result.deepestQueue[rank], ++queue[rank]);
      if (order.kind[op] == OpKind::BackwardWeight) {
        --queue[rank];
        --alive[rank];
        continue;
      }
      if (order.kind[op] == OpKind::Backward)
        --alive[rank];
      if (stage == (isForward ? pipeline.getLastStage() : pipeline.firstStage))
        continue;
      uint32_t target = isForward ? stage + 1 : stage - 1;
      uint32_t consumer = pipeline.getRank(target);
      int64_t arrival = finish;
      if (consumer != rank) {
        ++result.sends[rank];
        int64_t &channel = channelFree[{rank, consumer, !isForward}];
        int64_t begins = std::max(finish, channel);
        if (costs.latencyOccupiesChannel)
          channel = begins + costs.latency;
        arrival = begins + costs.latency;
      }
      products[{!isForward, target, mb}] = {rank, arrival, finish};
    }
    return true;
  };

  for (bool progress = true; progress;) {
    progress = false;
    for (uint32_t rank = 0; rank != numRanks; ++rank)
      while (at[rank] != schedule.ranks[rank].size() && tryGroup(rank))
        progress = true;
  }
  for (uint32_t rank = 0; rank != numRanks; ++rank)
    if (at[rank] != schedule.ranks[rank].size())
      result.makespan = -1; // the schedule cannot finish
  return result;
}

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_SUPPORT_ASSOONASPOSSIBLE_H
