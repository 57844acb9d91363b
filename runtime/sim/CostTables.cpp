//===- CostTables.cpp - what each command of a program costs ----------------===//

#include "CostTables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace dualpipe::runtime {

using program::Function;
using program::RankProgram;
using program::SlotKind;

/// Longer than any time that is allowed, and far from an overflow.
static constexpr Ticks kMaxTicks = std::numeric_limits<Ticks>::max() / 4;

/// Bytes over bandwidth, rounded to ticks.
static Ticks getTicks(double bytes, double bandwidth) {
  const double ticks = bytes / bandwidth * double(Costs::kTicksPerUnit);
  return ticks < double(kMaxTicks) ? Ticks(std::llround(ticks)) : kMaxTicks;
}

Ticks LinkCosts::getOccupancy(uint64_t bytes) const {
  const Ticks ofBytes = bandwidth == 0 || bytes == 0 ? 0 : getTicks(double(bytes), bandwidth);
  return std::min(kMaxTicks, occupancy + ofBytes);
}

LinkCosts SimulationCosts::getFar() const {
  const LinkCosts near = getNear();
  return {farLatency.value_or(near.latency), farOccupancy.value_or(near.occupancy),
          farBandwidth.value_or(near.bandwidth)};
}

CostTables::CostTables(const program::Program &program, const SimulationCosts &costs)
    : program(program), costs(costs), numStages(program.shared.numStages),
      numComponents(program.shared.contract.numComponents) {
  addComputes();
  addLinks();
}

//===----------------------------------------------------------------------===//
// Computes
//===----------------------------------------------------------------------===//

void CostTables::addComputes() {
  computes.reserve(size_t(program::kNumFunctions) * numComponents * numStages);
  for (unsigned function = 0; function != program::kNumFunctions; ++function)
    for (uint32_t component = 0; component != numComponents; ++component)
      for (uint32_t stage = 0; stage != numStages; ++stage)
        computes.push_back(getCompute({Function(function), stage, component}));
}

static Ticks getWhole(const SimulationCosts &costs, Function function, uint32_t stage) {
  switch (function) {
  case Function::LoadInput:
    return costs.loadInput.find(stage).value_or(0);
  case Function::LoadLabels:
    return costs.loadLabels.find(stage).value_or(0);
  case Function::Forward:
    return costs.ops.get(OpKind::Forward, stage);
  case Function::Backward:
    return costs.ops.get(OpKind::Backward, stage);
  case Function::BackwardInput:
    return costs.ops.get(OpKind::BackwardInput, stage);
  case Function::BackwardWeight:
    return costs.ops.get(OpKind::BackwardWeight, stage);
  }
  return 0;
}

static ComputeTime toComputeTime(const ComponentCost &given, Ticks otherwise) {
  const Ticks time = given.time.value_or(otherwise);
  return {time, std::min(time, given.cpu.value_or(time))};
}

/// Components take equal parts, the first what is left over.
ComputeTime CostTables::getCompute(const FunctionKey &key) const {
  const Ticks whole = getWhole(costs, key.function, key.stage);
  const Ticks part = whole / numComponents;
  const Ticks time = key.component == 0 ? whole - part * (numComponents - 1) : part;
  const auto given = costs.components.find(key);
  return toComputeTime(given == costs.components.end() ? ComponentCost() : given->second, time);
}

/// A pair whose time is given on the command line needs a core for all of it.
ComputeTime CostTables::getPair(const RankProgram &rank, uint32_t first,
                                uint32_t numLaunches) const {
  ComputeTime sum;
  for (uint32_t i = first; i != first + numLaunches; ++i) {
    const ComputeTime &member = get(rank.launches[rank.commands[i].arg]);
    sum.time += member.time;
    sum.cpu += member.cpu;
  }
  if (!costs.pairs.empty()) {
    std::vector<FunctionKey> key;
    for (uint32_t i = first; i != first + numLaunches; ++i) {
      const program::Launch &launch = rank.launches[rank.commands[i].arg];
      key.push_back({launch.function, launch.stage, launch.component});
    }
    std::sort(key.begin(), key.end());
    if (const auto given = costs.pairs.find(key); given != costs.pairs.end())
      return toComputeTime(given->second, sum.time);
  }
  return costs.ops.fused ? ComputeTime{*costs.ops.fused, *costs.ops.fused} : sum;
}

//===----------------------------------------------------------------------===//
// Links
//===----------------------------------------------------------------------===//

void CostTables::addLinks() {
  for (unsigned number = 0; number != kNumClasses; ++number) {
    const LinkCosts link = (number & kFar) != 0 ? costs.getFar() : costs.getNear();
    const std::vector<uint64_t> &sizes =
        (number & kGradient) != 0 ? costs.sizes.gradients : costs.sizes.activations;
    links[number].latency = link.latency;
    links[number].occupancy = {link.getOccupancy(costs.bytes)};
    if (sizes.size() != numStages || link.bandwidth == 0)
      continue;
    links[number].occupancy.clear();
    for (const uint64_t bytes : sizes)
      links[number].occupancy.push_back(link.getOccupancy(bytes));
  }
  for (const program::Channel &channel : program.shared.channels) {
    const unsigned kind = channel.kind == SlotKind::Output ? 0 : kGradient;
    const bool far = getNode(channel.source) != getNode(channel.destination);
    classes.push_back(uint8_t(kind | (far ? kFar : 0)));
  }
}

uint32_t CostTables::getNumNodes() const {
  return program.shared.numRanks == 0 ? 0 : getNode(program.shared.numRanks - 1) + 1;
}

bool CostTables::isFar(const program::ReduceGroup &group) const {
  return !group.ranks.empty() && getNode(group.ranks.front()) != getNode(group.ranks.back());
}

/// A ring: 2(n - 1) messages of an n-th of the bytes one after the other. P. Patarasuk
/// and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
/// J. Parallel Distrib. Comput. 69 (2009), section 4; with latencies, R. Thakur,
/// R. Rabenseifner and W. Gropp, "Optimization of collective communication operations
/// in MPICH", Int. J. High Perform. Comput. Appl. 19 (2005), section 4.5.
static Ticks getRing(const LinkCosts &link, uint64_t bytes, uint64_t numRanks) {
  if (numRanks < 2 || bytes == 0 || link.bandwidth == 0)
    return 0;
  const double sent = 2.0 * double(numRanks - 1) / double(numRanks) * double(bytes);
  const double latencies = 2.0 * double(numRanks - 1) * double(link.latency);
  if (latencies >= double(kMaxTicks))
    return kMaxTicks;
  return std::min(kMaxTicks, getTicks(sent, link.bandwidth) + Ticks(latencies));
}

Ticks CostTables::get(const program::Reduction &reduction) const {
  const program::ReduceGroup &group = program.shared.reduceGroups[reduction.group];
  const std::vector<uint64_t> &sizes = costs.sizes.parameters;
  const uint64_t bytes = sizes.size() == numStages ? sizes[reduction.stage] : costs.reduceBytes;
  const LinkCosts link = isFar(group) ? costs.getFar() : costs.getNear();
  const Ticks fixed = costs.reduce.find(reduction.stage).value_or(0);
  // What was measured as a whole has its bytes in it.
  if (costs.reduce.ofStage.count(reduction.stage) != 0)
    return fixed;
  return std::min(kMaxTicks, fixed + getRing(link, bytes, group.ranks.size()));
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static Status checkStage(const char *name, const OpCost &cost, uint32_t numStages) {
  if (cost.ofStage.empty() || cost.ofStage.rbegin()->first < numStages)
    return Status::success();
  return Status::failure(fmt::format("cost '{}[{}]' names no stage, expected one below {}", name,
                                     cost.ofStage.rbegin()->first, numStages));
}

Status CostTables::checkStages() const {
  for (OpKind kind :
       {OpKind::Forward, OpKind::Backward, OpKind::BackwardInput, OpKind::BackwardWeight})
    if (Status status = checkStage(getKeyword(kind), costs.ops.of(kind), numStages); !status)
      return status;
  const std::pair<const char *, const OpCost &> others[] = {{"load_input", costs.loadInput},
                                                            {"load_labels", costs.loadLabels},
                                                            {"reduce", costs.reduce},
                                                            {"step", costs.step}};
  for (const auto &[name, cost] : others)
    if (Status status = checkStage(name, cost, numStages); !status)
      return status;
  for (const auto &[key, cost] : costs.components)
    if (key.stage >= numStages || key.component >= numComponents)
      return Status::failure(fmt::format(
          "a cost names component {} of stage {}, expected a stage below {} and a component below "
          "{}",
          key.component, key.stage, numStages, numComponents));
  return Status::success();
}

Ticks CostTables::getLongestReduction() const {
  Ticks longest = 0;
  for (const RankProgram &rank : program.ranks)
    for (const program::Reduction &reduction : rank.reductions)
      longest = std::max(longest, get(reduction));
  return longest;
}

/// No time is later than all commands one after the other, each as often as cores are
/// shared.
Status CostTables::checkRange() const {
  uint64_t numCommands = 1;
  for (const RankProgram &rank : program.ranks)
    numCommands += rank.commands.size();
  Ticks longest = std::max({costs.ops.fused.value_or(0), costs.step.getLongest().value_or(0),
                            getLongestReduction(), Ticks(1)});
  for (const ComputeTime &compute : computes)
    longest = std::max(longest, compute.time);
  for (const auto &[members, cost] : costs.pairs)
    longest = std::max(longest, cost.time.value_or(0));
  for (const Link &link : links)
    for (const Ticks occupancy : link.occupancy)
      longest = std::max(longest, std::min(kMaxTicks, occupancy + link.latency));
  if (uint64_t(kMaxTicks / longest) >= numCommands)
    return Status::success();
  return Status::failure(fmt::format("{} commands of up to {} are too long to simulate, expected "
                                     "times in a larger unit",
                                     numCommands, Costs::printTicks(longest)));
}

Status CostTables::check() const {
  if (program.ranks.size() != program.shared.numRanks)
    return Status::failure(fmt::format("the program has {} of {} ranks: a simulation needs all",
                                       program.ranks.size(), program.shared.numRanks));
  if (Status status = checkStages(); !status)
    return status;
  if (costs.hasOffsets() && costs.pairStart == PairStart::Separate)
    return Status::failure("costs 'forward_done' and 'backward_done' do not apply with "
                           "start=separate, where each result is there after its own time");
  if (costs.hasContention() && (costs.hasOffsets() || costs.pairStart == PairStart::Separate))
    return Status::failure("costs 'cores' and 'links=shared' apply only to pairs that start and "
                           "end jointly, expected no forward_done, no backward_done and "
                           "start=joint");
  return checkRange();
}

} // namespace dualpipe::runtime
