//===- Costs.cpp - planning costs -------------------------------------------===//
//
// All of Costs.h but what looks into order tables, which is in lib/Schedule/.
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Schedule/Costs.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <limits>
#include <set>

using namespace dualpipe;

static constexpr OpKind kKinds[] = {OpKind::Forward, OpKind::Backward, OpKind::BackwardInput,
                                    OpKind::BackwardWeight};

//===----------------------------------------------------------------------===//
// Look-up
//===----------------------------------------------------------------------===//

std::optional<Ticks> OpCost::find(uint32_t stage) const {
  if (auto found = ofStage.find(stage); found != ofStage.end())
    return found->second;
  return common;
}

std::optional<Ticks> OpCost::getLongest() const {
  std::optional<Ticks> longest = common;
  for (const auto &[stage, ticks] : ofStage)
    longest = std::max(longest.value_or(0), ticks);
  return longest;
}

Ticks Costs::get(OpKind kind, uint32_t stage) const {
  if (std::optional<Ticks> given = of(kind).find(stage))
    return *given;
  if (kind == OpKind::Backward)
    return get(OpKind::BackwardInput, stage) + get(OpKind::BackwardWeight, stage);
  return kTicksPerUnit;
}

void Costs::override(const Costs &other) {
  for (OpKind kind : kKinds) {
    OpCost &mine = of(kind);
    const OpCost &theirs = other.of(kind);
    if (theirs.common)
      mine = OpCost{theirs.common, {}};
    for (const auto &[stage, ticks] : theirs.ofStage)
      mine.ofStage[stage] = ticks;
  }
  if (other.fused)
    fused = other.fused;
  if (other.transfer)
    transfer = other.transfer;
}

void Costs::spellOut(uint32_t numStages) {
  for (OpKind kind : kKinds) {
    OpCost &cost = of(kind);
    if (cost.ofStage.empty())
      continue;
    for (uint32_t stage = 0; stage != numStages; ++stage)
      cost.ofStage.emplace(stage, get(kind, stage));
    cost.common.reset();
  }
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

/// No time of a timeline is later than all ops and transfers one after the other;
/// the optimizer steps stand at up to twice that.
Status Costs::checkRange(uint64_t numOps) const {
  constexpr Ticks kLatest = std::numeric_limits<Ticks>::max() / 4;
  auto longestOf = [&](OpKind kind) {
    const OpCost &cost = of(kind);
    Ticks rest = cost.common ? 0 : kTicksPerUnit;
    return std::max(rest, cost.getLongest().value_or(0));
  };
  Ticks halves = longestOf(OpKind::BackwardInput) + longestOf(OpKind::BackwardWeight);
  const OpCost &bwd = of(OpKind::Backward);
  Ticks longest = std::max({longestOf(OpKind::Forward), longestOf(OpKind::BackwardInput),
                            longestOf(OpKind::BackwardWeight), bwd.getLongest().value_or(0),
                            bwd.common ? 0 : halves, fused.value_or(0)});
  numOps = std::max<uint64_t>(numOps, 1);
  if (static_cast<uint64_t>(kLatest) / numOps >= static_cast<uint64_t>(longest + getTransfer()))
    return Status::success();
  return Status::failure(fmt::format("{} ops of up to {} and transfers of {} are too long to plan "
                                     "with, expected times in a larger unit",
                                     numOps, printTicks(longest), printTicks(getTransfer())));
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string Costs::printTicks(Ticks ticks) {
  std::string text = fmt::format("{}.{:06}", ticks / kTicksPerUnit, ticks % kTicksPerUnit);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.')
    text.pop_back();
  return text;
}

static bool isDigits(std::string_view text) {
  return text.find_first_not_of("0123456789") == text.npos;
}

/// Whole and fractional part are read as integers.
std::optional<Ticks> Costs::parseTicks(std::string_view text) {
  size_t dot = text.find('.');
  std::string_view whole = text.substr(0, dot);
  std::string_view fraction = dot == text.npos ? "" : text.substr(dot + 1);
  if (whole.empty() || whole.size() > 9 || fraction.size() > 6 ||
      (dot != text.npos && fraction.empty()))
    return std::nullopt;
  if (!isDigits(whole) || !isDigits(fraction))
    return std::nullopt;
  std::string digits = std::string(whole) + std::string(fraction);
  digits.append(6 - fraction.size(), '0');
  Ticks ticks = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), ticks);
  return ticks;
}

/// Takes "[3]" off the end of a name. Nothing stays where the brackets hold no
/// number.
static std::optional<uint32_t> takeStage(std::string_view &name) {
  size_t open = name.find('[');
  if (open == name.npos || name.back() != ']')
    return std::nullopt;
  std::string_view digits = name.substr(open + 1, name.size() - open - 2);
  uint32_t stage = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), stage);
  if (digits.empty() || !isDigits(digits) || error != std::errc())
    return std::nullopt;
  name = name.substr(0, open);
  return stage;
}

static std::optional<OpKind> findKind(std::string_view name) {
  for (OpKind kind : kKinds)
    if (name == getKeyword(kind))
      return kind;
  return std::nullopt;
}

/// Sets what `name` stands for; false for a name that stands for nothing.
static bool setByName(Costs &costs, std::string_view name, Ticks ticks) {
  if (name == "fused" || name == "transfer") {
    (name == "fused" ? costs.fused : costs.transfer) = ticks;
    return true;
  }
  std::optional<uint32_t> stage = takeStage(name);
  std::optional<OpKind> kind = findKind(name);
  if (!kind)
    return false;
  if (stage)
    costs.of(*kind).ofStage[*stage] = ticks;
  else
    costs.of(*kind).common = ticks;
  return true;
}

/// Reads one NAME=VALUE.
static Status parseItem(Costs &costs, std::string_view item, std::set<std::string_view> &seen) {
  size_t equals = item.find('=');
  if (equals == item.npos)
    return Status::failure(fmt::format("expected NAME=VALUE in the costs, got '{}'", item));
  std::string_view name = item.substr(0, equals), value = item.substr(equals + 1);
  std::optional<Ticks> ticks = Costs::parseTicks(value);
  if (!setByName(costs, name, ticks.value_or(0)))
    return Status::failure(fmt::format("unknown cost '{}', expected fwd, bwd, bwd_input, "
                                       "bwd_weight, one of these for a stage as in fwd[3], fused "
                                       "or transfer",
                                       name));
  if (!ticks)
    return Status::failure(fmt::format("cost '{}' is '{}', expected a decimal number with at most "
                                       "six places, less than 1000000000",
                                       name, value));
  if (!seen.insert(name).second)
    return Status::failure(fmt::format("cost '{}' is given twice", name));
  if (name != "transfer" && *ticks == 0)
    return Status::failure(fmt::format("cost '{}' is {}, expected more than 0", name, value));
  return Status::success();
}

Result<Costs> Costs::parse(std::string_view text) {
  Costs costs;
  std::set<std::string_view> seen;
  while (!text.empty()) {
    size_t comma = text.find(',');
    if (Status status = parseItem(costs, text.substr(0, comma), seen); !status)
      return status;
    if (comma == text.npos)
      break;
    text.remove_prefix(comma + 1);
    if (text.empty())
      return Status::failure("expected a cost after the last comma");
  }
  return costs;
}

std::vector<std::pair<std::string, std::string>> Costs::print() const {
  std::vector<std::pair<std::string, std::string>> result;
  for (OpKind kind : kKinds) {
    const OpCost &cost = of(kind);
    bool hasDefault = kind != OpKind::Backward && cost.ofStage.empty();
    if (cost.common || hasDefault)
      result.emplace_back(getKeyword(kind), printTicks(cost.common.value_or(kTicksPerUnit)));
    for (const auto &[stage, ticks] : cost.ofStage)
      result.emplace_back(fmt::format("{}[{}]", getKeyword(kind), stage), printTicks(ticks));
  }
  if (fused)
    result.emplace_back("fused", printTicks(*fused));
  result.emplace_back("transfer", printTicks(getTransfer()));
  return result;
}
