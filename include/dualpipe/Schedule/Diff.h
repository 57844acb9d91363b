//===- Diff.h - how two schedules differ ------------------------------------===//

#ifndef DUALPIPE_SCHEDULE_DIFF_H
#define DUALPIPE_SCHEDULE_DIFF_H

#include "dualpipe/Schedule/Schedule.h"

#include <string>
#include <vector>

namespace dualpipe {

/// Compares what two schedules compute, and in which order. Stages and micro-batches are
/// compared by number; names, phases, parameters and places are not compared, and
/// transfers only where both schedules place them themselves.
/// \returns a line for each difference (a bounded number for each kind), which calls the
/// schedules 'a' and 'b':
///   sizes      ranks, stages, micro-batches, training
///   placement  a stage stands on another rank for some micro-batches
///   work       a stage and micro-batch has another kind of backward, is fused or is not
///   order      the first place at which a rank does something else
///   transfers  the same for what the schedules send and receive themselves
/// Empty where there is none.
std::vector<std::string> diffSchedules(const Schedule &a, const Schedule &b);

} // namespace dualpipe

#endif // DUALPIPE_SCHEDULE_DIFF_H
