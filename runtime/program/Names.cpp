//===- Names.cpp - names and small facts of programs ------------------------===//

#include "dualpipe/Program/Keywords.h"
#include "dualpipe/Program/Program.h"

namespace dualpipe::program {

const char *getName(SlotKind kind) {
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
    return "weight_context";
  case SlotKind::Labels:
    return "labels";
  }
  return "unknown";
}

const char *getName(Function function) {
  switch (function) {
  case Function::LoadInput:
    return "load_input";
  case Function::LoadLabels:
    return "load_labels";
  case Function::Forward:
    return "forward";
  case Function::Backward:
    return "backward";
  case Function::BackwardInput:
    return "backward_input";
  case Function::BackwardWeight:
    return "backward_weight";
  }
  return "unknown";
}

const char *getKeyword(Function function) {
  switch (function) {
  case Function::LoadInput:
  case Function::LoadLabels:
    return getName(function);
  case Function::Forward:
    return "fwd";
  case Function::Backward:
    return "bwd";
  case Function::BackwardInput:
    return "bwd_input";
  case Function::BackwardWeight:
    return "bwd_weight";
  }
  return "unknown";
}

const char *getName(CommandOp op) {
  switch (op) {
  case CommandOp::Launch:
    return "launch";
  case CommandOp::Pair:
    return "pair";
  case CommandOp::Send:
    return "send";
  case CommandOp::Recv:
    return "recv";
  case CommandOp::Group:
    return "group";
  case CommandOp::Record:
    return "record";
  case CommandOp::Wait:
    return "wait";
  case CommandOp::Reduce:
    return "reduce";
  case CommandOp::Step:
    return "step";
  }
  return "unknown";
}

const char *getName(StreamKind kind) {
  switch (kind) {
  case StreamKind::Compute:
    return "compute";
  case StreamKind::Send:
    return "send";
  case StreamKind::Recv:
    return "recv";
  case StreamKind::Reduce:
    return "reduce";
  }
  return "unknown";
}

uint32_t RankProgram::getNumSlots() const {
  uint32_t total = 0;
  for (const SlotClass &slotClass : slotClasses)
    total += slotClass.count;
  return total;
}

/// FNV-1a over the eight bytes of stage and micro-batch, lowest first: the same
/// on every machine.
uint64_t extendDigest(uint64_t digest, uint32_t stage, uint32_t microbatch) {
  const uint64_t value = (uint64_t(microbatch) << 32) | stage;
  for (unsigned byte = 0; byte != 8; ++byte) {
    digest ^= (value >> (8 * byte)) & 0xff;
    digest *= 0x100000001b3ull;
  }
  return digest;
}

} // namespace dualpipe::program
