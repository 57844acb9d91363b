//===- LaunchProperties.cpp - native properties of a launch -----------------===//

#include "dialects/Stream/LaunchProperties.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"

using namespace dualpipe;
using namespace dualpipe::stream;
using namespace mlir;
using program::Function;
using program::SlotKind;

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static constexpr std::array<StringLiteral, program::kNumFunctions> kFunctions = {
    "load_input", "load_labels", "forward", "backward", "backward_input", "backward_weight"};

StringRef stream::getKeyword(Function function) {
  return kFunctions[static_cast<unsigned>(function)];
}

ParseResult stream::parseFunction(OpAsmParser &parser, Function &function) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  const auto *found = llvm::find(kFunctions, keyword);
  if (found == kFunctions.end())
    return parser.emitError(loc, "expected a stage function, got '") << keyword << "'";
  function = static_cast<Function>(found - kFunctions.begin());
  return success();
}

void stream::printFunction(OpAsmPrinter &printer, Operation *, Function function) {
  printer << getKeyword(function);
}

Attribute stream::functionToAttribute(MLIRContext *context, Function function) {
  return IntegerAttr::get(IntegerType::get(context, 32), static_cast<int64_t>(function));
}

LogicalResult stream::functionFromAttribute(Function &function, Attribute attr, EmitError error) {
  auto number = llvm::dyn_cast_if_present<IntegerAttr>(attr);
  if (!number || number.getValue().uge(program::kNumFunctions))
    return error() << "expected the number of a stage function, below " << program::kNumFunctions;
  function = static_cast<Function>(number.getValue().getZExtValue());
  return success();
}

LogicalResult stream::readFunction(DialectBytecodeReader &reader, Function &function) {
  uint64_t value = 0;
  if (failed(reader.readVarInt(value)))
    return failure();
  if (value >= program::kNumFunctions)
    return reader.emitError("expected the number of a stage function, got ") << value;
  function = static_cast<Function>(value);
  return success();
}

//===----------------------------------------------------------------------===//
// Slots by role
//===----------------------------------------------------------------------===//

static ParseResult parseRoleSlot(OpAsmParser &parser, RoleSlots &slots) {
  SMLoc loc = parser.getCurrentLocation();
  FailureOr<SlotKind> role = parseSlotKind(parser);
  uint32_t slot = 0;
  if (failed(role) || parser.parseEqual() || parser.parseInteger(slot))
    return failure();
  if (slots.has(*role))
    return parser.emitError(loc, "the role ") << dualpipe::getKeyword(*role) << " stands twice";
  slots[*role] = slot;
  return success();
}

ParseResult stream::parseRoleSlots(OpAsmParser &parser, RoleSlots &slots) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::OptionalParen,
                                        [&] { return parseRoleSlot(parser, slots); });
}

void stream::printRoleSlots(OpAsmPrinter &printer, Operation *, const RoleSlots &slots) {
  bool isFirst = true;
  for (auto [index, slot] : llvm::enumerate(slots)) {
    if (slot == program::kNone)
      continue;
    printer << (isFirst ? " (" : ", ") << dualpipe::getKeyword(static_cast<SlotKind>(index))
            << " = " << slot;
    isFirst = false;
  }
  if (!isFirst)
    printer << ")";
}

Attribute stream::roleSlotsToAttribute(MLIRContext *context, const RoleSlots &slots) {
  SmallVector<int32_t> values(slots.begin(), slots.end());
  return DenseI32ArrayAttr::get(context, values);
}

LogicalResult stream::roleSlotsFromAttribute(RoleSlots &slots, Attribute attr, EmitError error) {
  auto values = llvm::dyn_cast_if_present<DenseI32ArrayAttr>(attr);
  if (!values || values.size() != program::kNumSlotKinds)
    return error() << "expected the slots by role as array<i32: ...> with "
                   << program::kNumSlotKinds << " entries";
  llvm::copy(values.asArrayRef(), slots.begin());
  return success();
}

void stream::writeRoleSlots(DialectBytecodeWriter &writer, const RoleSlots &slots) {
  // Shifted by one, so that the absent slot is one byte.
  for (uint32_t slot : slots)
    writer.writeVarInt(slot + 1u);
}

LogicalResult stream::readRoleSlots(DialectBytecodeReader &reader, RoleSlots &slots) {
  for (uint32_t &slot : slots) {
    uint64_t value = 0;
    if (failed(reader.readVarInt(value)))
      return failure();
    slot = static_cast<uint32_t>(value) - 1u;
  }
  return success();
}
