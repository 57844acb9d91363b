//===- RunBook.h - what a run shows of its ranks ----------------------------===//
//
// The same for a simulated run and a measured one.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_SIM_RUNBOOK_H
#define DUALPIPE_RUNTIME_SIM_RUNBOOK_H

#include "dualpipe/Runtime/Simulation.h"

namespace dualpipe::runtime {

/// A time, and the command whose end it is.
struct Clock {
  Ticks time = 0;
  CommandRef by;

  void raise(const Clock &other) {
    if (other.time > time)
      *this = other;
  }
};

/// What a rank holds for micro-batches.
struct HeldWork {
  uint32_t activations = 0;
  uint32_t pendingWeights = 0;

  /// Takes the launches at commands [first, first + numLaunches), which run together.
  void count(const program::Program &program, uint32_t rank, uint32_t first, uint32_t numLaunches,
             RankTimes &times);
};

inline void addCompute(RankTimes &times, Ticks start, Ticks end, Ticks busy) {
  if (times.busy == 0)
    times.firstStart = start;
  times.lastEnd = times.lastEnd < end ? end : times.lastEnd;
  times.busy += busy;
}

/// Passes on how many commands have been run, each time that a million more have.
class ProgressCounter {
public:
  ProgressCounter(const program::Program &program, const OnProgress &onProgress)
      : onProgress(onProgress) {
    for (const program::RankProgram &rank : program.ranks)
      total += rank.commands.size();
  }
  void add(uint64_t commands) {
    done += commands;
    if (done < next)
      return;
    next = done + kInterval;
    if (onProgress)
      onProgress(done, total);
  }

private:
  static constexpr uint64_t kInterval = 1'000'000;
  const OnProgress &onProgress;
  uint64_t done = 0, total = 0, next = kInterval;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_SIM_RUNBOOK_H
