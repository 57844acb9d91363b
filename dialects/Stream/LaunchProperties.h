//===- LaunchProperties.h - native properties of a launch ---------*- C++ -*-===//
//
// Which stage function a launch calls and the slots that it uses, as plain
// numbers with their text, attribute form and bytecode.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_DIALECTS_STREAM_LAUNCHPROPERTIES_H
#define DUALPIPE_DIALECTS_STREAM_LAUNCHPROPERTIES_H

#include "dialects/Common/Slots.h"

#include <array>

namespace dualpipe::stream {

/// Slot by role (program::SlotKind), or program::kNone.
struct RoleSlots : std::array<uint32_t, program::kNumSlotKinds> {
  RoleSlots() { fill(program::kNone); }

  uint32_t &operator[](program::SlotKind role) {
    return std::array<uint32_t, program::kNumSlotKinds>::operator[](static_cast<unsigned>(role));
  }
  uint32_t operator[](program::SlotKind role) const {
    return std::array<uint32_t, program::kNumSlotKinds>::operator[](static_cast<unsigned>(role));
  }
  bool has(program::SlotKind role) const { return (*this)[role] != program::kNone; }
};

/// The keyword of a function: `load_input`, `forward`, `backward_weight`, ...
llvm::StringRef getKeyword(program::Function function);

/// Text: the keyword.
mlir::ParseResult parseFunction(mlir::OpAsmParser &parser, program::Function &function);
void printFunction(mlir::OpAsmPrinter &printer, mlir::Operation *op, program::Function function);
mlir::Attribute functionToAttribute(mlir::MLIRContext *context, program::Function function);
mlir::LogicalResult functionFromAttribute(program::Function &function, mlir::Attribute attr,
                                          EmitError error);
mlir::LogicalResult readFunction(mlir::DialectBytecodeReader &reader, program::Function &function);

/// Text: ` (input = 2, output = 5)`, or nothing.
mlir::ParseResult parseRoleSlots(mlir::OpAsmParser &parser, RoleSlots &slots);
void printRoleSlots(mlir::OpAsmPrinter &printer, mlir::Operation *op, const RoleSlots &slots);
mlir::Attribute roleSlotsToAttribute(mlir::MLIRContext *context, const RoleSlots &slots);
mlir::LogicalResult roleSlotsFromAttribute(RoleSlots &slots, mlir::Attribute attr, EmitError error);
void writeRoleSlots(mlir::DialectBytecodeWriter &writer, const RoleSlots &slots);
mlir::LogicalResult readRoleSlots(mlir::DialectBytecodeReader &reader, RoleSlots &slots);

} // namespace dualpipe::stream

#endif // DUALPIPE_DIALECTS_STREAM_LAUNCHPROPERTIES_H
