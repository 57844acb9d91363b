//===- Costs.h - planning costs ---------------------------------------------===//

#ifndef DUALPIPE_SCHEDULE_COSTS_H
#define DUALPIPE_SCHEDULE_COSTS_H

#include "dualpipe/Schedule/Schedule.h"
#include "dualpipe/Support/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dualpipe {

/// Times in ticks. Integers, so that ties never depend on rounding.
using Ticks = int64_t;

/// What an op costs when the timeline is laid. Units are the user's own; one is
/// `kTicksPerUnit` ticks.
struct Costs {
  static constexpr Ticks kTicksPerUnit = 1'000'000;

  Ticks fwd = kTicksPerUnit;
  Ticks bwdInput = kTicksPerUnit;
  Ticks bwdWeight = kTicksPerUnit;
  /// Unset: the sum of the halves.
  std::optional<Ticks> bwd;
  /// A fused group as a whole, joint start and end. Unset: the sum of its members.
  std::optional<Ticks> fused;
  /// Latency of a transfer between ranks.
  Ticks transfer = 0;

  Ticks get(OpKind kind) const;
  /// The cost of the ops [begin, end) of `order`, one group.
  Ticks getGroup(const RankOrder &order, size_t begin, size_t end) const;

  /// Fails where the times of `schedule` could add up to more than a timeline can
  /// hold.
  Status checkRange(const Schedule &schedule) const;

  /// Reads "fwd=1,bwd=2,bwd_input=1,bwd_weight=1,fused=3,transfer=0"; any
  /// subset, decimals with up to six places. Fails on an unknown or repeated
  /// name, on a compute cost that is not positive, on a negative transfer.
  static Result<Costs> parse(std::string_view text);
  /// Names and values as `parse` reads them, unset ones left out.
  std::vector<std::pair<std::string, std::string>> print() const;
};

} // namespace dualpipe

#endif // DUALPIPE_SCHEDULE_COSTS_H
