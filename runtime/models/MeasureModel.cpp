//===- MeasureModel.cpp - the sizes of a model that is at hand --------------===//

#include "dualpipe/Runtime/MeasureModel.h"
#include "dualpipe/Runtime/Numerics.h"

namespace dualpipe::runtime {

static uint64_t getBytes(const dp_tensor_spec &spec) {
  uint64_t bytes = getElementBytes(spec.dtype);
  for (int32_t i = 0; i != spec.ndim; ++i)
    bytes *= uint64_t(spec.shape[i]); // `Model` has checked that this fits
  return bytes;
}

static StageSizes measureStage(const Model &model, uint32_t stage, const Optimizer &optimizer) {
  StageSizes sizes;
  for (unsigned kind = 0; kind != program::kNumSlotKinds; ++kind)
    sizes.tensors[kind] = alignTensor(model.getBytes(stage, program::SlotKind(kind)));
  for (uint32_t i = 0; i != model.getNumParams(stage); ++i)
    sizes.weights += alignTensor(getBytes(model.getParamSpec(stage, i)));
  sizes.gradients = sizes.weights;
  sizes.optimizerState = sizes.weights * optimizer.getStateFactor();
  sizes.workspace = alignTensor(model.getWorkspaceBytes(stage));
  return sizes;
}

ModelSizes measureModel(const Model &model, const Optimizer &optimizer) {
  ModelSizes sizes;
  sizes.fused = model.hasFused();
  for (uint32_t stage = 0; stage != model.getNumStages(); ++stage)
    sizes.stages.push_back(measureStage(model, stage, optimizer));
  return sizes;
}

} // namespace dualpipe::runtime
