//===- FitTransfers.cpp - latency and bandwidth from times by size ----------===//

#include "dualpipe/Runtime/Profile.h"

#include "Median.h"

#include <algorithm>
#include <cmath>

namespace dualpipe::runtime {

/// Ticks a byte between any two sizes.
static std::vector<double> listSlopes(const std::vector<TransferProfile> &transfers) {
  std::vector<double> slopes;
  for (size_t i = 0; i != transfers.size(); ++i)
    for (size_t j = i + 1; j != transfers.size(); ++j) {
      const double bytes = double(transfers[j].bytes) - double(transfers[i].bytes);
      slopes.push_back(double(transfers[j].time - transfers[i].time) / bytes);
    }
  return slopes;
}

/// H. Theil, "A rank-invariant method of linear and polynomial regression analysis"
/// (1950); P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau",
/// J. Am. Stat. Assoc. 63 (1968): up to 29 % of the sizes may be off without an effect.
void fitTransfers(Profile &profile) {
  const double slope = std::max(0.0, getMedian(listSlopes(profile.transfers)));
  std::vector<double> rests;
  for (const TransferProfile &transfer : profile.transfers)
    rests.push_back(double(transfer.time) - slope * double(transfer.bytes));
  profile.latency = Ticks(std::llround(std::max(0.0, getMedian(rests))));
  profile.bandwidth = slope == 0 ? 0 : double(Costs::kTicksPerUnit) / slope;
}

} // namespace dualpipe::runtime
