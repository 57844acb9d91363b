/*===- stage.h - the C interface between the runtime and a model ------------===*
 *
 * A model is a chain of stages. The runtime owns all memory and decides when a
 * stage function runs; the model says how large its tensors are and computes.
 * Built-in models and plug-ins (shared objects that export `dp_get_model`) use
 * this interface alike.
 *
 * Rules
 *   - Calls for different stages, and for different copies of one stage (each has
 *     parameters of its own, on a rank of its own), may run at the same time, on
 *     different threads. Calls for one copy of one stage never do.
 *   - A function computes on `call->stream` of `call->device` only. On the CPU
 *     `stream` is NULL and the function has finished when it returns. On CUDA it
 *     is a `CUstream`; a function may fork from it and must join it again,
 *     allocates nothing, synchronises nothing and reads nothing back. Tensors,
 *     workspace, `loss` and `step_state` are then in memory of the device, whose
 *     primary context is current; the numbers in `dp_call` itself are the host's.
 *   - It returns `DP_OK`, or `DP_ERROR` after writing a message (lower case, no
 *     full stop) with `dp_fail`.
 *   - The same inputs give the same bits.
 *   - It keeps no state between calls apart from what `create` made: whatever a
 *     later half needs travels in `saved` and `weight_context`.
 *
 *===------------------------------------------------------------------------===*/

#ifndef DUALPIPE_STAGE_H
#define DUALPIPE_STAGE_H

#include <dlpack/dlpack.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a field changes its meaning or its place. Fields are only added
 * at the end of a struct, and a struct carries its size, but for two that never
 * grow: dp_tensor_spec and dp_step_state. */
#define DP_STAGE_ABI_VERSION 1
#define DP_MAX_DIMS 8

typedef enum dp_status { DP_OK = 0, DP_ERROR = 1 } dp_status;

/* The tensors that pass between the functions of a stage. */
typedef enum dp_tensor_kind {
  DP_INPUT = 0,          /* activation that enters the stage */
  DP_OUTPUT = 1,         /* activation that leaves the stage */
  DP_GRAD_OUTPUT = 2,    /* gradient with respect to the output (comes in) */
  DP_GRAD_INPUT = 3,     /* gradient with respect to the input (goes out) */
  DP_SAVED = 4,          /* what the forward keeps for the backward halves */
  DP_WEIGHT_CONTEXT = 5, /* what the input half keeps for the weight half */
  DP_LABELS = 6,         /* targets of the last stage */
  DP_NUM_TENSOR_KINDS = 7
} dp_tensor_kind;

/* Bits for `dp_contract`: 1 << dp_tensor_kind. */
#define DP_READS(kind) (1u << (kind))

typedef enum dp_call_flags {
  DP_ACCUMULATE = 1,   /* add to the gradients; without it, overwrite them */
  DP_FORWARD_ONLY = 2, /* no backward follows: `saved` is NULL */
  DP_FIRST_STAGE = 4,  /* no gradient leaves: `grad_input` is NULL */
  DP_LAST_STAGE =
      8 /* labels come in; the forward writes its loss; `output` and `grad_output` are NULL */
} dp_call_flags;

/* Type and shape of one tensor; `ndim` 0 and `present` 0 where a stage has no such tensor. */
typedef struct dp_tensor_spec {
  DLDataType dtype;
  int32_t present;
  int32_t ndim;
  int64_t shape[DP_MAX_DIMS];
} dp_tensor_spec;

/* What changes from step to step, in memory of the device so that a captured
 * graph finds it. */
typedef struct dp_step_state {
  uint64_t step; /* counts from 0 */
  uint64_t seed;
  double learning_rate;
} dp_step_state;

/* One call of a stage function. Tensors that do not apply are NULL. */
typedef struct dp_call {
  uint32_t struct_size;
  uint32_t stage;      /* global stage number */
  uint32_t microbatch; /* global micro-batch number */
  uint32_t component;  /* which component of the stage; 0 where there is one */
  uint32_t flags;      /* dp_call_flags */
  uint32_t num_params;
  /* 1 / (micro-batches * replicas): the gradient of the loss is scaled by it, once, by the last
   * stage when it seeds its own backward. The loss itself is written unscaled. */
  double loss_scale;
  void *stream;
  DLDevice device;
  const dp_step_state *step_state;
  DLTensor *tensors[DP_NUM_TENSOR_KINDS]; /* by dp_tensor_kind */
  DLTensor *const *params;                /* num_params tensors */
  DLTensor *const *grads; /* the same number and shapes; NULL in forward-only runs */
  double *loss;           /* one value, written by the forward of the last stage */
  void *workspace;        /* scratch, undefined at entry */
  size_t workspace_size;  /* bytes */
  char *message;          /* where a failing function writes why */
  size_t message_size;    /* bytes, with the closing zero */
  /* The runtime's own: what the built-in models compute with on a device; NULL on the CPU. A
   * plug-in leaves it alone. */
  void *runtime;
} dp_call;

/* Which tensors each backward function reads, as DP_READS bits, and how many
 * components and size groups the stages have. The program was compiled for such
 * a contract; a model may read less than the program keeps alive, never more. */
typedef struct dp_contract {
  uint32_t struct_size;
  uint32_t num_components;
  uint32_t backward_reads;
  uint32_t backward_input_reads;
  uint32_t backward_weight_reads;
  uint32_t num_size_groups;
} dp_contract;

/* What a model is created from. Keys and values come from `--set KEY=VALUE`. */
typedef struct dp_model_config {
  uint32_t struct_size;
  uint32_t num_stages;
  uint32_t num_microbatches;
  uint32_t num_settings;
  const char *const *keys;
  const char *const *values;
  DLDeviceType device_type;
} dp_model_config;

typedef struct dp_model dp_model; /* the model's own */

typedef struct dp_model_api {
  uint32_t abi_version; /* DP_STAGE_ABI_VERSION */
  uint32_t struct_size; /* sizeof(dp_model_api) */
  const char *name;
  const char *settings; /* one line for the user: "hidden=512 seq=256 batch=3 dtype=f32|f64" */

  /* Makes a model, or writes into `message` why not (an unknown key, a value out of range, a
   * number of stages it cannot be split into). */
  dp_status (*create)(const dp_model_config *config, dp_model **out, char *message,
                      size_t message_size);
  void (*destroy)(dp_model *model);

  dp_status (*contract)(const dp_model *model, dp_contract *out);
  /* Type and shape of a tensor of a stage. For SAVED and WEIGHT_CONTEXT the shape is the model's
   * own affair; only the number of bytes matters to the runtime. */
  dp_status (*tensor)(const dp_model *model, uint32_t stage, dp_tensor_kind kind,
                      dp_tensor_spec *out);
  uint32_t (*num_params)(const dp_model *model, uint32_t stage);
  dp_status (*param)(const dp_model *model, uint32_t stage, uint32_t index, dp_tensor_spec *out);
  size_t (*workspace_size)(const dp_model *model, uint32_t stage); /* bytes, for any function */

  /* Writes the initial parameters of `call->stage`: a function of seed and stage only. */
  dp_status (*init)(dp_model *model, dp_call *call);
  /* Writes tensors[DP_INPUT] (first stage) or tensors[DP_LABELS] (last stage) of one micro-batch:
   * a function of seed, step and micro-batch only. */
  dp_status (*load_input)(dp_model *model, dp_call *call);
  dp_status (*load_labels)(dp_model *model, dp_call *call);

  dp_status (*forward)(dp_model *model, dp_call *call);
  dp_status (*backward)(dp_model *model, dp_call *call); /* both halves */
  dp_status (*backward_input)(dp_model *model,
                              dp_call *call); /* writes grad_input, weight_context */
  dp_status (*backward_weight)(dp_model *model, dp_call *call); /* writes the gradients */

  /* Optional (NULL): several independent calls at once, bit-equal to one after the other.
   * `functions[i]` is the member of this struct that call i stands for. */
  dp_status (*fused)(dp_model *model, dp_call *const *calls,
                     dp_status (*const *functions)(dp_model *, dp_call *), uint32_t num_calls);
  /* Optional (NULL): the model's own optimizer step for one copy of one stage; otherwise the
   * runtime's optimizer updates the parameters. */
  dp_status (*step)(dp_model *model, dp_call *call);
} dp_model_api;

/* The one symbol that a plug-in exports. */
typedef const dp_model_api *(*dp_get_model_fn)(void);
#define DP_GET_MODEL_SYMBOL "dp_get_model"

#if defined(__GNUC__)
#define DP_EXPORT __attribute__((visibility("default")))
#else
#define DP_EXPORT
#endif

/* Writes why a function fails, cut to `message_size`, and returns DP_ERROR:
 * `return dp_fail(call->message, call->message_size, "...")`. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4), unused))
#endif
static inline dp_status dp_fail(char *message, size_t message_size, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, message_size, format, arguments);
  va_end(arguments);
  return DP_ERROR;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DUALPIPE_STAGE_H */
