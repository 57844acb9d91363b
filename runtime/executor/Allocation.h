//===- Allocation.h - what a rank has allocated, held against P4 ------------===//

#ifndef DUALPIPE_RUNTIME_EXECUTOR_ALLOCATION_H
#define DUALPIPE_RUNTIME_EXECUTOR_ALLOCATION_H

#include "Executor.h"

#include "dualpipe/Runtime/RankMemory.h"

#include <cstdint>
#include <span>
#include <vector>

namespace dualpipe::runtime {

/// Bytes that a rank has allocated, read off the buffers themselves.
struct Allocation {
  uint64_t weights = 0;
  uint64_t gradients = 0;
  uint64_t optimizerState = 0;
  uint64_t workspace = 0;
  uint64_t arena = 0;            ///< all slots
  std::vector<uint64_t> classes; ///< of it, those of a slot class
};

Allocation measureAllocation(const Executor &executor, std::span<const StageCopy> copies);

/// P4: `allocated` is what `predicted` says, byte for byte and class for class.
Status checkAllocation(const Allocation &allocated, const RankMemory &predicted);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_EXECUTOR_ALLOCATION_H
