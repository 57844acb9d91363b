/*===- example.c - a model of one's own, outside the tree --------------------===*
 *
 * A stage is y = tanh(x * W^T + b), x[tokens, width], W[width, width], b[width], in
 * float32 with plain loops; the last stage's loss is the mean squared error. See
 * docs/writing-a-model.md for what each function must do, README.md to build it.
 *
 *   saved:           x | y | seed   (seed: gradient of the scaled loss, last stage only)
 *   weight context:  dz = dy * (1 - y^2)
 *
 *===------------------------------------------------------------------------===*/

#include "dualpipe/stage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Example {
  int64_t width, tokens;
} Example;

static const Example *get(const dp_model *model) { return (const Example *)model; }
static float *data(const DLTensor *tensor) { return tensor ? (float *)tensor->data : NULL; }

/* Number i of a stream in (-scale, scale): a hash, so it does not matter who asks, or when. */
static float draw(uint64_t seed, uint64_t stream, uint64_t i, float scale) {
  uint64_t z = seed * 0x9e3779b97f4a7c15u + stream * 0xbf58476d1ce4e5b9u + i * 0x94d049bb133111ebu;
  for (int round = 0; round < 3; ++round)
    z = (z ^ (z >> 31)) * 0xd6e8feb86659fd93u;
  return scale * ((float)(z >> 40) / 8388608.0f - 1.0f);
}

static dp_status create(const dp_model_config *config, dp_model **out, char *message, size_t size) {
  if (config->device_type != kDLCPU)
    return dp_fail(message, size, "runs on the CPU only");
  Example example = {16, 8};
  for (uint32_t i = 0; i < config->num_settings; ++i) {
    char *end;
    long long value = strtoll(config->values[i], &end, 10);
    if (*end || end == config->values[i] || value < 1 || value > 4096)
      return dp_fail(message, size, "setting '%s': expected an integer from 1 to 4096, got '%s'",
                     config->keys[i], config->values[i]);
    if (!strcmp(config->keys[i], "width"))
      example.width = value;
    else if (!strcmp(config->keys[i], "tokens"))
      example.tokens = value;
    else
      return dp_fail(message, size, "unknown setting '%s'; the settings are width, tokens",
                     config->keys[i]);
  }
  Example *made = malloc(sizeof *made);
  if (!made)
    return dp_fail(message, size, "out of memory");
  *made = example;
  *out = (dp_model *)made;
  return DP_OK;
}
static void destroy(dp_model *model) { free(model); }

/* The contract that schedules are compiled for by default. */
static dp_status contract(const dp_model *model, dp_contract *out) {
  (void)model;
  out->struct_size = sizeof *out;
  out->num_components = out->num_size_groups = 1;
  out->backward_reads = out->backward_input_reads = DP_READS(DP_SAVED) | DP_READS(DP_GRAD_OUTPUT);
  out->backward_weight_reads = DP_READS(DP_SAVED) | DP_READS(DP_WEIGHT_CONTEXT);
  return DP_OK;
}
static dp_status tensor(const dp_model *model, uint32_t stage, dp_tensor_kind kind,
                        dp_tensor_spec *out) {
  const Example *m = get(model);
  (void)stage;
  *out = (dp_tensor_spec){{kDLFloat, 32, 1}, 1, 2, {m->tokens, m->width}};
  if (kind == DP_SAVED)
    *out = (dp_tensor_spec){{kDLFloat, 32, 1}, 1, 3, {3, m->tokens, m->width}};
  return DP_OK;
}
static uint32_t num_params(const dp_model *model, uint32_t stage) {
  (void)model, (void)stage;
  return 2;
}
static dp_status param(const dp_model *model, uint32_t stage, uint32_t index, dp_tensor_spec *out) {
  int64_t w = get(model)->width;
  (void)stage;
  *out = (dp_tensor_spec){{kDLFloat, 32, 1}, 1, index == 0 ? 2 : 1, {w, w}};
  return DP_OK;
}
static size_t workspace_size(const dp_model *model, uint32_t stage) {
  (void)stage;
  return (size_t)(get(model)->tokens * get(model)->width) * sizeof(float); /* dz of a backward */
}

static dp_status init(dp_model *model, dp_call *call) {
  int64_t w = get(model)->width;
  for (int64_t i = 0; i < w * w; ++i)
    data(call->params[0])[i] =
        draw(call->step_state->seed, 3 * call->stage + 1, (uint64_t)i, 1.0f / sqrtf((float)w));
  memset(data(call->params[1]), 0, (size_t)w * sizeof(float));
  return DP_OK;
}
static void load(dp_call *call, dp_tensor_kind kind, const Example *m) {
  uint64_t stream =
      3 * (call->step_state->step << 32 | call->microbatch) + (kind == DP_INPUT ? 2 : 3);
  for (int64_t i = 0; i < m->tokens * m->width; ++i)
    data(call->tensors[kind])[i] = draw(call->step_state->seed, stream, (uint64_t)i, 1.0f);
}
static dp_status load_input(dp_model *model, dp_call *call) {
  load(call, DP_INPUT, get(model));
  return DP_OK;
}
static dp_status load_labels(dp_model *model, dp_call *call) {
  load(call, DP_LABELS, get(model));
  return DP_OK;
}

static dp_status forward(dp_model *model, dp_call *call) {
  int64_t w = get(model)->width, n = get(model)->tokens * w;
  const float *x = data(call->tensors[DP_INPUT]), *W = data(call->params[0]);
  const float *b = data(call->params[1]), *labels = data(call->tensors[DP_LABELS]);
  float *saved = data(call->tensors[DP_SAVED]), *out = data(call->tensors[DP_OUTPUT]);
  double loss = 0;
  for (int64_t i = 0; i < n; ++i) { /* element (t, j) of the output */
    int64_t t = i / w, j = i % w;
    float z = b[j];
    for (int64_t k = 0; k < w; ++k)
      z += x[t * w + k] * W[j * w + k];
    float y = tanhf(z), difference = labels ? y - labels[i] : 0.0f;
    loss += (double)difference * difference;
    if (out)
      out[i] = y;
    if (saved) { /* NULL in forward-only runs */
      saved[i] = x[i];
      saved[n + i] = y;
      saved[2 * n + i] = (float)(call->loss_scale * 2.0 / (double)n) * difference;
    }
  }
  if (call->flags & DP_LAST_STAGE)
    *call->loss = loss / (double)n;
  return DP_OK;
}

static void input_half(const Example *m, dp_call *call, float *dz) {
  int64_t w = m->width, n = m->tokens * w;
  const float *saved = data(call->tensors[DP_SAVED]), *W = data(call->params[0]);
  const float *dy =
      call->flags & DP_LAST_STAGE ? saved + 2 * n : data(call->tensors[DP_GRAD_OUTPUT]);
  float *dx = data(call->tensors[DP_GRAD_INPUT]); /* NULL in the first stage */
  for (int64_t i = 0; i < n; ++i)
    dz[i] = dy[i] * (1.0f - saved[n + i] * saved[n + i]);
  for (int64_t i = 0; dx && i < n; ++i) {
    dx[i] = 0.0f;
    for (int64_t j = 0; j < w; ++j)
      dx[i] += dz[i / w * w + j] * W[j * w + i % w];
  }
}
static void weight_half(const Example *m, dp_call *call, const float *dz) {
  int64_t w = m->width;
  const float *x = data(call->tensors[DP_SAVED]);
  float *dW = data(call->grads[0]), *db = data(call->grads[1]);
  if (!(call->flags & DP_ACCUMULATE)) {
    memset(dW, 0, (size_t)(w * w) * sizeof(float));
    memset(db, 0, (size_t)w * sizeof(float));
  }
  for (int64_t i = 0; i < m->tokens * w; ++i) {
    db[i % w] += dz[i];
    for (int64_t k = 0; k < w; ++k)
      dW[i % w * w + k] += dz[i] * x[i / w * w + k];
  }
}

static dp_status backward_input(dp_model *model, dp_call *call) {
  input_half(get(model), call, data(call->tensors[DP_WEIGHT_CONTEXT]));
  return DP_OK;
}
static dp_status backward_weight(dp_model *model, dp_call *call) {
  weight_half(get(model), call, data(call->tensors[DP_WEIGHT_CONTEXT]));
  return DP_OK;
}
static dp_status backward(dp_model *model, dp_call *call) {
  input_half(get(model), call, call->workspace);
  weight_half(get(model), call, call->workspace);
  return DP_OK;
}

DP_EXPORT const dp_model_api *dp_get_model(void) {
  static const dp_model_api api = {
      .abi_version = DP_STAGE_ABI_VERSION,
      .struct_size = sizeof(dp_model_api),
      .name = "example",
      .settings = "width=16 tokens=8",
      .create = create,
      .destroy = destroy,
      .contract = contract,
      .tensor = tensor,
      .num_params = num_params,
      .param = param,
      .workspace_size = workspace_size,
      .init = init,
      .load_input = load_input,
      .load_labels = load_labels,
      .forward = forward,
      .backward = backward,
      .backward_input = backward_input,
      .backward_weight = backward_weight,
  };
  return &api;
}
