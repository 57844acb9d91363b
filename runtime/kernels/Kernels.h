//===- Kernels.h - what the kernels do to one element ------------------------===//
//
// A kernel is a struct of its arguments with `getSize()`, how many work items it
// has, and `operator()(i)`, what item i does. Items are independent, so any number
// of threads in any order gives the same bits; what has an order (a sum) has it
// inside an item. `forEachItem` is the loop of one thread over its items: that of
// the GPU kernel and that of its twin on the host.
//
// `visitMemory` says what a launch reads and writes, for the software device.
//
// To add a kernel: the struct here, one row per type in Kernels.def.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_KERNELS_KERNELS_H
#define DUALPIPE_RUNTIME_KERNELS_KERNELS_H

#include "runtime/kernels/Element.h"
#include "runtime/kernels/Random.h"

#include "dualpipe/stage.h"

namespace dualpipe::kernels {

/// Runs the items of one thread: `first`, `first + stride`, ...
template <typename Kernel>
DUALPIPE_DEVICE inline void forEachItem(Kernel kernel, int64_t first, int64_t stride) {
  if constexpr (requires { kernel.prepare(); })
    if (first < kernel.getSize())
      kernel.prepare();
  for (int64_t i = first; i < kernel.getSize(); i += stride)
    kernel(i);
}

/// Threads of a block, and blocks of a grid at most: a multiple of what any GPU keeps resident.
inline constexpr unsigned kBlockThreads = 256;
inline constexpr unsigned kMaxBlocks = 4096;

/// Blocks for so many items.
constexpr unsigned getNumBlocks(int64_t size) {
  int64_t blocks = (size + kBlockThreads - 1) / kBlockThreads;
  return unsigned(blocks < kMaxBlocks ? blocks : kMaxBlocks);
}

/// Random numbers of the stream (kind, seed, first, second). With `usesStep`, the step of the run
/// stands for `first`: seed and step are read on the device, so that a captured graph gets those
/// of its launch.
template <typename T> struct FillUniform {
  T *out;
  const dp_step_state *state;
  uint64_t kind, first, second;
  int64_t count;
  uint64_t usesStep;
  float scale;
  uint32_t padding; ///< no byte of an argument is undefined
  uint64_t key;     ///< of `prepare`; 0 before

  DUALPIPE_DEVICE int64_t getSize() const { return count; }
  DUALPIPE_DEVICE void prepare() {
    key = extendKey(extendKey(0, kind), state->seed);
    key = extendKey(extendKey(key, usesStep ? state->step : first), second);
  }
  DUALPIPE_DEVICE void operator()(int64_t i) const {
    out[i] = store<T>(getUniform(key, uint64_t(i), scale));
  }
  template <typename Visitor> void visitMemory(Visitor &visit) const {
    visit.reads(state, 1);
    visit.writes(out, count);
  }
};

template <typename From, typename To> struct Cast {
  const From *in;
  To *out;
  int64_t count;

  DUALPIPE_DEVICE int64_t getSize() const { return count; }
  DUALPIPE_DEVICE void operator()(int64_t i) const { out[i] = store<To>(load(in[i])); }
  template <typename Visitor> void visitMemory(Visitor &visit) const {
    visit.reads(in, count);
    visit.writes(out, count);
  }
};

template <typename T> struct Scale {
  T *values;
  double factor;
  int64_t count;

  DUALPIPE_DEVICE int64_t getSize() const { return count; }
  DUALPIPE_DEVICE void operator()(int64_t i) const {
    values[i] = store<T>(load(values[i]) * WideOf<T>(factor));
  }
  template <typename Visitor> void visitMemory(Visitor &visit) const {
    visit.reads(values, count);
    visit.writes(values, count);
  }
};

/// The distribution function of the standard normal distribution.
template <typename Real> DUALPIPE_DEVICE inline Real getNormalCdf(Real x) {
  return Real(0.5) * (Real(1) + errorFunction(x * Real(0.70710678118654752440)));
}

/// The exact GELU, x * cdf(x) (Hendrycks and Gimpel, "Gaussian error linear units", 2016).
template <typename T> struct GeluForward {
  const T *in;
  T *out;
  int64_t count;

  DUALPIPE_DEVICE int64_t getSize() const { return count; }
  DUALPIPE_DEVICE void operator()(int64_t i) const {
    WideOf<T> x = load(in[i]);
    out[i] = store<T>(x * getNormalCdf(x));
  }
  template <typename Visitor> void visitMemory(Visitor &visit) const {
    visit.reads(in, count);
    visit.writes(out, count);
  }
};

/// d/dx x * cdf(x) = cdf(x) + x * pdf(x), times what comes in. `gradIn` may be `gradOut`.
template <typename T> struct GeluBackward {
  const T *in;
  const T *gradOut;
  T *gradIn;
  int64_t count;

  DUALPIPE_DEVICE int64_t getSize() const { return count; }
  DUALPIPE_DEVICE void operator()(int64_t i) const {
    using Real = WideOf<T>;
    Real x = load(in[i]);
    Real pdf = Real(0.39894228040143267794) * exponential(Real(-0.5) * x * x);
    gradIn[i] = store<T>(load(gradOut[i]) * (getNormalCdf(x) + x * pdf));
  }
  template <typename Visitor> void visitMemory(Visitor &visit) const {
    visit.reads(in, count);
    visit.reads(gradOut, count);
    visit.writes(gradIn, count);
  }
};

/// Adds bias[column] to every row, in place.
template <typename T> struct AddBias {
  T *values;
  const WideOf<T> *bias;
  int64_t rows, columns;

  DUALPIPE_DEVICE int64_t getSize() const { return rows * columns; }
  DUALPIPE_DEVICE void operator()(int64_t i) const {
    values[i] = store<T>(load(values[i]) + bias[i % columns]);
  }
  template <typename Visitor> void visitMemory(Visitor &visit) const {
    visit.reads(values, getSize());
    visit.reads(bias, columns);
    visit.writes(values, getSize());
  }
};

/// Rows that one item of SumRows adds up.
inline constexpr int64_t kRowsOfPart = 64;
constexpr DUALPIPE_DEVICE inline int64_t getNumRowParts(int64_t rows) {
  return (rows + kRowsOfPart - 1) / kRowsOfPart;
}

/// The gradient of a bias, first half: parts[part, column] is the sum of kRowsOfPart rows, from the
/// first to the last. How the rows are parted depends on their number alone.
template <typename T> struct SumRows {
  const T *in;
  WideOf<T> *parts;
  int64_t rows, columns;

  DUALPIPE_DEVICE int64_t getSize() const { return getNumRowParts(rows) * columns; }
  DUALPIPE_DEVICE void operator()(int64_t i) const {
    int64_t column = i % columns, begin = i / columns * kRowsOfPart;
    int64_t end = begin + kRowsOfPart < rows ? begin + kRowsOfPart : rows;
    WideOf<T> sum = 0;
    for (int64_t row = begin; row < end; ++row)
      sum += load(in[row * columns + column]);
    parts[i] = sum;
  }
  template <typename Visitor> void visitMemory(Visitor &visit) const {
    visit.reads(in, rows * columns);
    visit.writes(parts, getSize());
  }
};

/// Second half: grad[column] becomes the sum of its parts in their order, or grows by it.
template <typename Real> struct AddRowParts {
  const Real *parts;
  Real *grad;
  int64_t numParts, columns;
  uint64_t accumulate;

  DUALPIPE_DEVICE int64_t getSize() const { return columns; }
  DUALPIPE_DEVICE void operator()(int64_t i) const {
    Real sum = 0;
    for (int64_t part = 0; part < numParts; ++part)
      sum += parts[part * columns + i];
    grad[i] = accumulate ? grad[i] + sum : sum;
  }
  template <typename Visitor> void visitMemory(Visitor &visit) const {
    visit.reads(parts, numParts * columns);
    if (accumulate)
      visit.reads(grad, columns);
    visit.writes(grad, columns);
  }
};

/// Partial sums of a loss: item p takes the elements p, p + numParts, ...
inline constexpr int64_t kMaxLossParts = 1 << 16;
/// Partial sums that one item of FoldParts adds up.
inline constexpr int64_t kFoldWidth = 256;
constexpr DUALPIPE_DEVICE inline int64_t getNumLossParts(int64_t count) {
  return count < kMaxLossParts ? count : kMaxLossParts;
}
/// Doubles of scratch that a loss over `count` elements needs.
constexpr int64_t getNumLossSums(int64_t count) {
  return getNumLossParts(count) + (getNumLossParts(count) + kFoldWidth - 1) / kFoldWidth;
}

/// Mean squared error, first of three launches: turns outputs into the gradient of the scaled mean
/// of their squared differences from the labels, in place, and writes partial sums of the squares.
/// How the elements are parted depends on their number alone.
template <typename T> struct SquaredError {
  T *values;
  const T *labels;
  double *parts;
  int64_t count;
  double scale; ///< of the loss

  DUALPIPE_DEVICE int64_t getSize() const { return getNumLossParts(count); }
  DUALPIPE_DEVICE void operator()(int64_t part) const {
    using Real = WideOf<T>;
    const Real factor = Real(scale * 2.0 / double(count));
    double sum = 0;
    for (int64_t i = part; i < count; i += getSize()) {
      Real difference = load(values[i]) - load(labels[i]);
      sum += double(difference) * double(difference);
      values[i] = store<T>(factor * difference);
    }
    parts[part] = sum;
  }
  template <typename Visitor> void visitMemory(Visitor &visit) const {
    visit.reads(values, count);
    visit.reads(labels, count);
    visit.writes(values, count);
    visit.writes(parts, getSize());
  }
};

/// out[i] = the sum of the i-th kFoldWidth numbers in their order, divided by `divisor`.
struct FoldParts {
  const double *in;
  double *out;
  int64_t count;
  double divisor;

  DUALPIPE_DEVICE int64_t getSize() const { return (count + kFoldWidth - 1) / kFoldWidth; }
  DUALPIPE_DEVICE void operator()(int64_t i) const {
    int64_t end = (i + 1) * kFoldWidth < count ? (i + 1) * kFoldWidth : count;
    double sum = 0;
    for (int64_t j = i * kFoldWidth; j < end; ++j)
      sum += in[j];
    out[i] = sum / divisor;
  }
  template <typename Visitor> void visitMemory(Visitor &visit) const {
    visit.reads(in, count);
    visit.writes(out, getSize());
  }
};

/// Plain gradient descent. The learning rate is read on the device.
template <typename T> struct Descend {
  T *params;
  const T *grads;
  const dp_step_state *state;
  int64_t count;

  DUALPIPE_DEVICE int64_t getSize() const { return count; }
  DUALPIPE_DEVICE void operator()(int64_t i) const {
    params[i] -= T(state->learning_rate) * grads[i];
  }
  template <typename Visitor> void visitMemory(Visitor &visit) const {
    visit.reads(params, count);
    visit.reads(grads, count);
    visit.reads(state, 1);
    visit.writes(params, count);
  }
};

/// Members that one launch of SumMembers takes.
inline constexpr int64_t kMaxMembers = 32;

/// sum = members[0] + members[1] + ..., added in that order. `sum` may be one of the members.
template <typename T> struct SumMembers {
  T *sum;
  const T *members[kMaxMembers]; ///< the first numMembers
  int64_t numMembers;            ///< at least 1
  int64_t count;

  DUALPIPE_DEVICE int64_t getSize() const { return count; }
  DUALPIPE_DEVICE void operator()(int64_t i) const {
    T total = members[0][i];
    for (int64_t member = 1; member < numMembers; ++member)
      total += members[member][i];
    sum[i] = total;
  }
  template <typename Visitor> void visitMemory(Visitor &visit) const {
    for (int64_t member = 0; member < numMembers; ++member)
      visit.reads(members[member], count);
    visit.writes(sum, count);
  }
};

/// The kernels by number, in the order of Kernels.def.
enum class KernelId : unsigned {
#define DUALPIPE_KERNEL(name, ...) name,
#include "runtime/kernels/Kernels.def"
};

inline constexpr const char *kKernelNames[] = {
#define DUALPIPE_KERNEL(name, ...) "dp_" #name,
#include "runtime/kernels/Kernels.def"
};
inline constexpr unsigned kNumKernels = sizeof(kKernelNames) / sizeof(kKernelNames[0]);

/// kKernelId<GeluForward<float>> is KernelId::gelu_forward_f32.
template <typename Kernel> struct FindKernelId;
#define DUALPIPE_KERNEL(name, ...)                                                                 \
  template <> struct FindKernelId<__VA_ARGS__> {                                                   \
    static constexpr KernelId kId = KernelId::name;                                                \
  };
#include "runtime/kernels/Kernels.def"
template <typename Kernel> inline constexpr KernelId kKernelId = FindKernelId<Kernel>::kId;

} // namespace dualpipe::kernels

#endif // DUALPIPE_RUNTIME_KERNELS_KERNELS_H
