//===- MathPlain.cpp - matrix products and GELU as plain loops -------------===//
//
// For machines without a math library, and for sanitizer runs. The inner loop of
// a product runs over contiguous columns, so that the compiler vectorises it; a
// transposed B is packed into scratch first.
//
//===----------------------------------------------------------------------===//

#include "runtime/models/Math.h"

#include <algorithm>
#include <cmath>

namespace dualpipe::models {
namespace {

template <typename T> class PlainProduct : public MatrixProduct {
public:
  explicit PlainProduct(const ProductShape &shape) : shape(shape) {}

  Status run(const void *a, const void *b, void *c, void *scratch) const override {
    const T *matrixB = static_cast<const T *>(b);
    if (shape.transposeB)
      matrixB = pack(matrixB, static_cast<T *>(scratch));
    multiply(static_cast<const T *>(a), matrixB, static_cast<T *>(c));
    return Status::success();
  }
  size_t getScratchBytes() const override {
    return shape.transposeB ? size_t(shape.inner * shape.columns) * sizeof(T) : 0;
  }

private:
  const T *pack(const T *b, T *packed) const {
    for (int64_t j = 0; j < shape.columns; ++j)
      for (int64_t k = 0; k < shape.inner; ++k)
        packed[k * shape.columns + j] = b[j * shape.inner + k];
    return packed;
  }

  void multiply(const T *a, const T *b, T *c) const {
    int64_t strideRow = shape.transposeA ? 1 : shape.inner;
    int64_t strideInner = shape.transposeA ? shape.rows : 1;
    for (int64_t i = 0; i < shape.rows; ++i) {
      T *row = c + i * shape.columns;
      if (!shape.accumulate)
        std::fill(row, row + shape.columns, T(0));
      for (int64_t k = 0; k < shape.inner; ++k) {
        T factor = a[i * strideRow + k * strideInner];
        const T *other = b + k * shape.columns;
        for (int64_t j = 0; j < shape.columns; ++j)
          row[j] += factor * other[j];
      }
    }
  }

  ProductShape shape;
};

template <typename T> class PlainGelu : public Gelu {
public:
  explicit PlainGelu(int64_t numElements) : numElements(numElements) {}

  Status forward(const void *in, void *out) const override {
    const T *x = static_cast<const T *>(in);
    T *y = static_cast<T *>(out);
    for (int64_t i = 0; i < numElements; ++i)
      y[i] = x[i] * getNormalCdf(x[i]);
    return Status::success();
  }

  // d/dx x * cdf(x) = cdf(x) + x * pdf(x)
  Status backward(const void *in, const void *gradOut, void *gradIn) const override {
    const T *x = static_cast<const T *>(in);
    const T *dy = static_cast<const T *>(gradOut);
    T *dx = static_cast<T *>(gradIn);
    constexpr T kInverseRoot2Pi = T(0.39894228040143267794);
    for (int64_t i = 0; i < numElements; ++i) {
      T pdf = kInverseRoot2Pi * std::exp(T(-0.5) * x[i] * x[i]);
      dx[i] = dy[i] * (getNormalCdf(x[i]) + x[i] * pdf);
    }
    return Status::success();
  }

private:
  static T getNormalCdf(T x) {
    constexpr T kInverseRoot2 = T(0.70710678118654752440);
    return T(0.5) * (T(1) + std::erf(x * kInverseRoot2));
  }

  int64_t numElements;
};

} // namespace

std::unique_ptr<MatrixProduct> createPlainProduct(Real type, const ProductShape &shape) {
  if (type == Real::F32)
    return std::make_unique<PlainProduct<float>>(shape);
  return std::make_unique<PlainProduct<double>>(shape);
}

std::unique_ptr<Gelu> createPlainGelu(Real type, int64_t numElements) {
  if (type == Real::F32)
    return std::make_unique<PlainGelu<float>>(numElements);
  return std::make_unique<PlainGelu<double>>(numElements);
}

} // namespace dualpipe::models
