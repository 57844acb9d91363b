//===- RunBook.cpp - what a run shows of its ranks --------------------------===//

#include "RunBook.h"

#include <algorithm>

namespace dualpipe::runtime {

using program::Function;

/// Forwards of a pair take their memory before its backwards give any back. Further
/// components of a stage belong to the op of the first.
void HeldWork::count(const program::Program &program, uint32_t rank, uint32_t first,
                     uint32_t numLaunches, RankTimes &times) {
  const program::RankProgram &own = program.ranks[rank];
  const auto getLaunch = [&](uint32_t i) -> const program::Launch & {
    return own.launches[own.commands[first + i].arg];
  };
  for (uint32_t i = 0; i != numLaunches; ++i) {
    const Function function = getLaunch(i).function;
    if (getLaunch(i).component != 0)
      continue;
    activations += function == Function::Forward;
    pendingWeights += function == Function::BackwardInput;
  }
  times.peakActivations = std::max(times.peakActivations, activations);
  times.deepestWeightQueue = std::max(times.deepestWeightQueue, pendingWeights);
  for (uint32_t i = 0; i != numLaunches; ++i) {
    if (getLaunch(i).component != 0)
      continue;
    const Function function = getLaunch(i).function;
    const bool isLast = function == Function::Backward || function == Function::BackwardWeight ||
                        (function == Function::Forward && !program.shared.training);
    activations -= isLast && activations != 0;
    pendingWeights -= function == Function::BackwardWeight && pendingWeights != 0;
  }
}

} // namespace dualpipe::runtime
