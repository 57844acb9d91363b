//===- Median.h - the middle of a list --------------------------------------===//

#ifndef DUALPIPE_RUNTIME_PROFILE_MEDIAN_H
#define DUALPIPE_RUNTIME_PROFILE_MEDIAN_H

#include <algorithm>
#include <vector>

namespace dualpipe::runtime {

/// Of two in the middle, the lower one; 0 of none.
template <typename Number> Number getMedian(std::vector<Number> values) {
  if (values.empty())
    return Number(0);
  const auto middle = values.begin() + ptrdiff_t((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_PROFILE_MEDIAN_H
