//===- SuggestPlacement.h - which placement would put a stage on a rank ----===//

#ifndef DUALPIPE_LIB_FRONTEND_SUGGESTPLACEMENT_H
#define DUALPIPE_LIB_FRONTEND_SUGGESTPLACEMENT_H

#include "Evaluator.h"

namespace dualpipe::frontend {

/// Adds a note with the first of the usual placements (Placement.h) that puts
/// stage `stage` of `pipeline` on `rank`; none where none of them does.
void suggestPlacement(Diagnostic &diagnostic, const World &world, const PipelineInfo &pipeline,
                      uint32_t stage, uint32_t rank);

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_SUGGESTPLACEMENT_H
