//===- Simulation.h - a program in virtual time -----------------------------===//
//
// Runs the commands of all ranks of a program with given times: the streams of a
// rank in order, events between them, channels by rendezvous (the receiver's slot
// is the only buffer), reductions with all their members. Nothing is computed.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_SIMULATION_H
#define DUALPIPE_RUNTIME_SIMULATION_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/ModelSizes.h"
#include "dualpipe/Schedule/Costs.h"
#include "dualpipe/Support/Status.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dualpipe::runtime {

/// When the members of a fused pair start.
enum class PairStart : uint8_t {
  Joint,    ///< when the inputs of all are there; all results are there at the end
  Separate, ///< each when its own inputs are there; its result after its own time
};

/// What a model hands over and sums, in bytes. By stage; empty where nothing is known.
struct TransferSizes {
  std::vector<uint64_t> activations; ///< into a stage
  std::vector<uint64_t> gradients;   ///< of a stage's output, back into it
  std::vector<uint64_t> parameters;  ///< gradients of a stage that are summed over its copies
};

/// The way between two ranks.
struct LinkCosts {
  Ticks latency = 0;
  /// How long a transfer of any size keeps its channel from the next one.
  Ticks occupancy = 0;
  /// Bytes in a unit of time, in which a transfer keeps its channel as well; 0 where
  /// size makes no difference.
  double bandwidth = 0;

  Ticks getOccupancy(uint64_t bytes) const;
};

/// What one component of a stage costs.
struct ComponentCost {
  std::optional<Ticks> time;
  /// The part of it on a core, at first; the rest follows without one. Unset: all.
  std::optional<Ticks> cpu;
};

/// A launch without its micro-batch.
struct FunctionKey {
  program::Function function = program::Function::Forward;
  uint32_t stage = 0;
  uint32_t component = 0;

  auto operator<=>(const FunctionKey &) const = default;
};

/// What the commands of a program cost. Times in ticks (Costs.h).
struct SimulationCosts {
  /// Computes, fused pairs and the latency of a transfer between ranks of a node.
  Costs ops;
  /// Single components, where they do not take equal parts of their op, and parts of
  /// computes that need a core, where that is not all.
  std::map<FunctionKey, ComponentCost> components;
  /// Loading the input of a first stage, the labels of a last one. Unset: no time.
  OpCost loadInput, loadLabels;
  PairStart pairStart = PairStart::Joint;
  /// With a joint start: when the results of a pair's forwards and backwards are
  /// there, counted from its start. Unset: at its end.
  std::optional<Ticks> forwardDone, backwardDone;
  /// Pairs of certain members as a whole. The keys are sorted.
  std::map<std::vector<FunctionKey>, ComponentCost> pairs;

  /// A transfer keeps its channel for `occupancy` and its bytes over `bandwidth`; its
  /// data is there after this and the latency.
  Ticks occupancy = 0;
  double bandwidth = 0;
  /// The same between ranks of different nodes; unset as between those of one.
  std::optional<Ticks> farLatency, farOccupancy;
  std::optional<double> farBandwidth;
  /// How many consecutive ranks share a node; 0 where all do.
  uint32_t ranksPerNode = 0;
  /// Whether all channels from one node to another share one link: transfers on it
  /// follow each other in the order in which they could start.
  bool sharedLinks = false;
  /// How many cores the ranks of a node share; 0 where every rank has its own.
  uint32_t cores = 0;

  /// Bytes of every transfer and of the gradients of every stage, unless `sizes` says.
  uint64_t bytes = 0, reduceBytes = 0;
  TransferSizes sizes;
  /// Of the model; where they are known, a prediction says what memory ranks take.
  std::optional<ModelSizes> model;

  /// What `--cost` said, where that begins with a profile ("FILE.json,cores=2"): the times of
  /// pairs and the sizes are then part of the costs, but not of what `print` states.
  std::string profileOption;

  /// From the last member's coming to the end of a reduction. Where bytes and bandwidth
  /// are known, the time of a ring comes on top (docs/reports.md).
  OpCost reduce;
  /// An optimizer step of one stage.
  OpCost step;

  /// Whether a rank waits for what other ranks do at the same time: for a core or a link.
  bool hasContention() const { return cores != 0 || sharedLinks; }
  bool hasOffsets() const { return forwardDone || backwardDone; }
  LinkCosts getNear() const { return {ops.getTransfer(), occupancy, bandwidth}; }
  LinkCosts getFar() const;
  /// Whether nothing but computes takes time.
  bool isFree() const;

  /// Reads what `Costs::parse` reads, and what else docs/reports.md names.
  static Result<SimulationCosts> parse(std::string_view text);
  /// Takes over what `given`, as `parse` reads it, states. A time that is derived
  /// unless it is given is forgotten with what it is derived from: `bwd` with either
  /// half, `fused` with any op.
  Status override(std::string_view given);
  /// Makes everything that a rank does for a stage cost one part of `parts`: for a
  /// schedule that cuts what a rank holds into so many stages.
  void divideAmong(uint32_t parts);
  /// Names and values as `parse` reads them, in which every time that counts is
  /// stated; with a profile those of pairs and the sizes are not (`profileOption`).
  std::vector<std::pair<std::string, std::string>> print() const;
  /// The costs that a program was planned with.
  static Result<SimulationCosts> fromProgram(const program::SharedInfo &shared);
};

/// A command of a rank's program.
struct CommandRef {
  uint32_t rank = program::kNone;
  uint32_t command = program::kNone;

  bool isNone() const { return command == program::kNone; }
  friend bool operator==(const CommandRef &a, const CommandRef &b) {
    return a.rank == b.rank && a.command == b.command;
  }
};

/// When a command ran. The launches of a pair have times of their own where it
/// starts separately, otherwise those of the pair.
struct CommandTime {
  Ticks start = 0, end = 0;
  /// What ended last of all that the command had to wait for, itself a command that
  /// takes time or could; none for one that could start at once.
  CommandRef after;
};

/// What a rank did in a step.
struct RankTimes {
  Ticks busy = 0;       ///< computing
  Ticks contended = 0;  ///< longer than that, for want of a core
  Ticks firstStart = 0; ///< of its computes
  Ticks lastEnd = 0;
  uint64_t sends = 0;
  /// Micro-batches between the start of their forward and the end of their `bwd` or
  /// `bwd_weight`, at most at once.
  uint32_t peakActivations = 0;
  /// Input halves whose weight half is pending, at most at once.
  uint32_t deepestWeightQueue = 0;
};

struct Simulation {
  Ticks makespan = 0; ///< end of the last command of all
  std::vector<RankTimes> ranks;
  /// By rank and command; empty unless asked for.
  std::vector<std::vector<CommandTime>> commands;
};

/// Told now and then how many of all commands have been run.
using OnProgress = std::function<void(uint64_t done, uint64_t total)>;

/// Runs one step of `program`, which must hold all its ranks and be verified
/// (Verify.h). Takes time linear in the commands; with contention for cores or links,
/// by the logarithm of the ranks longer. Memory beyond the program: 8 bytes
/// an event (24 with results of pairs at different times), 24 bytes a command with
/// `keepTimes`, and 4 a command with contention. Fails where a cost names no stage,
/// where times could leave the range of ticks, where ranks are missing, where costs do
/// not go together, and where the program cannot finish.
Result<Simulation> simulate(const program::Program &program, const SimulationCosts &costs,
                            bool keepTimes = false, const OnProgress &onProgress = {});

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_SIMULATION_H
