//===- SoftExact.cpp - the exact model on GPUs made of software -----------------===//

#include "SoftExact.h"

#include "test/support/ExactModel.h"

#include <cstring>
#include <stdexcept>

namespace dualpipe::test {

using namespace runtime::cuda;

namespace {

using StageFunction = dp_status (*)(dp_model *, dp_call *);

constexpr size_t kMaxSum = 32;

/// A call of a stage function as a kernel takes it: without pointers to memory of the host.
struct CallArgument {
  StageFunction function;
  uint32_t reads;  ///< DP_READS of tensors
  uint32_t writes; ///< the same
  bool readsWeight, writesWeight, readsGradient, writesGradient, readsState;
  uint32_t stage, microbatch, component, flags;
  void *tensors[DP_NUM_TENSOR_KINDS];
  void *weight, *gradient;
  double *loss;
  const dp_step_state *state;
};

void runCall(const void *bytes, int64_t) {
  CallArgument argument;
  std::memcpy(&argument, bytes, sizeof argument);
  dp_call call{};
  DLTensor tensors[DP_NUM_TENSOR_KINDS] = {};
  for (unsigned kind = 0; kind != DP_NUM_TENSOR_KINDS; ++kind)
    if (argument.tensors[kind]) {
      tensors[kind].data = argument.tensors[kind];
      call.tensors[kind] = &tensors[kind];
    }
  DLTensor weight{}, gradient{};
  weight.data = argument.weight;
  gradient.data = argument.gradient;
  DLTensor *const weights[] = {&weight}, *const gradients[] = {&gradient};
  call.stage = argument.stage;
  call.microbatch = argument.microbatch;
  call.component = argument.component;
  call.flags = argument.flags;
  call.params = weights;
  call.grads = argument.gradient ? gradients : nullptr;
  call.loss = argument.loss;
  call.step_state = argument.state;
  (void)argument.function(nullptr, &call); // these cannot fail
}

void listCallUses(const void *bytes, std::vector<SoftUse> &uses) {
  CallArgument argument;
  std::memcpy(&argument, bytes, sizeof argument);
  for (unsigned kind = 0; kind != DP_NUM_TENSOR_KINDS; ++kind) {
    if (argument.tensors[kind] && (argument.reads & DP_READS(kind)))
      uses.push_back({argument.tensors[kind], sizeof(double), false});
    if (argument.tensors[kind] && (argument.writes & DP_READS(kind)))
      uses.push_back({argument.tensors[kind], sizeof(double), true});
  }
  if (argument.readsWeight)
    uses.push_back({argument.weight, sizeof(double), false});
  if (argument.readsGradient)
    uses.push_back({argument.gradient, sizeof(double), false});
  if (argument.readsState)
    uses.push_back({argument.state, sizeof(dp_step_state), false});
  if (argument.writesWeight)
    uses.push_back({argument.weight, sizeof(double), true});
  if (argument.writesGradient)
    uses.push_back({argument.gradient, sizeof(double), true});
  if (argument.loss)
    uses.push_back({argument.loss, sizeof(double), true});
}

/// What a function touches beside the loss.
struct Uses {
  uint32_t reads, writes;
  bool readsWeight = false, writesWeight = false;
  bool readsGradient = false, writesGradient = false;
  bool readsState = false;
};

dp_status launch(dp_call *call, StageFunction function, const Uses &uses) {
  const auto &runtime = *static_cast<SoftExactRuntime *>(call->runtime);
  CallArgument argument;
  std::memset(&argument, 0, sizeof argument);
  argument.function = function;
  argument.reads = uses.reads;
  argument.writes = uses.writes;
  argument.readsWeight = uses.readsWeight;
  argument.writesWeight = uses.writesWeight;
  // What is added to is read.
  argument.writesGradient = uses.writesGradient;
  argument.readsGradient =
      uses.readsGradient || (uses.writesGradient && (call->flags & DP_ACCUMULATE));
  argument.readsState = uses.readsState;
  argument.stage = call->stage;
  argument.microbatch = call->microbatch;
  argument.component = call->component;
  argument.flags = call->flags;
  for (unsigned kind = 0; kind != DP_NUM_TENSOR_KINDS; ++kind)
    argument.tensors[kind] = call->tensors[kind] ? call->tensors[kind]->data : nullptr;
  argument.weight = call->params[0]->data;
  argument.gradient = call->grads ? call->grads[0]->data : nullptr;
  argument.loss = call->loss;
  argument.state = call->step_state;
  void *parameters[] = {&argument};
  const DriverStatus status = runtime.driver->launchKernel(
      runtime.call, 1, 1, 1, 1, 1, 1, 0, static_cast<Stream>(call->stream), parameters, nullptr);
  if (status == DriverStatus::Success)
    return DP_OK;
  return dp_fail(call->message, call->message_size, "cuLaunchKernel failed: %s", getName(status));
}

constexpr uint32_t kSaved = DP_READS(DP_SAVED), kGradOutput = DP_READS(DP_GRAD_OUTPUT),
                   kGradInput = DP_READS(DP_GRAD_INPUT), kContext = DP_READS(DP_WEIGHT_CONTEXT);

dp_status init(dp_model *, dp_call *call) {
  return launch(call, getExactModel().init, {.reads = 0, .writes = 0, .writesWeight = true});
}
dp_status loadInput(dp_model *, dp_call *call) {
  return launch(call, getExactModel().load_input,
                {.reads = 0, .writes = DP_READS(DP_INPUT), .readsState = true});
}
dp_status loadLabels(dp_model *, dp_call *call) {
  return launch(call, getExactModel().load_labels,
                {.reads = 0, .writes = DP_READS(DP_LABELS), .readsState = true});
}
dp_status forward(dp_model *, dp_call *call) {
  return launch(call, getExactModel().forward,
                {.reads = DP_READS(DP_INPUT) | DP_READS(DP_LABELS),
                 .writes = kSaved | DP_READS(DP_OUTPUT),
                 .readsWeight = true});
}
dp_status backward(dp_model *, dp_call *call) {
  return launch(call, getExactModel().backward,
                {.reads = kSaved | kGradOutput,
                 .writes = kGradInput,
                 .readsWeight = true,
                 .writesGradient = true});
}
dp_status backwardInput(dp_model *, dp_call *call) {
  return launch(
      call, getExactModel().backward_input,
      {.reads = kSaved | kGradOutput, .writes = kGradInput | kContext, .readsWeight = true});
}
dp_status backwardWeight(dp_model *, dp_call *call) {
  return launch(call, getExactModel().backward_weight,
                {.reads = kSaved | kContext, .writes = 0, .writesGradient = true});
}
dp_status step(dp_model *, dp_call *call) {
  return launch(
      call, getExactModel().step,
      {.reads = 0, .writes = 0, .readsWeight = true, .writesWeight = true, .readsGradient = true});
}

struct SumArgument {
  double *from[kMaxSum];
  double *to[kMaxSum];
  size_t numFrom, numTo;
  int64_t count;
};

void runSum(const void *bytes, int64_t) {
  SumArgument argument;
  std::memcpy(&argument, bytes, sizeof argument);
  for (int64_t i = 0; i != argument.count; ++i) {
    double sum = 0;
    for (size_t member = 0; member != argument.numFrom; ++member)
      sum += argument.from[member][i];
    for (size_t member = 0; member != argument.numTo; ++member)
      argument.to[member][i] = sum;
  }
}

void listSumUses(const void *bytes, std::vector<SoftUse> &uses) {
  SumArgument argument;
  std::memcpy(&argument, bytes, sizeof argument);
  const size_t size = size_t(argument.count) * sizeof(double);
  for (size_t member = 0; member != argument.numFrom; ++member)
    uses.push_back({argument.from[member], size, false});
  for (size_t member = 0; member != argument.numTo; ++member)
    uses.push_back({argument.to[member], size, true});
}

dp_model_api makeApi() {
  dp_model_api api = getExactModel();
  api.name = "soft-exact";
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

} // namespace

const dp_model_api &getSoftExactModel() {
  static const dp_model_api api = makeApi();
  return api;
}

void addSoftExactKernels(SoftGpu &gpu) {
  gpu.addKernel({"exact", sizeof(CallArgument), runCall, listCallUses});
  gpu.addKernel({"exact_sum", sizeof(SumArgument), runSum, listSumUses});
}

SoftExactRuntime loadSoftExact(const DriverApi &driver) {
  SoftExactRuntime runtime{&driver, nullptr, nullptr};
  Module module = nullptr;
  if (driver.moduleLoadData(&module, "image") != DriverStatus::Success ||
      driver.moduleGetFunction(&runtime.call, module, "exact") != DriverStatus::Success ||
      driver.moduleGetFunction(&runtime.sum, module, "exact_sum") != DriverStatus::Success)
    throw std::runtime_error("the exact model's kernels cannot be looked up");
  return runtime;
}

Status launchSum(const SoftExactRuntime &runtime, Stream stream, std::span<void *const> from,
                 std::span<void *const> to, int64_t count) {
  if (from.size() > kMaxSum || to.size() > kMaxSum)
    throw std::runtime_error("more members than the exact model's sum takes");
  SumArgument argument{};
  for (size_t i = 0; i != from.size(); ++i)
    argument.from[i] = static_cast<double *>(from[i]);
  for (size_t i = 0; i != to.size(); ++i)
    argument.to[i] = static_cast<double *>(to[i]);
  argument.numFrom = from.size();
  argument.numTo = to.size();
  argument.count = count;
  void *parameters[] = {&argument};
  return check(
      *runtime.driver,
      runtime.driver->launchKernel(runtime.sum, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr),
      "cuLaunchKernel of the sum");
}

} // namespace dualpipe::test
