//===- Passes.h - passes from one dialect to another --------------*- C++ -*-===//

#ifndef DUALPIPE_CONVERSION_PASSES_H
#define DUALPIPE_CONVERSION_PASSES_H

#include "dialects/Pipe/Pipe.h"
#include "dialects/Stream/Stream.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace dualpipe {

#define GEN_PASS_DECL
#include "lib/Conversion/Passes.h.inc"

/// Makes the stream program of a rank that is in the dataflow phase and has
/// slots, at the builder's place (detached where it has none). The rank stays.
/// May run on several ranks at once, each with its own builder.
mlir::FailureOr<stream::ProgramOp> convertRank(pipe::RankOp rank, mlir::OpBuilder &builder);

#define GEN_PASS_REGISTRATION
#include "lib/Conversion/Passes.h.inc"

} // namespace dualpipe

#endif // DUALPIPE_CONVERSION_PASSES_H
