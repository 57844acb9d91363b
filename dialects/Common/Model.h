//===- Model.h - the model contract as an op property -------------*- C++ -*-===//
//
// What a rank asks of the stages of a model, on the ops that hold a rank's list.
// The storage is that of the program file.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_DIALECTS_COMMON_MODEL_H
#define DUALPIPE_DIALECTS_COMMON_MODEL_H

#include "dialects/Common/Slots.h"
#include "dualpipe/Program/Contract.h"

namespace dualpipe {

/// The half reads something that makes sense, and size groups have no gaps.
mlir::LogicalResult verifyModel(mlir::Operation *op, const program::Contract &model);

/// Text: ` [grad_output, saved]`: the slot kinds of a set in their order.
mlir::ParseResult parseSlotKinds(mlir::AsmParser &parser, uint32_t &kinds);
/// The same, without the space in front.
std::string describeSlotKinds(uint32_t kinds);

/// Text: ` model (bwd_weight reads [input, grad_output], groups [0, 1, 1])`. What is
/// not said is the usual contract; nothing where all is.
mlir::ParseResult parseModel(mlir::OpAsmParser &parser, program::Contract &model);
void printModel(mlir::OpAsmPrinter &printer, mlir::Operation *op, const program::Contract &model);
mlir::Attribute modelToAttribute(mlir::MLIRContext *context, const program::Contract &model);
mlir::LogicalResult modelFromAttribute(program::Contract &model, mlir::Attribute attr,
                                       EmitError error);
llvm::hash_code hashModel(const program::Contract &model);
void writeModel(mlir::DialectBytecodeWriter &writer, const program::Contract &model);
mlir::LogicalResult readModel(mlir::DialectBytecodeReader &reader, program::Contract &model);

} // namespace dualpipe

#endif // DUALPIPE_DIALECTS_COMMON_MODEL_H
