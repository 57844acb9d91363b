//===- Transfers.h - transfers that a schedule places itself ----------------===//

#ifndef DUALPIPE_SCHEDULE_TRANSFERS_H
#define DUALPIPE_SCHEDULE_TRANSFERS_H

#include "dualpipe/Schedule/OpIndex.h"
#include "dualpipe/Schedule/Schedule.h"
#include "dualpipe/Support/Diagnostics.h"

#include <vector>

namespace dualpipe {

/// The op that makes what is sent and the op of another stage that needs it.
struct TransferOps {
  OpRef producer, consumer;
};

/// The ops of the transfer that `end` belongs to, on whichever ranks they stand: whether
/// the one at its own stage is on the rank of `end` is for the caller to check. Both are
/// invalid where no op of that stage makes or needs such a value; the other one alone is
/// where no other stage does.
TransferOps findOps(const OpIndex &index, const RankOrder::Transfer &end);

/// Where the ends of each transfer stand, by the op that makes what is sent.
class TransferIndex {
public:
  static constexpr uint32_t kNowhere = ~0u;

  explicit TransferIndex(const Schedule &schedule);

  /// The place of the send in `transfers` of the producer's rank, that of the receive in
  /// `transfers` of the consumer's.
  uint32_t &getSend(OpRef producer) { return sends[producer.rank][producer.op]; }
  uint32_t &getRecv(OpRef producer) { return recvs[producer.rank][producer.op]; }
  uint32_t getSend(OpRef producer) const { return sends[producer.rank][producer.op]; }
  uint32_t getRecv(OpRef producer) const { return recvs[producer.rank][producer.op]; }

private:
  std::vector<std::vector<uint32_t>> sends, recvs; ///< by rank and op of the producer
};

/// Checks the transfers of a schedule that places them itself, whose ops satisfy S1 to S4:
///
///   D1  what an op of another rank needs is sent exactly once, after the op that makes
///       it, and received exactly once, before the op that needs it; nothing else is
///   D2  on a channel (source, destination, kind) the receives are in the order of the
///       sends
///   D3  with matching ends as one event, and each rank as one queue, there is no cycle
///
/// Reports every finding of the first of these that is broken (a bounded number).
/// `checkSchedule` calls this.
void checkTransfers(const OpIndex &index, DiagnosticSink &sink);

} // namespace dualpipe

#endif // DUALPIPE_SCHEDULE_TRANSFERS_H
