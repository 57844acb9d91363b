//===- ShortestCycle.h - who waits for whom in a circle ----------------------===//

#ifndef DUALPIPE_SUPPORT_SHORTESTCYCLE_H
#define DUALPIPE_SUPPORT_SHORTESTCYCLE_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace dualpipe {

/// The edges of a shortest cycle through node `start`, in order, that has fewer than `shorterThan`
/// edges; empty where there is none. Breadth first, so linear in the edges.
///
/// `getEdges(node)` gives the edges that leave a node, `getFrom(edge)` and `getTo(edge)` their
/// ends.
template <typename Edge, typename GetEdges, typename GetFrom, typename GetTo>
std::vector<Edge> findCycleThrough(uint32_t start, size_t shorterThan, GetEdges getEdges,
                                   GetFrom getFrom, GetTo getTo) {
  // A map: most searches end near where they start.
  std::unordered_map<uint32_t, Edge> reachedBy;
  std::vector<uint32_t> frontier = {start};
  for (size_t length = 1; length < shorterThan && !frontier.empty(); ++length) {
    std::vector<uint32_t> next;
    for (uint32_t node : frontier)
      for (const Edge &edge : getEdges(node))
        if (reachedBy.try_emplace(getTo(edge), edge).second)
          next.push_back(getTo(edge));
    frontier = std::move(next);
    if (reachedBy.count(start) == 0)
      continue;
    std::vector<Edge> cycle;
    for (uint32_t node = start; cycle.empty() || node != start; node = getFrom(cycle.back()))
      cycle.push_back(reachedBy.at(node));
    std::reverse(cycle.begin(), cycle.end());
    return cycle;
  }
  return {};
}

} // namespace dualpipe

#endif // DUALPIPE_SUPPORT_SHORTESTCYCLE_H
