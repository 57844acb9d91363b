//===- Timeline.h - the global timeline of a schedule -----------------------===//
//
// All computes, transfers and reductions of a schedule on one timeline, as soon
// as possible under the planning costs. Each transfer stands at the end of its
// producer, in the sender's list and in the receiver's; a reduction stands at
// the end of its last producer, in every member's list. Every rank's list is a
// projection of that one sequence, so all lists together have no cycle even if
// each rank had one queue (D3). A schedule that places its transfers itself keeps
// its own order on every rank.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_SCHEDULE_TIMELINE_H
#define DUALPIPE_SCHEDULE_TIMELINE_H

#include "dualpipe/Schedule/Costs.h"
#include "dualpipe/Schedule/OpIndex.h"
#include "dualpipe/Schedule/Schedule.h"

#include <cstdint>
#include <vector>

namespace dualpipe {

/// One place in a rank's list.
struct TimelineEntry {
  enum class Kind : uint8_t { Compute, Send, Recv, Reduce, Step };
  Kind kind;
  bool isGrad;         ///< Send, Recv: a gradient, not an activation
  uint32_t op;         ///< Compute: first op of the group in the rank's order. Send, Recv, Reduce,
                       ///< Step: the op on this rank that it belongs to (producer or consumer)
  uint32_t stage;      ///< Send, Recv: the consumer's stage. Reduce, Step: the stage
  uint32_t microbatch; ///< Send, Recv
  uint32_t peer;       ///< Send, Recv: the other rank
  uint32_t loc;        ///< index into `Schedule::locations`
};

/// Ranks that hold a copy of one stage, ascending; more than one where pipelines share it.
using StageCopies = std::vector<std::vector<uint32_t>>;
StageCopies getStageCopies(const Schedule &schedule);

class Timeline {
public:
  /// Lays the timeline. `index` must come from a check that found nothing. Where the
  /// schedule places its transfers itself, times are those of derived ones: they order the
  /// computes and transfers of different ranks, never those of one.
  Timeline(const OpIndex &index, const Costs &costs);

  /// The list of one rank. Independent of other ranks' lists: may be called from
  /// several threads.
  std::vector<TimelineEntry> project(uint32_t rank) const;

  /// Start and end of the group that op (rank, op) belongs to.
  Ticks getStart(uint32_t rank, size_t op) const { return start[rank][op]; }
  Ticks getEnd(uint32_t rank, size_t op) const { return end[rank][op]; }
  Ticks getMakespan() const { return makespan; }

  const OpIndex &getIndex() const { return index; }
  const StageCopies &getCopies() const { return copies; }

private:
  struct Key;
  struct Placed;
  void addTransfers(uint32_t rank, std::vector<Placed> &list) const;
  void addReductions(uint32_t rank, std::vector<Placed> &list) const;
  void findLastGradients();
  void placeOwnTransfers();

  friend class OwnSequence;

  const OpIndex &index;
  StageCopies copies;
  std::vector<std::vector<Ticks>> start, end; ///< by rank and op
  std::vector<OpRef> lastGradient;            ///< by stage, over all its copies
  /// By rank, where the schedule places its transfers itself.
  std::vector<std::vector<TimelineEntry>> ownLists;
  Ticks makespan = 0;
};

} // namespace dualpipe

#endif // DUALPIPE_SCHEDULE_TIMELINE_H
