//===- Costs.cpp - planning costs -------------------------------------------===//

#include "dualpipe/Schedule/Costs.h"

#include <charconv>
#include <fmt/format.h>
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

static std::string printTicks(Ticks ticks) {
  std::string text =
      fmt::format("{}.{:06}", ticks / Costs::kTicksPerUnit, ticks % Costs::kTicksPerUnit);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.')
    text.pop_back();
  return text;
}

Result<Costs> Costs::parse(std::string_view text) {
  Costs costs;
  std::set<std::string_view> seen;
  while (!text.empty()) {
    size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    text = comma == text.npos ? "" : text.substr(comma + 1);

    size_t equals = item.find('=');
    if (equals == item.npos)
      return Status::failure(fmt::format("expected NAME=VALUE in the costs, got '{}'", item));
    std::string_view name = item.substr(0, equals), value = item.substr(equals + 1);
    std::optional<Ticks> ticks = parseTicks(value);
    if (!ticks)
      return Status::failure(fmt::format(
          "cost '{}' is '{}', expected a decimal number with at most six places", name, value));
    if (!seen.insert(name).second)
      return Status::failure(fmt::format("cost '{}' is given twice", name));

    bool isTransfer = name == "transfer";
    if (!isTransfer && *ticks == 0)
      return Status::failure(fmt::format("cost '{}' is {}, expected more than 0", name, value));
    if (name == "fwd")
      costs.fwd = *ticks;
    else if (name == "bwd")
      costs.bwd = *ticks;
    else if (name == "bwd_input")
      costs.bwdInput = *ticks;
    else if (name == "bwd_weight")
      costs.bwdWeight = *ticks;
    else if (name == "fused")
      costs.fused = *ticks;
    else if (isTransfer)
      costs.transfer = *ticks;
    else
      return Status::failure(fmt::format("unknown cost '{}', expected fwd, bwd, bwd_input, "
                                         "bwd_weight, fused or transfer",
                                         name));
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
