//===- MlpDevice.cpp - the arithmetic of the mlp model on a GPU -------------===//
//
// Puts kernels, cuBLAS products and copies on the stream of the call, through the
// DeviceMath that the call brings. Parameters of a bf16 model are float32 and
// rounded to bf16 for each product, into scratch. Never run on a GPU so far.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/DeviceMath.h"
#include "runtime/models/MlpMath.h"

#include "dualpipe/Runtime/AlignedBuffer.h"

#include <algorithm>

namespace dualpipe::models {
namespace {

using kernels::Bf16;
using runtime::alignTensor;

kernels::DeviceMath &getMath(const dp_call &call) {
  return *static_cast<kernels::DeviceMath *>(call.runtime);
}
runtime::cuda::Stream getStream(const dp_call &call) {
  return static_cast<runtime::cuda::Stream>(call.stream);
}
template <typename Kernel> Status launch(const dp_call &call, const Kernel &kernel) {
  return getMath(call).launch(getStream(call), kernel);
}

template <typename T>
Status fillUniform(const dp_call &call, const MlpRandom &random, void *out, int64_t count) {
  return launch(call, kernels::FillUniform<T>{static_cast<T *>(out), call.step_state,
                                              uint64_t(random.kind), random.first, random.second,
                                              count, random.usesStep(), random.scale, 0, 0});
}

template <typename T> Status gelu(const dp_call &call, const void *in, void *out, int64_t count) {
  return launch(call,
                kernels::GeluForward<T>{static_cast<const T *>(in), static_cast<T *>(out), count});
}

template <typename T>
Status geluBackward(const dp_call &call, const void *in, const void *gradOut, void *gradIn,
                    int64_t count) {
  return launch(call, kernels::GeluBackward<T>{static_cast<const T *>(in),
                                               static_cast<const T *>(gradOut),
                                               static_cast<T *>(gradIn), count});
}

/// Three launches: partial sums, their sums, and the sum of those.
template <typename T>
Status compareWithLabels(const dp_call &call, void *values, const void *labels, int64_t count) {
  auto *parts = static_cast<double *>(call.workspace);
  const int64_t numParts = kernels::getNumLossParts(count);
  double *folded = parts + numParts;
  const kernels::FoldParts fold = {parts, folded, numParts, 1.0};
  Status status = launch(call, kernels::SquaredError<T>{static_cast<T *>(values),
                                                        static_cast<const T *>(labels), parts,
                                                        count, call.loss_scale});
  if (status.ok())
    status = launch(call, fold);
  if (status.ok())
    status = launch(call, kernels::FoldParts{folded, call.loss, fold.getSize(), double(count)});
  return status;
}

class DeviceMlpMath : public MlpMath {
public:
  DeviceMlpMath(Element type, int64_t tokens, int64_t hidden)
      : type(type), narrow(tokens * hidden), wide(4 * narrow), parameter(4 * hidden * hidden),
        shapes(getMlpShapes(tokens, hidden, 4 * hidden)) {}

  size_t getScratchBytes() const override {
    const size_t rounded = type == Element::BF16 ? size_t(parameter) * sizeof(Bf16) : 0;
    const size_t loss = size_t(kernels::getNumLossSums(narrow)) * sizeof(double);
    return alignTensor(std::max(rounded, loss));
  }

  Status multiply(const dp_call &call, MlpProduct product, const void *a, const void *b, void *c,
                  bool accumulate) const override {
    const ProductShape &shape = shapes[unsigned(product)];
    const bool isGradient = !hasParameter(product);
    if (type == Element::BF16 && !isGradient) {
      const kernels::Cast<float, Bf16> cast = {static_cast<const float *>(b),
                                               static_cast<Bf16 *>(call.workspace), parameter};
      if (Status status = launch(call, cast); !status.ok())
        return status;
      b = call.workspace;
    }
    const Element sums = type == Element::F64 ? Element::F64 : Element::F32;
    return getMath(call).multiply(getStream(call),
                                  {shape.rows, shape.columns, shape.inner, shape.transposeA,
                                   shape.transposeB, accumulate, type, isGradient ? sums : type},
                                  a, b, c);
  }

  Status gelu(const dp_call &call, const void *in, void *out) const override {
    switch (type) {
    case Element::F32:
      return models::gelu<float>(call, in, out, wide);
    case Element::BF16:
      return models::gelu<Bf16>(call, in, out, wide);
    case Element::F64:
      break;
    }
    return models::gelu<double>(call, in, out, wide);
  }

  Status geluBackward(const dp_call &call, const void *in, const void *gradOut,
                      void *gradIn) const override {
    switch (type) {
    case Element::F32:
      return models::geluBackward<float>(call, in, gradOut, gradIn, wide);
    case Element::BF16:
      return models::geluBackward<Bf16>(call, in, gradOut, gradIn, wide);
    case Element::F64:
      break;
    }
    return models::geluBackward<double>(call, in, gradOut, gradIn, wide);
  }

  Status copy(const dp_call &call, void *to, const void *from) const override {
    return getMath(call).copy(getStream(call), to, from, size_t(narrow) * getBytes(type));
  }

  Status fill(const dp_call &call, const MlpRandom &random, void *out) const override {
    if (!random.usesStep())
      return getSumType(type) == Real::F32 ? fillUniform<float>(call, random, out, parameter)
                                           : fillUniform<double>(call, random, out, parameter);
    switch (type) {
    case Element::F32:
      return fillUniform<float>(call, random, out, narrow);
    case Element::BF16:
      return fillUniform<Bf16>(call, random, out, narrow);
    case Element::F64:
      break;
    }
    return fillUniform<double>(call, random, out, narrow);
  }

  Status compare(const dp_call &call, void *values, const void *labels) const override {
    switch (type) {
    case Element::F32:
      return compareWithLabels<float>(call, values, labels, narrow);
    case Element::BF16:
      return compareWithLabels<Bf16>(call, values, labels, narrow);
    case Element::F64:
      break;
    }
    return compareWithLabels<double>(call, values, labels, narrow);
  }

private:
  Element type;
  int64_t narrow, wide, parameter; ///< elements
  std::array<ProductShape, kNumMlpProducts> shapes;
};

} // namespace

std::unique_ptr<MlpMath> createDeviceMlpMath(Element type, int64_t tokens, int64_t hidden) {
  return std::make_unique<DeviceMlpMath>(type, tokens, hidden);
}

} // namespace dualpipe::models
