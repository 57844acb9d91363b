//===- Cores.h - computes that share the cores of a node --------------------===//
//
// Processor sharing: k computes on N cores each get min(1, N/k) of a core, whatever
// came first, as a fair scheduler with short slices gives them (L. Kleinrock,
// "Time-shared systems: a theoretical treatment", J. ACM 14 (1967)). All go on at the
// same rate, so the one that ends next is the one with the least left, and that order
// never changes: work is counted on a clock that runs at this rate, on which a compute
// ends at its arrival plus its work.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_SIM_CORES_H
#define DUALPIPE_RUNTIME_SIM_CORES_H

#include "dualpipe/Runtime/Simulation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace dualpipe::runtime {

/// The cores of one node and the computes on them, by the stream that they are on.
class Cores {
public:
  explicit Cores(uint32_t count) : count(count) {}

  bool isIdle() const { return jobs.empty(); }
  void add(Ticks now, Ticks work, uint32_t stream) {
    passTo(now);
    jobs.push_back({clock + double(work), stream});
    std::push_heap(jobs.begin(), jobs.end(), std::greater<>());
  }
  /// When the next compute ends if none comes before, in whole ticks. Needs one.
  Ticks getNextEnd() const {
    const double left = std::max(0.0, jobs.front().end - clock);
    return last + Ticks(std::ceil(left / getRate() - kRounding));
  }
  /// Takes a compute that has ended by `now`; the first one at its time by `getNextEnd`
  /// always has. Among equal ones, that of the first stream.
  bool takeEnded(Ticks now, uint32_t &stream) {
    passTo(now);
    if (jobs.empty() || jobs.front().end > clock + kRounding)
      return false;
    std::pop_heap(jobs.begin(), jobs.end(), std::greater<>());
    stream = jobs.back().stream;
    jobs.pop_back();
    // Begin anew where nothing is left: the clock stays small and exact.
    if (jobs.empty())
      clock = 0;
    return true;
  }

private:
  struct Job {
    double end; ///< on the clock
    uint32_t stream;
    auto operator<=>(const Job &) const = default;
  };

  double getRate() const {
    return jobs.size() <= count ? 1.0 : double(count) / double(jobs.size());
  }
  void passTo(Ticks now) {
    clock += jobs.empty() ? 0 : double(now - last) * getRate();
    last = now;
  }

  /// Less than half a tick, and far more than the rounding of the clock.
  static constexpr double kRounding = 0.25;

  uint32_t count;
  std::vector<Job> jobs; ///< a heap
  double clock = 0;      ///< work that each compute has had since the cores were idle
  Ticks last = 0;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_SIM_CORES_H
