//===- StageCopy.cpp - parameters, gradients and state of a copy; its calls -===//

#include "dualpipe/Runtime/Model.h"
#include "dualpipe/Runtime/Numerics.h"

#include <fmt/format.h>

namespace dualpipe::runtime {
namespace {

DLTensor makeTensor(const dp_tensor_spec &spec, DLDevice place, void *data) {
  DLTensor tensor = {};
  tensor.data = data;
  tensor.device = place;
  tensor.ndim = spec.ndim;
  tensor.dtype = spec.dtype;
  // DLPack has no const; nobody writes a shape.
  tensor.shape = const_cast<int64_t *>(spec.shape);
  return tensor;
}

size_t getFlatBytes(const std::vector<dp_tensor_spec> &specs) {
  size_t bytes = 0;
  for (const dp_tensor_spec &spec : specs)
    bytes += alignTensor(getNumBytes(makeTensor(spec, {kDLCPU, 0}, nullptr)));
  return bytes;
}

/// The flags of a launch as those of stage.h.
uint32_t translateFlags(uint8_t launchFlags) {
  uint32_t flags = 0;
  if (launchFlags & program::kAccumulate)
    flags |= DP_ACCUMULATE;
  if (launchFlags & program::kFirstStage)
    flags |= DP_FIRST_STAGE;
  if (launchFlags & program::kLastStage)
    flags |= DP_LAST_STAGE;
  return flags;
}

/// Tensors of `specs`, one after the other from `data` on.
void appendTensors(const std::vector<dp_tensor_spec> &specs, DLDevice place, char *data,
                   std::vector<DLTensor> &tensors) {
  for (const dp_tensor_spec &spec : specs) {
    tensors.push_back(makeTensor(spec, place, data));
    data += alignTensor(getNumBytes(tensors.back()));
  }
}

} // namespace

StageCopy::StageCopy(const Model &model, uint32_t rank, uint32_t stage) : rank(rank), stage(stage) {
  for (uint32_t i = 0; i < model.getNumParams(stage); ++i)
    specs.push_back(model.getParamSpec(stage, i));
  flatBytes = getFlatBytes(specs);
}

/// Without `training` there are no gradients and no state.
void StageCopy::makeTensors(DLDevice place, void *paramData, void *gradData, void *stateData,
                            bool training, uint32_t stateFactor) {
  appendTensors(specs, place, static_cast<char *>(paramData), paramTensors);
  if (training)
    appendTensors(specs, place, static_cast<char *>(gradData), gradTensors);
  for (uint32_t part = 0; part < stateFactor; ++part)
    appendTensors(specs, place, static_cast<char *>(stateData) + part * flatBytes, stateTensors);
  for (DLTensor &tensor : paramTensors)
    paramPointers.push_back(&tensor);
  for (DLTensor &tensor : gradTensors)
    gradPointers.push_back(&tensor);
}

Result<StageCopy> StageCopy::create(const Model &model, uint32_t rank, uint32_t stage,
                                    bool training, uint32_t stateFactor) {
  StageCopy copy(model, rank, stage);
  if (!training)
    stateFactor = 0;
  copy.params = AlignedBuffer(copy.flatBytes);
  copy.grads = AlignedBuffer(training ? copy.flatBytes : 0);
  copy.state = AlignedBuffer(copy.flatBytes * stateFactor);
  if (!copy.params.ok() || !copy.grads.ok() || !copy.state.ok())
    return Status::failure(fmt::format(
        "rank {} has not enough memory for the parameters of stage {}: {} bytes, {} times", rank,
        stage, copy.flatBytes, (training ? 2 : 1) + stateFactor));
  copy.makeTensors({kDLCPU, 0}, copy.params.data(), copy.grads.data(), copy.state.data(), training,
                   stateFactor);
  return copy;
}

Result<StageCopy> StageCopy::create(const Model &model, uint32_t rank, uint32_t stage,
                                    bool training, uint32_t stateFactor, Memory &memory) {
  StageCopy copy(model, rank, stage);
  if (!training)
    stateFactor = 0;
  const uint32_t parts = (training ? 2 : 1) + stateFactor;
  Result<void *> data = memory.allocate(copy.flatBytes * parts);
  if (!data.ok())
    return data.getStatus();
  auto part = [&](uint32_t number) {
    return number < parts && *data ? static_cast<char *>(*data) + number * copy.flatBytes : nullptr;
  };
  copy.makeTensors(memory.getPlace(), part(0), part(1), part(2), training, stateFactor);
  return copy;
}

Status StageCopy::upload(Memory &memory, const StageCopy &host) {
  if (flatBytes == 0)
    return Status::success();
  return memory.upload(paramTensors[0].data, host.params.data(), flatBytes);
}

Status StageCopy::download(Memory &memory, StageCopy &host) const {
  if (flatBytes == 0)
    return Status::success();
  Status status = memory.download(host.params.data(), paramTensors[0].data, flatBytes);
  if (!status.ok() || gradTensors.empty())
    return status;
  return memory.download(host.grads.data(), gradTensors[0].data, flatBytes);
}

Status StageCopy::initialize(const Model &model, StageCall &call) {
  call.begin(*this, 0, 0, 0, hasGradients());
  return model.runInit(call);
}

Status StageCopy::initialize(const Model &model, uint64_t seed) {
  AlignedBuffer workspace(model.getWorkspaceBytes(stage));
  if (!workspace.ok())
    return Status::failure(fmt::format("rank {} has not enough memory for the workspace of stage "
                                       "{}: {} bytes",
                                       rank, stage, workspace.size()));
  dp_step_state state = {0, seed, 0.0};
  StageCall call(model, state, workspace.data(), workspace.size());
  return initialize(model, call);
}

StageCall::StageCall(const Model &model, const dp_step_state &stepState, void *workspace,
                     size_t workspaceBytes, const CallPlace &place)
    : model(&model) {
  call.struct_size = sizeof call;
  call.loss_scale = model.getNumMicrobatches() ? 1.0 / model.getNumMicrobatches() : 1.0;
  call.device = place.device;
  call.stream = place.stream;
  call.runtime = place.runtime;
  call.step_state = &stepState;
  call.workspace = workspace;
  call.workspace_size = workspaceBytes;
  call.message = message;
  call.message_size = sizeof message;
  message[0] = '\0';
}

void StageCall::begin(StageCopy &copy, uint32_t microbatch, uint32_t component, uint8_t launchFlags,
                      bool training) {
  call.stage = copy.getStage();
  call.microbatch = microbatch;
  call.component = component;
  call.flags = translateFlags(launchFlags) | (training ? 0u : uint32_t(DP_FORWARD_ONLY));
  call.num_params = copy.getNumParams();
  call.params = copy.getParamPointers();
  call.grads = copy.getGradPointers();
  for (DLTensor *&tensor : call.tensors)
    tensor = nullptr;
  call.loss = nullptr;
  message[0] = '\0';
}

void StageCall::bind(program::SlotKind kind, void *data) {
  const dp_tensor_spec &spec = model->getSpec(call.stage, kind);
  if (!spec.present)
    return;
  tensors[unsigned(kind)] = makeTensor(spec, call.device, data);
  call.tensors[unsigned(kind)] = &tensors[unsigned(kind)];
}

} // namespace dualpipe::runtime
