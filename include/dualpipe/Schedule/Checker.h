//===- Checker.h - the invariants of a schedule -----------------------------===//
//
// One checker for order tables, whoever made them: the interpreter, a CSV file
// or a generator. It knows nothing of where they came from.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_SCHEDULE_CHECKER_H
#define DUALPIPE_SCHEDULE_CHECKER_H

#include "dualpipe/Schedule/OpIndex.h"
#include "dualpipe/Schedule/Schedule.h"
#include "dualpipe/Support/Diagnostics.h"

namespace dualpipe {

/// Checks S1 to S4 on `schedule` and reports every finding (a bounded number of
/// them) to `sink`. Time is linear in the ops, but for fused groups, whose members
/// are compared in pairs. A cycle is shown over as few ranks as there can be, with
/// a run of program order on one rank as one step.
///
///   S1  every (stage, micro-batch) runs forward exactly once, on the rank that
///       the placement of its pipeline names
///   S2  and backward exactly once: one `bwd`, or one `bwd_input` and one
///       `bwd_weight`, on the same rank (training)
///   S3  on a rank, forward before its backward, input half before weight half,
///       nothing pending at the end; members of a fused group are independent
///   S4  program order and data dependences together have no cycle
///
/// then D1 to D3 on transfers that the schedule places itself (Transfers.h).
///
/// \returns the index of the ops, complete if and only if nothing was reported.
OpIndex checkSchedule(const Schedule &schedule, DiagnosticSink &sink);

} // namespace dualpipe

#endif // DUALPIPE_SCHEDULE_CHECKER_H
