//===- Facts.h - what the checks look up in a program -----------------------===//
//
// Shared by the verifiers: which pipeline a micro-batch flows through, which
// class a slot belongs to, which slots a launch reads and writes.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_PROGRAM_FACTS_H
#define DUALPIPE_RUNTIME_PROGRAM_FACTS_H

#include "dualpipe/Program/Verify.h"

#include <algorithm>
#include <utility>

namespace dualpipe::program {

/// A violation at a command of a rank, or of the rank as a whole.
inline Violation violation(const char *id, uint32_t rank, uint32_t command, std::string message) {
  return Violation{id, {rank, command}, std::move(message), {}};
}

/// The pipeline that a micro-batch flows through, or null. Pipelines are in
/// the order of their micro-batches (verifyShared).
inline const PipelineInfo *findPipeline(const SharedInfo &shared, uint32_t microbatch) {
  auto after = std::upper_bound(
      shared.pipelines.begin(), shared.pipelines.end(), microbatch,
      [](uint32_t mb, const PipelineInfo &pipeline) { return mb < pipeline.firstMicrobatch; });
  while (after != shared.pipelines.begin()) {
    --after;
    if (microbatch - after->firstMicrobatch < after->numMicrobatches)
      return &*after;
    if (after->numMicrobatches != 0)
      return nullptr;
  }
  return nullptr;
}

inline bool holdsStage(const PipelineInfo &pipeline, uint32_t stage) {
  return stage >= pipeline.firstStage && stage - pipeline.firstStage < pipeline.numStages;
}

/// The rank on which a pipeline runs a stage, or kNone where it has no such stage.
inline uint32_t getRankOf(const PipelineInfo &pipeline, uint32_t stage) {
  return holdsStage(pipeline, stage) ? pipeline.placement[stage - pipeline.firstStage] : kNone;
}

/// Whether a rank holds a copy of a stage.
inline bool holdsCopy(const SharedInfo &shared, uint32_t rank, uint32_t stage) {
  return std::any_of(
      shared.pipelines.begin(), shared.pipelines.end(),
      [&](const PipelineInfo &pipeline) { return getRankOf(pipeline, stage) == rank; });
}

inline uint32_t getSizeGroup(const SharedInfo &shared, uint32_t stage) {
  return shared.contract.getSizeGroup(stage);
}

/// Slot numbers to classes.
class SlotMap {
public:
  explicit SlotMap(const RankProgram &rank) : classes(rank.slotClasses) {
    uint32_t end = 0;
    for (const SlotClass &slotClass : classes)
      ends.push_back(end += slotClass.count);
  }
  /// The class of a slot, or null where there is no such slot.
  const SlotClass *find(uint32_t slot) const {
    const auto end = std::upper_bound(ends.begin(), ends.end(), slot);
    return end == ends.end() ? nullptr : &classes[size_t(end - ends.begin())];
  }

private:
  const std::vector<SlotClass> &classes;
  std::vector<uint32_t> ends;
};

/// Roles that a launch reads and writes, as bits.
struct Roles {
  uint32_t reads = 0;
  uint32_t writes = 0;
};

/// What a function touches where it runs: contract and flags decide.
Roles getRoles(const SharedInfo &shared, const Launch &launch);

/// Whether the commands that follow `command` (Pair or Group) form one unit with it; how many.
inline uint32_t getBracketSize(const Command &command) {
  return command.op == CommandOp::Pair || command.op == CommandOp::Group ? command.arg : 0;
}

} // namespace dualpipe::program

#endif // DUALPIPE_RUNTIME_PROGRAM_FACTS_H
