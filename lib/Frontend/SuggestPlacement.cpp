//===- SuggestPlacement.cpp - which placement would put a stage on a rank --===//

#include "SuggestPlacement.h"
#include "dualpipe/Schedule/Placement.h"

#include <string>

using namespace dualpipe;
using namespace dualpipe::frontend;

void frontend::suggestPlacement(Diagnostic &diagnostic, const World &world,
                                const PipelineInfo &pipeline, uint32_t stage, uint32_t rank) {
  for (PlacementShape shape : kPlacementShapes) {
    bool holdsAll = getRank(shape, pipeline.numStages - 1, world.numRanks).has_value();
    if (!holdsAll || getRank(shape, stage, world.numRanks) != rank)
      continue;
    diagnostic.note(pipeline.placementLoc, "'place s -> " +
                                               spell(shape, "s", world.ranksName.str()) +
                                               "' would put stage " + std::to_string(stage) +
                                               " on rank " + std::to_string(rank));
    return;
  }
}
