//===- StatedTimes.h - orders from the times of a timeline ------------------===//
//
// What a `timeline` section states: ops with the time at which each is meant to
// start. The times give the order of each rank and nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_SCHEDULE_STATEDTIMES_H
#define DUALPIPE_SCHEDULE_STATEDTIMES_H

#include "dualpipe/Schedule/Schedule.h"

#include <cstdint>
#include <vector>

namespace dualpipe {

/// An op of a rank with its stated time, in the units of the costs.
struct TimedOp {
  /// No time is larger, nor smaller than its negative, so that sums stay in range.
  static constexpr int64_t kMaxTime = int64_t(1) << 40;

  int64_t time = 0; ///< without a meaning where `inGaps`
  OpKind kind = OpKind::Forward;
  bool inGaps = false; ///< a weight half that goes where the stated times leave room
  uint32_t rank = 0;
  uint32_t stage = 0;      ///< over the whole schedule
  uint32_t microbatch = 0; ///< over the whole schedule
  /// Members of a fused group stand next to each other, with one time and one number.
  uint32_t group = RankOrder::kAlone;
  uint32_t loc = 0; ///< index into `Schedule::locations`
  uint32_t phase = RankOrder::kNoPhase;
};

/// Appends `ops` to the orders of `schedule`: on each rank by time, at one time in the order of
/// `ops`.
///
/// An op takes as long as `costs` say, which are those that the times were stated for. A weight
/// half that goes in gaps stands at the first place after its input half where it fits between the
/// end of one op and the time of the next; of several that fit, the one whose input half comes
/// first in the order. Those that fit nowhere stand at the end. So where the times leave room for
/// all that they state, weight halves in gaps delay nothing.
void appendByTime(Schedule &schedule, const std::vector<TimedOp> &ops, const Costs &costs);

} // namespace dualpipe

#endif // DUALPIPE_SCHEDULE_STATEDTIMES_H
