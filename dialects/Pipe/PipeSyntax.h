//===- PipeSyntax.h - custom directives of the pipe dialect -------*- C++ -*-===//
//
// What the ops' assembly formats cannot say: types follow from the kind and the
// flags of an op, so they are not written.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_DIALECTS_PIPE_PIPESYNTAX_H
#define DUALPIPE_DIALECTS_PIPE_PIPESYNTAX_H

#include "dialects/Pipe/Pipe.h"

namespace dualpipe::pipe {

using UnresolvedOperand = mlir::OpAsmParser::UnresolvedOperand;

/// Text: ` forward_only`, or nothing.
mlir::ParseResult parseForwardOnly(mlir::OpAsmParser &parser, bool &forwardOnly);
void printForwardOnly(mlir::OpAsmPrinter &printer, mlir::Operation *op, bool forwardOnly);

/// Text: ` (%x, %s) first last accumulate slots [0, 1]`, each part optional. Values other than
/// the usual ones are named by their roles: ` (input = %x, grad_output = %dy)`.
mlir::ParseResult parseComputeBody(mlir::OpAsmParser &parser, OpKind kind,
                                   llvm::SmallVectorImpl<UnresolvedOperand> &inputs,
                                   llvm::SmallVectorImpl<mlir::Type> &inputTypes,
                                   llvm::SmallVectorImpl<mlir::Type> &outputTypes, bool &first,
                                   bool &last, bool &accumulate, uint32_t &reads, SlotList &slots);
void printComputeBody(mlir::OpAsmPrinter &printer, mlir::Operation *op, OpKind kind,
                      mlir::OperandRange inputs, mlir::TypeRange inputTypes,
                      mlir::TypeRange outputTypes, bool first, bool last, bool accumulate,
                      uint32_t reads, llvm::ArrayRef<uint32_t> slots);

/// Text: the region; its terminator is written where it names results.
mlir::ParseResult parseFusedBody(mlir::OpAsmParser &parser, mlir::Region &body,
                                 llvm::SmallVectorImpl<mlir::Type> &outputTypes);
void printFusedBody(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::Region &body,
                    mlir::TypeRange outputTypes);

/// Text: `act` or `labels`.
mlir::ParseResult parseInputType(mlir::OpAsmParser &parser, mlir::Type &type);
void printInputType(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::Type type);

/// Text: ` (%y)`, or nothing in the order phase.
mlir::ParseResult parseSentValue(mlir::OpAsmParser &parser, TransferKind kind,
                                 std::optional<UnresolvedOperand> &value, mlir::Type &type);
void printSentValue(mlir::OpAsmPrinter &printer, mlir::Operation *op, TransferKind kind,
                    mlir::Value value, mlir::Type type);

/// No text: the type of the result, where the op has one.
mlir::ParseResult parseReceivedType(mlir::OpAsmParser &parser, TransferKind kind, mlir::Type &type);
void printReceivedType(mlir::OpAsmPrinter &printer, mlir::Operation *op, TransferKind kind,
                       mlir::Type type);

} // namespace dualpipe::pipe

#endif // DUALPIPE_DIALECTS_PIPE_PIPESYNTAX_H
