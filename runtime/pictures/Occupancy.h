//===- Occupancy.h - what a rank holds, over time ---------------------------===//

#ifndef DUALPIPE_RUNTIME_PICTURES_OCCUPANCY_H
#define DUALPIPE_RUNTIME_PICTURES_OCCUPANCY_H

#include "dualpipe/Program/Memory.h"
#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Simulation.h"

#include <array>
#include <cstdint>
#include <vector>

namespace dualpipe::runtime {

/// What a rank holds from a moment on.
struct Occupancy {
  Ticks time = 0;
  /// Micro-batches between the start of their forward and the end of their `bwd` or `bwd_weight`.
  uint32_t activations = 0;
  std::array<uint32_t, program::kNumSlotKinds> slots{}; ///< that hold a value
  std::array<uint64_t, program::kNumSlotKinds> bytes{}; ///< of these; 0 without sizes
};

/// The moments at which it changes, in order, each once. A slot holds a value from the start of
/// what writes it to the end of what reads it last. Where one thing ends as another starts, the
/// first is gone.
std::vector<Occupancy> measureOccupancy(const program::RankProgram &rank,
                                        const program::SharedInfo &shared,
                                        const std::vector<CommandTime> &times,
                                        const program::SlotSize &size = {});

/// From the first start to the last end of a command, or of the members of a pair or a group.
CommandTime getUnitTime(const program::RankProgram &rank, const std::vector<CommandTime> &times,
                        uint32_t unit);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_PICTURES_OCCUPANCY_H
