//===- SimulationCosts.cpp - the times of a prediction ----------------------===//
//
// One table says which names there are beside those of Costs.h, what they set, and
// in which order they are printed.
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Program/Keywords.h"
#include "dualpipe/Runtime/Simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <variant>

namespace dualpipe::runtime {

using program::Function;

namespace {

/// What a name sets.
using Member = std::variant<Ticks SimulationCosts::*, std::optional<Ticks> SimulationCosts::*,
                            OpCost SimulationCosts::*, double SimulationCosts::*,
                            std::optional<double> SimulationCosts::*, uint64_t SimulationCosts::*,
                            uint32_t SimulationCosts::*, PairStart SimulationCosts::*,
                            bool SimulationCosts::*>;

struct NamedCost {
  std::string_view name;
  Member member;
};

constexpr NamedCost kOwn[] = {
    {"load_input", &SimulationCosts::loadInput},
    {"load_labels", &SimulationCosts::loadLabels},
    {"forward_done", &SimulationCosts::forwardDone},
    {"backward_done", &SimulationCosts::backwardDone},
    {"occupancy", &SimulationCosts::occupancy},
    {"bandwidth", &SimulationCosts::bandwidth},
    {"far_transfer", &SimulationCosts::farLatency},
    {"far_occupancy", &SimulationCosts::farOccupancy},
    {"far_bandwidth", &SimulationCosts::farBandwidth},
    {"bytes", &SimulationCosts::bytes},
    {"reduce_bytes", &SimulationCosts::reduceBytes},
    {"reduce", &SimulationCosts::reduce},
    {"step", &SimulationCosts::step},
    {"node", &SimulationCosts::ranksPerNode},
    {"cores", &SimulationCosts::cores},
    {"links", &SimulationCosts::sharedLinks},
    {"start", &SimulationCosts::pairStart},
};

constexpr std::string_view kOthers[] = {"fwd",        "bwd",   "bwd_input",
                                        "bwd_weight", "fused", "transfer"};

/// "fwd[3.1]": a component of a stage.
struct ComponentName {
  FunctionKey key;
  bool isOne = false;
};

/// NAME=VALUE items, those of the simulation alone apart from those of `Costs`.
struct Items {
  std::vector<std::pair<std::string_view, std::string_view>> own;
  std::string others;
};

template <typename... Cases> struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases> Overloaded(Cases...) -> Overloaded<Cases...>;

} // namespace

static std::string_view getBase(std::string_view name) { return name.substr(0, name.find('[')); }

static const NamedCost *findOwn(std::string_view name) {
  const auto *found = std::find_if(std::begin(kOwn), std::end(kOwn), [&](const NamedCost &cost) {
    return cost.name == getBase(name);
  });
  return found == std::end(kOwn) ? nullptr : found;
}

template <typename Number>
static std::optional<Number> parseWhole(std::string_view text, Number least, Number most) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    return std::nullopt;
  return value;
}

/// What stands in the brackets of a name; nothing where there are none.
static std::optional<std::string_view> getIndex(std::string_view name) {
  const size_t open = name.find('[');
  if (open == name.npos || name.back() != ']')
    return std::nullopt;
  return name.substr(open + 1, name.size() - open - 2);
}

static std::optional<Function> findFunction(std::string_view keyword) {
  if (keyword == "fwd")
    return Function::Forward;
  if (keyword == "bwd")
    return Function::Backward;
  if (keyword == "bwd_input")
    return Function::BackwardInput;
  if (keyword == "bwd_weight")
    return Function::BackwardWeight;
  return std::nullopt;
}

static ComponentName readComponent(std::string_view name) {
  const std::optional<Function> function = findFunction(getBase(name));
  const std::string_view index = getIndex(name).value_or("");
  const size_t dot = index.find('.');
  if (!function || dot == index.npos)
    return {};
  const auto stage = parseWhole<uint32_t>(index.substr(0, dot), 0, UINT32_MAX - 1);
  const auto component = parseWhole<uint32_t>(index.substr(dot + 1), 0, UINT16_MAX);
  if (!stage || !component)
    return {};
  return {{*function, *stage, *component}, true};
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// A name of `Costs`, also of a stage.
static bool isOther(std::string_view name) {
  const std::string_view base = getBase(name);
  if (std::find(std::begin(kOthers), std::end(kOthers), base) == std::end(kOthers))
    return false;
  return base == name || (findFunction(base) &&
                          parseWhole<uint32_t>(getIndex(name).value_or(""), 0, UINT32_MAX - 1));
}

static Status addItem(std::string_view item, Items &items) {
  const size_t equals = item.find('=');
  const std::string_view name = item.substr(0, equals);
  if (equals != item.npos && (findOwn(name) || readComponent(name).isOne)) {
    for (const auto &[known, value] : items.own)
      if (known == name)
        return Status::failure(fmt::format("cost '{}' is given twice", name));
    items.own.emplace_back(name, item.substr(equals + 1));
    return Status::success();
  }
  if (equals == item.npos)
    return Status::failure(fmt::format("expected NAME=VALUE in the costs, got '{}'", item));
  if (!isOther(name))
    return Status::failure(fmt::format(
        "unknown cost '{}', expected fwd, bwd, bwd_input, bwd_weight, one of these for a stage as "
        "in fwd[3] or for a component of it as in fwd[3.1], fused, transfer, load_input, "
        "load_labels, forward_done, backward_done, occupancy, bandwidth, far_transfer, "
        "far_occupancy, far_bandwidth, bytes, reduce_bytes, reduce, step, node, cores, links or "
        "start",
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

static Status complain(std::string_view name, std::string_view value, std::string_view expected) {
  return Status::failure(fmt::format("cost '{}' is '{}', expected {}", name, value, expected));
}

static Status setStages(OpCost &cost, std::string_view name, Ticks ticks) {
  if (name.find('[') == name.npos) {
    cost = {ticks, {}};
    return Status::success();
  }
  const auto stage = parseWhole<uint32_t>(getIndex(name).value_or(""), 0, UINT32_MAX - 1);
  if (!stage)
    return Status::failure(fmt::format("cost '{}' names no stage, expected a number in brackets "
                                       "as in {}[3]",
                                       name, getBase(name)));
  cost.ofStage[*stage] = ticks;
  return Status::success();
}

static std::optional<double> parseBandwidth(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool isRead = error == std::errc() && end == text.data() + text.size();
  if (!isRead || !std::isfinite(value) || value <= 0)
    return std::nullopt;
  return value;
}

/// Two words, the first of which is false.
static std::optional<bool> parseWord(std::string_view text, std::string_view no,
                                     std::string_view yes) {
  if (text != no && text != yes)
    return std::nullopt;
  return text == yes;
}

static constexpr std::string_view kTime =
    "a decimal number with at most six places, less than 1000000000";
static constexpr std::string_view kBandwidth = "more than 0 bytes in a unit of time";
static constexpr uint64_t kMaxBytes = uint64_t(1) << 50;
static constexpr uint32_t kMaxCount = 1u << 20;

/// `name` has brackets only where its member is by stage.
static Status setOwn(SimulationCosts &costs, const NamedCost &cost, std::string_view name,
                     std::string_view value) {
  const std::optional<Ticks> ticks = Costs::parseTicks(value);
  const auto set = [&](auto &to, const auto &read, std::string_view expected) {
    if (name != cost.name)
      return complain(name, value, "no stage in its name");
    if (!read)
      return complain(name, value, expected);
    to = *read;
    return Status::success();
  };
  return std::visit(
      Overloaded{
          [&](OpCost SimulationCosts::*to) {
            return ticks ? setStages(costs.*to, name, *ticks) : complain(name, value, kTime);
          },
          [&](Ticks SimulationCosts::*to) { return set(costs.*to, ticks, kTime); },
          [&](std::optional<Ticks> SimulationCosts::*to) { return set(costs.*to, ticks, kTime); },
          [&](double SimulationCosts::*to) {
            return set(costs.*to, parseBandwidth(value), kBandwidth);
          },
          [&](std::optional<double> SimulationCosts::*to) {
            return set(costs.*to, parseBandwidth(value), kBandwidth);
          },
          [&](uint64_t SimulationCosts::*to) {
            return set(costs.*to, parseWhole<uint64_t>(value, 0, kMaxBytes),
                       fmt::format("a whole number of bytes up to {}", kMaxBytes));
          },
          [&](uint32_t SimulationCosts::*to) {
            return set(costs.*to, parseWhole<uint32_t>(value, 1, kMaxCount),
                       fmt::format("a whole number from 1 to {}", kMaxCount));
          },
          [&](PairStart SimulationCosts::*to) {
            const std::optional<bool> separate = parseWord(value, "joint", "separate");
            const std::optional<PairStart> start =
                separate ? std::optional(*separate ? PairStart::Separate : PairStart::Joint)
                         : std::nullopt;
            return set(costs.*to, start, "joint or separate");
          },
          [&](bool SimulationCosts::*to) {
            return set(costs.*to, parseWord(value, "own", "shared"), "own or shared");
          }},
      cost.member);
}

static Status setComponent(SimulationCosts &costs, std::string_view name, std::string_view value) {
  const std::optional<Ticks> ticks = Costs::parseTicks(value);
  if (!ticks)
    return complain(name, value, kTime);
  costs.components[readComponent(name).key] = {ticks, {}};
  return Status::success();
}

static bool isGiven(const OpCost &cost) { return cost.common || !cost.ofStage.empty(); }

/// What is known of single components, or of pairs with them, no longer holds.
static void forgetComponents(SimulationCosts &costs, Function function, const OpCost &given) {
  std::erase_if(costs.components, [&](const auto &component) {
    const FunctionKey &key = component.first;
    return key.function == function && (given.common || given.ofStage.count(key.stage) != 0);
  });
}

/// Where a cost was derived before, it is derived again from what is new.
static void forgetDerived(SimulationCosts &costs, const Costs &given) {
  const bool half =
      isGiven(given.of(OpKind::BackwardInput)) || isGiven(given.of(OpKind::BackwardWeight));
  if (half) {
    costs.ops.of(OpKind::Backward) = OpCost();
    forgetComponents(costs, Function::Backward, {0, {}});
  }
  if (half || isGiven(given.of(OpKind::Forward)) || isGiven(given.of(OpKind::Backward)))
    costs.ops.fused.reset();
  if (half || given.fused || isGiven(given.of(OpKind::Forward)) ||
      isGiven(given.of(OpKind::Backward)))
    costs.pairs.clear();
  for (OpKind kind :
       {OpKind::Forward, OpKind::Backward, OpKind::BackwardInput, OpKind::BackwardWeight})
    forgetComponents(costs, *findFunction(getKeyword(kind)), given.of(kind));
}

Status SimulationCosts::override(std::string_view given) {
  Result<Items> items = splitItems(given);
  if (!items)
    return items.getStatus();
  Result<Costs> others = Costs::parse(items->others);
  if (!others)
    return others.getStatus();
  forgetDerived(*this, *others);
  ops.override(*others);
  for (const auto &[name, value] : items->own) {
    const NamedCost *own = findOwn(name);
    Status status = own ? setOwn(*this, *own, name, value) : setComponent(*this, name, value);
    if (!status)
      return status;
    // One size for all instead of what was known.
    if (name == "bytes")
      sizes.activations = sizes.gradients = {};
    if (name == "reduce_bytes")
      sizes.parameters = {};
  }
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

//===----------------------------------------------------------------------===//
// Changing
//===----------------------------------------------------------------------===//

static void divide(OpCost &cost, uint32_t parts) {
  if (cost.common)
    *cost.common /= parts;
  for (auto &[stage, ticks] : cost.ofStage)
    ticks /= parts;
}

static void divide(std::optional<Ticks> &ticks, uint32_t parts) {
  if (ticks)
    *ticks /= parts;
}

void SimulationCosts::divideAmong(uint32_t parts) {
  for (OpKind kind : {OpKind::Forward, OpKind::BackwardInput, OpKind::BackwardWeight})
    if (!ops.of(kind).common)
      ops.of(kind).common = Costs::kTicksPerUnit;
  for (OpCost &cost : ops.ops)
    divide(cost, parts);
  for (OpCost *cost : {&loadInput, &loadLabels, &reduce, &step})
    divide(*cost, parts);
  for (std::optional<Ticks> *ticks : {&ops.fused, &forwardDone, &backwardDone})
    divide(*ticks, parts);
  for (auto &[key, cost] : components) {
    divide(cost.time, parts);
    divide(cost.cpu, parts);
  }
  for (auto &[members, cost] : pairs) {
    divide(cost.time, parts);
    divide(cost.cpu, parts);
  }
  reduceBytes /= parts;
  for (uint64_t &size : sizes.parameters)
    size /= parts;
}

bool SimulationCosts::isFree() const {
  const auto isZero = [](const OpCost &cost) { return cost.getLongest().value_or(0) == 0; };
  const bool hasSizes = bytes != 0 || reduceBytes != 0 || !sizes.activations.empty() ||
                        !sizes.gradients.empty() || !sizes.parameters.empty();
  return ops.getTransfer() == 0 && occupancy == 0 && getFar().latency == 0 &&
         getFar().occupancy == 0 && !(hasSizes && (bandwidth != 0 || farBandwidth)) &&
         isZero(reduce) && isZero(step) && isZero(loadInput) && isZero(loadLabels) && cores == 0;
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

namespace {

using PrintedCosts = std::vector<std::pair<std::string, std::string>>;

} // namespace

static void printStages(const std::string &name, const OpCost &cost, PrintedCosts &items) {
  if (cost.common.value_or(0) != 0)
    items.emplace_back(name, Costs::printTicks(*cost.common));
  for (const auto &[stage, ticks] : cost.ofStage)
    items.emplace_back(fmt::format("{}[{}]", name, stage), Costs::printTicks(ticks));
}

/// Nothing for what is not given, but for the start of pairs.
static void printOwn(const SimulationCosts &costs, const NamedCost &cost, PrintedCosts &items) {
  const std::string name(cost.name);
  const auto add = [&](bool counts, const std::string &value) {
    if (counts)
      items.emplace_back(name, value);
  };
  std::visit(Overloaded{[&](OpCost SimulationCosts::*of) { printStages(name, costs.*of, items); },
                        [&](Ticks SimulationCosts::*of) {
                          add(costs.*of != 0, Costs::printTicks(costs.*of));
                        },
                        [&](std::optional<Ticks> SimulationCosts::*of) {
                          add((costs.*of).has_value(), Costs::printTicks((costs.*of).value_or(0)));
                        },
                        [&](std::optional<double> SimulationCosts::*of) {
                          add((costs.*of).has_value(), fmt::format("{}", (costs.*of).value_or(0)));
                        },
                        [&](PairStart SimulationCosts::*of) {
                          add(true, costs.*of == PairStart::Joint ? "joint" : "separate");
                        },
                        [&](bool SimulationCosts::*of) { add(costs.*of, "shared"); },
                        [&](auto of) { add(costs.*of != 0, fmt::format("{}", costs.*of)); }},
             cost.member);
}

std::vector<std::pair<std::string, std::string>> SimulationCosts::print() const {
  PrintedCosts items = ops.print();
  for (const auto &[key, cost] : components)
    if (cost.time)
      items.emplace_back(
          fmt::format("{}[{}.{}]", program::getKeyword(key.function), key.stage, key.component),
          Costs::printTicks(*cost.time));
  for (const NamedCost &cost : kOwn)
    printOwn(*this, cost, items);
  return items;
}

} // namespace dualpipe::runtime
