//===- Greedy.h - orders by rules: list scheduling over all ranks -----------===//
//
// The rules of a `greedy` section, evaluated for each rank, and the list scheduling
// that they state. All ranks run at once under the planning costs; whenever a rank
// is free, it takes the first choice of its list for which an op is ready and
// allowed. docs/rules.md states it exactly.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_SCHEDULE_GREEDY_H
#define DUALPIPE_SCHEDULE_GREEDY_H

#include "dualpipe/Schedule/Costs.h"
#include "dualpipe/Schedule/Schedule.h"
#include "dualpipe/Support/Diagnostics.h"

#include <cstdint>
#include <vector>

namespace dualpipe {

/// A stage of one pipeline. Pipelines that share weights have the same stages.
struct ChunkRef {
  uint32_t pipeline; ///< index into `Schedule::pipelines`
  uint32_t stage;    ///< counted over the whole schedule

  friend bool operator==(const ChunkRef &a, const ChunkRef &b) {
    return a.pipeline == b.pipeline && a.stage == b.stage;
  }
};

/// The ops of one kind in some chunks of a rank. Of several ops that are ready, the
/// one of the smallest micro-batch (counted within its pipeline) is taken, then that
/// of the first chunk in this list.
struct Member {
  OpKind kind;
  std::vector<ChunkRef> chunks;
};

/// What a rank may take when it is free: an op of the only member, or a fused group
/// with one op of each.
struct Choice {
  std::vector<Member> members;
  uint32_t loc = 0; ///< index into `Schedule::locations`, the place of every op taken
};

/// At most `most` micro-batches of the chunks together may be between the start of
/// their `from` and the end of their `to`. A full backward is both of its halves: as
/// `from`, `bwd` and `bwd_input` are the op that makes the input gradient; as `to`,
/// `bwd` and `bwd_weight` are the op that makes the weight gradient.
struct Limit {
  OpKind from, to;
  std::vector<ChunkRef> chunks;
  int64_t most;
  SourceLoc loc;
};

/// The rank takes no further part once it has run `count` ops of `what`, counted from
/// the start of the schedule. `bwd` counts a split backward too, by its input half, and
/// the halves count full backwards.
struct Stop {
  Member what;
  int64_t count;
};

/// The rules for one rank; every chunk in them is on that rank. Any one of the stops
/// is enough.
struct RankRules {
  std::vector<Choice> choices;
  std::vector<Limit> limits;
  std::vector<Stop> stops;
};

struct GreedyRules {
  std::vector<RankRules> ranks; ///< one for each rank of the schedule
  SourceLoc loc;                ///< the section
};

/// Extends the orders of `schedule` by `rules`, which may start from any orders: what
/// stands in them runs first on its rank, as soon as it can, and is not done again.
/// The `memory` limits of the schedule hold as well. The rules run with backwards, whatever
/// `schedule.training` says. Time is O(ops · choices · log ops).
///
/// \returns false, with an error in `sink`, where a rank that still takes part can never go
/// on, where a limit makes no sense, or where the times are out of range. The orders
/// then hold what could be run.
[[nodiscard]] bool extendGreedily(Schedule &schedule, const GreedyRules &rules, const Costs &costs,
                                  DiagnosticSink &sink);

} // namespace dualpipe

#endif // DUALPIPE_SCHEDULE_GREEDY_H
