//===- Slots.h - slots and slot classes as op properties ---------*- C++ -*-===//
//
// The storage of the slot properties of both dialects, with their text, their
// attribute form and their bytecode. Slot kinds are those of the program file.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_DIALECTS_COMMON_SLOTS_H
#define DUALPIPE_DIALECTS_COMMON_SLOTS_H

#include "dualpipe/Program/Program.h"

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/IR/OpImplementation.h"

#include <vector>

namespace dualpipe {

/// Slots of one rank: what no rank reaches, so that a number in a file cannot make
/// a pass allocate tables without end.
inline constexpr uint64_t kMaxSlots = uint64_t(1) << 22;

using SlotList = llvm::SmallVector<uint32_t, 2>;
using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;

/// The slot classes of a rank in the order in which slot numbers run through them.
struct SlotClassList {
  std::vector<program::SlotClass> classes;

  /// The class that holds `slot`, or nullptr where the slot is out of range.
  const program::SlotClass *find(uint32_t slot) const;
  uint64_t getNumSlots() const;
  bool operator==(const SlotClassList &other) const;
  bool operator!=(const SlotClassList &other) const { return !(*this == other); }
};

/// Checks the number of slots of a rank, for the op that lists the classes.
mlir::LogicalResult verifySlotClasses(mlir::Operation *op, const SlotClassList &slots);

/// The keyword of a slot kind: `input`, `output`, `grad_output`, ...
llvm::StringRef getKeyword(program::SlotKind kind);
/// Parses such a keyword.
mlir::FailureOr<program::SlotKind> parseSlotKind(mlir::AsmParser &parser);

/// Text: ` slots [3, 4]`, or nothing where there are none.
mlir::ParseResult parseSlotList(mlir::OpAsmParser &parser, SlotList &slots);
void printSlotList(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                   llvm::ArrayRef<uint32_t> slots);
mlir::Attribute slotListToAttribute(mlir::MLIRContext *context, const SlotList &slots);
mlir::LogicalResult slotListFromAttribute(SlotList &slots, mlir::Attribute attr, EmitError error);
void writeSlotList(mlir::DialectBytecodeWriter &writer, const SlotList &slots);
mlir::LogicalResult readSlotList(mlir::DialectBytecodeReader &reader, SlotList &slots);

/// Text: ` slots [input 2 + 1, saved 5]` (peak + spares; a size group other
/// than 0 as `input 2 + 1 size_group 3`), or nothing where there are none.
mlir::ParseResult parseSlotClasses(mlir::OpAsmParser &parser, SlotClassList &slots);
void printSlotClasses(mlir::OpAsmPrinter &printer, mlir::Operation *op, const SlotClassList &slots);
mlir::Attribute slotClassesToAttribute(mlir::MLIRContext *context, const SlotClassList &slots);
mlir::LogicalResult slotClassesFromAttribute(SlotClassList &slots, mlir::Attribute attr,
                                             EmitError error);
llvm::hash_code hashSlotClasses(const SlotClassList &slots);
void writeSlotClasses(mlir::DialectBytecodeWriter &writer, const SlotClassList &slots);
mlir::LogicalResult readSlotClasses(mlir::DialectBytecodeReader &reader, SlotClassList &slots);

} // namespace dualpipe

#endif // DUALPIPE_DIALECTS_COMMON_SLOTS_H
