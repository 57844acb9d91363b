//===- Wait.cpp - a model whose stages wait ---------------------------------===//
//
// For holding predictions against runs: every function takes a given time and no
// core, so ranks overlap however few cores there are. Tensors, parameters and values
// are those of `noop`.
//
//===----------------------------------------------------------------------===//

#include "runtime/models/Builtin.h"
#include "runtime/models/Noop.h"
#include "runtime/models/Settings.h"

#include <chrono>
#include <memory>
#include <new>
#include <thread>

#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace dualpipe::models {
namespace {

/// Microseconds. `bwd` and `fused` are the sums of their parts unless they are given.
struct Wait : Noop {
  int64_t fwd = 1000, bwd = 0, bwdInput = 1000, bwdWeight = 1000, fused = 0, step = 0;

  int64_t getBackward() const { return bwd != 0 ? bwd : bwdInput + bwdWeight; }
};

const Wait &get(const dp_model *model) {
  return static_cast<const Wait &>(*reinterpret_cast<const Noop *>(model));
}

dp_status create(const dp_model_config *config, dp_model **out, char *message,
                 size_t messageSize) try {
  if (config->device_type != kDLCPU) // its threads wait, and write losses of the host
    return dp_fail(message, messageSize, "runs on the CPU only");
  constexpr int64_t kMost = 100'000'000;
  auto wait = std::make_unique<Wait>();
  Status status = Settings(*config)
                      .integer("fwd", wait->fwd, 0, kMost)
                      .integer("bwd", wait->bwd, 0, kMost)
                      .integer("bwd_input", wait->bwdInput, 0, kMost)
                      .integer("bwd_weight", wait->bwdWeight, 0, kMost)
                      .integer("fused", wait->fused, 0, kMost)
                      .integer("step", wait->step, 0, kMost)
                      .integer("bytes", wait->bytes, 1, kMaxNoopBytes)
                      .finish();
  if (!status)
    return dp_fail(message, messageSize, "%s", status.message().c_str());
  *out = reinterpret_cast<dp_model *>(static_cast<Noop *>(wait.release()));
  return DP_OK;
} catch (const std::bad_alloc &) {
  return dp_fail(message, messageSize, "out of memory");
}

void destroy(dp_model *model) { delete static_cast<Wait *>(reinterpret_cast<Noop *>(model)); }

/// Linux may let a thread sleep 50 us longer than it asked for, to wake several at once;
/// a thread that says so is woken on time.
void askForExactTimers() {
#ifdef __linux__
  static thread_local const bool asked = prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL) == 0;
  (void)asked; // a longer sleep is the worst that can come of it
#endif
}

dp_status waitFor(int64_t microseconds) {
  askForExactTimers();
  if (microseconds > 0)
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  return DP_OK;
}

dp_status nothing(dp_model *, dp_call *) { return DP_OK; }

dp_status forward(dp_model *model, dp_call *call) {
  if (call->loss)
    *call->loss = 0.0;
  return waitFor(get(model).fwd);
}

dp_status backward(dp_model *model, dp_call *) { return waitFor(get(model).getBackward()); }
dp_status backwardInput(dp_model *model, dp_call *) { return waitFor(get(model).bwdInput); }
dp_status backwardWeight(dp_model *model, dp_call *) { return waitFor(get(model).bwdWeight); }
dp_status step(dp_model *model, dp_call *) { return waitFor(get(model).step); }

/// The members wait together, for as long as `fused` says or as they would in turn.
dp_status fused(dp_model *model, dp_call *const *calls,
                dp_status (*const *functions)(dp_model *, dp_call *), uint32_t numCalls) {
  const Wait &wait = get(model);
  int64_t sum = 0;
  for (uint32_t i = 0; i != numCalls; ++i) {
    if (functions[i] == forward && calls[i]->loss)
      *calls[i]->loss = 0.0;
    sum += functions[i] == forward         ? wait.fwd
           : functions[i] == backward      ? wait.getBackward()
           : functions[i] == backwardInput ? wait.bwdInput
                                           : wait.bwdWeight;
  }
  return waitFor(wait.fused != 0 ? wait.fused : sum);
}

constexpr dp_model_api kApi = {
    .abi_version = DP_STAGE_ABI_VERSION,
    .struct_size = sizeof(dp_model_api),
    .name = "wait",
    .settings = "fwd=1000 bwd_input=1000 bwd_weight=1000 bwd=0 fused=0 step=0 (microseconds; bwd "
                "and fused: 0 for the sum) bytes=8",
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
    .backward = backward,
    .backward_input = backwardInput,
    .backward_weight = backwardWeight,
    .fused = fused,
    .step = step,
};

} // namespace

const dp_model_api *getWait() { return &kApi; }

} // namespace dualpipe::models
