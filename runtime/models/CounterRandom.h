//===- CounterRandom.h - random numbers as a function of a counter ----------===//
//
// The streams of kernels/Random.h, for the host, and a sequence to draw from.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_MODELS_COUNTERRANDOM_H
#define DUALPIPE_RUNTIME_MODELS_COUNTERRANDOM_H

#include "runtime/kernels/Random.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace dualpipe::models {

using kernels::kGoldenGamma;
using kernels::mixBits;

/// A stream of numbers named by a few integers.
class CounterRandom {
public:
  explicit CounterRandom(std::initializer_list<uint64_t> name) {
    for (uint64_t part : name)
      key = kernels::extendKey(key, part);
  }

  /// Number `index` of the stream, uniform in (-scale, scale): the same on every device.
  float getUniform(uint64_t index, float scale) const {
    return kernels::getUniform(key, index, scale);
  }

private:
  uint64_t key = 0;
};

/// A sequence of numbers that is the same on every machine (SplitMix64).
class Dice {
public:
  explicit Dice(uint64_t seed) : state(seed) {}
  uint64_t draw() { return mixBits(state += kGoldenGamma); }
  /// Below `count`, which is not 0.
  size_t below(size_t count) { return draw() % count; }

private:
  uint64_t state;
};

} // namespace dualpipe::models

#endif // DUALPIPE_RUNTIME_MODELS_COUNTERRANDOM_H
