//===- ReportParts.h - what reports for people and for programs share -------===//

#ifndef DUALPIPE_RUNTIME_SIM_REPORTPARTS_H
#define DUALPIPE_RUNTIME_SIM_REPORTPARTS_H

#include "dualpipe/Runtime/Prediction.h"

#include <string>
#include <vector>

namespace dualpipe::runtime {

/// A command as the author of the schedule knows it.
struct WaitingOp {
  std::string kind;                     ///< "fwd", "fused bwd", "step", "transfer"
  uint32_t stage = program::kNone;      ///< of a pair, that of its first member
  uint32_t microbatch = program::kNone; ///< kNone for a step or a reduction
};
WaitingOp findWaitingOp(const program::Program &program, CommandRef ref);

/// What the prediction takes for granted; lines for people.
std::string describeAssumptions(const Prediction &prediction);

/// Columns aligned to the right, the last one to the left. The first row is the head.
std::string printTable(const std::vector<std::vector<std::string>> &rows);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_SIM_REPORTPARTS_H
