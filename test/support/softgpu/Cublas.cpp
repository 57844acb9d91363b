//===- Cublas.cpp - cuBLAS made of software --------------------------------------===//

#include "State.h"

#include <fmt/format.h>

#include <cstring>

namespace dualpipe::test::softgpu {
namespace {

using Code = CublasStatus;

struct SoftBlas {
  Stream stream = nullptr;
  void *workspace = nullptr;
  size_t workspaceBytes = 0;
};

SoftBlas *get(CublasHandle handle) { return reinterpret_cast<SoftBlas *>(handle); }

#define BEGIN_CALL(name)                                                                           \
  Call call(#name);                                                                                \
  if (call.fault != 0)                                                                             \
  return Code(call.fault)

Code create(CublasHandle *handle) {
  BEGIN_CALL(cublasCreate_v2);
  if (call.thread.gpu < 0)
    return Code::NotInitialized;
  *handle = reinterpret_cast<CublasHandle>(new SoftBlas);
  return Code::Success;
}

Code destroy(CublasHandle handle) {
  BEGIN_CALL(cublasDestroy_v2);
  delete get(handle);
  return Code::Success;
}

Code getVersion(CublasHandle, int *version) {
  BEGIN_CALL(cublasGetVersion_v2);
  *version = call->options.cublasVersion;
  return Code::Success;
}

Code getProperty(LibraryProperty property, int *value) {
  BEGIN_CALL(cublasGetProperty);
  const int version = call->options.cublasVersion;
  switch (property) {
  case LibraryProperty::MajorVersion:
    *value = version / 10000;
    return Code::Success;
  case LibraryProperty::MinorVersion:
    *value = version % 10000 / 100;
    return Code::Success;
  case LibraryProperty::PatchLevel:
    *value = version % 100;
    return Code::Success;
  }
  return Code::InvalidValue;
}

const char *getStatusString(Code) { return "as the software device says"; }

/// The real one falls back to a workspace of its own.
Code setStream(CublasHandle handle, Stream stream) {
  BEGIN_CALL(cublasSetStream_v2);
  *get(handle) = {stream, nullptr, 0};
  return Code::Success;
}

Code setWorkspace(CublasHandle handle, void *workspace, size_t bytes) {
  BEGIN_CALL(cublasSetWorkspace_v2);
  get(handle)->workspace = workspace;
  get(handle)->workspaceBytes = bytes;
  return Code::Success;
}

Code setMathMode(CublasHandle, CublasMath) {
  BEGIN_CALL(cublasSetMathMode);
  return Code::Success;
}

Code setAtomicsMode(CublasHandle, CublasAtomics) {
  BEGIN_CALL(cublasSetAtomicsMode);
  return Code::Success;
}

double load(const void *data, CublasType type, int64_t index) {
  switch (type) {
  case CublasType::Float32:
    return static_cast<const float *>(data)[index];
  case CublasType::Float64:
    return static_cast<const double *>(data)[index];
  case CublasType::Bfloat16: {
    const uint32_t bits = uint32_t(static_cast<const uint16_t *>(data)[index]) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  }
  return 0;
}

/// To nearest, ties to even.
uint16_t roundToBfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return uint16_t(bits >> 16 | 0x40u);
  return uint16_t((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

void store(void *data, CublasType type, int64_t index, double value) {
  switch (type) {
  case CublasType::Float32:
    static_cast<float *>(data)[index] = float(value);
    return;
  case CublasType::Float64:
    static_cast<double *>(data)[index] = value;
    return;
  case CublasType::Bfloat16:
    static_cast<uint16_t *>(data)[index] = roundToBfloat16(float(value));
    return;
  }
}

size_t getBytes(CublasType type) {
  switch (type) {
  case CublasType::Float32:
    return 4;
  case CublasType::Float64:
    return 8;
  case CublasType::Bfloat16:
    return 2;
  }
  return 0;
}

/// A matrix in memory, column after column.
struct Matrix {
  const void *data;
  CublasType type;
  int64_t leading;
  int64_t rows, columns; ///< as stored
  int64_t stride = 0;

  size_t getExtent() const {
    return columns == 0 || rows == 0 ? 0 : size_t((columns - 1) * leading + rows) * getBytes(type);
  }
  const void *at(int64_t batch) const {
    return static_cast<const unsigned char *>(data) + size_t(batch * stride) * getBytes(type);
  }
};

/// C = alpha op(A) op(B) + beta C, summed in the order of k, in the type of the computation.
struct Product {
  Matrix a, b, c;
  bool transposeA, transposeB;
  int64_t m, n, k, count;
  double alpha, beta;
  bool inDouble;

  template <typename Sum> void run(int64_t batch) const {
    void *to = const_cast<void *>(c.at(batch));
    for (int64_t column = 0; column != n; ++column)
      for (int64_t row = 0; row != m; ++row) {
        Sum sum = 0;
        for (int64_t i = 0; i != k; ++i)
          sum += Sum(load(a.at(batch), a.type,
                          transposeA ? row * a.leading + i : i * a.leading + row)) *
                 Sum(load(b.at(batch), b.type,
                          transposeB ? i * b.leading + column : column * b.leading + i));
        const int64_t index = column * c.leading + row;
        Sum result = Sum(alpha) * sum;
        if (beta != 0)
          result += Sum(beta) * Sum(load(to, c.type, index));
        store(to, c.type, index, double(result));
      }
  }
  void run() const {
    for (int64_t batch = 0; batch != count; ++batch)
      inDouble ? run<double>(batch) : run<float>(batch);
  }
};

Code issueProduct(Call &call, const SoftBlas &blas, const Product &product) {
  SoftStream *stream = nullptr;
  if (findStream(call, blas.stream, stream) != DriverStatus::Success)
    return Code::ExecutionFailed;
  if (product.a.leading < product.a.rows || product.b.leading < product.b.rows ||
      product.c.leading < product.m)
    return Code::InvalidValue;
  Op op;
  op.name = makeName(fmt::format("a product {} x {} x {}", product.m, product.n, product.k));
  for (int64_t batch = 0; batch != product.count; ++batch) {
    if (product.k != 0) {
      op.uses.push_back({product.a.at(batch), product.a.getExtent(), false});
      op.uses.push_back({product.b.at(batch), product.b.getExtent(), false});
    }
    op.uses.push_back({product.c.at(batch), product.c.getExtent(), true});
  }
  if (blas.workspace)
    op.uses.push_back({blas.workspace, blas.workspaceBytes, true});
  op.run = [product] { product.run(); };
  call->issue(call.thread, *stream, std::move(op));
  return Code::Success;
}

double loadScalar(const void *scalar, CublasCompute compute) {
  switch (compute) {
  case CublasCompute::Float32:
  case CublasCompute::Float32Pedantic:
    return *static_cast<const float *>(scalar);
  case CublasCompute::Float64:
    return *static_cast<const double *>(scalar);
  }
  return 0;
}

Code gemmStridedBatchedEx(CublasHandle handle, CublasOperation transposeA,
                          CublasOperation transposeB, int m, int n, int k, const void *alpha,
                          const void *a, CublasType typeA, int lda, long long strideA,
                          const void *b, CublasType typeB, int ldb, long long strideB,
                          const void *beta, void *c, CublasType typeC, int ldc, long long strideC,
                          int count, CublasCompute compute, CublasAlgorithm) {
  BEGIN_CALL(cublasGemmStridedBatchedEx);
  const bool ta = transposeA == CublasOperation::Transpose;
  const bool tb = transposeB == CublasOperation::Transpose;
  return issueProduct(call, *get(handle),
                      {{a, typeA, lda, ta ? k : m, ta ? m : k, strideA},
                       {b, typeB, ldb, tb ? n : k, tb ? k : n, strideB},
                       {c, typeC, ldc, m, n, strideC},
                       ta,
                       tb,
                       m,
                       n,
                       k,
                       count,
                       loadScalar(alpha, compute),
                       loadScalar(beta, compute),
                       compute == CublasCompute::Float64});
}

Code gemmEx(CublasHandle handle, CublasOperation transposeA, CublasOperation transposeB, int m,
            int n, int k, const void *alpha, const void *a, CublasType typeA, int lda,
            const void *b, CublasType typeB, int ldb, const void *beta, void *c, CublasType typeC,
            int ldc, CublasCompute compute, CublasAlgorithm algorithm) {
  return gemmStridedBatchedEx(handle, transposeA, transposeB, m, n, k, alpha, a, typeA, lda, 0, b,
                              typeB, ldb, 0, beta, c, typeC, ldc, 0, 1, compute, algorithm);
}

} // namespace

CublasApi makeCublas(int version) {
  CublasApi cublas;
#define DUALPIPE_CUBLAS(member, name, since, result, parameters) cublas.member = member;
#include "dualpipe/Runtime/Cuda/Cublas.def"
  cublas.version = version;
  return cublas;
}

} // namespace dualpipe::test::softgpu
