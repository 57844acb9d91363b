//===- Random.h - random numbers as a function of a counter -----------------===//
//
// Weights, inputs and labels must not depend on who asks for them, in which
// order, or on which device. Number i of a stream is a hash of (stream, i): the
// output function of SplitMix64 (Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", 2014) applied to a counter, as that generator
// does. Integers and exact float operations only: every device gets the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_KERNELS_RANDOM_H
#define DUALPIPE_RUNTIME_KERNELS_RANDOM_H

#include "runtime/kernels/Element.h"

namespace dualpipe::kernels {

inline constexpr uint64_t kGoldenGamma = 0x9e3779b97f4a7c15ull;

DUALPIPE_DEVICE inline uint64_t mixBits(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

/// The key of a stream whose name is that of `key` and one part more; 0 is the key of no parts.
DUALPIPE_DEVICE inline uint64_t extendKey(uint64_t key, uint64_t part) {
  return mixBits(key + kGoldenGamma + mixBits(part + kGoldenGamma));
}

/// Number `index` of a stream, uniform in (-scale, scale). It has the 24 bits of a float, so that
/// float32 and float64 runs start from the same numbers.
DUALPIPE_DEVICE inline float getUniform(uint64_t key, uint64_t index, float scale) {
  uint64_t bits = mixBits(key + (index + 1) * kGoldenGamma) >> 40; // 24 bits
  float centred = float(int32_t(2 * bits + 1) - (1 << 24)) * 0x1p-24f;
  return centred * scale;
}

} // namespace dualpipe::kernels

#endif // DUALPIPE_RUNTIME_KERNELS_RANDOM_H
