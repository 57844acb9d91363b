//===- Gaps.h - weight halves where a rank would wait ------------------------===//

#ifndef DUALPIPE_SCHEDULE_GAPS_H
#define DUALPIPE_SCHEDULE_GAPS_H

#include "dualpipe/Schedule/Costs.h"
#include "dualpipe/Schedule/Schedule.h"

#include <cstdint>
#include <vector>

namespace dualpipe {

/// A weight half whose place in the order of its rank is still to be found.
struct FloatingHalf {
  uint32_t rank;
  uint32_t stage;      ///< counted over the whole schedule
  uint32_t microbatch; ///< counted over the whole schedule
  uint32_t loc = 0;    ///< index into `Schedule::locations`
  /// The phase that it stands in, as in `RankOrder::Phase::name`; `~0u` in none.
  uint32_t phase = ~0u;
};

/// Places `halves` into the orders of `schedule`: each where its rank waits for an input,
/// on the as-soon-as-possible timeline of the orders under `costs`. At each such
/// place the oldest halves come first that fit into the rest of the wait whole, so that no
/// other op of any rank starts later than it would without them. Those that fit nowhere go
/// to the end of their rank's order, the oldest first. The age of a half is the place of its
/// `bwd_input` in the order, then its place in `halves`.
///
/// Inputs that no rank makes yet count as present. Where the orders wait for each other in a
/// cycle, or a half has no `bwd_input`, the halves concerned go to the end; the checker
/// will say what is wrong.
void placeInGaps(Schedule &schedule, const std::vector<FloatingHalf> &halves, const Costs &costs);

} // namespace dualpipe

#endif // DUALPIPE_SCHEDULE_GAPS_H
