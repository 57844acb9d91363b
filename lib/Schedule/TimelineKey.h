//===- TimelineKey.h - the order of the one global sequence -----------------===//

#ifndef DUALPIPE_LIB_SCHEDULE_TIMELINEKEY_H
#define DUALPIPE_LIB_SCHEDULE_TIMELINEKEY_H

#include "dualpipe/Schedule/Timeline.h"

#include <tuple>

namespace dualpipe {

/// The order of the one global sequence. At one time, what has been made is
/// passed on before anything new starts, and ranks go first to last; computes
/// last longer than nothing, so a transfer always stands between its producer
/// and its consumer.
struct Timeline::Key {
  Ticks time;
  enum Class : uint8_t { Transfer, Reduction, Compute } kind;
  OpRef op; ///< the compute op, or the producer

  friend bool operator<(const Key &a, const Key &b) {
    return std::tie(a.time, a.kind, a.op.rank, a.op.op) <
           std::tie(b.time, b.kind, b.op.rank, b.op.op);
  }
};

struct Timeline::Placed {
  Key key;
  TimelineEntry entry;
};

} // namespace dualpipe

#endif // DUALPIPE_LIB_SCHEDULE_TIMELINEKEY_H
