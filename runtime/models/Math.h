//===- Math.h - matrix products and GELU on host memory ---------------------===//
//
// What the built-in models compute with. float32 goes through oneDNN and float64
// through OpenBLAS where they were found at configure time, else through plain
// loops. Everything is prepared for fixed shapes when the model is made; running
// it is thread-safe, uses the calling thread alone and gives the same bits on
// every thread and at every address (aligned to 64 bytes).
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_MODELS_MATH_H
#define DUALPIPE_RUNTIME_MODELS_MATH_H

#include "dualpipe/Support/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace dualpipe::models {

enum class Real { F32, F64 };

inline size_t getBytes(Real type) { return type == Real::F32 ? 4 : 8; }

/// C[rows, columns] (+)= op(A)[rows, inner] * op(B)[inner, columns], all row-major and dense. With
/// `transposeA`, A is stored as [inner, rows]; with `transposeB`, B as [columns, inner].
struct ProductShape {
  int64_t rows, columns, inner;
  bool transposeA = false;
  bool transposeB = false;
  bool accumulate = false;
};

/// A matrix product of one shape.
class MatrixProduct {
public:
  virtual ~MatrixProduct() = default;
  /// `scratch` holds `getScratchBytes()` bytes, aligned to 64.
  virtual Status run(const void *a, const void *b, void *c, void *scratch) const = 0;
  virtual size_t getScratchBytes() const = 0;
};

/// The exact GELU, x * (1 + erf(x / sqrt(2))) / 2, over a fixed number of elements.
class Gelu {
public:
  virtual ~Gelu() = default;
  virtual Status forward(const void *in, void *out) const = 0;
  /// `gradIn` may be `gradOut`.
  virtual Status backward(const void *in, const void *gradOut, void *gradIn) const = 0;
};

Result<std::unique_ptr<MatrixProduct>> createMatrixProduct(Real type, const ProductShape &shape);
Result<std::unique_ptr<Gelu>> createGelu(Real type, int64_t numElements);

/// What does the arithmetic of a type: "oneDNN", "OpenBLAS" or "plain loops".
const char *getMathName(Real type);

// One set per library; a build has those that it found.
std::unique_ptr<MatrixProduct> createPlainProduct(Real type, const ProductShape &shape);
std::unique_ptr<Gelu> createPlainGelu(Real type, int64_t numElements);
Result<std::unique_ptr<MatrixProduct>> createOneDnnProduct(const ProductShape &shape);
Result<std::unique_ptr<Gelu>> createOneDnnGelu(int64_t numElements);
std::unique_ptr<MatrixProduct> createOpenBlasProduct(const ProductShape &shape);

} // namespace dualpipe::models

#endif // DUALPIPE_RUNTIME_MODELS_MATH_H
