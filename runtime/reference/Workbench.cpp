//===- Workbench.cpp - what the calls of a check compute on ------------------===//

#include "runtime/reference/Workbench.h"

#include <fmt/format.h>

#include <vector>

namespace dualpipe::runtime {

Status Workbench::prepare(uint32_t numMicrobatches) {
  Result<void *> stateMemory = getMemory().allocate(sizeof(dp_step_state));
  if (!stateMemory.ok())
    return stateMemory.getStatus();
  Result<void *> lossMemory = getMemory().allocate(numMicrobatches * sizeof(double));
  if (!lossMemory.ok())
    return lossMemory.getStatus();
  state = static_cast<dp_step_state *>(*stateMemory);
  losses = static_cast<double *>(*lossMemory);
  numLosses = numMicrobatches;
  return Status::success();
}

/// A micro-batch without a loss has 0.
Status Workbench::beginStep(const dp_step_state &begun) {
  const std::vector<double> none(numLosses, 0.0);
  if (Status status = getMemory().upload(losses, none.data(), numLosses * sizeof(double));
      !status.ok())
    return status;
  return getMemory().upload(state, &begun, sizeof begun);
}

Status Workbench::readLosses(double *to) {
  return getMemory().download(to, losses, numLosses * sizeof(double));
}

Result<std::unique_ptr<StageCall>> Workbench::makeCall() {
  const size_t bytes = model.getMaxWorkspaceBytes();
  Result<void *> workspace = getMemory().allocate(bytes);
  if (!workspace.ok())
    return Status::failure(fmt::format("a workspace of the check: {}", workspace.message()));
  return std::make_unique<StageCall>(model, *state, *workspace, bytes, place.calls);
}

} // namespace dualpipe::runtime
