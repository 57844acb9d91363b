//===- Plain.cpp - the sum over micro-batches in their order -----------------===//

#include "dualpipe/Runtime/Reference.h"

#include <fmt/format.h>

#include <cstring>

namespace dualpipe::runtime {

using program::Function;
using program::SlotKind;

namespace {

class PlainStep {
public:
  PlainStep(const Model &model, const program::SharedInfo &shared, const TrainingOptions &options)
      : model(model), shared(shared),
        stepState{options.numSteps - 1, options.seed, options.learningRate},
        workspace(model.getMaxWorkspaceBytes()),
        call(model, stepState, workspace.data(), workspace.size()) {}

  Status prepare(const Replay &start);
  Status run();
  TrainingResult takeResult() { return std::move(result); }

private:
  /// What one stage holds for the micro-batch under way; indexed by SlotKind. Output and GradInput
  /// belong to the neighbours: they are its Input and GradOutput.
  struct Values {
    std::array<AlignedBuffer, program::kNumSlotKinds> tensors;
  };

  Status allocate();
  Status runMicrobatch(const program::PipelineInfo &pipeline, uint32_t microbatch);
  Status callStage(Function function, const program::PipelineInfo &pipeline, uint32_t stage,
                   uint32_t microbatch);
  void bind(SlotKind kind, uint32_t owner, SlotKind place) {
    call.bind(kind, values[owner].tensors[unsigned(place)].data());
  }
  void bindTensors(Function function, uint32_t stage, bool first, bool last);

  const Model &model;
  const program::SharedInfo &shared;
  dp_step_state stepState;
  AlignedBuffer workspace;
  StageCall call;
  std::vector<Values> values;    // by stage
  std::vector<bool> accumulates; // by stage: whether it already has a gradient
  TrainingResult result;
};

Status PlainStep::allocate() {
  bool ok = workspace.ok();
  for (uint32_t stage = 0; stage < model.getNumStages(); ++stage) {
    Values &mine = values.emplace_back();
    for (SlotKind kind :
         {SlotKind::Input, SlotKind::GradOutput, SlotKind::Saved, SlotKind::Labels}) {
      AlignedBuffer &buffer = mine.tensors[unsigned(kind)];
      buffer = AlignedBuffer(model.getBytes(stage, kind));
      ok &= buffer.ok();
    }
  }
  if (!ok)
    return Status::failure("the check has not enough memory for one micro-batch in all stages");
  return Status::success();
}

Status PlainStep::prepare(const Replay &start) {
  if (Status status = allocate(); !status)
    return status;
  accumulates.assign(model.getNumStages(), false);
  result.numMicrobatches = shared.numMicrobatches;
  result.losses.assign(shared.numMicrobatches, 0.0);
  for (uint32_t stage = 0; stage < model.getNumStages(); ++stage) {
    Result<StageCopy> copy = StageCopy::create(model, 0, stage, shared.training);
    if (!copy)
      return copy.getStatus();
    size_t source = 0;
    while (source < start.result.copies.size() && start.result.copies[source].getStage() != stage)
      ++source;
    if (source == start.result.copies.size())
      return Status::failure(fmt::format("no pipeline has stage {}", stage));
    if (!start.startOfLastStep[source].empty())
      std::memcpy(copy->getParamBuffer().data(), start.startOfLastStep[source].data(),
                  start.startOfLastStep[source].size());
    result.copies.push_back(std::move(*copy));
  }
  return Status::success();
}

Status PlainStep::run() {
  // Pipelines stand in the order of their micro-batches.
  for (const program::PipelineInfo &pipeline : shared.pipelines)
    for (uint32_t i = 0; i < pipeline.numMicrobatches; ++i)
      if (Status status = runMicrobatch(pipeline, pipeline.firstMicrobatch + i); !status)
        return status;
  return Status::success();
}

Status PlainStep::runMicrobatch(const program::PipelineInfo &pipeline, uint32_t microbatch) {
  uint32_t first = pipeline.firstStage, last = first + pipeline.numStages - 1;
  if (Status status = callStage(Function::LoadInput, pipeline, first, microbatch); !status)
    return status;
  if (Status status = callStage(Function::LoadLabels, pipeline, last, microbatch); !status)
    return status;
  for (uint32_t stage = first; stage <= last; ++stage)
    if (Status status = callStage(Function::Forward, pipeline, stage, microbatch); !status)
      return status;
  if (!shared.training)
    return Status::success();
  for (uint32_t stage = last + 1; stage-- > first;) {
    if (Status status = callStage(Function::Backward, pipeline, stage, microbatch); !status)
      return status;
    accumulates[stage] = true;
  }
  return Status::success();
}

Status PlainStep::callStage(Function function, const program::PipelineInfo &pipeline,
                            uint32_t stage, uint32_t microbatch) {
  bool first = stage == pipeline.firstStage;
  bool last = stage + 1 == pipeline.firstStage + pipeline.numStages;
  uint8_t flags = uint8_t((first ? program::kFirstStage : 0) | (last ? program::kLastStage : 0) |
                          (accumulates[stage] ? program::kAccumulate : 0));
  call.begin(result.copies[stage], microbatch, 0, flags, shared.training);
  bindTensors(function, stage, first, last);
  return model.run(function, call);
}

void PlainStep::bindTensors(Function function, uint32_t stage, bool first, bool last) {
  bool backward = function == Function::Backward;
  bool forward = function == Function::Forward;
  uint32_t reads = model.getContract().backward_reads;
  if (function == Function::LoadInput || forward || (backward && reads & DP_READS(DP_INPUT)))
    bind(SlotKind::Input, stage, SlotKind::Input);
  if (function == Function::LoadLabels ||
      (last && (forward || (backward && reads & DP_READS(DP_LABELS)))))
    bind(SlotKind::Labels, stage, SlotKind::Labels);
  if (!last && (forward || (backward && reads & DP_READS(DP_OUTPUT))))
    bind(SlotKind::Output, stage + 1, SlotKind::Input);
  if ((forward || backward) && shared.training)
    bind(SlotKind::Saved, stage, SlotKind::Saved);
  if (backward && !last)
    bind(SlotKind::GradOutput, stage, SlotKind::GradOutput);
  if (backward && !first)
    bind(SlotKind::GradInput, stage - 1, SlotKind::GradOutput);
  if (forward && last)
    call.setLoss(&result.losses[call.getMicrobatch()]);
}

} // namespace

Result<TrainingResult> runPlain(const Model &model, const program::SharedInfo &shared,
                                const Replay &start, const TrainingOptions &options) {
  if (options.numSteps == 0 || start.startOfLastStep.size() != start.result.copies.size())
    return Status::failure("the plain sum needs a replay of at least one step");
  PlainStep step(model, shared, options);
  if (Status status = step.prepare(start); !status)
    return status;
  if (Status status = step.run(); !status)
    return status;
  return step.takeResult();
}

} // namespace dualpipe::runtime
