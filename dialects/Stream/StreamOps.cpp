//===- StreamOps.cpp - builders and verifiers of the stream dialect ---------===//
//
// Verifiers look at one op: roles fit the function, groups hold what may stand
// in them. Ranges, orders and both ends of a transfer are checked by
// `stream-verify` (README.md).
//
//===----------------------------------------------------------------------===//

#include "dialects/Stream/Stream.h"

#include "llvm/ADT/STLExtras.h"

using namespace dualpipe;
using namespace dualpipe::stream;
using namespace mlir;
using program::Function;
using program::SlotKind;

//===----------------------------------------------------------------------===//
// Custom directives
//===----------------------------------------------------------------------===//

/// Text: `[<compute>, <send act to 4>]`.
static ParseResult parseStreamTable(OpAsmParser &parser, ArrayAttr &streams) {
  SmallVector<Attribute> entries;
  auto parseEntry = [&]() -> ParseResult {
    entries.push_back(StreamAttr::parse(parser, Type()));
    return success(entries.back() != nullptr);
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseEntry))
    return failure();
  streams = parser.getBuilder().getArrayAttr(entries);
  return success();
}

static void printStreamTable(OpAsmPrinter &printer, Operation *, ArrayAttr streams) {
  printer << "[";
  llvm::interleaveComma(streams.getAsRange<StreamAttr>(), printer,
                        [&](StreamAttr entry) { entry.print(printer); });
  printer << "]";
}

/// Text: ` component 1`, or nothing for component 0.
static ParseResult parseComponent(OpAsmParser &parser, uint32_t &component) {
  if (succeeded(parser.parseOptionalKeyword("component")))
    return parser.parseInteger(component);
  return success();
}

static void printComponent(OpAsmPrinter &printer, Operation *, uint32_t component) {
  if (component)
    printer << " component " << component;
}

/// Text: ` first last accumulate`, each optional.
static ParseResult parseLaunchFlags(OpAsmParser &parser, bool &first, bool &last,
                                    bool &accumulate) {
  first = succeeded(parser.parseOptionalKeyword("first"));
  last = succeeded(parser.parseOptionalKeyword("last"));
  accumulate = succeeded(parser.parseOptionalKeyword("accumulate"));
  return success();
}

static void printLaunchFlags(OpAsmPrinter &printer, Operation *, bool first, bool last,
                             bool accumulate) {
  if (first)
    printer << " first";
  if (last)
    printer << " last";
  if (accumulate)
    printer << " accumulate";
}

#define GET_OP_CLASSES
#include "dialects/Stream/StreamOps.cpp.inc"

//===----------------------------------------------------------------------===//
// ProgramOp
//===----------------------------------------------------------------------===//

void ProgramOp::build(OpBuilder &builder, OperationState &state, uint32_t rank,
                      FlatSymbolRefAttr schedule, ArrayRef<Attribute> streams, SlotClassList slots,
                      const program::Contract &model) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.rank = rank;
  properties.schedule = schedule;
  properties.streams = builder.getArrayAttr(streams);
  properties.slots = std::move(slots);
  properties.model = model;
  state.addRegion()->emplaceBlock();
}

LogicalResult ProgramOp::verify() {
  for (Operation &op : *getBody())
    if (op.getDialect() != (*this)->getDialect())
      return op.emitOpError("is of another dialect and cannot stand in a program");
  if (getStreams().size() > kMaxStreams)
    return emitOpError("has ") << getStreams().size() << " streams, expected at most "
                               << kMaxStreams;
  if (failed(verifyModel(*this, getModel())))
    return failure();
  return verifySlotClasses(*this, getSlots());
}

StreamAttr ProgramOp::getStream(uint32_t stream) {
  ArrayRef<Attribute> entries = getStreams().getValue();
  return stream < entries.size() ? cast<StreamAttr>(entries[stream]) : StreamAttr();
}

//===----------------------------------------------------------------------===//
// LaunchOp
//===----------------------------------------------------------------------===//

void LaunchOp::build(OpBuilder &, OperationState &state, Function function, uint32_t stream,
                     uint32_t stage, uint32_t microbatch, const RoleSlots &slots, bool first,
                     bool last, bool accumulate, uint32_t component) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.function = function;
  properties.stream = stream;
  properties.stage = stage;
  properties.microbatch = microbatch;
  properties.component = component;
  properties.slots = slots;
  properties.first = first;
  properties.last = last;
  properties.accumulate = accumulate;
}

uint8_t LaunchOp::getFlags() {
  return static_cast<uint8_t>((getAccumulate() ? program::kAccumulate : 0) |
                              (getFirst() ? program::kFirstStage : 0) |
                              (getLast() ? program::kLastStage : 0));
}

bool LaunchOp::yieldsWeightGradient() {
  return getFunction() == Function::Backward || getFunction() == Function::BackwardWeight;
}

namespace {
/// Roles that a launch must have and those that it may have besides, as bits.
struct RoleSets {
  unsigned required;
  unsigned optional;
};
} // namespace

static RoleSets getRoleSets(Function function, bool first, bool last) {
  const unsigned ends =
      bit(SlotKind::Input) | (last ? bit(SlotKind::Labels) : bit(SlotKind::Output));
  // What the model contract may let a half read beyond the least.
  const unsigned contract = ends | bit(SlotKind::Saved);
  const unsigned gradOutput = last ? 0u : bit(SlotKind::GradOutput);
  const unsigned gradients = gradOutput | (first ? 0u : bit(SlotKind::GradInput));
  switch (function) {
  case Function::LoadInput:
    return {bit(SlotKind::Input), 0};
  case Function::LoadLabels:
    return {bit(SlotKind::Labels), 0};
  case Function::Forward:
    return {ends, bit(SlotKind::Saved)};
  case Function::Backward:
    return {gradients, contract};
  case Function::BackwardInput:
    return {gradients | bit(SlotKind::WeightContext), contract};
  case Function::BackwardWeight:
    return {0, contract | gradOutput | bit(SlotKind::WeightContext)};
  }
  llvm_unreachable("every function returns above");
}

LogicalResult LaunchOp::verify() {
  if (getAccumulate() && !yieldsWeightGradient())
    return emitOpError("accumulates a weight gradient, which ")
           << getKeyword(getFunction()) << " does not yield";
  RoleSets roles = getRoleSets(getFunction(), getFirst(), getLast());
  for (unsigned index = 0; index < program::kNumSlotKinds; ++index) {
    SlotKind role = static_cast<SlotKind>(index);
    bool has = getSlots().has(role);
    if (!has && (roles.required & bit(role)))
      return emitOpError("expected a slot for the role ") << dualpipe::getKeyword(role);
    if (has && !((roles.required | roles.optional) & bit(role)))
      return emitOpError("has a slot for the role ")
             << dualpipe::getKeyword(role) << ", which " << getKeyword(getFunction())
             << " does not use here";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// PairOp and GroupOp
//===----------------------------------------------------------------------===//

void PairOp::build(OpBuilder &, OperationState &state, uint32_t stream) {
  state.getOrAddProperties<Properties>().stream = stream;
  state.addRegion()->emplaceBlock();
}

LogicalResult PairOp::verify() {
  unsigned numMembers = 0;
  for (Operation &member : *getBody()) {
    auto launch = dyn_cast<LaunchOp>(member);
    if (!launch)
      return member.emitOpError("is no launch and cannot stand in a pair");
    if (launch.getStream() != getStream())
      return launch.emitOpError("expected stream ")
             << getStream() << " of the pair, got " << launch.getStream();
    ++numMembers;
  }
  if (numMembers < 2)
    return emitOpError("expected two or more launches, got ") << numMembers;
  return success();
}

void GroupOp::build(OpBuilder &, OperationState &state, uint32_t stream) {
  state.getOrAddProperties<Properties>().stream = stream;
  state.addRegion()->emplaceBlock();
}

LogicalResult GroupOp::verify() {
  if (getBody()->empty())
    return emitOpError("expected one or more transfers, got none");
  for (Operation &member : *getBody()) {
    if (!isa<SendOp, RecvOp>(member))
      return member.emitOpError("is no transfer and cannot stand in a group");
    uint32_t stream =
        isa<SendOp>(member) ? cast<SendOp>(member).getStream() : cast<RecvOp>(member).getStream();
    if (stream != getStream())
      return member.emitOpError("expected stream ")
             << getStream() << " of the group, got " << stream;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

template <typename TransferOp> static LogicalResult verifyTransfer(TransferOp op) {
  auto program = op->template getParentOfType<ProgramOp>();
  if (program && program.getRank() == op.getPeer())
    return op.emitOpError("names its own rank ") << op.getPeer() << " as the other end";
  return success();
}

LogicalResult SendOp::verify() { return verifyTransfer(*this); }
LogicalResult RecvOp::verify() { return verifyTransfer(*this); }

//===----------------------------------------------------------------------===//
// Events, reductions and steps
//===----------------------------------------------------------------------===//

void RecordOp::build(OpBuilder &builder, OperationState &state, uint32_t stream) {
  state.getOrAddProperties<Properties>().stream = stream;
  state.addTypes(EventType::get(builder.getContext()));
}

void WaitOp::build(OpBuilder &, OperationState &state, Value event, uint32_t stream) {
  state.getOrAddProperties<Properties>().stream = stream;
  state.addOperands(event);
}

void ReduceOp::build(OpBuilder &, OperationState &state, uint32_t stream, uint32_t stage,
                     DenseI32ArrayAttr ranks) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.stream = stream;
  properties.stage = stage;
  properties.ranks = ranks;
}

LogicalResult ReduceOp::verify() {
  ArrayRef<int32_t> ranks = getRanks();
  if (ranks.size() < 2 || ranks.front() < 0 || !llvm::is_sorted(ranks, std::less_equal<int32_t>()))
    return emitOpError("expected two or more ranks in ascending order, got [") << ranks << "]";
  auto program = (*this)->getParentOfType<ProgramOp>();
  if (program && !llvm::is_contained(ranks, static_cast<int32_t>(program.getRank())))
    return emitOpError("expected rank ") << program.getRank() << " among [" << ranks << "]";
  return success();
}

void StepOp::build(OpBuilder &, OperationState &state, uint32_t stream, uint32_t stage) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.stream = stream;
  properties.stage = stage;
}
