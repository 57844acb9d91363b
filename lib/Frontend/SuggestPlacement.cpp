//===- SuggestPlacement.cpp - which placement would put a stage on a rank --===//

#include "SuggestPlacement.h"

#include <string>

using namespace dualpipe;
using namespace dualpipe::frontend;

/// The text of the placement, with `P` for the number of ranks; empty where none fits.
static std::string findPlacement(uint32_t stage, uint32_t numStages, uint32_t rank,
                                 uint32_t numRanks, const std::string &P) {
  bool fitsLine = numStages <= numRanks;
  bool fitsV = numStages <= 2 * uint64_t(numRanks);
  if (fitsLine && stage == rank)
    return "s";
  if (fitsLine && numRanks - 1 - stage == rank)
    return P + " - 1 - s";
  if (stage % numRanks == rank)
    return "s mod " + P;
  if (fitsV && stage >= numRanks && 2 * uint64_t(numRanks) - 1 - stage == rank)
    return "if s < " + P + " then s else 2 * " + P + " - 1 - s";
  return "";
}

void frontend::suggestPlacement(Diagnostic &diagnostic, const World &world,
                                const PipelineInfo &pipeline, uint32_t stage, uint32_t rank) {
  std::string placement =
      findPlacement(stage, pipeline.numStages, rank, world.numRanks, world.ranksName.str());
  if (!placement.empty())
    diagnostic.note(pipeline.placementLoc, "'place s -> " + placement + "' would put stage " +
                                               std::to_string(stage) + " on rank " +
                                               std::to_string(rank));
}
