//===- MathTest.cpp - matrix products and GELU, against their definitions ---===//

#include "runtime/models/Math.h"
#include "runtime/models/CounterRandom.h"

#include "dualpipe/Runtime/AlignedBuffer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

using namespace dualpipe::models;
using dualpipe::runtime::AlignedBuffer;

namespace {

template <typename T> AlignedBuffer makeRandom(int64_t count, uint64_t name) {
  AlignedBuffer buffer(size_t(count) * sizeof(T));
  CounterRandom random{name};
  for (int64_t i = 0; i < count; ++i)
    static_cast<T *>(buffer.data())[i] = T(random.getUniform(uint64_t(i), 1.0f));
  return buffer;
}

/// The product of the definition, in long double.
template <typename T>
long double getEntry(const ProductShape &shape, const T *a, const T *b, int64_t i, int64_t j) {
  long double sum = 0;
  for (int64_t k = 0; k < shape.inner; ++k) {
    T left = shape.transposeA ? a[k * shape.rows + i] : a[i * shape.inner + k];
    T right = shape.transposeB ? b[j * shape.inner + k] : b[k * shape.columns + j];
    sum += (long double)left * (long double)right;
  }
  return sum;
}

template <typename T>
void checkProduct(const MatrixProduct &product, const ProductShape &shape, double tolerance) {
  AlignedBuffer a = makeRandom<T>(shape.rows * shape.inner, 1);
  AlignedBuffer b = makeRandom<T>(shape.inner * shape.columns, 2);
  AlignedBuffer c = makeRandom<T>(shape.rows * shape.columns, 3);
  AlignedBuffer before = makeRandom<T>(shape.rows * shape.columns, 3);
  AlignedBuffer scratch(product.getScratchBytes());
  ASSERT_TRUE(product.run(a.data(), b.data(), c.data(), scratch.data()).ok());
  const T *result = static_cast<const T *>(c.data());
  const T *old = static_cast<const T *>(before.data());
  for (int64_t i = 0; i < shape.rows; ++i)
    for (int64_t j = 0; j < shape.columns; ++j) {
      long double expected = getEntry<T>(shape, static_cast<const T *>(a.data()),
                                         static_cast<const T *>(b.data()), i, j);
      if (shape.accumulate)
        expected += old[i * shape.columns + j];
      ASSERT_NEAR(double(expected), double(result[i * shape.columns + j]), tolerance)
          << "row " << i << ", column " << j;
    }
}

std::vector<ProductShape> listShapes() {
  std::vector<ProductShape> shapes;
  for (int flags = 0; flags < 8; ++flags)
    for (auto [rows, columns, inner] : {std::array<int64_t, 3>{1, 1, 1}, {5, 7, 3}, {33, 20, 48}})
      shapes.push_back(
          {rows, columns, inner, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0});
  return shapes;
}

TEST(Math, ProductsFollowTheDefinition) {
  for (const ProductShape &shape : listShapes()) {
    auto single = createMatrixProduct(Real::F32, shape);
    ASSERT_TRUE(single) << single.message();
    checkProduct<float>(**single, shape, 1e-5);
    auto full = createMatrixProduct(Real::F64, shape);
    ASSERT_TRUE(full) << full.message();
    checkProduct<double>(**full, shape, 1e-13);
  }
}

TEST(Math, PlainProductsFollowTheDefinition) {
  for (const ProductShape &shape : listShapes()) {
    checkProduct<float>(*createPlainProduct(Real::F32, shape), shape, 1e-5);
    checkProduct<double>(*createPlainProduct(Real::F64, shape), shape, 1e-13);
  }
}

template <typename T> void checkGelu(const Gelu &gelu, int64_t count, double tolerance) {
  AlignedBuffer x(size_t(count) * sizeof(T)), y(x.size()), dy(x.size()), dx(x.size());
  T *in = static_cast<T *>(x.data());
  for (int64_t i = 0; i < count; ++i) {
    in[i] = T(-6.0 + 12.0 * double(i) / double(count - 1));
    static_cast<T *>(dy.data())[i] = T(2);
  }
  ASSERT_TRUE(gelu.forward(x.data(), y.data()).ok());
  ASSERT_TRUE(gelu.backward(x.data(), dy.data(), dx.data()).ok());
  ASSERT_TRUE(gelu.backward(x.data(), dy.data(), dy.data()).ok()) << "in place";
  for (int64_t i = 0; i < count; ++i) {
    double v = in[i], cdf = 0.5 * (1 + std::erf(v / std::sqrt(2.0)));
    double pdf = std::exp(-0.5 * v * v) / std::sqrt(2 * M_PI);
    ASSERT_NEAR(v * cdf, double(static_cast<T *>(y.data())[i]), tolerance) << v;
    ASSERT_NEAR(2 * (cdf + v * pdf), double(static_cast<T *>(dx.data())[i]), tolerance) << v;
  }
  EXPECT_EQ(0, std::memcmp(dx.data(), dy.data(), dx.size()));
}

TEST(Math, GeluIsTheExactOne) {
  constexpr int64_t kCount = 1237;
  auto single = createGelu(Real::F32, kCount);
  ASSERT_TRUE(single) << single.message();
  checkGelu<float>(**single, kCount, 2e-6);
  auto full = createGelu(Real::F64, kCount);
  ASSERT_TRUE(full) << full.message();
  checkGelu<double>(**full, kCount, 1e-14);
  checkGelu<float>(*createPlainGelu(Real::F32, kCount), kCount, 2e-6);
  checkGelu<double>(*createPlainGelu(Real::F64, kCount), kCount, 1e-14);
}

/// Runs a product and a GELU with all buffers moved by `offset` cache lines, on a thread of its
/// own.
std::vector<uint8_t> runElsewhere(Real type, const MatrixProduct &product, const Gelu &gelu,
                                  const ProductShape &shape, size_t offset) {
  size_t element = getBytes(type), count = size_t(shape.rows * shape.columns);
  std::vector<uint8_t> result;
  std::thread([&] {
    size_t shift = 64 * offset;
    auto place = [&](int64_t numElements, uint64_t name) {
      AlignedBuffer buffer(size_t(numElements) * element + shift);
      AlignedBuffer values = type == Real::F32 ? makeRandom<float>(numElements, name)
                                               : makeRandom<double>(numElements, name);
      std::memcpy(static_cast<char *>(buffer.data()) + shift, values.data(), values.size());
      return buffer;
    };
    AlignedBuffer a = place(shape.rows * shape.inner, 1), b = place(shape.inner * shape.columns, 2);
    AlignedBuffer c = place(shape.rows * shape.columns, 3);
    AlignedBuffer scratch(product.getScratchBytes() + shift);
    auto at = [&](AlignedBuffer &buffer) { return static_cast<char *>(buffer.data()) + shift; };
    EXPECT_TRUE(product.run(at(a), at(b), at(c), at(scratch)).ok());
    EXPECT_TRUE(gelu.forward(at(c), at(c)).ok());
    const auto *bytes = reinterpret_cast<const uint8_t *>(at(c));
    result.assign(bytes, bytes + count * element);
  }).join();
  return result;
}

TEST(Math, BitsDependOnNeitherThreadNorAddress) {
  for (Real type : {Real::F32, Real::F64})
    for (int flags = 0; flags < 8; ++flags) {
      ProductShape shape = {48, 131, 77, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0};
      auto product = createMatrixProduct(type, shape);
      auto gelu = createGelu(type, shape.rows * shape.columns);
      ASSERT_TRUE(product && gelu);
      std::vector<uint8_t> first = runElsewhere(type, **product, **gelu, shape, 0);
      for (size_t offset : {1, 2, 5, 64})
        EXPECT_EQ(first, runElsewhere(type, **product, **gelu, shape, offset)) << offset;
    }
}

TEST(CounterRandom, IsUniformAndNamed) {
  CounterRandom random{1, 2, 3}, other{1, 3, 2};
  double sum = 0, squares = 0;
  constexpr int kCount = 100000;
  int equal = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    float value = random.getUniform(i, 1.0f);
    ASSERT_LT(std::abs(value), 1.0f);
    sum += value;
    squares += double(value) * value;
    equal += value == other.getUniform(i, 1.0f);
  }
  EXPECT_NEAR(sum / kCount, 0.0, 0.01);
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.01);
  EXPECT_LT(equal, 3);
  EXPECT_EQ(random.getUniform(7, 1.0f), (CounterRandom{1, 2, 3}.getUniform(7, 1.0f)));
}

} // namespace
