//===- FakeModel.cpp - a model that shows in which order it was called ------===//

#include "FakeModel.h"

namespace dualpipe::runtime::test {
namespace {

struct Fake {
  int unused = 0;
};

double *getValue(dp_call *call, dp_tensor_kind kind) {
  return call->tensors[kind] ? static_cast<double *>(call->tensors[kind]->data) : nullptr;
}
void set(dp_call *call, dp_tensor_kind kind, double value) {
  if (double *place = getValue(call, kind))
    *place = value;
}

dp_status note(const char *function, dp_call *call) {
  FakeBehaviour &fake = getFakeBehaviour();
  fake.log.push_back(std::string(function) + " s" + std::to_string(call->stage) + " m" +
                     std::to_string(call->microbatch));
  if (fake.failing != function ||
      (fake.failingStage >= 0 && uint32_t(fake.failingStage) != call->stage))
    return DP_OK;
  if (fake.silent)
    return DP_ERROR;
  return dp_fail(call->message, call->message_size, "told to fail");
}

dp_status create(const dp_model_config *, dp_model **out, char *message, size_t size) {
  if (getFakeBehaviour().failing == "create")
    return getFakeBehaviour().silent ? DP_ERROR : dp_fail(message, size, "told to fail");
  *out = reinterpret_cast<dp_model *>(new Fake());
  return DP_OK;
}
void destroy(dp_model *model) { delete reinterpret_cast<Fake *>(model); }

dp_status contract(const dp_model *, dp_contract *out) {
  *out = getFakeBehaviour().contract;
  return getFakeBehaviour().failing == "contract" ? DP_ERROR : DP_OK;
}
dp_status tensor(const dp_model *, uint32_t stage, dp_tensor_kind kind, dp_tensor_spec *out) {
  *out = getFakeBehaviour().tensor;
  if (stage == 0 && kind == DP_OUTPUT && getFakeBehaviour().oddOutput)
    out->shape[0] = getFakeBehaviour().oddOutput;
  return getFakeBehaviour().failing == "tensor" ? DP_ERROR : DP_OK;
}
uint32_t numParams(const dp_model *, uint32_t) { return getFakeBehaviour().numParams; }
dp_status param(const dp_model *, uint32_t, uint32_t, dp_tensor_spec *out) {
  *out = getFakeBehaviour().param;
  return getFakeBehaviour().failing == "param" ? DP_ERROR : DP_OK;
}
size_t workspaceSize(const dp_model *, uint32_t) { return getFakeBehaviour().workspace; }

double &getParam(dp_call *call) { return *static_cast<double *>(call->params[0]->data); }

dp_status init(dp_model *, dp_call *call) {
  getParam(call) = double(call->stage + 1);
  return getFakeBehaviour().failing == "init" ? note("init", call) : DP_OK;
}
dp_status loadInput(dp_model *, dp_call *call) {
  set(call, DP_INPUT, 10.0 * call->microbatch);
  return note("load_input", call);
}
dp_status loadLabels(dp_model *, dp_call *call) {
  set(call, DP_LABELS, 0.5);
  return note("load_labels", call);
}
dp_status forward(dp_model *, dp_call *call) {
  getFakeBehaviour().workspaceSizes.push_back(call->workspace_size);
  double out = *getValue(call, DP_INPUT) + getParam(call);
  set(call, DP_SAVED, out);
  set(call, DP_OUTPUT, out);
  if (call->flags & DP_LAST_STAGE)
    *call->loss = out - *getValue(call, DP_LABELS);
  return note("forward", call);
}
void handBack(dp_call *call) {
  double grad = call->flags & DP_LAST_STAGE ? call->loss_scale : *getValue(call, DP_GRAD_OUTPUT);
  set(call, DP_GRAD_INPUT, grad);
  set(call, DP_WEIGHT_CONTEXT, grad);
}
void accumulate(dp_call *call) {
  double *grad = static_cast<double *>(call->grads[0]->data);
  double before = call->flags & DP_ACCUMULATE ? 2 * *grad : 0.0;
  *grad = before + call->microbatch + 1;
}
dp_status backward(dp_model *, dp_call *call) {
  if (getValue(call, DP_LABELS))
    ++getFakeBehaviour().backwardsWithLabels;
  handBack(call);
  accumulate(call);
  return note("backward", call);
}
dp_status backwardInput(dp_model *, dp_call *call) {
  handBack(call);
  return note("backward_input", call);
}
dp_status backwardWeight(dp_model *, dp_call *call) {
  accumulate(call);
  return note("backward_weight", call);
}
dp_status fused(dp_model *model, dp_call *const *calls,
                dp_status (*const *functions)(dp_model *, dp_call *), uint32_t numCalls) {
  getFakeBehaviour().log.push_back("fused " + std::to_string(numCalls));
  for (uint32_t i = 0; i < numCalls; ++i)
    if (dp_status status = functions[i](model, calls[i]); status != DP_OK)
      return status;
  return DP_OK;
}
dp_status step(dp_model *, dp_call *call) {
  getParam(call) += 100;
  return note("step", call);
}

} // namespace

FakeBehaviour &getFakeBehaviour() {
  static FakeBehaviour behaviour;
  return behaviour;
}

dp_model_api makeFakeApi() {
  return {DP_STAGE_ABI_VERSION,
          sizeof(dp_model_api),
          "fake",
          "",
          create,
          destroy,
          contract,
          tensor,
          numParams,
          param,
          workspaceSize,
          init,
          loadInput,
          loadLabels,
          forward,
          backward,
          backwardInput,
          backwardWeight,
          nullptr,
          nullptr};
}

dp_model_api makeFullFakeApi() {
  dp_model_api api = makeFakeApi();
  api.fused = fused;
  api.step = step;
  return api;
}

} // namespace dualpipe::runtime::test
