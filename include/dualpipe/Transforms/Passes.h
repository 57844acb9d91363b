//===- Passes.h - passes within a dialect -------------------------*- C++ -*-===//
//
// The passes of Passes.td and the functions behind them, for a driver that runs
// ranks on its own threads. All report through the op's diagnostics, touch one
// rank only, and may run on several ranks at once.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_TRANSFORMS_PASSES_H
#define DUALPIPE_TRANSFORMS_PASSES_H

#include "dialects/Pipe/Pipe.h"
#include "dialects/Stream/Stream.h"

#include "mlir/Pass/Pass.h"

namespace dualpipe {

#define GEN_PASS_DECL
#include "lib/Transforms/Passes.h.inc"

/// Checks that a rank is in the order phase.
mlir::LogicalResult verifyOrderPhase(pipe::RankOp rank);
/// Checks that a rank is in the dataflow phase.
mlir::LogicalResult verifyDataflowPhase(pipe::RankOp rank);

/// From the order phase to the dataflow phase. Returns how many inputs it added.
mlir::FailureOr<unsigned> materializeDataflow(pipe::RankOp rank);

/// Slots beyond the peak of the liveness for each channel that uses their class.
inline constexpr unsigned kDefaultSpares = 1;
/// Spare slots of one class, as in the program file (P3); also the most that
/// may be asked for per channel.
inline constexpr unsigned kMaxSpares = 1024;
/// Gives every value of a rank in the dataflow phase its slot. Fails where a class
/// would have more than `kMaxSpares` spares or the rank more than `kMaxSlots` slots.
mlir::LogicalResult assignSlots(pipe::RankOp rank, unsigned spares = kDefaultSpares);

/// What `pruneEvents` removed.
struct PrunedEvents {
  unsigned waits = 0;
  unsigned records = 0;
};
/// Removes waits that others imply, and records that nobody waits for.
mlir::FailureOr<PrunedEvents> pruneEvents(stream::ProgramOp program);

/// Splits every group of more than `limit` transfers, which is at least 1, into groups of `limit`
/// and the rest, in their order. Returns how many groups it added.
unsigned splitGroups(stream::ProgramOp program, unsigned limit);

#define GEN_PASS_REGISTRATION
#include "lib/Transforms/Passes.h.inc"

} // namespace dualpipe

#endif // DUALPIPE_TRANSFORMS_PASSES_H
