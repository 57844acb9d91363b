//===- Math.cpp - which library does the arithmetic of which type ----------===//

#include "runtime/models/Math.h"

namespace dualpipe::models {

Result<std::unique_ptr<MatrixProduct>> createMatrixProduct(Real type, const ProductShape &shape) {
#ifdef DUALPIPE_HAVE_ONEDNN
  if (type == Real::F32)
    return createOneDnnProduct(shape);
#endif
#ifdef DUALPIPE_HAVE_OPENBLAS
  if (type == Real::F64)
    return createOpenBlasProduct(shape);
#endif
  return createPlainProduct(type, shape);
}

Result<std::unique_ptr<Gelu>> createGelu(Real type, int64_t numElements) {
#ifdef DUALPIPE_HAVE_ONEDNN
  if (type == Real::F32)
    return createOneDnnGelu(numElements);
#endif
  return createPlainGelu(type, numElements);
}

const char *getMathName(Real type) {
#ifdef DUALPIPE_HAVE_ONEDNN
  if (type == Real::F32)
    return "oneDNN";
#endif
#ifdef DUALPIPE_HAVE_OPENBLAS
  if (type == Real::F64)
    return "OpenBLAS";
#endif
  (void)type;
  return "plain loops";
}

} // namespace dualpipe::models
