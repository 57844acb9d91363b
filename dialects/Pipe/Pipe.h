//===- Pipe.h - the pipe dialect ----------------------------------*- C++ -*-===//
//
// Types, compute interface and ops of the dialect in which one rank's program
// is a list of stage functions and transfers with values between them.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_DIALECTS_PIPE_PIPE_H
#define DUALPIPE_DIALECTS_PIPE_PIPE_H

#include "dialects/Common/Model.h"
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

/// The roles of the values that a compute op reads in the dataflow phase, as bits of
/// SlotKind. Its operands stand in the order of the kinds.
uint32_t getInputRoles(ComputeOpInterface op);
/// The same by what the op's `reads` says: 0 for what the usual contract lets it read.
uint32_t getInputRoles(OpKind kind, bool last, uint32_t reads);
/// Calls `action(role)` for each role, in the order of the operands.
void forEachRole(uint32_t roles, llvm::function_ref<void(program::SlotKind)> action);
/// The types of the values with these roles.
llvm::SmallVector<mlir::Type, 2> getInputTypes(mlir::MLIRContext *context, uint32_t roles);
/// The values that a compute op yields in the dataflow phase.
llvm::SmallVector<mlir::Type, 2> getOutputTypes(mlir::MLIRContext *context, OpKind kind, bool first,
                                                bool last, bool forwardOnly);
/// The type of a transferred value.
mlir::Type getValueType(mlir::MLIRContext *context, TransferKind kind);

} // namespace dualpipe::pipe

#endif // DUALPIPE_DIALECTS_PIPE_PIPE_H
