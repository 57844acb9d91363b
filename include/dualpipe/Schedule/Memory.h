//===- Memory.h - what the ranks hold, and whether they may ------------------===//

#ifndef DUALPIPE_SCHEDULE_MEMORY_H
#define DUALPIPE_SCHEDULE_MEMORY_H

#include "dualpipe/Schedule/Schedule.h"
#include "dualpipe/Support/Diagnostics.h"

#include <cstdint>

namespace dualpipe {

/// The most that a rank holds at once under `Schedule::memory`.
struct MemoryPeak {
  int64_t units = 0;
  /// The first op at which it is reached; the first of its group.
  size_t op = 0;
};

/// Follows the order of `rank`. What a group needs is taken before what it frees is given
/// back. Running forward only, an activation is held for the time of its op alone.
MemoryPeak findMemoryPeak(const Schedule &schedule, uint32_t rank);

/// S5: no rank holds more units at once than its limit. Reports each rank that does,
/// where it first holds the most, with what it holds there.
void checkMemory(const Schedule &schedule, DiagnosticSink &sink);

} // namespace dualpipe

#endif // DUALPIPE_SCHEDULE_MEMORY_H
