//===- ExactModel.cpp - a model whose results do not depend on rounding -----===//

#include "ExactModel.h"

#include "runtime/models/CounterRandom.h"

#include <cstring>
#include <initializer_list>

namespace dualpipe::test {

/// What a hash is of, so that no two of a call are the same number.
enum Purpose : uint64_t { kInit, kInput, kLabels, kSaved, kOutput, kLoss, kSeed, kGradient, kStep };

static double hash(Purpose purpose, std::initializer_list<double> values) {
  uint64_t key = models::mixBits(purpose + models::kGoldenGamma);
  for (const double value : values) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    key = models::mixBits(key ^ (bits + models::kGoldenGamma));
  }
  return double(key >> 33);
}

static double *get(dp_call *call, dp_tensor_kind kind) {
  DLTensor *tensor = call->tensors[kind];
  return tensor ? static_cast<double *>(tensor->data) : nullptr;
}
static double &getWeight(dp_call *call) { return *static_cast<double *>(call->params[0]->data); }
static double &getGradient(dp_call *call) { return *static_cast<double *>(call->grads[0]->data); }

/// A hash of values that this very call read.
static double hashCall(Purpose purpose, const dp_call *call, double a, double b) {
  return hash(purpose,
              {a, b, double(call->stage), double(call->microbatch), double(call->component)});
}

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

static constexpr dp_tensor_spec kSpec = {{kDLFloat, 64, 1}, 1, 1, {1}};
static dp_status tensor(const dp_model *, uint32_t, dp_tensor_kind, dp_tensor_spec *out) {
  *out = kSpec;
  return DP_OK;
}
static uint32_t numParams(const dp_model *, uint32_t) { return 1; }
static dp_status param(const dp_model *, uint32_t, uint32_t, dp_tensor_spec *out) {
  *out = kSpec;
  return DP_OK;
}
static size_t workspaceSize(const dp_model *, uint32_t) { return 0; }

static dp_status init(dp_model *, dp_call *call) {
  getWeight(call) = hash(kInit, {double(call->stage)});
  return DP_OK;
}

/// Other numbers in every step: what is left over from the last one is never right.
static dp_status loadInput(dp_model *, dp_call *call) {
  *get(call, DP_INPUT) = hash(kInput, {double(call->microbatch), double(call->step_state->step)});
  return DP_OK;
}
static dp_status loadLabels(dp_model *, dp_call *call) {
  *get(call, DP_LABELS) = hash(kLabels, {double(call->microbatch), double(call->step_state->step)});
  return DP_OK;
}

static dp_status forward(dp_model *, dp_call *call) {
  const double input = *get(call, DP_INPUT), weight = getWeight(call);
  if (double *saved = get(call, DP_SAVED))
    *saved = hashCall(kSaved, call, input, weight);
  if (double *output = get(call, DP_OUTPUT))
    *output = hashCall(kOutput, call, input, weight);
  if (call->loss)
    *call->loss = hashCall(kLoss, call, hash(kOutput, {input, weight}), *get(call, DP_LABELS));
  return DP_OK;
}

/// The gradient that comes in; the last stage makes one up from what it saved.
static double getIncoming(dp_call *call) {
  const double *gradOutput = get(call, DP_GRAD_OUTPUT);
  return gradOutput ? *gradOutput : hashCall(kSeed, call, *get(call, DP_SAVED), 0);
}

static void sendGradient(dp_call *call) {
  if (double *gradInput = get(call, DP_GRAD_INPUT))
    *gradInput = hash(kGradient, {hashCall(kSaved, call, getIncoming(call), *get(call, DP_SAVED)),
                                  getWeight(call)});
}

static void addGradient(dp_call *call, double incoming) {
  const double own = hashCall(kGradient, call, incoming, *get(call, DP_SAVED));
  double &gradient = getGradient(call);
  gradient = call->flags & DP_ACCUMULATE ? gradient + own : own;
}

static dp_status backward(dp_model *, dp_call *call) {
  const double incoming = getIncoming(call);
  sendGradient(call);
  addGradient(call, incoming);
  return DP_OK;
}
static dp_status backwardInput(dp_model *, dp_call *call) {
  *get(call, DP_WEIGHT_CONTEXT) = getIncoming(call);
  sendGradient(call);
  return DP_OK;
}
static dp_status backwardWeight(dp_model *, dp_call *call) {
  addGradient(call, *get(call, DP_WEIGHT_CONTEXT));
  return DP_OK;
}

static dp_status step(dp_model *, dp_call *call) {
  getWeight(call) = hash(kStep, {getWeight(call), getGradient(call)});
  return DP_OK;
}

static dp_model_api makeApi() {
  dp_model_api api{};
  api.abi_version = DP_STAGE_ABI_VERSION;
  api.struct_size = sizeof(api);
  api.name = "exact";
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
  api.step = step;
  return api;
}

const dp_model_api &getExactModel() {
  static const dp_model_api api = makeApi();
  return api;
}

} // namespace dualpipe::test
