//===- MathOpenBlas.cpp - float64 matrix products through OpenBLAS ---------===//

#include "runtime/models/Math.h"

#include <cblas.h>

#include <mutex>

namespace dualpipe::models {
namespace {

class OpenBlasProduct : public MatrixProduct {
public:
  explicit OpenBlasProduct(const ProductShape &shape) : shape(shape) {
    // Each rank computes on its own thread. The setting is the whole process's (OpenBLAS has none
    // per thread), so it is made once, not while another model computes.
    static std::once_flag once;
    std::call_once(once, [] { openblas_set_num_threads(1); });
  }

  Status run(const void *a, const void *b, void *c, void *) const override {
    cblas_dgemm(CblasRowMajor, shape.transposeA ? CblasTrans : CblasNoTrans,
                shape.transposeB ? CblasTrans : CblasNoTrans, blasint(shape.rows),
                blasint(shape.columns), blasint(shape.inner), 1.0, static_cast<const double *>(a),
                blasint(shape.transposeA ? shape.rows : shape.inner),
                static_cast<const double *>(b),
                blasint(shape.transposeB ? shape.inner : shape.columns),
                shape.accumulate ? 1.0 : 0.0, static_cast<double *>(c), blasint(shape.columns));
    return Status::success();
  }
  size_t getScratchBytes() const override { return 0; }

private:
  ProductShape shape;
};

} // namespace

std::unique_ptr<MatrixProduct> createOpenBlasProduct(const ProductShape &shape) {
  return std::make_unique<OpenBlasProduct>(shape);
}

} // namespace dualpipe::models
