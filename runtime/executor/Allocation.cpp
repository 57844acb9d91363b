//===- Allocation.cpp - what a rank has allocated, held against P4 ----------===//

#include "Allocation.h"

#include <fmt/format.h>

namespace dualpipe::runtime {

Allocation measureAllocation(const Executor &executor, std::span<const StageCopy> copies) {
  Allocation allocation;
  for (const StageCopy &copy : copies) {
    allocation.weights += copy.getParamBuffer().size();
    allocation.gradients += copy.getGradBuffer().size();
    allocation.optimizerState += copy.getStateBuffer().size();
  }
  allocation.workspace = executor.getWorkspaceBytes();
  allocation.arena = executor.getSlotBytes();
  allocation.classes = executor.getClassBytes();
  return allocation;
}

static Status compare(uint32_t rank, const std::string &what, uint64_t allocated,
                      uint64_t predicted) {
  if (allocated == predicted)
    return Status::success();
  return Status::failure(fmt::format("P4: rank {}: the {} takes {} bytes, predicted were {}: what "
                                     "the model or the optimizer says of its sizes has changed, or "
                                     "this is a fault of the runtime",
                                     rank, what, allocated, predicted));
}

Status checkAllocation(const Allocation &allocated, const RankMemory &predicted) {
  const struct {
    const char *name;
    uint64_t allocated, predicted;
  } parts[] = {
      {"memory of the weights", allocated.weights, predicted.weights},
      {"memory of the gradients", allocated.gradients, predicted.gradients},
      {"state of the optimizer", allocated.optimizerState, predicted.optimizerState},
      {"workspace", allocated.workspace, predicted.workspace},
      {"arena of the slots", allocated.arena, predicted.slots.arenaBytes},
  };
  for (const auto &part : parts)
    if (Status status = compare(predicted.rank, part.name, part.allocated, part.predicted);
        !status.ok())
      return status;
  const std::vector<program::ClassUse> &classes = predicted.slots.classes;
  if (allocated.classes.size() != classes.size())
    return Status::failure(fmt::format("P4: rank {}: the arena has {} slot classes, expected {}",
                                       predicted.rank, allocated.classes.size(), classes.size()));
  for (size_t i = 0; i != classes.size(); ++i)
    if (Status status = compare(predicted.rank,
                                fmt::format("slot class {} of size group {}",
                                            program::getName(classes[i].slotClass.kind),
                                            classes[i].slotClass.sizeGroup),
                                allocated.classes[i], classes[i].allocatedBytes);
        !status.ok())
      return status;
  return Status::success();
}

} // namespace dualpipe::runtime
