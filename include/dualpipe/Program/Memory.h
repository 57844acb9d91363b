//===- Memory.h - the slots that a program uses -----------------------------===//
//
// How many slots of each class hold values at once, counted on the commands of a
// finished program. The compiler's own liveness has no part in it.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_PROGRAM_MEMORY_H
#define DUALPIPE_PROGRAM_MEMORY_H

#include "dualpipe/Program/Program.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace dualpipe::program {

/// Bytes that a slot of a class takes in the arena, alignment included.
using SlotSize = std::function<uint64_t(SlotKind kind, uint32_t sizeGroup)>;

/// What a slot holds: from the unit that writes it to the last unit that reads it. A unit is a
/// command, or a pair or a group as a whole, and is named by its first command.
struct Lifetime {
  uint32_t slot;
  uint32_t begin;
  uint32_t end;
};

/// The lifetimes of a rank's values, in the order of their writes. For a program that satisfies P3
/// and P2. Linear in the commands.
std::vector<Lifetime> findLifetimes(const RankProgram &rank, const SharedInfo &shared);

/// One class of slots. A slot holds a value from the command that writes it up to the last one
/// that reads it; a pair or a group is one point of time.
struct ClassUse {
  SlotClass slotClass;
  uint32_t peak = 0;            ///< slots that hold values at once, at most
  uint32_t peakCommand = kNone; ///< where that is first reached
  uint64_t slotBytes = 0;       ///< one slot
  uint64_t allocatedBytes = 0;  ///< `slotClass.count` slots
  uint64_t peakBytes = 0;       ///< `peak` slots
};

/// The slots of one rank.
struct SlotUse {
  uint32_t rank = 0;
  std::vector<ClassUse> classes; ///< in the order of the program's
  uint64_t arenaBytes = 0;       ///< what the runtime allocates for all slots
  uint64_t liveBytes = 0;        ///< the most that values take at once, over all classes
  uint32_t liveCommand = kNone;  ///< where that is first reached
};

/// Counts on a program that satisfies P3 and P2. Without `size`, a slot has one byte. Linear in
/// the commands.
SlotUse measureSlots(const RankProgram &rank, const SharedInfo &shared, const SlotSize &size = {});

} // namespace dualpipe::program

#endif // DUALPIPE_PROGRAM_MEMORY_H
