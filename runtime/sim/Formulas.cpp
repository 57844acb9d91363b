//===- Formulas.cpp - published bubbles, inside their domains ---------------===//
//
// The formulas of the DualPipe README and the Zero Bubble paper, which say what the
// worst rank idles and holds. They are for stages of equal times and free transfers;
// what else they need is written at each.
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Runtime/Prediction.h"

#include <algorithm>

namespace dualpipe::runtime {

namespace {

/// The times of the literature: B is the full backward.
struct Times {
  Ticks fwd, input, weight, bwd, fused;
};

struct Size {
  int64_t ranks, stages, microbatches;
};

using Formula = std::optional<PublishedFormula>;

} // namespace

static bool isUniform(const Costs &costs, uint32_t numStages) {
  for (OpKind kind :
       {OpKind::Forward, OpKind::Backward, OpKind::BackwardInput, OpKind::BackwardWeight})
    for (uint32_t stage = 1; stage < numStages; ++stage)
      if (costs.get(kind, stage) != costs.get(kind, 0))
        return false;
  return true;
}

static Times getTimes(const Costs &costs) {
  Times times{costs.get(OpKind::Forward, 0), costs.get(OpKind::BackwardInput, 0),
              costs.get(OpKind::BackwardWeight, 0), costs.get(OpKind::Backward, 0), 0};
  times.fused = costs.fused.value_or(times.fwd + times.bwd);
  return times;
}

static Formula find1F1B(const Times &times, const Size &size) {
  if (size.stages != size.ranks || size.microbatches < size.ranks)
    return std::nullopt;
  return PublishedFormula{"1F1B", "(PP - 1)(F + B)", (size.ranks - 1) * (times.fwd + times.bwd),
                          "PP", uint32_t(size.stages)};
}

/// With a longer weight half than input half the gaps cannot be filled.
static Formula findZbH1(const Times &times, const Size &size) {
  const bool inside = times.weight <= times.fwd && times.weight <= times.input;
  if (size.stages != size.ranks || size.microbatches < size.ranks || !inside)
    return std::nullopt;
  const Ticks bubble = (size.ranks - 1) * (times.fwd + times.input - times.weight);
  return PublishedFormula{"ZB1P", "(PP - 1)(F + B - 2W)", bubble, "PP", uint32_t(size.stages)};
}

/// Exact for F = I >= W, where a full backward is its halves.
static Formula findDualPipe(const char *name, const Times &times, const Size &size) {
  const bool inside = times.fwd == times.input && times.weight <= times.fwd &&
                      times.bwd == times.input + times.weight &&
                      times.fused <= times.fwd + times.bwd && times.fused >= times.bwd;
  if (!inside)
    return std::nullopt;
  const Ticks bubble = (size.stages / 2 - 1) * (times.fused + times.bwd - 3 * times.weight);
  return PublishedFormula{name, "(PP/2 - 1)(F&B + B - 3W)", bubble, "PP + 1",
                          uint32_t(size.stages) + 1};
}

std::optional<PublishedFormula> findFormula(const program::SharedInfo &shared,
                                            const SimulationCosts &costs) {
  if (!costs.isFree() || !costs.components.empty() || !costs.pairs.empty() || !shared.training ||
      costs.pairStart != PairStart::Joint || costs.hasOffsets() ||
      !isUniform(costs.ops, shared.numStages))
    return std::nullopt;
  const Times times = getTimes(costs.ops);
  const Size size{shared.numRanks, shared.numStages, shared.numMicrobatches};
  if (shared.schedule == "one_f_one_b")
    return find1F1B(times, size);
  if (shared.schedule == "zb_h1")
    return findZbH1(times, size);
  if (shared.schedule == "dualpipe" && size.stages == size.ranks)
    return findDualPipe("DualPipe", times, size);
  if (shared.schedule == "dualpipev" && size.stages == 2 * size.ranks)
    return findDualPipe("DualPipeV", times, size);
  return std::nullopt;
}

} // namespace dualpipe::runtime
