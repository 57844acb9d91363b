//===- ProfileCosts.cpp - predicting with a profile -------------------------===//

#include "dualpipe/Runtime/CostFile.h"
#include "dualpipe/Runtime/Profile.h"

#include "Names.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace dualpipe::runtime {

using program::CommandOp;
using program::Function;
using program::RankProgram;

template <typename AnyCosts> static auto *findCost(AnyCosts &costs, Function function) {
  switch (function) {
  case Function::LoadInput:
    return &costs.loadInput;
  case Function::LoadLabels:
    return &costs.loadLabels;
  case Function::Forward:
    return &costs.ops.of(OpKind::Forward);
  case Function::Backward:
    return &costs.ops.of(OpKind::Backward);
  case Function::BackwardInput:
    return &costs.ops.of(OpKind::BackwardInput);
  case Function::BackwardWeight:
    return &costs.ops.of(OpKind::BackwardWeight);
  }
  return decltype(&costs.loadInput)(nullptr);
}

/// An op takes at least a tick, as costs do.
static void setFunction(SimulationCosts &costs, const FunctionProfile &function,
                        uint32_t numComponents) {
  const bool isLoad =
      function.key.function == Function::LoadInput || function.key.function == Function::LoadLabels;
  const Ticks time = isLoad ? function.time : std::max<Ticks>(function.time, 1);
  ComponentCost component;
  if (numComponents == 1)
    findCost(costs, function.key.function)->ofStage[function.key.stage] = time;
  else
    component.time = time;
  if (function.cpu < time)
    component.cpu = function.cpu;
  if (component.time || component.cpu)
    costs.components[function.key] = component;
}

static void setSizes(SimulationCosts &costs, const ModelSizes &sizes) {
  for (const StageSizes &stage : sizes.stages) {
    costs.sizes.activations.push_back(stage.tensors[size_t(program::SlotKind::Input)]);
    costs.sizes.gradients.push_back(stage.tensors[size_t(program::SlotKind::GradOutput)]);
    costs.sizes.parameters.push_back(stage.gradients);
  }
  costs.model = sizes;
}

//===----------------------------------------------------------------------===//
// Does it fit?
//===----------------------------------------------------------------------===//

namespace {

/// What a program launches, alone and in pairs.
struct Launched {
  std::set<FunctionKey> functions;
  std::set<std::vector<FunctionKey>> pairs;
};

} // namespace

static FunctionKey getKey(const RankProgram &rank, uint32_t command) {
  const program::Launch &launch = rank.launches[rank.commands[command].arg];
  return {launch.function, launch.stage, launch.component};
}

static void listRank(const RankProgram &rank, bool hasPairs, Launched &launched) {
  for (uint32_t i = 0; i != rank.commands.size(); ++i) {
    const program::Command &command = rank.commands[i];
    if (command.op == CommandOp::Launch)
      launched.functions.insert(getKey(rank, i));
    if (command.op != CommandOp::Pair || !hasPairs)
      continue; // the members stand behind their pair
    std::vector<FunctionKey> members;
    for (uint32_t member = i + 1; member <= i + command.arg; ++member)
      members.push_back(getKey(rank, member));
    std::sort(members.begin(), members.end());
    launched.pairs.insert(members);
    i += command.arg;
  }
}

static bool isKnown(const SimulationCosts &costs, const FunctionKey &key) {
  const auto component = costs.components.find(key);
  return findCost(costs, key.function)->find(key.stage) ||
         (component != costs.components.end() && component->second.time);
}

/// A full backward can be derived from its halves.
static bool canBeDerived(const SimulationCosts &costs, FunctionKey key) {
  if (key.function != Function::Backward)
    return false;
  key.function = Function::BackwardInput;
  const bool hasInput = isKnown(costs, key);
  key.function = Function::BackwardWeight;
  return hasInput && isKnown(costs, key);
}

/// Whether `costs`, of the profile and of what was given over it, have all that is launched.
static Status checkFunctions(const Profile &profile, const SimulationCosts &costs,
                             const program::Program &program) {
  // Members that start on their own have times of their own.
  const bool hasPairs =
      costs.pairStart == PairStart::Joint && (costs.ops.fused || !costs.pairs.empty());
  Launched launched;
  for (const RankProgram &rank : program.ranks)
    listRank(rank, hasPairs, launched);
  for (const std::vector<FunctionKey> &members : launched.pairs)
    if (!costs.ops.fused && costs.pairs.count(members) == 0)
      launched.functions.insert(members.begin(), members.end());
  for (const FunctionKey &key : launched.functions)
    if (!isKnown(costs, key) && !canBeDerived(costs, key))
      return Status::failure(fmt::format(
          "the profile of '{}' has no {} of stage {}{}, which '{}' launches: profile a schedule "
          "that does, or this one, or give its time after the file",
          profile.origin.schedule, kFunctionNames[size_t(key.function)], key.stage,
          key.component == 0 ? "" : fmt::format(" component {}", key.component),
          program.shared.schedule));
  return Status::success();
}

Result<SimulationCosts> getCosts(const Profile &profile, const program::Program &program,
                                 std::string_view overrides) {
  const program::SharedInfo &shared = program.shared;
  if (profile.origin.stages != shared.numStages)
    return Status::failure(fmt::format(
        "the profile is of '{}' with {} stages, '{}' has {}: a profile serves schedules of equally "
        "many stages",
        profile.origin.schedule, profile.origin.stages, shared.schedule, shared.numStages));
  if (profile.origin.components != shared.contract.numComponents)
    return Status::failure(fmt::format("the profile is of a model with {} components per stage, "
                                       "'{}' was compiled for {}",
                                       profile.origin.components, shared.schedule,
                                       shared.contract.numComponents));
  SimulationCosts costs;
  for (const FunctionProfile &function : profile.functions)
    setFunction(costs, function, shared.contract.numComponents);
  for (const PairProfile &pair : profile.pairs)
    costs.pairs[pair.members] = {std::max<Ticks>(pair.time, 1), pair.cpu};
  costs.ops.transfer = profile.latency;
  costs.bandwidth = profile.bandwidth;
  for (const StageProfile &stage : profile.reductions)
    costs.reduce.ofStage[stage.stage] = stage.time;
  for (const StageProfile &stage : profile.stageSteps)
    costs.step.ofStage[stage.stage] = stage.time;
  setSizes(costs, profile.sizes);
  if (Status status = costs.override(overrides); !status)
    return status;
  if (Status status = checkFunctions(profile, costs, program); !status)
    return status;
  return costs;
}

//===----------------------------------------------------------------------===//
// On the command line
//===----------------------------------------------------------------------===//

std::string getCostFile(std::string_view text) {
  const std::string_view first = text.substr(0, text.find(','));
  const bool isFile = first.ends_with(".json") && first.find('=') == first.npos;
  return std::string(isFile ? first : "");
}

Result<CostOption> CostOption::parse(std::string_view text) {
  CostOption option;
  option.text = text;
  if (const std::string file = getCostFile(text); !file.empty()) {
    Result<Profile> profile = readProfileFile(file);
    if (!profile)
      return profile.getStatus();
    option.profile = std::move(*profile);
    text.remove_prefix(std::min(text.size(), file.size() + 1));
  }
  Result<SimulationCosts> overrides = SimulationCosts::parse(text);
  if (!overrides)
    return overrides.getStatus();
  option.overrides = text;
  return option;
}

Result<SimulationCosts> CostOption::getCosts(const program::Program &program) const {
  Result<SimulationCosts> costs = profile ? runtime::getCosts(*profile, program, overrides)
                                          : SimulationCosts::fromProgram(program.shared);
  if (!costs)
    return costs;
  if (profile) {
    costs->profileOption = text;
    return costs;
  }
  if (Status status = costs->override(overrides); !status)
    return status;
  return costs;
}

} // namespace dualpipe::runtime
