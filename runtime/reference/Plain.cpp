//===- Plain.cpp - the sum over micro-batches in their order -----------------===//

#include "runtime/reference/Workbench.h"

#include "dualpipe/Runtime/Reference.h"

#include <fmt/format.h>

#include <cstring>

namespace dualpipe::runtime {

using program::Function;
using program::SlotKind;

namespace {

class PlainStep {
public:
  PlainStep(const Model &model, const program::SharedInfo &shared, const TrainingOptions &options,
            const CheckPlace &place)
      : model(model), shared(shared),
        stepState{options.numSteps - 1, options.seed, options.learningRate}, bench(model, place) {}

  Status prepare(const Replay &start);
  Status run();
  /// Reads back what is not on the host.
  Status finish();
  TrainingResult takeResult() { return std::move(result); }

private:
  /// What one stage holds for the micro-batch under way; indexed by SlotKind. Output and GradInput
  /// belong to the neighbours: they are its Input and GradOutput.
  struct Values {
    std::array<void *, program::kNumSlotKinds> tensors{};
  };

  Status allocate();
  Status prepareCopy(const Replay &start, uint32_t stage);
  Status runMicrobatch(const program::PipelineInfo &pipeline, uint32_t microbatch);
  Status callStage(Function function, const program::PipelineInfo &pipeline, uint32_t stage,
                   uint32_t microbatch);
  void bind(SlotKind kind, uint32_t owner, SlotKind place) {
    call->bind(kind, values[owner].tensors[unsigned(place)]);
  }
  void bindTensors(Function function, uint32_t stage, bool first, bool last);

  const Model &model;
  const program::SharedInfo &shared;
  dp_step_state stepState;
  Workbench bench;
  std::unique_ptr<StageCall> call;
  std::vector<Values> values;    // by stage
  std::vector<bool> accumulates; // by stage: whether it already has a gradient
  std::vector<StageCopy> placed; // by stage, on a device: the copies there
  TrainingResult result;
};

Status PlainStep::allocate() {
  for (uint32_t stage = 0; stage < model.getNumStages(); ++stage) {
    Values &mine = values.emplace_back();
    for (SlotKind kind :
         {SlotKind::Input, SlotKind::GradOutput, SlotKind::Saved, SlotKind::Labels}) {
      Result<void *> data = bench.getMemory().allocate(model.getBytes(stage, kind));
      if (!data)
        return Status::failure(
            fmt::format("one micro-batch in all stages of the check: {}", data.message()));
      mine.tensors[unsigned(kind)] = *data;
    }
  }
  Result<std::unique_ptr<StageCall>> made = bench.makeCall();
  if (!made)
    return made.getStatus();
  call = std::move(*made);
  return Status::success();
}

/// The weights of a stage at the start, on the host and where the calls work on them.
Status PlainStep::prepareCopy(const Replay &start, uint32_t stage) {
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
  if (bench.isOnHost())
    return Status::success();
  Result<StageCopy> there =
      StageCopy::create(model, 0, stage, shared.training, 0, bench.getMemory());
  if (!there)
    return there.getStatus();
  placed.push_back(std::move(*there));
  return placed.back().upload(bench.getMemory(), result.copies.back());
}

Status PlainStep::prepare(const Replay &start) {
  if (Status status = bench.prepare(shared.numMicrobatches); !status)
    return status;
  if (Status status = bench.beginStep(stepState); !status)
    return status;
  if (Status status = allocate(); !status)
    return status;
  accumulates.assign(model.getNumStages(), false);
  result.numMicrobatches = shared.numMicrobatches;
  result.losses.assign(shared.numMicrobatches, 0.0);
  for (uint32_t stage = 0; stage < model.getNumStages(); ++stage)
    if (Status status = prepareCopy(start, stage); !status)
      return status;
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

Status PlainStep::finish() {
  for (size_t stage = 0; stage < placed.size(); ++stage)
    if (Status status = placed[stage].download(bench.getMemory(), result.copies[stage]); !status)
      return status;
  return bench.readLosses(result.losses.data());
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
  call->begin(bench.isOnHost() ? result.copies[stage] : placed[stage], microbatch, 0, flags,
              shared.training);
  bindTensors(function, stage, first, last);
  return model.run(function, *call);
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
    call->setLoss(bench.getLoss(call->getMicrobatch()));
}

} // namespace

Result<TrainingResult> runPlain(const Model &model, const program::SharedInfo &shared,
                                const Replay &start, const TrainingOptions &options,
                                const CheckPlace &place) {
  if (options.numSteps == 0 || start.startOfLastStep.size() != start.result.copies.size())
    return Status::failure("the plain sum needs a replay of at least one step");
  PlainStep step(model, shared, options, place);
  if (Status status = step.prepare(start); !status)
    return status;
  if (Status status = step.run(); !status)
    return status;
  if (Status status = step.finish(); !status)
    return status;
  return step.takeResult();
}

} // namespace dualpipe::runtime
