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

static ParseResult inferInputs(OpAsmParser &parser, OpKind kind, bool last, size_t numInputs,
                               SmallVectorImpl<Type> &types) {
  if (numInputs == 0)
    return success();
  SmallVector<Type, 2> expected = getInputTypes(parser.getContext(), kind, last);
  if (expected.size() != numInputs)
    return parser.emitError(parser.getNameLoc(), "expected ")
           << expected.size() << " values to read, got " << numInputs;
  types.append(expected.begin(), expected.end());
  return success();
}

ParseResult pipe::parseComputeBody(OpAsmParser &parser, OpKind kind,
                                   SmallVectorImpl<UnresolvedOperand> &inputs,
                                   SmallVectorImpl<Type> &inputTypes,
                                   SmallVectorImpl<Type> &outputTypes, bool &first, bool &last,
                                   bool &accumulate, SlotList &slots) {
  if (parser.parseOperandList(inputs, AsmParser::Delimiter::OptionalParen))
    return failure();
  first = succeeded(parser.parseOptionalKeyword("first"));
  last = succeeded(parser.parseOptionalKeyword("last"));
  accumulate = succeeded(parser.parseOptionalKeyword("accumulate"));
  return failure(parseSlotList(parser, slots) ||
                 inferInputs(parser, kind, last, inputs.size(), inputTypes) ||
                 inferOutputs(parser, kind, first, last, outputTypes));
}

void pipe::printComputeBody(OpAsmPrinter &printer, Operation *op, OpKind, OperandRange inputs,
                            TypeRange, TypeRange, bool first, bool last, bool accumulate,
                            ArrayRef<uint32_t> slots) {
  if (!inputs.empty())
    printer << " (" << inputs << ")";
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
