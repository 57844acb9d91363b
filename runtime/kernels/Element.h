//===- Element.h - element types, and what compiles for host and device ------===//
//
// The arithmetic of one element is written once and compiled twice: by nvcc into
// the GPU kernels, by the host compiler into their twins for the software device.
// Nothing here may need a header of CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_KERNELS_ELEMENT_H
#define DUALPIPE_RUNTIME_KERNELS_ELEMENT_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define DUALPIPE_DEVICE __host__ __device__
#else
#define DUALPIPE_DEVICE
#endif

namespace dualpipe::kernels {

/// The type of the elements of activations. Sums, parameters and gradients of a bf16 model are
/// float32, as under PyTorch's autocast.
enum class Element { F32, BF16, F64 };

/// The upper half of a float32: 8 bits of exponent, 7 of fraction.
struct Bf16 {
  uint16_t bits;
};

namespace detail {
template <typename To, typename From> DUALPIPE_DEVICE inline To castBits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  memcpy(&result, &value, sizeof result);
  return result;
}
} // namespace detail

DUALPIPE_DEVICE inline float widen(Bf16 value) {
  return detail::castBits<float>(uint32_t(value.bits) << 16);
}

/// To nearest, ties to even; beyond the largest number infinity; a NaN stays one, made quiet.
DUALPIPE_DEVICE inline Bf16 roundToBf16(float value) {
  uint32_t bits = detail::castBits<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return {uint16_t(bits >> 16 | 0x40u)};
  return {uint16_t((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

/// The same, rounded once: the float32 between is rounded to odd, which keeps on which side of a
/// tie the double was (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums:
/// proved algorithms using rounding to odd", 2008).
DUALPIPE_DEVICE inline Bf16 roundToBf16(double value) {
  float narrow = float(value);
  uint32_t bits = detail::castBits<uint32_t>(narrow);
  bool inexact = double(narrow) != value && value == value;
  if (inexact && fabs(double(narrow)) > fabs(value))
    --bits; // towards zero: the magnitude is the lower 31 bits
  return roundToBf16(detail::castBits<float>(inexact ? bits | 1u : bits));
}

/// What an element is computed in: float for bf16, else its own type.
template <typename T> struct Wide {
  using Type = T;
};
template <> struct Wide<Bf16> {
  using Type = float;
};
template <typename T> using WideOf = typename Wide<T>::Type;

DUALPIPE_DEVICE inline float load(float value) { return value; }
DUALPIPE_DEVICE inline double load(double value) { return value; }
DUALPIPE_DEVICE inline float load(Bf16 value) { return widen(value); }

/// `value` as an element of type T, rounded to nearest.
template <typename T, typename From> DUALPIPE_DEVICE inline T store(From value) {
  if constexpr (sizeof(T) == sizeof(Bf16))
    return roundToBf16(value);
  else
    return T(value);
}

DUALPIPE_DEVICE inline float errorFunction(float x) { return erff(x); }
DUALPIPE_DEVICE inline double errorFunction(double x) { return erf(x); }
DUALPIPE_DEVICE inline float exponential(float x) { return expf(x); }
DUALPIPE_DEVICE inline double exponential(double x) { return exp(x); }

} // namespace dualpipe::kernels

#endif // DUALPIPE_RUNTIME_KERNELS_ELEMENT_H
