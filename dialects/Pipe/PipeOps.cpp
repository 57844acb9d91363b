//===- PipeOps.cpp - builders and verifiers of the pipe dialect -------------===//
//
// Verifiers look at one op: its values fit its kind and flags, or there are
// none. What concerns several ops is checked by passes (README.md).
//
//===----------------------------------------------------------------------===//

#include "dialects/Pipe/Pipe.h"
#include "dialects/Pipe/PipeSyntax.h"
#include "dualpipe/Schedule/ModelContract.h"

#include "llvm/ADT/STLExtras.h"

using namespace dualpipe;
using namespace dualpipe::pipe;
using namespace mlir;
using program::SlotKind;

#define GET_OP_CLASSES
#include "dialects/Pipe/PipeOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Values by kind
//===----------------------------------------------------------------------===//

uint32_t pipe::getInputRoles(OpKind kind, bool last, uint32_t reads) {
  return reads ? reads : program::getReads(program::Contract(), getFunction(kind), last);
}

uint32_t pipe::getInputRoles(ComputeOpInterface op) {
  return getInputRoles(op.getKind(), op.getLast(), op.getReads());
}

void pipe::forEachRole(uint32_t roles, llvm::function_ref<void(SlotKind)> action) {
  for (unsigned index = 0; index < program::kNumSlotKinds; ++index)
    if (roles & bit(static_cast<SlotKind>(index)))
      action(static_cast<SlotKind>(index));
}

/// The type of what a slot of a kind holds.
static Type getType(MLIRContext *context, SlotKind kind) {
  switch (kind) {
  case SlotKind::Input:
  case SlotKind::Output:
    return ActType::get(context);
  case SlotKind::GradOutput:
  case SlotKind::GradInput:
    return GradType::get(context);
  case SlotKind::Saved:
    return SavedType::get(context);
  case SlotKind::WeightContext:
    return WctxType::get(context);
  case SlotKind::Labels:
    return LabelsType::get(context);
  }
  llvm_unreachable("every kind returns above");
}

SmallVector<Type, 2> pipe::getInputTypes(MLIRContext *context, uint32_t roles) {
  SmallVector<Type, 2> types;
  forEachRole(roles, [&](SlotKind role) { types.push_back(getType(context, role)); });
  return types;
}

SmallVector<Type, 2> pipe::getOutputTypes(MLIRContext *context, OpKind kind, bool first, bool last,
                                          bool forwardOnly) {
  SmallVector<Type, 2> types;
  if (kind == OpKind::Forward && !last)
    types.push_back(ActType::get(context));
  if (kind == OpKind::Forward && !forwardOnly)
    types.push_back(SavedType::get(context));
  if ((kind == OpKind::Backward || kind == OpKind::BackwardInput) && !first)
    types.push_back(GradType::get(context));
  if (kind == OpKind::BackwardInput)
    types.push_back(WctxType::get(context));
  return types;
}

Type pipe::getValueType(MLIRContext *context, TransferKind kind) {
  if (kind == TransferKind::Activation)
    return ActType::get(context);
  return GradType::get(context);
}

/// One slot per result, or none before slots are assigned.
static LogicalResult verifySlots(Operation *op, ArrayRef<uint32_t> slots) {
  if (slots.empty() || slots.size() == op->getNumResults())
    return success();
  return op->emitOpError("expected one slot per result (")
         << op->getNumResults() << "), got " << slots.size();
}

//===----------------------------------------------------------------------===//
// RankOp
//===----------------------------------------------------------------------===//

void RankOp::build(OpBuilder &builder, OperationState &state, uint32_t rank, StringRef schedule,
                   bool forwardOnly, const program::Contract &model) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.rank = rank;
  properties.schedule = FlatSymbolRefAttr::get(builder.getContext(), schedule);
  properties.forward_only = forwardOnly;
  properties.model = model;
  state.addRegion()->emplaceBlock();
}

LogicalResult RankOp::verify() {
  for (Operation &op : *getBody())
    if (op.getDialect() != (*this)->getDialect())
      return op.emitOpError("is of another dialect and cannot stand in a rank");
  if (failed(verifyModel(*this, getModel())))
    return failure();
  return verifySlotClasses(*this, getSlots());
}

//===----------------------------------------------------------------------===//
// Compute ops
//===----------------------------------------------------------------------===//

static std::string describe(TypeRange types) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "(";
  llvm::interleaveComma(types, stream);
  stream << ")";
  return text;
}

/// What some contract may let the op read.
static uint32_t getReadableRoles(ComputeOpInterface op) {
  program::Contract widest;
  for (OpKind half : {OpKind::Backward, OpKind::BackwardInput, OpKind::BackwardWeight})
    readsOf(widest, half) = getReadable(half);
  return program::getReads(widest, getFunction(op.getKind()), op.getLast());
}

/// Values are all there with the types that kind, flags and roles ask for, or none is.
static LogicalResult verifyValues(ComputeOpInterface op) {
  if (uint32_t wrong = op.getReads() & ~getReadableRoles(op))
    return op->emitOpError("reads ") << describeSlotKinds(wrong) << ", which it cannot here";
  if (op->getNumOperands() == 0 && op->getNumResults() == 0)
    return success();
  MLIRContext *context = op->getContext();
  SmallVector<Type, 2> inputs = getInputTypes(context, getInputRoles(op));
  if (TypeRange(inputs) != op->getOperandTypes())
    return op->emitOpError("expected to read ")
           << describe(inputs) << ", got " << describe(op->getOperandTypes());
  for (bool forwardOnly : {false, true})
    if (TypeRange(getOutputTypes(context, op.getKind(), op.getFirst(), op.getLast(),
                                 forwardOnly)) == op->getResultTypes())
      return success();
  return op->emitOpError("expected to yield ")
         << describe(getOutputTypes(context, op.getKind(), op.getFirst(), op.getLast(), false))
         << ", got " << describe(op->getResultTypes());
}

static LogicalResult verifyCompute(ComputeOpInterface op) {
  if (op.getStage() == 0 && !op.getFirst())
    return op->emitOpError("is of stage 0, which begins its pipeline: expected first");
  if (op.getAccumulate() && !op.yieldsWeightGradient())
    return op->emitOpError("accumulates a weight gradient, which only bwd and bwd_weight yield");
  if (failed(verifyValues(op)))
    return failure();
  return verifySlots(op, op.getSlots());
}

LogicalResult FwdOp::verify() { return verifyCompute(*this); }
LogicalResult BwdOp::verify() { return verifyCompute(*this); }
LogicalResult BwdInputOp::verify() { return verifyCompute(*this); }
LogicalResult BwdWeightOp::verify() { return verifyCompute(*this); }

//===----------------------------------------------------------------------===//
// FusedFbOp
//===----------------------------------------------------------------------===//

void FusedFbOp::build(OpBuilder &builder, OperationState &state, TypeRange outputs) {
  state.addTypes(outputs);
  ensureTerminator(*state.addRegion(), builder, state.location);
}

/// Members are compute ops, and none reads what another yields.
static LogicalResult verifyMember(FusedFbOp fused, Operation &member) {
  if (!isa<ComputeOpInterface>(member))
    return member.emitOpError("is no compute op and cannot stand in a fused group");
  for (Value input : member.getOperands())
    if (Operation *producer = input.getDefiningOp(); producer && producer->getParentOp() == fused) {
      InFlightDiagnostic diag =
          member.emitOpError("reads a value of another member of its fused group");
      diag.attachNote(producer->getLoc()) << "yielded here";
      return diag;
    }
  return success();
}

LogicalResult FusedFbOp::verify() {
  SmallVector<Value> expected;
  unsigned numMembers = 0;
  for (Operation &member : getBody()->without_terminator()) {
    if (failed(verifyMember(*this, member)))
      return failure();
    ++numMembers;
    llvm::append_range(expected, member.getResults());
  }
  if (numMembers < 2)
    return emitOpError("expected two or more compute ops, got ") << numMembers;
  Operation *yield = getBody()->getTerminator();
  if (!llvm::equal(expected, yield->getOperands()))
    return yield->emitOpError("expected all results of the members in order (")
           << expected.size() << " values)";
  if (getResultTypes() != yield->getOperandTypes())
    return emitOpError("expected the results ")
           << describe(yield->getOperandTypes()) << ", got " << describe(getResultTypes());
  return success();
}

//===----------------------------------------------------------------------===//
// Input and transfers
//===----------------------------------------------------------------------===//

void InputOp::build(OpBuilder &, OperationState &state, Type type, uint32_t stage,
                    uint32_t microbatch) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.stage = stage;
  properties.microbatch = microbatch;
  state.addTypes(type);
}

LogicalResult InputOp::verify() { return verifySlots(*this, getSlots()); }

void SendOp::build(OpBuilder &, OperationState &state, TransferKind kind, uint32_t stage,
                   uint32_t microbatch, uint32_t peer, Value value) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.kind = kind;
  properties.stage = stage;
  properties.microbatch = microbatch;
  properties.peer = peer;
  if (value)
    state.addOperands(value);
}

/// The peer is another rank, and the value has the type of the kind.
template <typename TransferOp> static LogicalResult verifyTransfer(TransferOp op) {
  auto rank = op->template getParentOfType<RankOp>();
  if (rank && rank.getRank() == op.getPeer())
    return op.emitOpError("names its own rank ") << op.getPeer() << " as the other end";
  Type expected = getValueType(op.getContext(), op.getKind());
  if (op.getValue() && op.getValue().getType() != expected)
    return op.emitOpError("expected a value of type ")
           << expected << ", got " << op.getValue().getType();
  return success();
}

LogicalResult SendOp::verify() { return verifyTransfer(*this); }

void RecvOp::build(OpBuilder &builder, OperationState &state, TransferKind kind, uint32_t stage,
                   uint32_t microbatch, uint32_t peer, bool withResult) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.kind = kind;
  properties.stage = stage;
  properties.microbatch = microbatch;
  properties.peer = peer;
  if (withResult)
    state.addTypes(getValueType(builder.getContext(), kind));
}

LogicalResult RecvOp::verify() {
  if (failed(verifyTransfer(*this)))
    return failure();
  return verifySlots(*this, getSlots());
}

//===----------------------------------------------------------------------===//
// ReduceGradOp
//===----------------------------------------------------------------------===//

void ReduceGradOp::build(OpBuilder &builder, OperationState &state, uint32_t stage,
                         ArrayRef<uint32_t> ranks) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.stage = stage;
  SmallVector<int32_t> values(ranks.begin(), ranks.end());
  properties.ranks = builder.getDenseI32ArrayAttr(values);
}

LogicalResult ReduceGradOp::verify() {
  ArrayRef<int32_t> ranks = getRanks();
  if (ranks.size() < 2 || ranks.front() < 0 || !llvm::is_sorted(ranks, std::less_equal<int32_t>()))
    return emitOpError("expected two or more ranks in ascending order, got [") << ranks << "]";
  auto rank = (*this)->getParentOfType<RankOp>();
  if (rank && !llvm::is_contained(ranks, static_cast<int32_t>(rank.getRank())))
    return emitOpError("expected rank ") << rank.getRank() << " among [" << ranks << "]";
  return success();
}
