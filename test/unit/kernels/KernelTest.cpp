//===- KernelTest.cpp - element-wise kernels against double precision --------===//

#include "Harness.h"

#include "runtime/models/CounterRandom.h"

using namespace dualpipe;
using namespace dualpipe::kernels;
using namespace dualpipe::kernels::test;

namespace {

template <typename T> class Elements : public testing::Test {};
using ElementTypes = testing::Types<float, Bf16, double>;
TYPED_TEST_SUITE(Elements, ElementTypes);

TYPED_TEST(Elements, FillUniform) {
  using T = TypeParam;
  for (int64_t count : kSizes)
    for (bool usesStep : {false, true}) {
      Arena arena;
      auto *state = arena.allocate<dp_step_state>(1);
      *state = {5, 77, 0.1};
      T *out = arena.allocate<T>(count);
      launch(arena, FillUniform<T>{out, state, 3, 11, 13, count, usesStep, 1.5f, 0, 0});
      const models::CounterRandom random{3, 77, uint64_t(usesStep ? 5 : 11), 13};
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(load(out[i]), load(store<T>(random.getUniform(uint64_t(i), 1.5f)))) << i;
    }
}

TYPED_TEST(Elements, Scale) {
  using T = TypeParam;
  for (int64_t count : kSizes) {
    Arena arena;
    T *values = arena.fill<T>(count, getSample);
    launch(arena, Scale<T>{values, 0.3, count});
    for (int64_t i = 0; i < count; ++i)
      expectNear(values[i], 0.3 * getSample(i), std::abs(getSample(i)), i);
  }
}

double getCdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double getSlope(double x) {
  return getCdf(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
}

TYPED_TEST(Elements, Gelu) {
  using T = TypeParam;
  for (int64_t count : kSizes) {
    Arena arena;
    T *x = arena.fill<T>(count, getSample);
    T *y = arena.allocate<T>(count);
    T *dy = arena.fill<T>(count, [](int64_t i) { return getSample(i + 5); });
    T *dx = arena.allocate<T>(count);
    launch(arena, GeluForward<T>{x, y, count});
    launch(arena, GeluBackward<T>{x, dy, dx, count});
    launch(arena, GeluBackward<T>{x, dy, dy, count});
    for (int64_t i = 0; i < count; ++i) {
      const double at = getSample(i);
      expectNear(y[i], at * getCdf(at), std::abs(at), i);
      expectNear(dx[i], getSample(i + 5) * getSlope(at), std::abs(getSample(i + 5)) * 2, i);
      ASSERT_EQ(load(dx[i]), load(dy[i])) << "in place, element " << i;
    }
  }
}

TYPED_TEST(Elements, GeluFarOut) {
  using T = TypeParam;
  Arena arena;
  const double far[] = {0.0, -0.0, 40.0, -40.0, 1e30, -1e30};
  T *x = arena.fill<T>(6, [&](int64_t i) { return far[i]; });
  T *y = arena.allocate<T>(6);
  T *dy = arena.fill<T>(6, [](int64_t) { return 1.0; });
  launch(arena, GeluForward<T>{x, y, 6});
  launch(arena, GeluBackward<T>{x, dy, dy, 6});
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(load(y[i]), far[i] > 0 ? load(x[i]) : 0) << far[i];
    EXPECT_EQ(load(dy[i]), far[i] > 0 ? 1 : far[i] < 0 ? 0 : 0.5) << far[i];
  }
}

template <typename From, typename To> void checkCast() {
  for (int64_t count : kSizes) {
    Arena arena;
    From *in = arena.fill<From>(count, [](int64_t i) { return getSample(i) / 3; });
    To *out = arena.allocate<To>(count);
    launch(arena, Cast<From, To>{in, out, count});
    for (int64_t i = 0; i < count; ++i)
      ASSERT_EQ(load(out[i]), load(store<To>(load(in[i])))) << i;
  }
}

TEST(Kernels, Casts) {
  checkCast<float, Bf16>();
  checkCast<Bf16, float>();
  checkCast<float, double>();
  checkCast<double, float>();
  checkCast<Bf16, double>();
  checkCast<double, Bf16>();
}

template <typename T> void checkDescend() {
  for (int64_t count : kSizes) {
    Arena arena;
    auto *state = arena.allocate<dp_step_state>(1);
    *state = {0, 0, 0.125};
    T *params = arena.fill<T>(count, getSample);
    T *grads = arena.fill<T>(count, [](int64_t i) { return getSample(i + 3); });
    launch(arena, Descend<T>{params, grads, state, count});
    for (int64_t i = 0; i < count; ++i)
      ASSERT_EQ(double(params[i]), getSample(i) - 0.125 * getSample(i + 3)) << i;
  }
}

TEST(Kernels, Descend) {
  checkDescend<float>();
  checkDescend<double>();
}

} // namespace
