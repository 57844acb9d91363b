//===- SumKernelTest.cpp - sums in a fixed order against double precision ----===//

#include "Harness.h"

using namespace dualpipe;
using namespace dualpipe::kernels;
using namespace dualpipe::kernels::test;

namespace {

template <typename T> class Sums : public testing::Test {};
using ElementTypes = testing::Types<float, Bf16, double>;
TYPED_TEST_SUITE(Sums, ElementTypes);

/// Rows and columns: none, one, parts of kRowsOfPart that are full, short and many.
const std::pair<int64_t, int64_t> kShapes[] = {{0, 3},  {3, 0},    {1, 1},     {63, 5},
                                               {64, 5}, {65, 257}, {1009, 31}, {5003, 211}};

TYPED_TEST(Sums, AddBias) {
  using T = TypeParam;
  for (auto [rows, columns] : kShapes) {
    Arena arena;
    T *values = arena.fill<T>(rows * columns, getSample);
    auto *bias = arena.fill<WideOf<T>>(columns, [](int64_t i) { return getSample(i + 9) / 8; });
    launch(arena, AddBias<T>{values, bias, rows, columns});
    for (int64_t i = 0; i < rows * columns; ++i)
      expectNear(values[i], getSample(i) + getSample(i % columns + 9) / 8, 9, i);
  }
}

TYPED_TEST(Sums, BiasGradient) {
  using T = TypeParam;
  using Real = WideOf<T>;
  for (auto [rows, columns] : kShapes)
    for (bool accumulate : {false, true}) {
      Arena arena;
      T *values = arena.fill<T>(rows * columns, getSample);
      auto *parts = arena.allocate<Real>(getNumRowParts(rows) * columns);
      auto *grad = arena.fill<Real>(columns, [](int64_t i) { return getSample(i + 1); });
      launch(arena, SumRows<T>{values, parts, rows, columns});
      launch(arena, AddRowParts<Real>{parts, grad, getNumRowParts(rows), columns, accumulate});
      for (int64_t column = 0; column < columns; ++column) {
        double wanted = accumulate ? getSample(column + 1) : 0;
        for (int64_t row = 0; row < rows; ++row)
          wanted += getSample(row * columns + column);
        // The samples are multiples of 1/16: below 2^20 every sum is exact in float.
        ASSERT_EQ(double(grad[column]), wanted) << rows << " x " << columns << ", " << column;
      }
    }
}

TYPED_TEST(Sums, SquaredError) {
  using T = TypeParam;
  for (int64_t count : kSizes) {
    if (count == 0)
      continue; // a mean over nothing
    Arena arena;
    T *values = arena.fill<T>(count, getSample);
    T *labels = arena.fill<T>(count, [](int64_t i) { return getSample(i + 40); });
    auto *sums = arena.allocate<double>(getNumLossSums(count));
    auto *loss = arena.allocate<double>(1);
    const int64_t parts = getNumLossParts(count);
    launch(arena, SquaredError<T>{values, labels, sums, count, 0.25});
    launch(arena, FoldParts{sums, sums + parts, parts, 1.0});
    const int64_t folded = FoldParts{sums, sums, parts, 1.0}.getSize();
    ASSERT_EQ(parts + folded, getNumLossSums(count));
    launch(arena, FoldParts{sums + parts, loss, folded, double(count)});
    long double wanted = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double difference = getSample(i) - getSample(i + 40);
      wanted += difference * difference / double(count);
      expectNear(values[i], 0.25 * 2 / double(count) * difference, 32 / double(count), i);
    }
    // Differences are exact in float; of bf16 they are taken in float.
    EXPECT_NEAR(*loss, double(wanted), 1e-14 * double(wanted)) << count;
  }
}

TEST(Kernels, FoldPartsTakesAllOfAnyNumber) {
  for (int64_t count : {int64_t(1), kFoldWidth - 1, kFoldWidth, kFoldWidth + 1, kMaxLossParts}) {
    Arena arena;
    auto *in = arena.fill<double>(count, getSample);
    FoldParts fold{in, arena.allocate<double>((count + kFoldWidth - 1) / kFoldWidth), count, 4.0};
    launch(arena, fold);
    double got = 0, wanted = 0;
    for (int64_t i = 0; i < fold.getSize(); ++i)
      got += fold.out[i];
    for (int64_t i = 0; i < count; ++i)
      wanted += getSample(i) / 4;
    EXPECT_EQ(got, wanted) << count;
  }
  static_assert((kMaxLossParts + kFoldWidth - 1) / kFoldWidth <= kFoldWidth,
                "two folds are enough");
}

/// Numbers whose sum depends on the order.
template <typename T> T getHardSample(int64_t member, int64_t i) {
  return T(std::ldexp(1.0 + double((member * 7 + i) % 5) / 3, int((member * 5 + i) % 30)));
}

template <typename T> void checkMembers() {
  for (int64_t numMembers : {int64_t(1), int64_t(2), int64_t(7), kMaxMembers})
    for (int64_t count : kSizes) {
      if (count > 2000 && numMembers > 2)
        continue;
      Arena arena;
      SumMembers<T> sum{nullptr, {}, numMembers, count};
      for (int64_t member = 0; member < numMembers; ++member)
        sum.members[member] =
            arena.fill<T>(count, [=](int64_t i) { return getHardSample<T>(member, i); });
      sum.sum = const_cast<T *>(sum.members[0]); // in place, as a reduction does
      launch(arena, sum);
      for (int64_t i = 0; i < count; ++i) {
        T wanted = getHardSample<T>(0, i);
        for (int64_t member = 1; member < numMembers; ++member)
          wanted += getHardSample<T>(member, i);
        ASSERT_EQ(sum.sum[i], wanted) << numMembers << " members, element " << i;
      }
    }
}

TEST(Kernels, SumMembersAddsInTheOrderOfTheMembers) {
  checkMembers<float>();
  checkMembers<double>();
}

} // namespace
