//===- CounterRandom.h - random numbers as a function of a counter ----------===//
//
// Weights, inputs and labels must not depend on who asks for them or in which
// order. Number i of a stream is a hash of (stream, i): the output function of
// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators", 2014) applied to a counter, as that generator does.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_MODELS_COUNTERRANDOM_H
#define DUALPIPE_RUNTIME_MODELS_COUNTERRANDOM_H

#include <cstdint>
#include <initializer_list>

namespace dualpipe::models {

inline constexpr uint64_t kGoldenGamma = 0x9e3779b97f4a7c15ull;

inline uint64_t mixBits(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

/// A stream of numbers named by a few integers.
class CounterRandom {
public:
  explicit CounterRandom(std::initializer_list<uint64_t> name) {
    for (uint64_t part : name)
      key = mixBits(key + kGoldenGamma + mixBits(part + kGoldenGamma));
  }

  /// Number `index` of the stream, uniform in (-scale, scale). It has the 24 bits of a float, so
  /// that float32 and float64 runs start from the same numbers.
  float getUniform(uint64_t index, float scale) const {
    uint64_t bits = mixBits(key + (index + 1) * kGoldenGamma) >> 40; // 24 bits
    float centred = float(int32_t(2 * bits + 1) - (1 << 24)) * 0x1p-24f;
    return centred * scale;
  }

private:
  uint64_t key = 0;
};

} // namespace dualpipe::models

#endif // DUALPIPE_RUNTIME_MODELS_COUNTERRANDOM_H
