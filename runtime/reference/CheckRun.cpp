//===- CheckRun.cpp - the whole of `--check` ---------------------------------===//

#include "dualpipe/Runtime/Reference.h"

#include <optional>

namespace dualpipe::runtime {

Result<CheckReport> checkRun(const Model &model, const program::Program &program,
                             const Optimizer &optimizer, const TrainingOptions &options,
                             const TrainingResult &run, const CheckPlace &place) {
  Result<Replay> reference = replay(model, program, optimizer, options, place);
  if (!reference)
    return reference.getStatus();
  if (!program.shared.training)
    return compareRuns(run, reference->result, nullptr);
  Result<TrainingResult> plain = runPlain(model, program.shared, *reference, options, place);
  if (!plain)
    return plain.getStatus();
  return compareRuns(run, reference->result, &*plain);
}

} // namespace dualpipe::runtime
