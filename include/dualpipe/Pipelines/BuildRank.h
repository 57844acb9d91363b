//===- BuildRank.h - from a rank's list to a `pipe.rank` op -----------------===//

#ifndef DUALPIPE_PIPELINES_BUILDRANK_H
#define DUALPIPE_PIPELINES_BUILDRANK_H

#include "dialects/Pipe/Pipe.h"
#include "dualpipe/Schedule/Timeline.h"

#include "mlir/IR/Builders.h"

#include <vector>

namespace dualpipe {

/// The places of a schedule as MLIR locations, in the order of
/// `Schedule::locations`. Made once: uniquing a location per op costs more than
/// the op.
std::vector<mlir::Location> getLocations(mlir::MLIRContext *context, const Schedule &schedule);

/// Creates the program of one rank in the order phase of the `pipe` dialect:
/// compute ops, transfers, reductions and steps in the order of the timeline,
/// each with the place of the op that it belongs to. May run on several threads,
/// each with its own builder.
pipe::RankOp buildRank(mlir::OpBuilder &builder, const Timeline &timeline, uint32_t rank,
                       const std::vector<mlir::Location> &locations);

} // namespace dualpipe

#endif // DUALPIPE_PIPELINES_BUILDRANK_H
