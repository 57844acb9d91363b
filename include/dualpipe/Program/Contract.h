//===- Contract.h - what a program asks of the stages of a model ------------===//
//
// The tensors of a stage, the functions that work on them, and which tensors each
// half of a backward reads: the program keeps just those alive for it.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_PROGRAM_CONTRACT_H
#define DUALPIPE_PROGRAM_CONTRACT_H

#include <cstdint>
#include <vector>

namespace dualpipe::program {

/// What a slot holds. The values are those of `dp_tensor_kind` in stage.h.
enum class SlotKind : uint8_t {
  Input,
  Output,
  GradOutput,
  GradInput,
  Saved,
  WeightContext,
  Labels,
};
inline constexpr unsigned kNumSlotKinds = 7;
const char *getName(SlotKind kind);

/// A set of slot kinds is the sum of their bits.
inline constexpr uint32_t bit(SlotKind kind) { return 1u << unsigned(kind); }

/// The stage function that a launch calls.
enum class Function : uint8_t {
  LoadInput,
  LoadLabels,
  Forward,
  Backward,
  BackwardInput,
  BackwardWeight,
};
inline constexpr unsigned kNumFunctions = 6;
const char *getName(Function function);

/// What the stages of the model must be like.
struct Contract {
  uint32_t numComponents = 1;
  uint32_t numSizeGroups = 1;
  /// Bits of SlotKind that the program keeps alive for each function.
  uint32_t backwardReads = bit(SlotKind::Saved) | bit(SlotKind::GradOutput);
  uint32_t backwardInputReads = bit(SlotKind::Saved) | bit(SlotKind::GradOutput);
  uint32_t backwardWeightReads = bit(SlotKind::Saved) | bit(SlotKind::WeightContext);
  /// Size group by global stage; empty means all are group 0.
  std::vector<uint32_t> sizeGroup;

  bool operator==(const Contract &) const = default;

  uint32_t getSizeGroup(uint32_t stage) const { return sizeGroup.empty() ? 0 : sizeGroup[stage]; }
};

/// What a function reads in a stage that is the last of its pipeline, or not: the
/// last stage has no output, and labels come to it alone.
inline uint32_t getReads(const Contract &contract, Function function, bool isLast) {
  const uint32_t absent =
      isLast ? bit(SlotKind::Output) | bit(SlotKind::GradOutput) : bit(SlotKind::Labels);
  switch (function) {
  case Function::LoadInput:
  case Function::LoadLabels:
    return 0;
  case Function::Forward:
    return (bit(SlotKind::Input) | bit(SlotKind::Labels)) & ~absent;
  case Function::Backward:
    return contract.backwardReads & ~absent;
  case Function::BackwardInput:
    return contract.backwardInputReads & ~absent;
  case Function::BackwardWeight:
    return contract.backwardWeightReads & ~absent;
  }
  return 0;
}

} // namespace dualpipe::program

#endif // DUALPIPE_PROGRAM_CONTRACT_H
