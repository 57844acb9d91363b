//===- MlpHost.cpp - the arithmetic of the mlp model on the host ------------===//
//
// float32 and float64 go to the math libraries. A bf16 product widens its
// operands, multiplies in float32 and rounds once.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Kernels.h"
#include "runtime/models/CounterRandom.h"
#include "runtime/models/MlpMath.h"

#include "dualpipe/Runtime/AlignedBuffer.h"

#include <algorithm>
#include <cstring>

namespace dualpipe::models {
namespace {

using kernels::Bf16;
using kernels::load;
using kernels::store;
using kernels::WideOf;
using runtime::alignTensor;

template <typename From, typename To> void convert(const From *in, To *out, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = store<To>(load(in[i]));
}

template <typename T>
void fillUniform(void *out, int64_t count, const CounterRandom &random, float scale) {
  T *values = static_cast<T *>(out);
  for (int64_t i = 0; i < count; ++i)
    values[i] = store<T>(random.getUniform(uint64_t(i), scale));
}

/// The squares are summed in double in eight interleaved parts: a fixed order that the compiler can
/// vectorise.
template <typename T>
double compareWithLabels(void *outputs, const void *targets, int64_t count, double scale) {
  using Wide = WideOf<T>;
  T *values = static_cast<T *>(outputs);
  const T *labels = static_cast<const T *>(targets);
  constexpr int64_t kParts = 8;
  double sums[kParts] = {};
  Wide factor = Wide(scale * 2.0 / double(count));
  for (int64_t i = 0; i < count; ++i) {
    Wide difference = load(values[i]) - load(labels[i]);
    sums[i % kParts] += double(difference) * double(difference);
    values[i] = store<T>(factor * difference);
  }
  double sum = 0;
  for (double part : sums)
    sum += part;
  return sum / double(count);
}

/// Calls `function` with a value of the type of activations.
template <typename Function> auto withType(Element type, Function function) {
  switch (type) {
  case Element::F32:
    return function(float());
  case Element::BF16:
    return function(Bf16());
  case Element::F64:
    break;
  }
  return function(double());
}

/// The products of one type. bf16 ones have their operands and result widened in scratch.
class HostProducts {
public:
  Status prepare(Element elementType,
                 const std::array<ProductShape, kNumMlpProducts> &productShapes) {
    type = elementType;
    shapes = productShapes;
    for (unsigned i = 0; i < kNumMlpProducts; ++i)
      for (bool accumulate : {false, true}) {
        ProductShape shape = shapes[i];
        shape.accumulate = accumulate;
        auto made = createMatrixProduct(getSumType(type), shape);
        if (!made)
          return made.getStatus();
        scratchBytes = std::max(scratchBytes, alignTensor((*made)->getScratchBytes()));
        products[i][accumulate] = std::move(*made);
        const auto [a, b, c] = getCounts(shape);
        wideBytes = std::max(wideBytes, getAreaBytes(a) + getAreaBytes(b) + getAreaBytes(c));
      }
    return Status::success();
  }

  size_t getScratchBytes() const { return scratchBytes + (type == Element::BF16 ? wideBytes : 0); }

  Status run(MlpProduct product, const void *a, const void *b, void *c, bool accumulate,
             void *scratch) const {
    const MatrixProduct &made = *products[unsigned(product)][accumulate];
    if (type != Element::BF16)
      return made.run(a, b, c, scratch);
    const auto [countA, countB, countC] = getCounts(shapes[unsigned(product)]);
    auto *wideA = reinterpret_cast<float *>(static_cast<char *>(scratch) + scratchBytes);
    float *wideB = wideA + getAreaBytes(countA) / sizeof(float);
    float *wideC = wideB + getAreaBytes(countB) / sizeof(float);
    convert(static_cast<const Bf16 *>(a), wideA, countA);
    if (!hasParameter(product)) {
      convert(static_cast<const Bf16 *>(b), wideB, countB);
      return made.run(wideA, wideB, c, scratch);
    }
    // Parameters take part rounded, as on a GPU.
    const float *parameter = static_cast<const float *>(b);
    for (int64_t i = 0; i < countB; ++i)
      wideB[i] = kernels::widen(kernels::roundToBf16(parameter[i]));
    if (Status status = made.run(wideA, wideB, wideC, scratch); !status)
      return status;
    convert(wideC, static_cast<Bf16 *>(c), countC);
    return Status::success();
  }

private:
  static std::array<int64_t, 3> getCounts(const ProductShape &shape) {
    return {shape.rows * shape.inner, shape.inner * shape.columns, shape.rows * shape.columns};
  }
  static size_t getAreaBytes(int64_t count) { return alignTensor(size_t(count) * sizeof(float)); }

  Element type = Element::F32;
  std::array<ProductShape, kNumMlpProducts> shapes;
  std::unique_ptr<MatrixProduct> products[kNumMlpProducts][2];
  size_t scratchBytes = 0, wideBytes = 0;
};

class HostMlpMath : public MlpMath {
public:
  HostMlpMath(Element type, int64_t tokens, int64_t hidden)
      : type(type), narrow(tokens * hidden), wide(4 * narrow), parameter(4 * hidden * hidden) {}

  Status prepare(int64_t tokens, int64_t hidden) {
    if (type != Element::BF16) {
      auto made = createGelu(getSumType(type), wide);
      if (!made)
        return made.getStatus();
      function = std::move(*made);
    }
    return products.prepare(type, getMlpShapes(tokens, hidden, 4 * hidden));
  }

  size_t getScratchBytes() const override { return products.getScratchBytes(); }

  Status multiply(const dp_call &call, MlpProduct product, const void *a, const void *b, void *c,
                  bool accumulate) const override {
    return products.run(product, a, b, c, accumulate, call.workspace);
  }

  Status gelu(const dp_call &, const void *in, void *out) const override {
    if (type != Element::BF16)
      return function->forward(in, out);
    const kernels::GeluForward<Bf16> kernel = {static_cast<const Bf16 *>(in),
                                               static_cast<Bf16 *>(out), wide};
    kernels::forEachItem(kernel, 0, 1);
    return Status::success();
  }

  Status geluBackward(const dp_call &, const void *in, const void *gradOut,
                      void *gradIn) const override {
    if (type != Element::BF16)
      return function->backward(in, gradOut, gradIn);
    const kernels::GeluBackward<Bf16> kernel = {static_cast<const Bf16 *>(in),
                                                static_cast<const Bf16 *>(gradOut),
                                                static_cast<Bf16 *>(gradIn), wide};
    kernels::forEachItem(kernel, 0, 1);
    return Status::success();
  }

  Status copy(const dp_call &, void *to, const void *from) const override {
    std::memcpy(to, from, size_t(narrow) * getBytes(type));
    return Status::success();
  }

  Status fill(const dp_call &call, const MlpRandom &random, void *out) const override {
    const uint64_t first = random.usesStep() ? call.step_state->step : random.first;
    const CounterRandom numbers{uint64_t(random.kind), call.step_state->seed, first, random.second};
    if (random.usesStep())
      withType(type, [&]<typename T>(T) { fillUniform<T>(out, narrow, numbers, random.scale); });
    else if (getSumType(type) == Real::F32)
      fillUniform<float>(out, parameter, numbers, random.scale);
    else
      fillUniform<double>(out, parameter, numbers, random.scale);
    return Status::success();
  }

  Status compare(const dp_call &call, void *values, const void *labels) const override {
    *call.loss = withType(type, [&]<typename T>(T) {
      return compareWithLabels<T>(values, labels, narrow, call.loss_scale);
    });
    return Status::success();
  }

private:
  Element type;
  int64_t narrow, wide, parameter; ///< elements
  HostProducts products;
  std::unique_ptr<Gelu> function; ///< not for bf16
};

} // namespace

Result<std::unique_ptr<MlpMath>> createHostMlpMath(Element type, int64_t tokens, int64_t hidden) {
  auto math = std::make_unique<HostMlpMath>(type, tokens, hidden);
  if (Status status = math->prepare(tokens, hidden); !status)
    return status;
  return std::unique_ptr<MlpMath>(std::move(math));
}

} // namespace dualpipe::models
