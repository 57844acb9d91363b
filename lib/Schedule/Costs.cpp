//===- Costs.cpp - planning costs -------------------------------------------===//

#include "dualpipe/Schedule/Costs.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <set>

using namespace dualpipe;

Ticks Costs::get(OpKind kind) const {
  switch (kind) {
  case OpKind::Forward:
    return fwd;
  case OpKind::Backward:
    return bwd.value_or(bwdInput + bwdWeight);
  case OpKind::BackwardInput:
    return bwdInput;
  case OpKind::BackwardWeight:
    return bwdWeight;
  }
  return 0;
}

Ticks Costs::getGroup(const RankOrder &order, size_t begin, size_t end) const {
  if (fused && end - begin > 1)
    return *fused;
  Ticks sum = 0;
  for (size_t op = begin; op != end; ++op)
    sum += get(order.kind[op]);
  return sum;
}

static std::string printTicks(Ticks ticks) {
  std::string text =
      fmt::format("{}.{:06}", ticks / Costs::kTicksPerUnit, ticks % Costs::kTicksPerUnit);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.')
    text.pop_back();
  return text;
}

/// No time of a timeline is later than all ops and transfers one after the other;
/// the optimizer steps stand at up to twice that.
Status Costs::checkRange(const Schedule &schedule) const {
  constexpr Ticks kLatest = std::numeric_limits<Ticks>::max() / 4;
  Ticks longest = std::max({fwd, get(OpKind::Backward), bwdInput, bwdWeight, fused.value_or(0)});
  uint64_t numOps = std::max<uint64_t>(schedule.getNumOps(), 1);
  if (static_cast<uint64_t>(kLatest) / numOps >= static_cast<uint64_t>(longest + transfer))
    return Status::success();
  return Status::failure(fmt::format("{} ops of up to {} and transfers of {} are too long to plan "
                                     "with, expected times in a larger unit",
                                     numOps, printTicks(longest), printTicks(transfer)));
}

/// "18.522" as ticks. Whole and fractional part are read as integers.
static std::optional<Ticks> parseTicks(std::string_view text) {
  size_t dot = text.find('.');
  std::string_view whole = text.substr(0, dot);
  std::string_view fraction = dot == text.npos ? "" : text.substr(dot + 1);
  if (whole.empty() || whole.size() > 9 || fraction.size() > 6 ||
      (dot != text.npos && fraction.empty()))
    return std::nullopt;
  auto isDigits = [](std::string_view s) { return s.find_first_not_of("0123456789") == s.npos; };
  if (!isDigits(whole) || !isDigits(fraction))
    return std::nullopt;
  std::string digits = std::string(whole) + std::string(fraction);
  digits.append(6 - fraction.size(), '0');
  Ticks ticks = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), ticks);
  return ticks;
}

/// The entry for one name; null for an unknown name.
static std::function<void(Ticks)> findEntry(Costs &costs, std::string_view name) {
  if (name == "fwd")
    return [&](Ticks ticks) { costs.fwd = ticks; };
  if (name == "bwd")
    return [&](Ticks ticks) { costs.bwd = ticks; };
  if (name == "bwd_input")
    return [&](Ticks ticks) { costs.bwdInput = ticks; };
  if (name == "bwd_weight")
    return [&](Ticks ticks) { costs.bwdWeight = ticks; };
  if (name == "fused")
    return [&](Ticks ticks) { costs.fused = ticks; };
  if (name == "transfer")
    return [&](Ticks ticks) { costs.transfer = ticks; };
  return {};
}

/// Reads one NAME=VALUE.
static Status parseItem(Costs &costs, std::string_view item, std::set<std::string_view> &seen) {
  size_t equals = item.find('=');
  if (equals == item.npos)
    return Status::failure(fmt::format("expected NAME=VALUE in the costs, got '{}'", item));
  std::string_view name = item.substr(0, equals), value = item.substr(equals + 1);
  std::function<void(Ticks)> set = findEntry(costs, name);
  if (!set)
    return Status::failure(fmt::format("unknown cost '{}', expected fwd, bwd, bwd_input, "
                                       "bwd_weight, fused or transfer",
                                       name));
  std::optional<Ticks> ticks = parseTicks(value);
  if (!ticks)
    return Status::failure(fmt::format(
        "cost '{}' is '{}', expected a decimal number with at most six places", name, value));
  if (!seen.insert(name).second)
    return Status::failure(fmt::format("cost '{}' is given twice", name));
  if (name != "transfer" && *ticks == 0)
    return Status::failure(fmt::format("cost '{}' is {}, expected more than 0", name, value));
  set(*ticks);
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
  std::vector<std::pair<std::string, std::string>> result{{"fwd", printTicks(fwd)}};
  if (bwd)
    result.emplace_back("bwd", printTicks(*bwd));
  result.emplace_back("bwd_input", printTicks(bwdInput));
  result.emplace_back("bwd_weight", printTicks(bwdWeight));
  if (fused)
    result.emplace_back("fused", printTicks(*fused));
  result.emplace_back("transfer", printTicks(transfer));
  return result;
}
