//===- StageCopy.cpp - parameters, gradients and state of a copy; its calls -===//

#include "dualpipe/Runtime/Model.h"
#include "dualpipe/Runtime/Numerics.h"

#include <fmt/format.h>

namespace dualpipe::runtime {
namespace {

DLTensor makeTensor(const dp_tensor_spec &spec, void *data) {
  DLTensor tensor = {};
  tensor.data = data;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = spec.ndim;
  tensor.dtype = spec.dtype;
  // DLPack has no const; nobody writes a shape.
  tensor.shape = const_cast<int64_t *>(spec.shape);
  return tensor;
}

size_t getFlatBytes(const std::vector<dp_tensor_spec> &specs) {
  size_t bytes = 0;
  for (const dp_tensor_spec &spec : specs)
    bytes += alignTensor(getNumBytes(makeTensor(spec, nullptr)));
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
void appendTensors(const std::vector<dp_tensor_spec> &specs, char *data,
                   std::vector<DLTensor> &tensors) {
  for (const dp_tensor_spec &spec : specs) {
    tensors.push_back(makeTensor(spec, data));
    data += alignTensor(getNumBytes(tensors.back()));
  }
}

} // namespace

Result<StageCopy> StageCopy::create(const Model &model, uint32_t rank, uint32_t stage,
                                    bool training, uint32_t stateFactor) {
  StageCopy copy;
  copy.rank = rank;
  copy.stage = stage;
  for (uint32_t i = 0; i < model.getNumParams(stage); ++i)
    copy.specs.push_back(model.getParamSpec(stage, i));
  size_t bytes = getFlatBytes(copy.specs);
  if (!training)
    stateFactor = 0;
  copy.params = AlignedBuffer(bytes);
  copy.grads = AlignedBuffer(training ? bytes : 0);
  copy.state = AlignedBuffer(bytes * stateFactor);
  if (!copy.params.ok() || !copy.grads.ok() || !copy.state.ok())
    return Status::failure(fmt::format(
        "rank {} has not enough memory for the parameters of stage {}: {} bytes, {} times", rank,
        stage, bytes, (training ? 2 : 1) + stateFactor));

  appendTensors(copy.specs, static_cast<char *>(copy.params.data()), copy.paramTensors);
  if (training)
    appendTensors(copy.specs, static_cast<char *>(copy.grads.data()), copy.gradTensors);
  for (uint32_t part = 0; part < stateFactor; ++part)
    appendTensors(copy.specs, static_cast<char *>(copy.state.data()) + part * bytes,
                  copy.stateTensors);
  for (DLTensor &tensor : copy.paramTensors)
    copy.paramPointers.push_back(&tensor);
  for (DLTensor &tensor : copy.gradTensors)
    copy.gradPointers.push_back(&tensor);
  return copy;
}

Status StageCopy::initialize(const Model &model, uint64_t seed) {
  AlignedBuffer workspace(model.getWorkspaceBytes(stage));
  if (!workspace.ok())
    return Status::failure(fmt::format("rank {} has not enough memory for the workspace of stage "
                                       "{}: {} bytes",
                                       rank, stage, workspace.size()));
  dp_step_state state = {0, seed, 0.0};
  StageCall call(model, state, workspace.data(), workspace.size());
  call.begin(*this, 0, 0, 0, hasGradients());
  return model.runInit(call);
}

StageCall::StageCall(const Model &model, const dp_step_state &stepState, void *workspace,
                     size_t workspaceBytes)
    : model(&model) {
  call.struct_size = sizeof call;
  call.loss_scale = model.getNumMicrobatches() ? 1.0 / model.getNumMicrobatches() : 1.0;
  call.device = {kDLCPU, 0};
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
  tensors[unsigned(kind)] = makeTensor(spec, data);
  call.tensors[unsigned(kind)] = &tensors[unsigned(kind)];
}

} // namespace dualpipe::runtime
