//===- Bf16Test.cpp - rounding to bf16, over all of its values ---------------===//

#include "runtime/kernels/Element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace dualpipe::kernels;

namespace {

constexpr uint16_t kInfinity = 0x7f80;

double getValue(unsigned bits) {
  // Infinity stands for the number that would come next: what decides rounding to it.
  if ((bits & 0x7fff) == kInfinity)
    return bits & 0x8000 ? -0x1p128 : 0x1p128;
  return double(widen(Bf16{uint16_t(bits)}));
}

/// Checks a value that lies between the numbers `below` and `below` + 1 of one sign.
template <typename Real> void checkRounding(Real value, unsigned below) {
  double down = std::abs(double(value) - getValue(below));
  double up = std::abs(getValue(below + 1) - double(value));
  unsigned wanted = down < up || (down == up && below % 2 == 0) ? below : below + 1;
  ASSERT_EQ(roundToBf16(value).bits, wanted) << "value " << value;
}

TEST(Bf16, EveryValueSurvives) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const float value = widen(Bf16{uint16_t(bits)});
    const unsigned wanted = std::isnan(value) ? bits | 0x40 : bits;
    ASSERT_EQ(roundToBf16(value).bits, wanted);
    ASSERT_EQ(roundToBf16(double(value)).bits, wanted);
    ASSERT_EQ(std::isnan(value), (bits & 0x7fff) > kInfinity);
  }
}

TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  for (unsigned sign : {0u, 0x8000u})
    for (unsigned magnitude = 0; magnitude < kInfinity; ++magnitude) {
      const unsigned below = sign | magnitude;
      const double middle = (getValue(below) + getValue(below + 1)) / 2;
      const float narrow = float(middle); // exact: one bit more than bf16
      ASSERT_EQ(double(narrow), middle);
      checkRounding(narrow, below);
      checkRounding(std::nextafter(narrow, 0.0f), below);
      if (std::isfinite(std::nextafter(narrow, std::copysign(INFINITY, narrow))))
        checkRounding(std::nextafter(narrow, std::copysign(INFINITY, narrow)), below);
      // A double beside the tie, which a detour over float32 would take for the tie.
      checkRounding(middle, below);
      checkRounding(std::nextafter(middle, 0.0), below);
      checkRounding(std::nextafter(middle, std::copysign(INFINITY, middle)), below);
    }
}

TEST(Bf16, LargeValuesBecomeInfinity) {
  EXPECT_EQ(roundToBf16(std::numeric_limits<float>::max()).bits, kInfinity);
  EXPECT_EQ(roundToBf16(-std::numeric_limits<float>::max()).bits, kInfinity | 0x8000);
  EXPECT_EQ(roundToBf16(1e300).bits, kInfinity);
  EXPECT_EQ(roundToBf16(-1e300).bits, kInfinity | 0x8000);
  EXPECT_EQ(roundToBf16(double(INFINITY)).bits, kInfinity);
}

TEST(Bf16, SmallestValues) {
  EXPECT_EQ(roundToBf16(0x1p-134).bits, 0);   // half of the smallest: ties to even
  EXPECT_EQ(roundToBf16(0x1.8p-133).bits, 2); // a tie again
  EXPECT_EQ(roundToBf16(0x1.0000000001p-134).bits, 1);
  EXPECT_EQ(roundToBf16(1e-300).bits, 0);
  EXPECT_EQ(roundToBf16(-1e-300).bits, 0x8000);
  EXPECT_EQ(roundToBf16(-0.0).bits, 0x8000);
}

} // namespace
