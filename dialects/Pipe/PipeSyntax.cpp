//===- PipeSyntax.cpp - custom directives of the pipe dialect ---------------===//

#include "dialects/Pipe/PipeSyntax.h"

using namespace dualpipe;
using namespace dualpipe::pipe;
using namespace mlir;

ParseResult pipe::parseForwardOnly(OpAsmParser &parser, bool &forwardOnly) {
  forwardOnly = succeeded(parser.parseOptionalKeyword("forward_only"));
  return success();
}

void pipe::printForwardOnly(OpAsmPrinter &printer, Operation *, bool forwardOnly) {
  if (forwardOnly)
    printer << " forward_only";
}

//===----------------------------------------------------------------------===//
// Compute ops
//===----------------------------------------------------------------------===//

/// Finds the result types from the number of results before the `=`.
static ParseResult inferOutputs(OpAsmParser &parser, OpKind kind, bool first, bool last,
                                SmallVectorImpl<Type> &types) {
  size_t numResults = parser.getNumResults();
  if (numResults == 0)
    return success();
  for (bool forwardOnly : {false, true}) {
    SmallVector<Type, 2> expected =
        getOutputTypes(parser.getContext(), kind, first, last, forwardOnly);
    if (expected.size() != numResults)
      continue;
    types.append(expected.begin(), expected.end());
    return success();
  }
  return parser.emitError(parser.getNameLoc(), "expected ")
         << getOutputTypes(parser.getContext(), kind, first, last, false).size() << " results, got "
         << numResults;
}

static ParseResult inferInputs(OpAsmParser &parser, uint32_t roles, size_t numInputs,
                               SmallVectorImpl<Type> &types) {
  if (numInputs == 0)
    return success();
  SmallVector<Type, 2> expected = getInputTypes(parser.getContext(), roles);
  if (expected.size() != numInputs)
    return parser.emitError(parser.getNameLoc(), "expected ")
           << expected.size() << " values to read, got " << numInputs;
  types.append(expected.begin(), expected.end());
  return success();
}

/// Text: `%x`, or `input = %x`.
static ParseResult parseInput(OpAsmParser &parser, UnresolvedOperand &input, uint32_t &reads) {
  OptionalParseResult plain = parser.parseOptionalOperand(input);
  if (plain.has_value())
    return *plain;
  SMLoc loc = parser.getCurrentLocation();
  FailureOr<program::SlotKind> role = parseSlotKind(parser);
  if (failed(role))
    return failure();
  if (reads >= bit(*role))
    return parser.emitError(loc, "the role ")
           << dualpipe::getKeyword(*role) << " stands after " << describeSlotKinds(reads)
           << ", expected the order of the slot kinds";
  reads |= bit(*role);
  return failure(parser.parseEqual() || parser.parseOperand(input));
}

/// All values are named by their roles, or none is.
static ParseResult parseInputs(OpAsmParser &parser, SmallVectorImpl<UnresolvedOperand> &inputs,
                               uint32_t &reads) {
  reads = 0;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::OptionalParen, [&] {
        return parseInput(parser, inputs.emplace_back(), reads);
      }))
    return failure();
  if (reads && static_cast<size_t>(llvm::popcount(reads)) != inputs.size())
    return parser.emitError(loc, "expected the roles of all values, or of none");
  return success();
}

ParseResult pipe::parseComputeBody(OpAsmParser &parser, OpKind kind,
                                   SmallVectorImpl<UnresolvedOperand> &inputs,
                                   SmallVectorImpl<Type> &inputTypes,
                                   SmallVectorImpl<Type> &outputTypes, bool &first, bool &last,
                                   bool &accumulate, uint32_t &reads, SlotList &slots) {
  if (parseInputs(parser, inputs, reads))
    return failure();
  first = succeeded(parser.parseOptionalKeyword("first"));
  last = succeeded(parser.parseOptionalKeyword("last"));
  accumulate = succeeded(parser.parseOptionalKeyword("accumulate"));
  return failure(parseSlotList(parser, slots) ||
                 inferInputs(parser, getInputRoles(kind, last, reads), inputs.size(), inputTypes) ||
                 inferOutputs(parser, kind, first, last, outputTypes));
}

static void printInputs(OpAsmPrinter &printer, OperandRange inputs, uint32_t reads) {
  if (inputs.empty())
    return;
  printer << " (";
  if (!reads) {
    printer << inputs << ")";
    return;
  }
  auto input = inputs.begin();
  forEachRole(reads, [&](program::SlotKind role) {
    printer << (input == inputs.begin() ? "" : ", ") << dualpipe::getKeyword(role) << " = ";
    printer << *input++;
  });
  printer << ")";
}

void pipe::printComputeBody(OpAsmPrinter &printer, Operation *op, OpKind, OperandRange inputs,
                            TypeRange, TypeRange, bool first, bool last, bool accumulate,
                            uint32_t reads, ArrayRef<uint32_t> slots) {
  printInputs(printer, inputs, reads);
  if (first)
    printer << " first";
  if (last)
    printer << " last";
  if (accumulate)
    printer << " accumulate";
  printSlotList(printer, op, slots);
}

ParseResult pipe::parseFusedBody(OpAsmParser &parser, Region &body,
                                 SmallVectorImpl<Type> &outputTypes) {
  if (parser.parseRegion(body))
    return failure();
  if (body.empty())
    return parser.emitError(parser.getNameLoc(), "expected a region with compute ops");
  FusedFbOp::ensureTerminator(body, parser.getBuilder(),
                              parser.getEncodedSourceLoc(parser.getNameLoc()));
  ValueRange values = body.front().getTerminator()->getOperands();
  outputTypes.append(values.getTypes().begin(), values.getTypes().end());
  return success();
}

void pipe::printFusedBody(OpAsmPrinter &printer, Operation *, Region &body, TypeRange) {
  bool yieldsValues = body.front().getTerminator()->getNumOperands() != 0;
  printer.printRegion(body, /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/yieldsValues);
}

//===----------------------------------------------------------------------===//
// Input and transfers
//===----------------------------------------------------------------------===//

ParseResult pipe::parseInputType(OpAsmParser &parser, Type &type) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  if (keyword == "act")
    type = ActType::get(parser.getContext());
  else if (keyword == "labels")
    type = LabelsType::get(parser.getContext());
  else
    return parser.emitError(loc, "expected 'act' or 'labels', got '") << keyword << "'";
  return success();
}

void pipe::printInputType(OpAsmPrinter &printer, Operation *, Type type) {
  printer << (isa<ActType>(type) ? "act" : "labels");
}

ParseResult pipe::parseSentValue(OpAsmParser &parser, TransferKind kind,
                                 std::optional<UnresolvedOperand> &value, Type &type) {
  if (failed(parser.parseOptionalLParen()))
    return success();
  type = getValueType(parser.getContext(), kind);
  return failure(parser.parseOperand(value.emplace()) || parser.parseRParen());
}

void pipe::printSentValue(OpAsmPrinter &printer, Operation *, TransferKind, Value value, Type) {
  if (value)
    printer << " (" << value << ")";
}

ParseResult pipe::parseReceivedType(OpAsmParser &parser, TransferKind kind, Type &type) {
  if (parser.getNumResults() != 0)
    type = getValueType(parser.getContext(), kind);
  return success();
}

void pipe::printReceivedType(OpAsmPrinter &, Operation *, TransferKind, Type) {}
