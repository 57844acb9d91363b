//===- SimulationCosts.cpp - the times of a prediction ----------------------===//

#include "dualpipe/Runtime/Simulation.h"

#include <fmt/format.h>

#include <algorithm>

namespace dualpipe::runtime {

namespace {

/// NAME=VALUE items, those of the simulation alone apart from those of `Costs`.
struct Items {
  std::vector<std::pair<std::string_view, std::string_view>> own;
  std::string others;
};

} // namespace

static constexpr std::string_view kOwnNames[] = {"occupancy", "reduce", "step", "start"};
static constexpr std::string_view kOtherNames[] = {"fwd",        "bwd",   "bwd_input",
                                                   "bwd_weight", "fused", "transfer"};

template <size_t N>
static bool contains(const std::string_view (&names)[N], std::string_view name) {
  return std::find(names, names + N, name) != names + N;
}

static Status addItem(std::string_view item, Items &items) {
  const size_t equals = item.find('=');
  const std::string_view name = item.substr(0, equals);
  if (equals != item.npos && contains(kOwnNames, name)) {
    for (const auto &[known, value] : items.own)
      if (known == name)
        return Status::failure(fmt::format("cost '{}' is given twice", name));
    items.own.emplace_back(name, item.substr(equals + 1));
    return Status::success();
  }
  if (equals != item.npos && !contains(kOtherNames, name.substr(0, name.find('['))))
    return Status::failure(fmt::format("unknown cost '{}', expected fwd, bwd, bwd_input, "
                                       "bwd_weight, one of these for a stage as in fwd[3], fused, "
                                       "transfer, occupancy, reduce, step or start",
                                       name));
  items.others += items.others.empty() ? "" : ",";
  items.others += item;
  return Status::success();
}

static Result<Items> splitItems(std::string_view text) {
  Items items;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    if (Status status = addItem(text.substr(0, comma), items); !status)
      return status;
    if (comma == text.npos)
      break;
    text.remove_prefix(comma + 1);
    if (text.empty())
      return Status::failure("expected a cost after the last comma");
  }
  return items;
}

static Status setOwn(SimulationCosts &costs, std::string_view name, std::string_view value) {
  if (name == "start") {
    if (value != "joint" && value != "separate")
      return Status::failure(
          fmt::format("cost 'start' is '{}', expected joint or separate", value));
    costs.pairStart = value == "joint" ? PairStart::Joint : PairStart::Separate;
    return Status::success();
  }
  const std::optional<Ticks> ticks = Costs::parseTicks(value);
  if (!ticks)
    return Status::failure(fmt::format(
        "cost '{}' is '{}', expected a decimal number with at most six places", name, value));
  (name == "occupancy" ? costs.occupancy : name == "reduce" ? costs.reduce : costs.step) = *ticks;
  return Status::success();
}

static bool isGiven(const OpCost &cost) { return cost.common || !cost.ofStage.empty(); }

/// Where a cost was derived before, it is derived again from what is new.
static void forgetDerived(Costs &costs, const Costs &given) {
  const bool half =
      isGiven(given.of(OpKind::BackwardInput)) || isGiven(given.of(OpKind::BackwardWeight));
  if (half)
    costs.of(OpKind::Backward) = OpCost();
  if (half || isGiven(given.of(OpKind::Forward)) || isGiven(given.of(OpKind::Backward)))
    costs.fused.reset();
}

Status SimulationCosts::override(std::string_view given) {
  Result<Items> items = splitItems(given);
  if (!items)
    return items.getStatus();
  for (const auto &[name, value] : items->own)
    if (Status status = setOwn(*this, name, value); !status)
      return status;
  Result<Costs> others = Costs::parse(items->others);
  if (!others)
    return others.getStatus();
  forgetDerived(ops, *others);
  ops.override(*others);
  return Status::success();
}

Result<SimulationCosts> SimulationCosts::parse(std::string_view text) {
  SimulationCosts costs;
  if (Status status = costs.override(text); !status)
    return status;
  return costs;
}

Result<SimulationCosts> SimulationCosts::fromProgram(const program::SharedInfo &shared) {
  std::string text;
  for (const auto &[name, value] : shared.planCosts)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  SimulationCosts costs;
  Result<Costs> ops = Costs::parse(text);
  if (!ops)
    return Status::failure("the planning costs of the program cannot be read: " + ops.message());
  costs.ops = std::move(*ops);
  return costs;
}

void SimulationCosts::divideAmong(uint32_t parts) {
  for (OpKind kind : {OpKind::Forward, OpKind::BackwardInput, OpKind::BackwardWeight})
    if (!ops.of(kind).common)
      ops.of(kind).common = Costs::kTicksPerUnit;
  for (OpCost &cost : ops.ops) {
    if (cost.common)
      *cost.common /= parts;
    for (auto &[stage, ticks] : cost.ofStage)
      ticks /= parts;
  }
  if (ops.fused)
    *ops.fused /= parts;
  reduce /= parts;
  step /= parts;
}

std::vector<std::pair<std::string, std::string>> SimulationCosts::print() const {
  std::vector<std::pair<std::string, std::string>> items = ops.print();
  const auto add = [&](const char *name, Ticks ticks) {
    if (ticks != 0)
      items.emplace_back(name, Costs::printTicks(ticks));
  };
  add("occupancy", occupancy);
  add("reduce", reduce);
  add("step", step);
  items.emplace_back("start", pairStart == PairStart::Joint ? "joint" : "separate");
  return items;
}

} // namespace dualpipe::runtime
