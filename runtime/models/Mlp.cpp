//===- Mlp.cpp - the arithmetic of the mlp model ----------------------------===//

#include "runtime/models/Mlp.h"

#include "runtime/models/CounterRandom.h"
#include "runtime/models/Settings.h"

#include "dualpipe/Runtime/AlignedBuffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace dualpipe::models {
namespace {

/// First part of the name of each stream of random numbers.
enum Stream : uint64_t { kWeights = 1, kInputs = 2, kLabels = 3 };

char *getData(const dp_call &call, dp_tensor_kind kind) {
  return call.tensors[kind] ? static_cast<char *>(call.tensors[kind]->data) : nullptr;
}

template <typename T>
void fillUniform(void *data, int64_t count, const CounterRandom &random, float scale) {
  T *values = static_cast<T *>(data);
  for (int64_t i = 0; i < count; ++i)
    values[i] = T(random.getUniform(uint64_t(i), scale));
}

void fill(Real type, void *data, int64_t count, const CounterRandom &random, float scale) {
  if (type == Real::F32)
    fillUniform<float>(data, count, random, scale);
  else
    fillUniform<double>(data, count, random, scale);
}

/// Turns outputs into the gradient of the scaled mean of their squared differences from the labels,
/// in place, and returns the unscaled mean. The squares are summed in double in eight interleaved
/// parts: a fixed order that the compiler can vectorise.
template <typename T>
double compareWithLabels(T *values, const T *labels, int64_t count, double scale) {
  constexpr int64_t kParts = 8;
  double sums[kParts] = {};
  T factor = T(scale * 2.0 / double(count));
  for (int64_t i = 0; i < count; ++i) {
    T difference = values[i] - labels[i];
    sums[i % kParts] += double(difference) * double(difference);
    values[i] = factor * difference;
  }
  double sum = 0;
  for (double part : sums)
    sum += part;
  return sum / double(count);
}

} // namespace

Result<MlpSettings> readMlpSettings(const dp_model_config &config) {
  MlpSettings settings;
  int64_t type = 0;
  Status status = Settings(config)
                      .integer("hidden", settings.hidden, 1, 65536)
                      .integer("seq", settings.seq, 1, 1 << 20)
                      .integer("batch", settings.batch, 1, 1 << 20)
                      .choice("dtype", type, {"f32", "f64"})
                      .integer("layers", settings.layers, 1, 1 << 20)
                      .finish();
  if (!status)
    return status;
  settings.type = type == 0 ? Real::F32 : Real::F64;
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
  if (Status status = mlp->prepare(); !status)
    return status;
  return mlp;
}

Status Mlp::prepare() {
  int64_t t = layout.tokens, h = layout.hidden, w = layout.wide;
  struct Entry {
    std::unique_ptr<MatrixProduct> &product;
    ProductShape shape;
  } entries[] = {
      {up, {t, w, h, false, true, false}},          // h1 = x * W1^T
      {down, {t, h, w, false, true, false}},        // y = g * W2^T
      {gradWide, {t, w, h, false, false, false}},   // dg = dy * W2
      {gradNarrow, {t, h, w, false, false, false}}, // dx = dh1 * W1
      {gradW1[0], {w, h, t, true, false, false}},   // dW1 = dh1^T * x
      {gradW1[1], {w, h, t, true, false, true}},    // dW1 += dh1^T * x
      {gradW2[0], {h, w, t, true, false, false}},   // dW2 = dy^T * g
      {gradW2[1], {h, w, t, true, false, true}},    // dW2 += dy^T * g
  };
  for (Entry &entry : entries) {
    auto product = createMatrixProduct(settings.type, entry.shape);
    if (!product)
      return product.getStatus();
    entry.product = std::move(*product);
    scratchBytes = std::max(scratchBytes, entry.product->getScratchBytes());
  }
  scratchBytes = runtime::alignTensor(scratchBytes);
  auto made = createGelu(settings.type, t * w);
  if (!made)
    return made.getStatus();
  gelu = std::move(*made);
  return Status::success();
}

/// Scratch of the products; behind it what a call keeps for itself: h1, g and two activations of a
/// forward that saves nothing, or the weight context of a full backward.
size_t Mlp::getWorkspaceBytes() const {
  return scratchBytes +
         std::max(2 * layout.narrowBytes + 2 * layout.wideBytes, layout.getContextBytes());
}

void Mlp::init(dp_call &call) const {
  // The bound of PyTorch's linear layers, 1 / sqrt(inputs). Blocks are numbered over the whole
  // model, so the weights do not depend on how it is split.
  for (int64_t block = 0; block < layout.blocks; ++block)
    for (int64_t layer = 0; layer < 2; ++layer) {
      uint64_t number = uint64_t(call.stage) * uint64_t(layout.blocks) + uint64_t(block);
      CounterRandom random{kWeights, call.step_state->seed, number, uint64_t(layer)};
      int64_t inputs = layer == 0 ? layout.hidden : layout.wide;
      fill(settings.type, call.params[2 * block + layer]->data, layout.hidden * layout.wide, random,
           float(1.0 / std::sqrt(double(inputs))));
    }
}

namespace {
/// Uniform numbers of variance one.
constexpr float kUnitVariance = 1.7320508f;
} // namespace

void Mlp::loadInput(dp_call &call) const {
  CounterRandom random{kInputs, call.step_state->seed, call.step_state->step, call.microbatch};
  fill(settings.type, getData(call, DP_INPUT), layout.tokens * layout.hidden, random,
       kUnitVariance);
}

void Mlp::loadLabels(dp_call &call) const {
  CounterRandom random{kLabels, call.step_state->seed, call.step_state->step, call.microbatch};
  fill(settings.type, getData(call, DP_LABELS), layout.tokens * layout.hidden, random,
       kUnitVariance);
}

Status Mlp::forwardBlock(const dp_call &call, int64_t block, const char *x, char *h1, char *g,
                         char *y) const {
  void *scratch = call.workspace;
  if (Status status = up->run(x, call.params[2 * block]->data, h1, scratch); !status)
    return status;
  if (Status status = gelu->forward(h1, g); !status)
    return status;
  return down->run(g, call.params[2 * block + 1]->data, y, scratch);
}

void Mlp::seed(const dp_call &call, char *output) const {
  const char *labels = getData(call, DP_LABELS);
  int64_t count = layout.tokens * layout.hidden;
  auto compare = [&]<typename T>(T) {
    return compareWithLabels(reinterpret_cast<T *>(output), reinterpret_cast<const T *>(labels),
                             count, call.loss_scale);
  };
  *call.loss = settings.type == Real::F32 ? compare(float()) : compare(double());
}

Status Mlp::forward(dp_call &call) const {
  char *work = static_cast<char *>(call.workspace) + scratchBytes;
  char *saved = getData(call, DP_SAVED);
  bool last = call.flags & DP_LAST_STAGE;
  const char *x = getData(call, DP_INPUT);
  if (saved) {
    std::memcpy(saved, x, size_t(layout.tokens * layout.hidden) * layout.elementBytes);
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
  if (last)
    seed(call, y);
  return Status::success();
}

/// From the last block to the first; leaves dy and dh1 of every block in `context`.
Status Mlp::backInput(const dp_call &call, char *context) const {
  void *scratch = call.workspace;
  const char *saved = getData(call, DP_SAVED);
  const char *incoming = call.flags & DP_LAST_STAGE
                             ? saved + layout.getSavedBytes() - layout.narrowBytes
                             : getData(call, DP_GRAD_OUTPUT);
  char *lastContext = context + size_t(layout.blocks - 1) * layout.getContextBlock();
  std::memcpy(lastContext, incoming, size_t(layout.tokens * layout.hidden) * layout.elementBytes);
  for (int64_t block = layout.blocks - 1; block >= 0; --block) {
    char *dy = context + size_t(block) * layout.getContextBlock();
    char *dh1 = dy + layout.narrowBytes;
    const char *h1 = saved + size_t(block) * layout.getSavedBlock() + layout.narrowBytes;
    if (Status status = gradWide->run(dy, call.params[2 * block + 1]->data, dh1, scratch); !status)
      return status;
    if (Status status = gelu->backward(h1, dh1, dh1); !status)
      return status;
    char *dx = block > 0 ? dy - layout.getContextBlock() : getData(call, DP_GRAD_INPUT);
    if (!dx) // the first stage hands no gradient on
      break;
    if (Status status = gradNarrow->run(dh1, call.params[2 * block]->data, dx, scratch); !status)
      return status;
  }
  return Status::success();
}

Status Mlp::backWeight(const dp_call &call, const char *context) const {
  void *scratch = call.workspace;
  const char *saved = getData(call, DP_SAVED);
  unsigned accumulate = call.flags & DP_ACCUMULATE ? 1 : 0;
  for (int64_t block = layout.blocks - 1; block >= 0; --block) {
    const char *x = saved + size_t(block) * layout.getSavedBlock();
    const char *g = x + layout.narrowBytes + layout.wideBytes;
    const char *dy = context + size_t(block) * layout.getContextBlock();
    const char *dh1 = dy + layout.narrowBytes;
    if (Status status = gradW2[accumulate]->run(dy, g, call.grads[2 * block + 1]->data, scratch);
        !status)
      return status;
    if (Status status = gradW1[accumulate]->run(dh1, x, call.grads[2 * block]->data, scratch);
        !status)
      return status;
  }
  return Status::success();
}

Status Mlp::backward(dp_call &call) const {
  char *context = static_cast<char *>(call.workspace) + scratchBytes;
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
