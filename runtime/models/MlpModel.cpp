//===- MlpModel.cpp - the mlp model behind the C interface ------------------===//

#include "runtime/models/Builtin.h"
#include "runtime/models/Mlp.h"

#include <new>

namespace dualpipe::models {
namespace {

const Mlp &get(const dp_model *model) { return *reinterpret_cast<const Mlp *>(model); }

dp_status finish(const Status &status, const dp_call *call) {
  if (status.ok())
    return DP_OK;
  return dp_fail(call->message, call->message_size, "%s", status.message().c_str());
}

dp_status create(const dp_model_config *config, dp_model **out, char *message,
                 size_t messageSize) try {
  if (config->device_type != kDLCPU && config->device_type != kDLCUDA)
    return dp_fail(message, messageSize, "runs on the CPU and on CUDA devices only");
  Result<std::unique_ptr<Mlp>> mlp = Mlp::create(*config);
  if (!mlp)
    return dp_fail(message, messageSize, "%s", mlp.message().c_str());
  *out = reinterpret_cast<dp_model *>(mlp->release());
  return DP_OK;
} catch (const std::bad_alloc &) {
  return dp_fail(message, messageSize, "out of memory");
}

void destroy(dp_model *model) { delete reinterpret_cast<Mlp *>(model); }

dp_status contract(const dp_model *, dp_contract *out) {
  out->struct_size = sizeof *out;
  out->num_components = 1;
  out->backward_reads = DP_READS(DP_SAVED) | DP_READS(DP_GRAD_OUTPUT);
  out->backward_input_reads = DP_READS(DP_SAVED) | DP_READS(DP_GRAD_OUTPUT);
  out->backward_weight_reads = DP_READS(DP_SAVED) | DP_READS(DP_WEIGHT_CONTEXT);
  out->num_size_groups = 1;
  return DP_OK;
}

DLDataType getType(Element type) {
  switch (type) {
  case Element::F32:
    return {kDLFloat, 32, 1};
  case Element::BF16:
    return {kDLBfloat, 16, 1};
  case Element::F64:
    break;
  }
  return {kDLFloat, 64, 1};
}

dp_tensor_spec describe(DLDataType type, std::initializer_list<int64_t> shape) {
  dp_tensor_spec spec = {};
  spec.dtype = type;
  spec.present = 1;
  for (int64_t extent : shape)
    spec.shape[spec.ndim++] = extent;
  return spec;
}

dp_tensor_spec describeBytes(size_t bytes) {
  dp_tensor_spec spec = {};
  spec.dtype = {kDLUInt, 8, 1};
  spec.present = 1;
  spec.ndim = 1;
  spec.shape[0] = int64_t(bytes);
  return spec;
}

// Every stage has every tensor: which stage is the first or last of a pipeline is the program's
// affair, and slots are as large as the largest stage of their size group anyway.
dp_status tensor(const dp_model *model, uint32_t, dp_tensor_kind kind, dp_tensor_spec *out) {
  const Mlp &mlp = get(model);
  const MlpSettings &settings = mlp.getSettings();
  if (kind == DP_SAVED)
    *out = describeBytes(mlp.getLayout().getSavedBytes());
  else if (kind == DP_WEIGHT_CONTEXT)
    *out = describeBytes(mlp.getLayout().getContextBytes());
  else
    *out = describe(getType(settings.type), {settings.batch, settings.seq, settings.hidden});
  return DP_OK;
}

uint32_t numParams(const dp_model *model, uint32_t) {
  return uint32_t(2 * get(model).getLayout().blocks);
}

dp_status param(const dp_model *model, uint32_t, uint32_t index, dp_tensor_spec *out) {
  const MlpLayout &layout = get(model).getLayout();
  const bool isDouble = get(model).getSettings().type == Element::F64;
  const DLDataType type = getType(isDouble ? Element::F64 : Element::F32);
  *out = index % 2 == 0 ? describe(type, {layout.wide, layout.hidden})
                        : describe(type, {layout.hidden, layout.wide});
  return DP_OK;
}

size_t workspaceSize(const dp_model *model, uint32_t) { return get(model).getWorkspaceBytes(); }

dp_status init(dp_model *model, dp_call *call) { return finish(get(model).init(*call), call); }
dp_status loadInput(dp_model *model, dp_call *call) {
  return finish(get(model).loadInput(*call), call);
}
dp_status loadLabels(dp_model *model, dp_call *call) {
  return finish(get(model).loadLabels(*call), call);
}
dp_status forward(dp_model *model, dp_call *call) {
  return finish(get(model).forward(*call), call);
}
dp_status backward(dp_model *model, dp_call *call) {
  return finish(get(model).backward(*call), call);
}
dp_status backwardInput(dp_model *model, dp_call *call) {
  return finish(get(model).backwardInput(*call), call);
}
dp_status backwardWeight(dp_model *model, dp_call *call) {
  return finish(get(model).backwardWeight(*call), call);
}

constexpr dp_model_api kApi = {
    .abi_version = DP_STAGE_ABI_VERSION,
    .struct_size = sizeof(dp_model_api),
    .name = "mlp",
    .settings = "hidden=512 seq=256 batch=3 dtype=f32|bf16|f64 layers=N",
    .create = create,
    .destroy = destroy,
    .contract = contract,
    .tensor = tensor,
    .num_params = numParams,
    .param = param,
    .workspace_size = workspaceSize,
    .init = init,
    .load_input = loadInput,
    .load_labels = loadLabels,
    .forward = forward,
    .backward = backward,
    .backward_input = backwardInput,
    .backward_weight = backwardWeight,
    .fused = nullptr,
    .step = nullptr,
};

} // namespace

const dp_model_api *getMlp() { return &kApi; }

} // namespace dualpipe::models
