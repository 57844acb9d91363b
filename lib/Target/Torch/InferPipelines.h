//===- InferPipelines.h - which pipelines a schedule file runs --------------===//

#ifndef DUALPIPE_LIB_TARGET_TORCH_INFERPIPELINES_H
#define DUALPIPE_LIB_TARGET_TORCH_INFERPIPELINES_H

#include "Actions.h"
#include "dualpipe/Schedule/Schedule.h"

namespace dualpipe::torch {

/// Fills the pipelines of `schedule` and the numbers of stages and micro-batches from
/// where the forwards stand. Stages that a micro-batch visits together are one chain;
/// runs of micro-batches that visit a chain on the same ranks are one pipeline, so a
/// chain of two placements is a schedule in two directions. Says what it found in
/// remarks. A missing forward is no error here as long as a micro-batch beside it says
/// where the stage is.
/// \returns whether there was no error.
[[nodiscard]] bool inferPipelines(const Actions &actions, Schedule &schedule, DiagnosticSink &sink);

} // namespace dualpipe::torch

#endif // DUALPIPE_LIB_TARGET_TORCH_INFERPIPELINES_H
