//===- Costs.h - planning costs ---------------------------------------------===//

#ifndef DUALPIPE_SCHEDULE_COSTS_H
#define DUALPIPE_SCHEDULE_COSTS_H

#include "dualpipe/Schedule/OpKind.h"
#include "dualpipe/Support/Status.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dualpipe {

struct RankOrder;
struct Schedule;

/// Times in ticks. Integers, so that ties never depend on rounding.
using Ticks = int64_t;

/// The cost of one kind of op, as far as it was given.
struct OpCost {
  /// For every stage that `ofStage` does not have.
  std::optional<Ticks> common;
  /// For single stages, by their number over the whole schedule.
  std::map<uint32_t, Ticks> ofStage;

  /// What was given for `stage`, if anything.
  std::optional<Ticks> find(uint32_t stage) const;
  /// The largest of all that were given.
  std::optional<Ticks> getLongest() const;
};

/// What an op costs when the timeline is laid. Units are the user's own; one is
/// `kTicksPerUnit` ticks. Only what was given is stored; `get` knows the defaults.
struct Costs {
  static constexpr Ticks kTicksPerUnit = 1'000'000;

  std::array<OpCost, kNumOpKinds> ops;
  /// A fused group as a whole, joint start and end. Unset: the sum of its members.
  std::optional<Ticks> fused;
  /// Latency of a transfer between ranks. Unset: none.
  std::optional<Ticks> transfer;

  OpCost &of(OpKind kind) { return ops[static_cast<size_t>(kind)]; }
  const OpCost &of(OpKind kind) const { return ops[static_cast<size_t>(kind)]; }

  /// The cost of an op of `stage` (counted over the whole schedule). Unset: one
  /// unit, and for a full backward the sum of the halves in that stage.
  Ticks get(OpKind kind, uint32_t stage) const;
  /// The cost of the ops [begin, end) of `order`, one group.
  Ticks getGroup(const RankOrder &order, size_t begin, size_t end) const;
  Ticks getTransfer() const { return transfer.value_or(0); }

  /// Takes over what `other` gives. A cost that it gives for all stages goes before
  /// those of single stages here.
  void override(const Costs &other);

  /// Where a kind has costs of single stages, gives it one for each of `numStages`, so
  /// that equal costs have one form.
  void spellOut(uint32_t numStages);

  /// Fails where the times of `numOps` ops could add up to more than a timeline can
  /// hold.
  Status checkRange(uint64_t numOps) const;
  /// The same for the ops of `schedule`; fails as well where a cost is given for a
  /// stage that it does not have.
  Status checkRange(const Schedule &schedule) const;

  /// Reads "fwd=1,bwd=2,bwd_input=1,bwd_weight=1,fused=3,transfer=0"; any
  /// subset, decimals with up to six places, `fwd[3]=2` for one stage. Fails on an
  /// unknown or repeated name, on a compute cost that is not positive, on a negative
  /// transfer.
  static Result<Costs> parse(std::string_view text);
  /// Names and values as `parse` reads them. Of the costs that were not given, those
  /// with a default of their own are printed.
  std::vector<std::pair<std::string, std::string>> print() const;

  /// "18.522" as ticks: a decimal number below a thousand million with at most six
  /// places. Nothing where the text is none.
  static std::optional<Ticks> parseTicks(std::string_view text);
  /// The shortest text that `parseTicks` reads as `ticks`.
  static std::string printTicks(Ticks ticks);
};

} // namespace dualpipe

#endif // DUALPIPE_SCHEDULE_COSTS_H
