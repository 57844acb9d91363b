//===- DescribePipe.cpp - ops and values in messages ------------------------===//

#include "DescribePipe.h"

#include "llvm/ADT/Twine.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace dualpipe;
using namespace mlir;

static std::string describePlace(uint32_t stage, uint32_t microbatch) {
  return ("stage " + Twine(stage) + ", micro-batch " + Twine(microbatch)).str();
}

static StringRef describeKind(OpKind kind) {
  switch (kind) {
  case OpKind::Forward:
    return "forward";
  case OpKind::Backward:
    return "backward";
  case OpKind::BackwardInput:
    return "input half of the backward";
  case OpKind::BackwardWeight:
    return "weight half of the backward";
  }
  llvm_unreachable("every kind returns above");
}

std::string dualpipe::describeValue(Type type, uint32_t stage, uint32_t microbatch) {
  std::string place = describePlace(stage, microbatch);
  if (isa<pipe::ActType>(type))
    return "the activation for " + place;
  if (isa<pipe::GradType>(type))
    return "the gradient for " + place;
  if (isa<pipe::SavedType>(type))
    return "the saved context of " + place;
  if (isa<pipe::WctxType>(type))
    return "the weight context of " + place;
  return "the labels of " + place;
}

template <typename TransferOp> static std::string describeTransfer(StringRef verb, TransferOp op) {
  Type type = pipe::getValueType(op.getContext(), op.getKind());
  return (verb + " of " + describeValue(type, op.getStage(), op.getMicrobatch())).str();
}

std::string dualpipe::describeOp(Operation *op) {
  if (auto compute = dyn_cast<pipe::ComputeOpInterface>(op))
    return (describeKind(compute.getKind()) + " of " +
            describePlace(compute.getStage(), compute.getMicrobatch()))
        .str();
  if (auto send = dyn_cast<pipe::SendOp>(op))
    return describeTransfer("send", send);
  if (auto recv = dyn_cast<pipe::RecvOp>(op))
    return describeTransfer("receive", recv);
  return op->getName().getStringRef().str();
}

/// The result of a fused group stands for that of its member.
static OpResult lookThroughFused(OpResult result) {
  if (auto fused = dyn_cast<pipe::FusedFbOp>(result.getOwner()))
    return cast<OpResult>(fused.getBody()->getTerminator()->getOperand(result.getResultNumber()));
  return result;
}

static std::string describeComputed(Type type, pipe::ComputeOpInterface producer) {
  uint32_t stage = producer.getStage();
  if (isa<pipe::ActType>(type))
    ++stage;
  if (isa<pipe::GradType>(type))
    --stage;
  return describeValue(type, stage, producer.getMicrobatch());
}

std::string dualpipe::describeResult(OpResult result) {
  result = lookThroughFused(result);
  Operation *producer = result.getOwner();
  Type type = result.getType();
  if (auto compute = dyn_cast<pipe::ComputeOpInterface>(producer))
    return describeComputed(type, compute);
  if (auto recv = dyn_cast<pipe::RecvOp>(producer))
    return describeValue(type, recv.getStage(), recv.getMicrobatch());
  auto input = cast<pipe::InputOp>(producer);
  return describeValue(type, input.getStage(), input.getMicrobatch());
}

InFlightDiagnostic dualpipe::emitRankError(pipe::RankOp rank, Operation *op) {
  return op->emitError() << "rank " << rank.getRank() << ": ";
}
