//===- Mlp.cpp - the functions of the mlp model ------------------------------===//

#include "runtime/models/Mlp.h"

#include "runtime/models/Settings.h"

#include "dualpipe/Runtime/AlignedBuffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace dualpipe::models {
namespace {

char *getData(const dp_call &call, dp_tensor_kind kind) {
  return call.tensors[kind] ? static_cast<char *>(call.tensors[kind]->data) : nullptr;
}

/// Uniform numbers of variance one.
constexpr float kUnitVariance = 1.7320508f;

} // namespace

Result<MlpSettings> readMlpSettings(const dp_model_config &config) {
  MlpSettings settings;
  int64_t type = 0;
  Status status = Settings(config)
                      .integer("hidden", settings.hidden, 1, 65536)
                      .integer("seq", settings.seq, 1, 1 << 20)
                      .integer("batch", settings.batch, 1, 1 << 20)
                      .choice("dtype", type, {"f32", "bf16", "f64"})
                      .integer("layers", settings.layers, 1, 1 << 20)
                      .finish();
  if (!status)
    return status;
  settings.type = Element(type);
  int64_t stages = config.num_stages;
  if (settings.layers == 0)
    settings.layers = stages;
  if (settings.layers % stages != 0)
    return Status::failure(
        fmt::format("cannot split {} layers into {} stages; set layers to a multiple of {}",
                    settings.layers, stages, stages));
  // The widest tensor has at most 2^30 elements: the math libraries index with 32 signed bits.
  if (settings.batch * settings.seq > (int64_t(1) << 30) / (4 * settings.hidden))
    return Status::failure(
        fmt::format("batch * seq * 4 * hidden is {}, expected at most {}; make one of them smaller",
                    settings.batch * settings.seq * 4 * settings.hidden, int64_t(1) << 30));
  return settings;
}

Result<std::unique_ptr<Mlp>> Mlp::create(const dp_model_config &config) {
  Result<MlpSettings> settings = readMlpSettings(config);
  if (!settings)
    return settings.getStatus();
  std::unique_ptr<Mlp> mlp(new Mlp());
  mlp->settings = *settings;
  MlpLayout &layout = mlp->layout;
  layout.tokens = settings->batch * settings->seq;
  layout.hidden = settings->hidden;
  layout.wide = 4 * settings->hidden;
  layout.blocks = settings->layers / config.num_stages;
  layout.elementBytes = getBytes(settings->type);
  layout.narrowBytes =
      runtime::alignTensor(size_t(layout.tokens * layout.hidden) * layout.elementBytes);
  layout.wideBytes =
      runtime::alignTensor(size_t(layout.tokens * layout.wide) * layout.elementBytes);
  if (config.device_type != kDLCPU) {
    mlp->math = createDeviceMlpMath(settings->type, layout.tokens, layout.hidden);
    return mlp;
  }
  Result<std::unique_ptr<MlpMath>> math =
      createHostMlpMath(settings->type, layout.tokens, layout.hidden);
  if (!math)
    return math.getStatus();
  mlp->math = std::move(*math);
  return mlp;
}

/// Scratch of the arithmetic; behind it what a call keeps for itself: h1, g and two activations of
/// a forward that saves nothing, or the weight context of a full backward.
size_t Mlp::getWorkspaceBytes() const {
  return math->getScratchBytes() +
         std::max(2 * layout.narrowBytes + 2 * layout.wideBytes, layout.getContextBytes());
}

Status Mlp::init(dp_call &call) const {
  // The bound of PyTorch's linear layers, 1 / sqrt(inputs). Blocks are numbered over the whole
  // model, so the weights do not depend on how it is split.
  for (int64_t block = 0; block < layout.blocks; ++block)
    for (int64_t layer = 0; layer < 2; ++layer) {
      uint64_t number = uint64_t(call.stage) * uint64_t(layout.blocks) + uint64_t(block);
      int64_t inputs = layer == 0 ? layout.hidden : layout.wide;
      float bound = float(1.0 / std::sqrt(double(inputs)));
      if (Status status = math->fill(call, {MlpStream::Weights, number, uint64_t(layer), bound},
                                     call.params[2 * block + layer]->data);
          !status)
        return status;
    }
  return Status::success();
}

Status Mlp::loadInput(dp_call &call) const {
  return math->fill(call, {MlpStream::Inputs, 0, call.microbatch, kUnitVariance},
                    getData(call, DP_INPUT));
}

Status Mlp::loadLabels(dp_call &call) const {
  return math->fill(call, {MlpStream::Labels, 0, call.microbatch, kUnitVariance},
                    getData(call, DP_LABELS));
}

Status Mlp::forwardBlock(const dp_call &call, int64_t block, const char *x, char *h1, char *g,
                         char *y) const {
  if (Status status = math->multiply(call, MlpProduct::Up, x, call.params[2 * block]->data, h1);
      !status)
    return status;
  if (Status status = math->gelu(call, h1, g); !status)
    return status;
  return math->multiply(call, MlpProduct::Down, g, call.params[2 * block + 1]->data, y);
}

Status Mlp::forward(dp_call &call) const {
  char *work = static_cast<char *>(call.workspace) + math->getScratchBytes();
  char *saved = getData(call, DP_SAVED);
  bool last = call.flags & DP_LAST_STAGE;
  const char *x = getData(call, DP_INPUT);
  if (saved) {
    if (Status status = math->copy(call, saved, x); !status)
      return status;
    x = saved;
  }
  char *y = nullptr;
  for (int64_t block = 0; block < layout.blocks; ++block) {
    // With `saved`, a block's output is the next block's saved x, or the place of the seed.
    char *base = saved ? saved + size_t(block) * layout.getSavedBlock() : nullptr;
    char *h1 = saved ? base + layout.narrowBytes : work;
    char *g = h1 + layout.wideBytes;
    y = saved ? base + layout.getSavedBlock()
              : work + 2 * layout.wideBytes + size_t(block % 2) * layout.narrowBytes;
    if (block + 1 == layout.blocks && !last)
      y = getData(call, DP_OUTPUT);
    if (Status status = forwardBlock(call, block, x, h1, g, y); !status)
      return status;
    x = y;
  }
  // The loss; the output becomes the gradient that seeds the backward.
  return last ? math->compare(call, y, getData(call, DP_LABELS)) : Status::success();
}

/// From the last block to the first; leaves dy and dh1 of every block in `context`.
Status Mlp::backInput(const dp_call &call, char *context) const {
  const char *saved = getData(call, DP_SAVED);
  const char *incoming = call.flags & DP_LAST_STAGE
                             ? saved + layout.getSavedBytes() - layout.narrowBytes
                             : getData(call, DP_GRAD_OUTPUT);
  char *lastContext = context + size_t(layout.blocks - 1) * layout.getContextBlock();
  if (Status status = math->copy(call, lastContext, incoming); !status)
    return status;
  for (int64_t block = layout.blocks - 1; block >= 0; --block) {
    char *dy = context + size_t(block) * layout.getContextBlock();
    char *dh1 = dy + layout.narrowBytes;
    const char *h1 = saved + size_t(block) * layout.getSavedBlock() + layout.narrowBytes;
    if (Status status =
            math->multiply(call, MlpProduct::GradWide, dy, call.params[2 * block + 1]->data, dh1);
        !status)
      return status;
    if (Status status = math->geluBackward(call, h1, dh1, dh1); !status)
      return status;
    char *dx = block > 0 ? dy - layout.getContextBlock() : getData(call, DP_GRAD_INPUT);
    if (!dx) // the first stage hands no gradient on
      break;
    if (Status status =
            math->multiply(call, MlpProduct::GradNarrow, dh1, call.params[2 * block]->data, dx);
        !status)
      return status;
  }
  return Status::success();
}

Status Mlp::backWeight(const dp_call &call, const char *context) const {
  const char *saved = getData(call, DP_SAVED);
  bool accumulate = call.flags & DP_ACCUMULATE;
  for (int64_t block = layout.blocks - 1; block >= 0; --block) {
    const char *x = saved + size_t(block) * layout.getSavedBlock();
    const char *g = x + layout.narrowBytes + layout.wideBytes;
    const char *dy = context + size_t(block) * layout.getContextBlock();
    const char *dh1 = dy + layout.narrowBytes;
    if (Status status = math->multiply(call, MlpProduct::GradW2, dy, g,
                                       call.grads[2 * block + 1]->data, accumulate);
        !status)
      return status;
    if (Status status = math->multiply(call, MlpProduct::GradW1, dh1, x,
                                       call.grads[2 * block]->data, accumulate);
        !status)
      return status;
  }
  return Status::success();
}

Status Mlp::backward(dp_call &call) const {
  char *context = static_cast<char *>(call.workspace) + math->getScratchBytes();
  if (Status status = backInput(call, context); !status)
    return status;
  return backWeight(call, context);
}

Status Mlp::backwardInput(dp_call &call) const {
  return backInput(call, getData(call, DP_WEIGHT_CONTEXT));
}

Status Mlp::backwardWeight(dp_call &call) const {
  return backWeight(call, getData(call, DP_WEIGHT_CONTEXT));
}

} // namespace dualpipe::models
