//===- TestModel.cpp - a small model whose every value depends on the order -===//
//
// output = tanh(input * weight), element by element: cheap, and every gradient is
// different for every stage and micro-batch, so a wrong order changes bits.
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"

#include <cmath>
#include <cstdio>
#include <thread>

namespace dualpipe::test {

static constexpr int64_t kSize = 8;

TestModelHooks &getHooks() {
  static TestModelHooks hooks;
  return hooks;
}

static double *get(dp_call *call, dp_tensor_kind kind) {
  DLTensor *tensor = call->tensors[kind];
  return tensor ? static_cast<double *>(tensor->data) : nullptr;
}

static double *getParam(dp_call *call) { return static_cast<double *>(call->params[0]->data); }

static dp_status create(const dp_model_config *, dp_model **out, char *, size_t) {
  static char instance;
  *out = reinterpret_cast<dp_model *>(&instance);
  return DP_OK;
}

static void destroy(dp_model *) {}

static dp_status contract(const dp_model *, dp_contract *out) {
  *out = {sizeof(*out),
          1,
          DP_READS(DP_SAVED) | DP_READS(DP_GRAD_OUTPUT),
          DP_READS(DP_SAVED) | DP_READS(DP_GRAD_OUTPUT),
          DP_READS(DP_SAVED) | DP_READS(DP_WEIGHT_CONTEXT),
          1};
  return DP_OK;
}

static dp_tensor_spec makeSpec() { return {{kDLFloat, 64, 1}, 1, 1, {kSize}}; }

static dp_status tensor(const dp_model *, uint32_t, dp_tensor_kind, dp_tensor_spec *out) {
  *out = makeSpec();
  out->shape[0] = getHooks().extent;
  return DP_OK;
}
static uint32_t numParams(const dp_model *, uint32_t) { return 1; }
static dp_status param(const dp_model *, uint32_t, uint32_t, dp_tensor_spec *out) {
  *out = makeSpec();
  return DP_OK;
}
static size_t workspaceSize(const dp_model *, uint32_t) { return kSize * sizeof(double); }

static dp_status init(dp_model *, dp_call *call) {
  for (int64_t i = 0; i != kSize; ++i)
    getParam(call)[i] = 0.5 + 0.01 * double(call->stage) + 0.1 * double(i);
  return DP_OK;
}

static dp_status loadInput(dp_model *, dp_call *call) {
  for (int64_t i = 0; i != kSize; ++i)
    get(call, DP_INPUT)[i] =
        std::sin(double(call->microbatch * 8 + i)) + 0.01 * double(call->step_state->step);
  return DP_OK;
}

static dp_status loadLabels(dp_model *, dp_call *call) {
  for (int64_t i = 0; i != kSize; ++i)
    get(call, DP_LABELS)[i] = std::cos(double(call->microbatch * 8 + i));
  return DP_OK;
}

/// Keeps its input, from which the backward halves compute the output again.
static dp_status forward(dp_model *, dp_call *call) {
  TestModelHooks &hooks = getHooks();
  if (call->microbatch == 1 && call->stage == hooks.failStage) {
    std::snprintf(call->message, call->message_size, "the test asked for a failure");
    return DP_ERROR;
  }
  if (call->microbatch == 1 && call->stage == hooks.hangStage)
    while (!hooks.released)
      std::this_thread::yield();
  double loss = 0;
  for (int64_t i = 0; i != kSize; ++i) {
    const double in = get(call, DP_INPUT)[i], out = std::tanh(in * getParam(call)[i]);
    if (double *saved = get(call, DP_SAVED))
      saved[i] = in;
    if (double *output = get(call, DP_OUTPUT))
      output[i] = out;
    if (call->flags & DP_LAST_STAGE)
      loss += (out - get(call, DP_LABELS)[i]) * (out - get(call, DP_LABELS)[i]);
  }
  if (call->loss)
    *call->loss = loss;
  return DP_OK;
}

/// The gradient that comes in; the last stage makes one up from what it saved.
static double getIncoming(dp_call *call, int64_t i) {
  if (const double *gradOutput = get(call, DP_GRAD_OUTPUT))
    return gradOutput[i];
  return call->loss_scale * (1.0 + get(call, DP_SAVED)[i]);
}

static double getSlope(dp_call *call, int64_t i) {
  const double out = std::tanh(get(call, DP_SAVED)[i] * getParam(call)[i]);
  return getIncoming(call, i) * (1 - out * out);
}

static void addGradient(dp_call *call, int64_t i, double value) {
  double &gradient = static_cast<double *>(call->grads[0]->data)[i];
  gradient = call->flags & DP_ACCUMULATE ? gradient + value : value;
}

static dp_status backward(dp_model *, dp_call *call) {
  for (int64_t i = 0; i != kSize; ++i) {
    const double slope = getSlope(call, i);
    if (double *gradInput = get(call, DP_GRAD_INPUT))
      gradInput[i] = slope * getParam(call)[i];
    addGradient(call, i, slope * get(call, DP_SAVED)[i]);
  }
  return DP_OK;
}

static dp_status backwardInput(dp_model *, dp_call *call) {
  for (int64_t i = 0; i != kSize; ++i) {
    const double slope = getSlope(call, i);
    if (double *gradInput = get(call, DP_GRAD_INPUT))
      gradInput[i] = slope * getParam(call)[i];
    get(call, DP_WEIGHT_CONTEXT)[i] = slope;
  }
  return DP_OK;
}

static dp_status backwardWeight(dp_model *, dp_call *call) {
  for (int64_t i = 0; i != kSize; ++i)
    addGradient(call, i, get(call, DP_WEIGHT_CONTEXT)[i] * get(call, DP_SAVED)[i]);
  return DP_OK;
}

static dp_status fused(dp_model *model, dp_call *const *calls,
                       dp_status (*const *functions)(dp_model *, dp_call *), uint32_t numCalls) {
  ++getHooks().fusedCalls;
  for (uint32_t i = 0; i != numCalls; ++i)
    if (functions[i](model, calls[i]) != DP_OK)
      return DP_ERROR;
  return DP_OK;
}

static dp_model_api makeApi(bool withFused) {
  dp_model_api api{};
  api.abi_version = DP_STAGE_ABI_VERSION;
  api.struct_size = sizeof(api);
  api.name = "test";
  api.settings = "";
  api.create = create;
  api.destroy = destroy;
  api.contract = contract;
  api.tensor = tensor;
  api.num_params = numParams;
  api.param = param;
  api.workspace_size = workspaceSize;
  api.init = init;
  api.load_input = loadInput;
  api.load_labels = loadLabels;
  api.forward = forward;
  api.backward = backward;
  api.backward_input = backwardInput;
  api.backward_weight = backwardWeight;
  api.fused = withFused ? fused : nullptr;
  return api;
}

const dp_model_api &getTestModel(bool withFused) {
  static const dp_model_api plain = makeApi(false), fusing = makeApi(true);
  return withFused ? fusing : plain;
}

} // namespace dualpipe::test
