//===- DescribePipe.h - ops and values in messages ----------------*- C++ -*-===//
//
// The words that messages of the pipe passes use, so that all say it alike:
// "rank 3: forward of stage 3, micro-batch 4".
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_LIB_TRANSFORMS_DESCRIBEPIPE_H
#define DUALPIPE_LIB_TRANSFORMS_DESCRIBEPIPE_H

#include "dialects/Pipe/Pipe.h"

#include <string>

namespace dualpipe {

/// "forward of stage 3, micro-batch 4"; "send of the gradient for stage 2, micro-batch 1".
std::string describeOp(mlir::Operation *op);

/// "the activation for stage 3, micro-batch 4": activations and gradients are
/// named by their consumer, contexts and labels by the stage that they belong to.
std::string describeValue(mlir::Type type, uint32_t stage, uint32_t microbatch);

/// The same for the result of an op on the rank or in a fused group.
std::string describeResult(mlir::OpResult result);

/// An error at `op` that begins with "rank N: ".
mlir::InFlightDiagnostic emitRankError(pipe::RankOp rank, mlir::Operation *op);

} // namespace dualpipe

#endif // DUALPIPE_LIB_TRANSFORMS_DESCRIBEPIPE_H
