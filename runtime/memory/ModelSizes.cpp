//===- ModelSizes.cpp - what the stages of a model take, in bytes -----------===//

#include "dualpipe/Runtime/ModelSizes.h"

#include <algorithm>

namespace dualpipe::runtime {

uint64_t ModelSizes::getSlotBytes(const program::Contract &contract, program::SlotKind kind,
                                  uint32_t sizeGroup) const {
  uint64_t bytes = 0;
  for (uint32_t stage = 0; stage != stages.size(); ++stage)
    if (contract.getSizeGroup(stage) == sizeGroup)
      bytes = std::max(bytes, stages[stage].tensors[unsigned(kind)]);
  return bytes;
}

uint64_t ModelSizes::getWorkspace() const {
  uint64_t bytes = 0;
  for (const StageSizes &stage : stages)
    bytes = std::max(bytes, stage.workspace);
  return bytes;
}

} // namespace dualpipe::runtime
