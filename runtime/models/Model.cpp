//===- Model.cpp - what a model says of itself, and calling it ---------------===//

#include "dualpipe/Runtime/Model.h"
#include "dualpipe/Runtime/Numerics.h"

#include <fmt/format.h>

#include <algorithm>

namespace dualpipe::runtime {

using program::SlotKind;

/// More than the memory of any machine, in bytes: sums and products of what a model says stay far
/// from an overflow.
static constexpr size_t kMaxBytes = size_t(1) << 46;
static constexpr uint32_t kMaxParams = 1u << 20;

const char *describeKind(SlotKind kind) {
  switch (kind) {
  case SlotKind::Input:
    return "input";
  case SlotKind::Output:
    return "output";
  case SlotKind::GradOutput:
    return "output gradient";
  case SlotKind::GradInput:
    return "input gradient";
  case SlotKind::Saved:
    return "saved context";
  case SlotKind::WeightContext:
    return "weight context";
  case SlotKind::Labels:
    return "labels";
  }
  return "unknown tensor";
}

Result<size_t> Model::checkSpec(uint32_t stage, const std::string &what,
                                const dp_tensor_spec &spec) const {
  auto complain = [&](const std::string &problem) {
    return Status::failure(
        fmt::format("model '{}': {} of stage {} {}", name, what, stage, problem));
  };
  if (spec.ndim < 0 || spec.ndim > DP_MAX_DIMS)
    return complain(fmt::format("has {} dimensions, expected at most {}", spec.ndim, DP_MAX_DIMS));
  size_t bytes = getElementBytes(spec.dtype);
  if (bytes == 0)
    return complain("has a type whose elements are not whole bytes");
  for (int32_t i = 0; i < spec.ndim; ++i) {
    if (spec.shape[i] < 0)
      return complain(fmt::format("has a negative extent, {}", spec.shape[i]));
    if (__builtin_mul_overflow(bytes, size_t(spec.shape[i]), &bytes) || bytes > kMaxBytes)
      return complain("is larger than memory can be");
  }
  return bytes;
}

Status Model::readStage(uint32_t stage) {
  Stage &info = stages[stage];
  for (unsigned kind = 0; kind < program::kNumSlotKinds; ++kind) {
    dp_tensor_spec &spec = info.specs[kind];
    spec = {};
    if (api->tensor(model.get(), stage, dp_tensor_kind(kind), &spec) != DP_OK)
      return Status::failure(fmt::format("model '{}': cannot describe the {} of stage {}", name,
                                         describeKind(SlotKind(kind)), stage));
    info.bytes[kind] = 0;
    if (!spec.present)
      continue;
    Result<size_t> bytes =
        checkSpec(stage, fmt::format("the {}", describeKind(SlotKind(kind))), spec);
    if (!bytes)
      return bytes.getStatus();
    info.bytes[kind] = *bytes;
  }
  if (Status status = readParams(stage); !status)
    return status;
  info.workspace = api->workspace_size(model.get(), stage);
  if (info.workspace > kMaxBytes)
    return Status::failure(fmt::format("model '{}': the workspace of stage {}, {} bytes, is larger "
                                       "than memory can be",
                                       name, stage, info.workspace));
  return Status::success();
}

Status Model::readParams(uint32_t stage) {
  Stage &info = stages[stage];
  const uint32_t numParams = api->num_params(model.get(), stage);
  if (numParams > kMaxParams)
    return Status::failure(fmt::format("model '{}': stage {} has {} parameters, expected at most "
                                       "{}",
                                       name, stage, numParams, kMaxParams));
  info.params.resize(numParams);
  size_t total = 0;
  for (uint32_t index = 0; index < info.params.size(); ++index) {
    info.params[index] = {};
    if (api->param(model.get(), stage, index, &info.params[index]) != DP_OK)
      return Status::failure(
          fmt::format("model '{}': cannot describe parameter {} of stage {}", name, index, stage));
    Result<size_t> bytes = checkSpec(stage, fmt::format("parameter {}", index), info.params[index]);
    if (!bytes)
      return bytes.getStatus();
    total += alignTensor(*bytes);
    if (total > kMaxBytes)
      return Status::failure(fmt::format("model '{}': the parameters of stage {} are together "
                                         "larger than memory can be",
                                         name, stage));
  }
  return Status::success();
}

Status Model::readStages(uint32_t numStages) {
  contract.struct_size = sizeof contract;
  if (api->contract(model.get(), &contract) != DP_OK)
    return Status::failure(fmt::format("model '{}': cannot state its contract", name));
  stages.resize(numStages);
  for (uint32_t stage = 0; stage < numStages; ++stage)
    if (Status status = readStage(stage); !status)
      return status;
  return Status::success();
}

size_t Model::getSlotBytes(const program::Contract &programContract, SlotKind kind,
                           uint32_t sizeGroup) const {
  size_t bytes = 0;
  for (uint32_t stage = 0; stage < getNumStages(); ++stage) {
    const auto &groups = programContract.sizeGroup;
    uint32_t group = stage < groups.size() ? groups[stage] : 0;
    if (group == sizeGroup)
      bytes = std::max(bytes, getBytes(stage, kind));
  }
  return bytes;
}

size_t Model::getMaxWorkspaceBytes() const {
  size_t bytes = 0;
  for (const Stage &stage : stages)
    bytes = std::max(bytes, stage.workspace);
  return alignTensor(bytes);
}

Status Model::checkContract(const program::Contract &compiled) const {
  if (contract.num_components != compiled.numComponents)
    return Status::failure(fmt::format(
        "model '{}' has {} components per stage, the program was compiled for {}; compile the "
        "schedule with the contract of the model",
        name, contract.num_components, compiled.numComponents));
  struct {
    const char *function;
    uint32_t reads, kept;
  } halves[] = {
      {"backward", contract.backward_reads, compiled.backwardReads},
      {"backward_input", contract.backward_input_reads, compiled.backwardInputReads},
      {"backward_weight", contract.backward_weight_reads, compiled.backwardWeightReads},
  };
  for (const auto &half : halves)
    for (unsigned kind = 0; kind < program::kNumSlotKinds; ++kind)
      if ((half.reads & ~half.kept) >> kind & 1)
        return Status::failure(fmt::format(
            "model '{}' reads the {} in {}, which the program does not keep until then; compile "
            "the schedule with the contract of the model",
            name, describeKind(SlotKind(kind)), half.function));
  return Status::success();
}

Status Model::checkHandOvers(const program::PipelineInfo &pipeline) const {
  for (uint32_t i = 0; i + 1 < pipeline.numStages; ++i) {
    uint32_t from = pipeline.firstStage + i, to = from + 1;
    size_t out = getBytes(from, SlotKind::Output), in = getBytes(to, SlotKind::Input);
    if (out != in)
      return Status::failure(fmt::format("model '{}': stage {} puts out {} bytes, stage {} takes "
                                         "in {}; both must agree",
                                         name, from, out, to, in));
    size_t back = getBytes(to, SlotKind::GradInput), taken = getBytes(from, SlotKind::GradOutput);
    if (back != taken)
      return Status::failure(fmt::format("model '{}': stage {} hands back a gradient of {} bytes, "
                                         "stage {} takes one of {}; both must agree",
                                         name, to, back, from, taken));
  }
  return Status::success();
}

Status Model::checkProgram(const program::SharedInfo &shared) const {
  if (shared.numStages != getNumStages())
    return Status::failure(fmt::format("model '{}' was split into {} stages, the program has {}",
                                       name, getNumStages(), shared.numStages));
  // The scale of the loss depends on it.
  if (shared.numMicrobatches != numMicrobatches)
    return Status::failure(fmt::format("model '{}' was made for {} micro-batches, the program has "
                                       "{}",
                                       name, numMicrobatches, shared.numMicrobatches));
  if (shared.training)
    if (Status status = checkContract(shared.contract); !status)
      return status;
  for (const program::PipelineInfo &pipeline : shared.pipelines)
    if (Status status = checkHandOvers(pipeline); !status)
      return status;
  return Status::success();
}

Model::Function Model::getFunction(program::Function function) const {
  switch (function) {
  case program::Function::LoadInput:
    return api->load_input;
  case program::Function::LoadLabels:
    return api->load_labels;
  case program::Function::Forward:
    return api->forward;
  case program::Function::Backward:
    return api->backward;
  case program::Function::BackwardInput:
    return api->backward_input;
  case program::Function::BackwardWeight:
    return api->backward_weight;
  }
  return nullptr;
}

Status Model::finish(dp_status status, const char *function, const StageCall &call) const {
  if (status == DP_OK)
    return Status::success();
  const char *reason = call.getMessage();
  return Status::failure(fmt::format("model '{}': {} of stage {}, micro-batch {} failed: {}", name,
                                     function, call.getStage(), call.getMicrobatch(),
                                     reason[0] ? reason : "no reason given"));
}

Status Model::run(program::Function function, StageCall &call) const {
  dp_status status = getFunction(function)(model.get(), &call.get());
  return status == DP_OK ? Status::success() : finish(status, program::getName(function), call);
}

Status Model::runFused(StageCall *const *calls, const program::Function *functions,
                       uint32_t numCalls) const {
  std::vector<dp_call *> members(numCalls);
  std::vector<Function> entries(numCalls);
  for (uint32_t i = 0; i < numCalls; ++i) {
    members[i] = &calls[i]->get();
    entries[i] = getFunction(functions[i]);
  }
  dp_status status = api->fused(model.get(), members.data(), entries.data(), numCalls);
  if (status == DP_OK)
    return Status::success();
  // The member that has something to say; the first where none has.
  const StageCall *speaker = calls[0];
  for (uint32_t i = numCalls; i-- > 0;)
    if (calls[i]->getMessage()[0])
      speaker = calls[i];
  return finish(status, "a fused group", *speaker);
}

Status Model::finishStage(dp_status status, const char *function, const StageCall &call) const {
  if (status == DP_OK)
    return Status::success();
  const char *reason = call.getMessage();
  return Status::failure(fmt::format("model '{}': {} of stage {} failed: {}", name, function,
                                     call.getStage(), reason[0] ? reason : "no reason given"));
}

Status Model::runInit(StageCall &call) const {
  return finishStage(api->init(model.get(), &call.get()), "init", call);
}

Status Model::runStep(StageCall &call) const {
  return finishStage(api->step(model.get(), &call.get()), "step", call);
}

} // namespace dualpipe::runtime
