//===- Noop.cpp - a model that does nothing ---------------------------------===//
//
// For measuring what the runtime itself costs. Every tensor has `bytes` bytes
// that nobody reads or writes; each stage has one parameter whose gradient is 0.
//
//===----------------------------------------------------------------------===//

#include "runtime/models/Builtin.h"
#include "runtime/models/Settings.h"

#include <memory>
#include <new>

namespace dualpipe::models {
namespace {

struct Noop {
  int64_t bytes = 8;
};

const Noop &get(const dp_model *model) { return *reinterpret_cast<const Noop *>(model); }

dp_status create(const dp_model_config *config, dp_model **out, char *message,
                 size_t messageSize) try {
  auto noop = std::make_unique<Noop>();
  Status status = Settings(*config).integer("bytes", noop->bytes, 1, int64_t(1) << 30).finish();
  if (!status)
    return dp_fail(message, messageSize, "%s", status.message().c_str());
  *out = reinterpret_cast<dp_model *>(noop.release());
  return DP_OK;
} catch (const std::bad_alloc &) {
  return dp_fail(message, messageSize, "out of memory");
}

void destroy(dp_model *model) { delete reinterpret_cast<Noop *>(model); }

dp_status contract(const dp_model *, dp_contract *out) {
  *out = {sizeof *out, 1, 0, 0, 0, 1};
  return DP_OK;
}

dp_status tensor(const dp_model *model, uint32_t, dp_tensor_kind, dp_tensor_spec *out) {
  *out = {{kDLUInt, 8, 1}, 1, 1, {get(model).bytes}};
  return DP_OK;
}

uint32_t numParams(const dp_model *, uint32_t) { return 1; }

dp_status param(const dp_model *, uint32_t, uint32_t, dp_tensor_spec *out) {
  *out = {{kDLFloat, 32, 1}, 1, 1, {1}};
  return DP_OK;
}

size_t workspaceSize(const dp_model *, uint32_t) { return 0; }

dp_status nothing(dp_model *, dp_call *) { return DP_OK; }

dp_status forward(dp_model *, dp_call *call) {
  if (call->loss)
    *call->loss = 0.0;
  return DP_OK;
}

constexpr dp_model_api kApi = {
    .abi_version = DP_STAGE_ABI_VERSION,
    .struct_size = sizeof(dp_model_api),
    .name = "noop",
    .settings = "bytes=8",
    .create = create,
    .destroy = destroy,
    .contract = contract,
    .tensor = tensor,
    .num_params = numParams,
    .param = param,
    .workspace_size = workspaceSize,
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

} // namespace

const dp_model_api *getNoop() { return &kApi; }

} // namespace dualpipe::models
