//===- Noop.cpp - a model that does nothing ---------------------------------===//
//
// For measuring what the runtime itself costs. Every tensor has `bytes` bytes
// that nobody reads or writes; each stage has one parameter whose gradient is 0.
//
//===----------------------------------------------------------------------===//

#include "runtime/models/Noop.h"
#include "runtime/kernels/DeviceMath.h"
#include "runtime/models/Builtin.h"
#include "runtime/models/Settings.h"

#include <memory>
#include <new>

namespace dualpipe::models {
namespace {

const Noop &get(const dp_model *model) { return *reinterpret_cast<const Noop *>(model); }

dp_status create(const dp_model_config *config, dp_model **out, char *message,
                 size_t messageSize) try {
  auto noop = std::make_unique<Noop>();
  Status status = Settings(*config).integer("bytes", noop->bytes, 1, kMaxNoopBytes).finish();
  if (!status)
    return dp_fail(message, messageSize, "%s", status.message().c_str());
  *out = reinterpret_cast<dp_model *>(noop.release());
  return DP_OK;
} catch (const std::bad_alloc &) {
  return dp_fail(message, messageSize, "out of memory");
}

void destroy(dp_model *model) { delete reinterpret_cast<Noop *>(model); }

dp_status nothing(dp_model *, dp_call *) { return DP_OK; }

dp_status forward(dp_model *, dp_call *call) {
  if (!call->loss)
    return DP_OK;
  if (call->device.device_type == kDLCPU) {
    *call->loss = 0.0;
    return DP_OK;
  }
  auto &math = *static_cast<kernels::DeviceMath *>(call->runtime);
  const Status status =
      math.zero(static_cast<runtime::cuda::Stream>(call->stream), call->loss, sizeof(double));
  if (status.ok())
    return DP_OK;
  return dp_fail(call->message, call->message_size, "%s", status.message().c_str());
}

} // namespace

dp_status noopContract(const dp_model *, dp_contract *out) {
  *out = {sizeof *out, 1, 0, 0, 0, 1};
  return DP_OK;
}

dp_status noopTensor(const dp_model *model, uint32_t, dp_tensor_kind, dp_tensor_spec *out) {
  *out = {{kDLUInt, 8, 1}, 1, 1, {get(model).bytes}};
  return DP_OK;
}

uint32_t noopNumParams(const dp_model *, uint32_t) { return 1; }

dp_status noopParam(const dp_model *, uint32_t, uint32_t, dp_tensor_spec *out) {
  *out = {{kDLFloat, 32, 1}, 1, 1, {1}};
  return DP_OK;
}

size_t noopWorkspaceSize(const dp_model *, uint32_t) { return 0; }

static constexpr dp_model_api kApi = {
    .abi_version = DP_STAGE_ABI_VERSION,
    .struct_size = sizeof(dp_model_api),
    .name = "noop",
    .settings = "bytes=8",
    .create = create,
    .destroy = destroy,
    .contract = noopContract,
    .tensor = noopTensor,
    .num_params = noopNumParams,
    .param = noopParam,
    .workspace_size = noopWorkspaceSize,
    .init = nothing,
    .load_input = nothing,
    .load_labels = nothing,
    .forward = forward,
    .backward = nothing,
    .backward_input = nothing,
    .backward_weight = nothing,
    .fused = nullptr,
    .step = nullptr,
};

const dp_model_api *getNoop() { return &kApi; }

} // namespace dualpipe::models
