//===- MlpMath.h - the arithmetic that the mlp model is written in ----------===//
//
// One mlp (Mlp.cpp) runs on the host and on GPUs: these are the operations that
// differ. MlpHost.cpp has them as functions of math libraries, MlpDevice.cpp as
// calls that put work on the stream of the call.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_MODELS_MLPMATH_H
#define DUALPIPE_RUNTIME_MODELS_MLPMATH_H

#include "runtime/kernels/Element.h"
#include "runtime/models/Math.h"

#include "dualpipe/Support/Status.h"
#include "dualpipe/stage.h"

#include <array>
#include <cstdint>
#include <memory>

namespace dualpipe::models {

using kernels::Element;

/// Bytes of an element of an activation.
inline size_t getBytes(Element type) {
  return type == Element::BF16 ? 2 : type == Element::F32 ? 4 : 8;
}
/// The type of parameters, gradients and sums.
inline Real getSumType(Element type) { return type == Element::F64 ? Real::F64 : Real::F32; }

/// The products of a block. The second operand of the first four is a parameter; the others are of
/// two activations and give a gradient.
enum class MlpProduct : unsigned {
  Up,         ///< h1 = x * W1^T
  Down,       ///< y = g * W2^T
  GradWide,   ///< dg = dy * W2
  GradNarrow, ///< dx = dh1 * W1
  GradW1,     ///< dW1 = dh1^T * x
  GradW2,     ///< dW2 = dy^T * g
};
inline constexpr unsigned kNumMlpProducts = 6;
inline bool hasParameter(MlpProduct product) { return product < MlpProduct::GradW1; }

/// Their shapes, by MlpProduct, for t tokens of width h and w = 4 h.
inline std::array<ProductShape, kNumMlpProducts> getMlpShapes(int64_t t, int64_t h, int64_t w) {
  return {{{t, w, h, false, true},
           {t, h, w, false, true},
           {t, w, h, false, false},
           {t, h, w, false, false},
           {w, h, t, true, false},
           {h, w, t, true, false}}};
}

/// Whose numbers a stream of random numbers is: the first part of its name.
enum class MlpStream : uint64_t { Weights = 1, Inputs = 2, Labels = 3 };

/// Uniform numbers in (-scale, scale) of the stream (kind, seed, first, second).
struct MlpRandom {
  MlpStream kind;
  uint64_t first; ///< not of inputs and labels: there the step of the run stands for it
  uint64_t second;
  float scale;
  bool usesStep() const { return kind != MlpStream::Weights; }
};

/// All pointers are to memory of the call's place; activations are of the model's type, parameters
/// and gradients of its sum type. Immutable: calls may run at the same time.
class MlpMath {
public:
  virtual ~MlpMath() = default;
  /// At the start of the call's workspace, for any of the functions.
  virtual size_t getScratchBytes() const = 0;

  /// `accumulate` for gradients alone.
  virtual Status multiply(const dp_call &call, MlpProduct product, const void *a, const void *b,
                          void *c, bool accumulate = false) const = 0;
  /// On tokens * wide elements. `gradIn` may be `gradOut`.
  virtual Status gelu(const dp_call &call, const void *in, void *out) const = 0;
  virtual Status geluBackward(const dp_call &call, const void *in, const void *gradOut,
                              void *gradIn) const = 0;
  /// An activation of tokens * hidden elements.
  virtual Status copy(const dp_call &call, void *to, const void *from) const = 0;
  /// Fills a parameter, hidden * wide elements, or an activation, tokens * hidden elements.
  virtual Status fill(const dp_call &call, const MlpRandom &random, void *out) const = 0;
  /// Turns outputs into the gradient of the scaled mean of their squared differences from the
  /// labels, in place, and writes the unscaled mean to the call's loss.
  virtual Status compare(const dp_call &call, void *values, const void *labels) const = 0;
};

Result<std::unique_ptr<MlpMath>> createHostMlpMath(Element type, int64_t tokens, int64_t hidden);
std::unique_ptr<MlpMath> createDeviceMlpMath(Element type, int64_t tokens, int64_t hidden);

} // namespace dualpipe::models

#endif // DUALPIPE_RUNTIME_MODELS_MLPMATH_H
