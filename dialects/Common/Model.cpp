//===- Model.cpp - the model contract as an op property ---------------------===//

#include "dialects/Common/Model.h"

#include "dualpipe/Schedule/ModelContract.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"

#include <array>

using namespace dualpipe;
using namespace mlir;
using program::Contract;
using program::SlotKind;

static constexpr std::array<OpKind, 3> kHalves = {OpKind::Backward, OpKind::BackwardInput,
                                                  OpKind::BackwardWeight};

/// Sets the groups by stage and counts them. One group is written as none.
static void setGroups(Contract &model, ArrayRef<uint32_t> groups) {
  model.numSizeGroups = groups.empty() ? 1 : *llvm::max_element(groups) + 1;
  model.sizeGroup.clear();
  if (model.numSizeGroups != 1)
    model.sizeGroup.assign(groups.begin(), groups.end());
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

static LogicalResult verifyGroups(Operation *op, const Contract &model) {
  if (model.sizeGroup.empty())
    return success();
  // Checked first, since it bounds the table.
  if (model.numSizeGroups == 0 || model.numSizeGroups > model.sizeGroup.size())
    return op->emitOpError("names size group ")
           << model.numSizeGroups - 1 << " for " << model.sizeGroup.size()
           << " stages, expected numbers without gaps from 0";
  std::vector<bool> isUsed(model.numSizeGroups);
  for (uint32_t group : model.sizeGroup)
    isUsed[group] = true;
  for (auto [group, used] : llvm::enumerate(isUsed))
    if (!used)
      return op->emitOpError("has no stage of size group ")
             << group << ", expected numbers without gaps from 0";
  return success();
}

LogicalResult dualpipe::verifyModel(Operation *op, const Contract &model) {
  for (OpKind half : kHalves) {
    const uint32_t reads = readsOf(model, half);
    if (uint32_t wrong = reads & ~getReadable(half))
      return op->emitOpError("lets ") << dualpipe::getKeyword(half) << " read "
                                      << describeSlotKinds(wrong) << ", which it cannot";
    if (std::string fault = findReadsFault(half, reads); !fault.empty())
      return op->emitOpError() << fault;
  }
  return verifyGroups(op, model);
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

ParseResult dualpipe::parseSlotKinds(AsmParser &parser, uint32_t &kinds) {
  kinds = 0;
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    FailureOr<SlotKind> kind = parseSlotKind(parser);
    if (failed(kind))
      return failure();
    if (kinds & bit(*kind))
      return parser.emitError(loc, "the slot kind ")
             << dualpipe::getKeyword(*kind) << " stands twice";
    kinds |= bit(*kind);
    return success();
  });
}

std::string dualpipe::describeSlotKinds(uint32_t kinds) {
  std::string text;
  for (unsigned index = 0; index < program::kNumSlotKinds; ++index)
    if (kinds & bit(static_cast<SlotKind>(index)))
      text +=
          (text.empty() ? "[" : ", ") + dualpipe::getKeyword(static_cast<SlotKind>(index)).str();
  return text.empty() ? "[]" : text + "]";
}

static ParseResult parseModelClause(OpAsmParser &parser, Contract &model) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef word;
  if (parser.parseKeyword(&word))
    return failure();
  if (word == "groups") {
    SmallVector<uint32_t> groups;
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                       [&] { return parser.parseInteger(groups.emplace_back()); }))
      return failure();
    setGroups(model, groups);
    return success();
  }
  for (OpKind half : kHalves)
    if (word == dualpipe::getKeyword(half))
      return failure(parser.parseKeyword("reads") || parseSlotKinds(parser, readsOf(model, half)));
  return parser.emitError(loc, "expected bwd, bwd_input, bwd_weight or groups, got '")
         << word << "'";
}

ParseResult dualpipe::parseModel(OpAsmParser &parser, Contract &model) {
  if (failed(parser.parseOptionalKeyword("model")))
    return success();
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                        [&] { return parseModelClause(parser, model); });
}

void dualpipe::printModel(OpAsmPrinter &printer, Operation *, const Contract &model) {
  SmallVector<std::string> clauses;
  for (OpKind half : kHalves)
    if (uint32_t reads = readsOf(model, half); reads != readsOf(Contract(), half))
      clauses.push_back(std::string(dualpipe::getKeyword(half)) + " reads " +
                        describeSlotKinds(reads));
  if (!model.sizeGroup.empty()) {
    std::string &text = clauses.emplace_back("groups [");
    for (auto [stage, group] : llvm::enumerate(model.sizeGroup))
      text += (stage ? ", " : "") + std::to_string(group);
    text += "]";
  }
  if (clauses.empty())
    return;
  printer << " model (";
  llvm::interleaveComma(clauses, printer);
  printer << ")";
}

//===----------------------------------------------------------------------===//
// Attributes and bytecode
//===----------------------------------------------------------------------===//

/// What the three halves read, then the group of each stage; empty where the
/// contract is the usual one.
static SmallVector<int64_t> toNumbers(const Contract &model) {
  SmallVector<int64_t> numbers;
  if (model == Contract())
    return numbers;
  for (OpKind half : kHalves)
    numbers.push_back(readsOf(model, half));
  numbers.append(model.sizeGroup.begin(), model.sizeGroup.end());
  return numbers;
}

static FailureOr<Contract> makeModel(ArrayRef<int64_t> numbers) {
  Contract model;
  if (numbers.empty())
    return model;
  if (numbers.size() < kHalves.size() ||
      llvm::any_of(numbers, [](int64_t number) { return number < 0 || number >= UINT32_MAX; }))
    return failure();
  for (auto [half, reads] : llvm::zip(kHalves, numbers))
    readsOf(model, half) = static_cast<uint32_t>(reads);
  ArrayRef<int64_t> groups = numbers.drop_front(kHalves.size());
  setGroups(model, SmallVector<uint32_t>(groups.begin(), groups.end()));
  return model;
}

Attribute dualpipe::modelToAttribute(MLIRContext *context, const Contract &model) {
  return DenseI64ArrayAttr::get(context, toNumbers(model));
}

LogicalResult dualpipe::modelFromAttribute(Contract &model, Attribute attr, EmitError error) {
  auto numbers = llvm::dyn_cast_if_present<DenseI64ArrayAttr>(attr);
  FailureOr<Contract> made = failure();
  if (numbers)
    made = makeModel(numbers.asArrayRef());
  if (failed(made))
    return error() << "expected the model as array<i64: reads of bwd, bwd_input and bwd_weight, "
                      "size group of each stage>";
  model = std::move(*made);
  return success();
}

llvm::hash_code dualpipe::hashModel(const Contract &model) {
  SmallVector<int64_t> numbers = toNumbers(model);
  return llvm::hash_combine_range(numbers.begin(), numbers.end());
}

void dualpipe::writeModel(DialectBytecodeWriter &writer, const Contract &model) {
  writer.writeList(toNumbers(model),
                   [&](int64_t number) { writer.writeVarInt(static_cast<uint64_t>(number)); });
}

LogicalResult dualpipe::readModel(DialectBytecodeReader &reader, Contract &model) {
  SmallVector<int64_t> numbers;
  auto readNumber = [&](int64_t &number) {
    uint64_t value = 0;
    if (failed(reader.readVarInt(value)))
      return failure();
    number = static_cast<int64_t>(value);
    return success();
  };
  if (failed(reader.readList(numbers, readNumber)))
    return failure();
  FailureOr<Contract> made = makeModel(numbers);
  if (failed(made))
    return reader.emitError("expected a model with what three halves read and size groups");
  model = std::move(*made);
  return success();
}
