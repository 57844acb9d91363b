//===- Pipe.h - the pipe dialect ----------------------------------*- C++ -*-===//
//
// Types, compute interface and ops of the dialect in which one rank's program
// is a list of stage functions and transfers with values between them.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_DIALECTS_PIPE_PIPE_H
#define DUALPIPE_DIALECTS_PIPE_PIPE_H

#include "dialects/Common/Slots.h"
#include "dialects/Common/TransferKind.h"
#include "dualpipe/Schedule/Schedule.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"

#include "dialects/Pipe/PipeDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Pipe/PipeTypes.h.inc"

#include "dialects/Pipe/PipeInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/Pipe/PipeOps.h.inc"

namespace dualpipe::pipe {

/// The values that a compute op reads in the dataflow phase.
llvm::SmallVector<mlir::Type, 2> getInputTypes(mlir::MLIRContext *context, OpKind kind, bool last);
/// The values that a compute op yields in the dataflow phase.
llvm::SmallVector<mlir::Type, 2> getOutputTypes(mlir::MLIRContext *context, OpKind kind, bool first,
                                                bool last, bool forwardOnly);
/// The type of a transferred value.
mlir::Type getValueType(mlir::MLIRContext *context, TransferKind kind);

} // namespace dualpipe::pipe

#endif // DUALPIPE_DIALECTS_PIPE_PIPE_H
