//===- Clock.h - vector clocks ------------------------------------------------===//

#ifndef DUALPIPE_TEST_SUPPORT_SOFTGPU_CLOCK_H
#define DUALPIPE_TEST_SUPPORT_SOFTGPU_CLOCK_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dualpipe::test::softgpu {

/// By stream: how many of its operations come before. Streams that it has not heard of count 0.
class Clock {
public:
  uint32_t get(uint32_t stream) const { return stream < counts.size() ? counts[stream] : 0; }
  void join(const Clock &other) {
    if (counts.size() < other.counts.size())
      counts.resize(other.counts.size());
    for (size_t i = 0; i != other.counts.size(); ++i)
      counts[i] = std::max(counts[i], other.counts[i]);
  }
  void tick(uint32_t stream) {
    if (counts.size() <= stream)
      counts.resize(stream + 1);
    ++counts[stream];
  }

private:
  std::vector<uint32_t> counts;
};

} // namespace dualpipe::test::softgpu

#endif // DUALPIPE_TEST_SUPPORT_SOFTGPU_CLOCK_H
