//===- Slots.cpp - slots and slot classes as op properties ------------------===//

#include "dialects/Common/Slots.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"

#include <array>

using namespace dualpipe;
using namespace mlir;
using program::SlotClass;
using program::SlotKind;

static constexpr std::array<StringLiteral, program::kNumSlotKinds> kKeywords = {
    "input", "output", "grad_output", "grad_input", "saved", "weight_context", "labels"};

StringRef dualpipe::getKeyword(SlotKind kind) { return kKeywords[static_cast<unsigned>(kind)]; }

FailureOr<SlotKind> dualpipe::parseSlotKind(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  for (auto [index, name] : llvm::enumerate(kKeywords))
    if (keyword == name)
      return static_cast<SlotKind>(index);
  return parser.emitError(loc, "expected a slot kind, got '") << keyword << "'";
}

//===----------------------------------------------------------------------===//
// Lists of slots
//===----------------------------------------------------------------------===//

ParseResult dualpipe::parseSlotList(OpAsmParser &parser, SlotList &slots) {
  if (failed(parser.parseOptionalKeyword("slots")))
    return success();
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        [&] { return parser.parseInteger(slots.emplace_back()); });
}

void dualpipe::printSlotList(OpAsmPrinter &printer, Operation *, ArrayRef<uint32_t> slots) {
  if (slots.empty())
    return;
  printer << " slots [";
  llvm::interleaveComma(slots, printer, [&](uint32_t slot) { printer << slot; });
  printer << "]";
}

Attribute dualpipe::slotListToAttribute(MLIRContext *context, const SlotList &slots) {
  SmallVector<int32_t, 2> values(slots.begin(), slots.end());
  return DenseI32ArrayAttr::get(context, values);
}

LogicalResult dualpipe::slotListFromAttribute(SlotList &slots, Attribute attr, EmitError error) {
  auto values = llvm::dyn_cast_if_present<DenseI32ArrayAttr>(attr);
  if (!values)
    return error() << "expected the slots as array<i32: ...>";
  slots.assign(values.asArrayRef().begin(), values.asArrayRef().end());
  return success();
}

void dualpipe::writeSlotList(DialectBytecodeWriter &writer, const SlotList &slots) {
  writer.writeList(slots, [&](uint32_t slot) { writer.writeVarInt(slot); });
}

static LogicalResult readNumber(DialectBytecodeReader &reader, uint32_t &number) {
  uint64_t value = 0;
  if (failed(reader.readVarInt(value)))
    return failure();
  number = static_cast<uint32_t>(value);
  return success(value == number);
}

LogicalResult dualpipe::readSlotList(DialectBytecodeReader &reader, SlotList &slots) {
  return reader.readList(slots, [&](uint32_t &slot) { return readNumber(reader, slot); });
}

//===----------------------------------------------------------------------===//
// Slot classes
//===----------------------------------------------------------------------===//

const SlotClass *SlotClassList::find(uint32_t slot) const {
  for (const SlotClass &slotClass : classes) {
    if (slot < slotClass.count)
      return &slotClass;
    slot -= slotClass.count;
  }
  return nullptr;
}

uint64_t SlotClassList::getNumSlots() const {
  uint64_t total = 0;
  for (const SlotClass &slotClass : classes)
    total += slotClass.count;
  return total;
}

LogicalResult dualpipe::verifySlotClasses(Operation *op, const SlotClassList &slots) {
  if (uint64_t numSlots = slots.getNumSlots(); numSlots > kMaxSlots)
    return op->emitOpError("has ") << numSlots << " slots, expected at most " << kMaxSlots;
  return success();
}

static std::array<int64_t, 4> toArray(const SlotClass &slotClass) {
  return {static_cast<int64_t>(slotClass.kind), slotClass.sizeGroup, slotClass.count,
          slotClass.spares};
}

bool SlotClassList::operator==(const SlotClassList &other) const {
  return llvm::equal(classes, other.classes, [](const SlotClass &a, const SlotClass &b) {
    return toArray(a) == toArray(b);
  });
}

static ParseResult parseSlotClass(OpAsmParser &parser, SlotClass &slotClass) {
  FailureOr<SlotKind> kind = parseSlotKind(parser);
  if (failed(kind) || parser.parseInteger(slotClass.count))
    return failure();
  slotClass.kind = *kind;
  if (succeeded(parser.parseOptionalPlus())) {
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseInteger(slotClass.spares))
      return failure();
    uint64_t count = uint64_t(slotClass.count) + slotClass.spares;
    if (count > UINT32_MAX)
      return parser.emitError(loc, "expected fewer slots in a class, got ") << count;
    slotClass.count = static_cast<uint32_t>(count);
  }
  if (succeeded(parser.parseOptionalKeyword("size_group")))
    return parser.parseInteger(slotClass.sizeGroup);
  return success();
}

ParseResult dualpipe::parseSlotClasses(OpAsmParser &parser, SlotClassList &slots) {
  if (failed(parser.parseOptionalKeyword("slots")))
    return success();
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    return parseSlotClass(parser, slots.classes.emplace_back(SlotClass{SlotKind::Input, 0, 0, 0}));
  });
}

void dualpipe::printSlotClasses(OpAsmPrinter &printer, Operation *, const SlotClassList &slots) {
  if (slots.classes.empty())
    return;
  printer << " slots [";
  llvm::interleaveComma(slots.classes, printer, [&](const SlotClass &slotClass) {
    printer << getKeyword(slotClass.kind) << " " << slotClass.count - slotClass.spares;
    if (slotClass.spares)
      printer << " + " << slotClass.spares;
    if (slotClass.sizeGroup)
      printer << " size_group " << slotClass.sizeGroup;
  });
  printer << "]";
}

Attribute dualpipe::slotClassesToAttribute(MLIRContext *context, const SlotClassList &slots) {
  SmallVector<Attribute> attrs;
  for (const SlotClass &slotClass : slots.classes)
    attrs.push_back(DenseI64ArrayAttr::get(context, toArray(slotClass)));
  return ArrayAttr::get(context, attrs);
}

/// Numbers of a slot class as a file gives them, or failure where they make no sense.
static FailureOr<SlotClass> makeSlotClass(ArrayRef<int64_t> numbers) {
  if (numbers.size() != 4 ||
      llvm::any_of(numbers, [](int64_t n) { return n < 0 || n > UINT32_MAX; }))
    return failure();
  if (numbers[0] >= program::kNumSlotKinds || numbers[3] > numbers[2])
    return failure();
  return SlotClass{static_cast<SlotKind>(numbers[0]), static_cast<uint32_t>(numbers[1]),
                   static_cast<uint32_t>(numbers[2]), static_cast<uint32_t>(numbers[3])};
}

LogicalResult dualpipe::slotClassesFromAttribute(SlotClassList &slots, Attribute attr,
                                                 EmitError error) {
  auto attrs = llvm::dyn_cast_if_present<ArrayAttr>(attr);
  if (!attrs)
    return error() << "expected the slot classes as an array attribute";
  for (Attribute entry : attrs) {
    auto numbers = llvm::dyn_cast<DenseI64ArrayAttr>(entry);
    FailureOr<SlotClass> slotClass = failure();
    if (numbers)
      slotClass = makeSlotClass(numbers.asArrayRef());
    if (failed(slotClass))
      return error() << "expected a slot class as array<i64: kind, size group, count, spares>";
    slots.classes.push_back(*slotClass);
  }
  return success();
}

llvm::hash_code dualpipe::hashSlotClasses(const SlotClassList &slots) {
  llvm::hash_code hash = llvm::hash_value(slots.classes.size());
  for (const SlotClass &slotClass : slots.classes) {
    std::array<int64_t, 4> numbers = toArray(slotClass);
    hash = llvm::hash_combine(hash, llvm::hash_combine_range(numbers.begin(), numbers.end()));
  }
  return hash;
}

void dualpipe::writeSlotClasses(DialectBytecodeWriter &writer, const SlotClassList &slots) {
  writer.writeList(slots.classes, [&](const SlotClass &slotClass) {
    for (int64_t number : toArray(slotClass))
      writer.writeVarInt(static_cast<uint64_t>(number));
  });
}

LogicalResult dualpipe::readSlotClasses(DialectBytecodeReader &reader, SlotClassList &slots) {
  uint64_t size = 0;
  if (failed(reader.readVarInt(size)))
    return failure();
  for (uint64_t i = 0; i < size; ++i) {
    std::array<int64_t, 4> numbers;
    for (int64_t &number : numbers) {
      uint64_t value = 0;
      if (failed(reader.readVarInt(value)))
        return failure();
      number = static_cast<int64_t>(value);
    }
    FailureOr<SlotClass> slotClass = makeSlotClass(numbers);
    if (failed(slotClass))
      return reader.emitError(
          "expected a slot class with a known kind and spares within its count");
    slots.classes.push_back(*slotClass);
  }
  return success();
}
