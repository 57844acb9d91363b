//===- ModelContract.cpp - what the backward halves of a model may read -----===//

#include "dualpipe/Schedule/ModelContract.h"

#include <cassert>

using namespace dualpipe;
using program::bit;
using program::Function;
using program::SlotKind;

Function dualpipe::getFunction(OpKind kind) {
  switch (kind) {
  case OpKind::Forward:
    return Function::Forward;
  case OpKind::Backward:
    return Function::Backward;
  case OpKind::BackwardInput:
    return Function::BackwardInput;
  case OpKind::BackwardWeight:
    return Function::BackwardWeight;
  }
  return Function::Forward;
}

/// The bits of a half in a contract, which may be constant.
template <typename AnyContract> static auto &select(AnyContract &contract, OpKind half) {
  assert(half != OpKind::Forward && "what a forward reads is fixed");
  if (half == OpKind::Backward)
    return contract.backwardReads;
  return half == OpKind::BackwardInput ? contract.backwardInputReads : contract.backwardWeightReads;
}

uint32_t &dualpipe::readsOf(program::Contract &contract, OpKind half) {
  return select(contract, half);
}

uint32_t dualpipe::readsOf(const program::Contract &contract, OpKind half) {
  return select(contract, half);
}

uint32_t dualpipe::getReadable(OpKind half) {
  uint32_t readable = bit(SlotKind::Input) | bit(SlotKind::Output) | bit(SlotKind::GradOutput) |
                      bit(SlotKind::Saved) | bit(SlotKind::Labels);
  return half == OpKind::BackwardWeight ? readable | bit(SlotKind::WeightContext) : readable;
}

std::string dualpipe::findReadsFault(OpKind half, uint32_t reads) {
  const uint32_t ofForward = bit(SlotKind::Saved) | bit(SlotKind::Input);
  std::string expected = std::string("expected '") + getKeyword(half) + "' to read ";
  if (half == OpKind::BackwardWeight) {
    if (reads & (ofForward | bit(SlotKind::WeightContext)))
      return "";
    return expected + "'saved', 'input' or 'context': nothing else tells it of its forward in the "
                      "last stage";
  }
  if (!(reads & bit(SlotKind::GradOutput)))
    return expected + "'grad_output', through which the gradient comes in";
  if (!(reads & ofForward))
    return expected + "'saved' or 'input': nothing else tells it of its forward in the last stage";
  return "";
}

const char *dualpipe::getWord(SlotKind kind) {
  switch (kind) {
  case SlotKind::Input:
    return "input";
  case SlotKind::Output:
    return "output";
  case SlotKind::GradOutput:
    return "grad_output";
  case SlotKind::GradInput:
    return "grad_input";
  case SlotKind::Saved:
    return "saved";
  case SlotKind::WeightContext:
    return "context";
  case SlotKind::Labels:
    return "labels";
  }
  return "unknown";
}

std::optional<SlotKind> dualpipe::findReadable(OpKind half, std::string_view word) {
  for (unsigned index = 0; index != program::kNumSlotKinds; ++index) {
    SlotKind kind = SlotKind(index);
    if ((getReadable(half) & bit(kind)) && word == getWord(kind))
      return kind;
  }
  return std::nullopt;
}

std::string dualpipe::spellReads(uint32_t reads) {
  std::string text;
  for (unsigned index = 0; index != program::kNumSlotKinds; ++index)
    if (reads & bit(SlotKind(index)))
      text += (text.empty() ? "" : ", ") + std::string(getWord(SlotKind(index)));
  return text;
}
