//===- Trace.h - a step on a time line, for Perfetto and chrome://tracing ---===//
//
// The Trace Event Format of Chrome, as JSON ("Trace Event Format", Google, 2016), which
// ui.perfetto.dev reads too: a process per rank, a track per stream, arrows from sends to receives,
// and counters of what the slots hold. The same for a simulated and for a measured step.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_TRACE_H
#define DUALPIPE_RUNTIME_TRACE_H

#include "dualpipe/Program/Memory.h"
#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Simulation.h"

#include <string>
#include <utility>
#include <vector>

namespace dualpipe::runtime {

/// How times become a trace.
struct TraceOptions {
  /// The viewers' unit is the microsecond. 1000 shows a unit of the costs as a millisecond, or a
  /// tick of a nanosecond as what it is.
  Ticks ticksPerMicrosecond = 1000;
  /// Bytes of slots: where it is set, a counter of bytes stands beside that of slots.
  program::SlotSize slotSize;
  /// What the trace says about itself, beside schedule and sizes: ("times", "predicted").
  std::vector<std::pair<std::string, std::string>> notes;
};

/// The trace of one step, with a newline at the end. `times` has an entry for each of
/// `program.ranks` (which may be some of all), and in it one for each command. Records and what
/// took no time without moving anything (waits, loads) are left out. Events are sorted by time.
///
/// Commands of one stream that overlap without one lying inside the other (transfers that follow
/// each other closely, the members of a fused pair) are on further tracks of that stream:
/// the format has a stack per track.
std::string printTrace(const program::Program &program,
                       const std::vector<std::vector<CommandTime>> &times,
                       const TraceOptions &options = {});

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_TRACE_H
