//===- CostTables.h - what each command of a program costs ------------------===//

#ifndef DUALPIPE_RUNTIME_SIM_COSTTABLES_H
#define DUALPIPE_RUNTIME_SIM_COSTTABLES_H

#include "dualpipe/Runtime/Simulation.h"

namespace dualpipe::runtime {

/// A compute: its time, and the part of it that needs a core.
struct ComputeTime {
  Ticks time = 0, cpu = 0;
};

/// A transfer: how long it keeps its channel, and when its data is there after that.
struct TransferTime {
  Ticks occupancy = 0, latency = 0;
};

/// Costs laid out by what a command names, so that a lookup is an index. Refers to
/// the program and the costs that it is made of.
class CostTables {
public:
  CostTables(const program::Program &program, const SimulationCosts &costs);

  /// Whether costs go together and name what the program has.
  Status check() const;

  const ComputeTime &get(const program::Launch &launch) const {
    const size_t row = size_t(launch.function) * numComponents + launch.component;
    return computes[row * numStages + launch.stage];
  }
  /// A pair as a whole. Its launches stand at commands [first, first + numLaunches).
  ComputeTime getPair(const program::RankProgram &rank, uint32_t first, uint32_t numLaunches) const;
  TransferTime get(const program::Transfer &transfer) const {
    const Link &link = links[classes[transfer.channel]];
    return {link.occupancy[link.occupancy.size() == 1 ? 0 : transfer.stage], link.latency};
  }
  Ticks get(const program::Reduction &reduction) const;
  Ticks getStep(uint32_t stage) const { return costs.step.find(stage).value_or(0); }
  uint32_t getNode(uint32_t rank) const {
    return costs.ranksPerNode == 0 ? 0 : rank / costs.ranksPerNode;
  }
  uint32_t getNumNodes() const;

private:
  /// A class of links for one kind of values.
  struct Link {
    std::vector<Ticks> occupancy; ///< by stage; one for all where they are equal
    Ticks latency = 0;
  };
  static constexpr unsigned kGradient = 1, kFar = 2, kNumClasses = 4;

  void addComputes();
  ComputeTime getCompute(const FunctionKey &key) const;
  void addLinks();
  Status checkStages() const;
  Status checkRange() const;
  bool isFar(const program::ReduceGroup &group) const;
  Ticks getLongestReduction() const;

  const program::Program &program;
  const SimulationCosts &costs;
  uint32_t numStages, numComponents;
  std::vector<ComputeTime> computes;
  Link links[kNumClasses];
  std::vector<uint8_t> classes; ///< by channel
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_SIM_COSTTABLES_H
