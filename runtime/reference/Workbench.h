//===- Workbench.h - what the calls of a check compute on --------------------===//

#ifndef DUALPIPE_RUNTIME_REFERENCE_WORKBENCH_H
#define DUALPIPE_RUNTIME_REFERENCE_WORKBENCH_H

#include "dualpipe/Runtime/Reference.h"

#include <cstdint>
#include <memory>

namespace dualpipe::runtime {

/// Memory of the host or of a device, with the step state, the losses of a step and the workspaces
/// that calls of a check are given there.
class Workbench {
public:
  Workbench(const Model &model, const CheckPlace &place) : model(model), place(place) {
    if (!this->place.memory)
      this->place.memory = &host;
  }

  /// Room for the losses of so many micro-batches.
  Status prepare(uint32_t numMicrobatches);
  Status beginStep(const dp_step_state &state);
  /// What the step's forwards have written, by micro-batch.
  Status readLosses(double *losses);
  /// Where the forward of a last stage writes its loss.
  double *getLoss(uint32_t microbatch) { return losses + microbatch; }

  Memory &getMemory() { return *place.memory; }
  bool isOnHost() const { return place.memory == &host; }
  /// A call with a workspace of its own.
  Result<std::unique_ptr<StageCall>> makeCall();

private:
  const Model &model;
  HostMemory host;
  CheckPlace place;
  dp_step_state *state = nullptr;
  double *losses = nullptr;
  uint32_t numLosses = 0;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_REFERENCE_WORKBENCH_H
