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
#include "dualpipe/Schedule/Costs.h"
#include "dualpipe/Support/Status.h"

#include <cstdint>
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

/// What the commands of a program cost. Times in ticks (Costs.h).
struct SimulationCosts {
  /// Computes, fused pairs and the latency of a transfer.
  Costs ops;
  PairStart pairStart = PairStart::Joint;
  /// How long a transfer keeps its channel from the next one; its data is there
  /// after this and the latency.
  Ticks occupancy = 0;
  /// From the last member's coming to the end of a reduction.
  Ticks reduce = 0;
  /// An optimizer step of one stage.
  Ticks step = 0;

  /// Reads what `Costs::parse` reads, and of the simulation's own
  /// "occupancy=0.2,reduce=1,step=1,start=separate".
  static Result<SimulationCosts> parse(std::string_view text);
  /// Takes over what `given`, as `parse` reads it, states. A time that is derived
  /// unless it is given is forgotten with what it is derived from: `bwd` with either
  /// half, `fused` with any op.
  Status override(std::string_view given);
  /// Makes everything that a rank does for a stage cost one part of `parts`: for a
  /// schedule that cuts what a rank holds into so many stages.
  void divideAmong(uint32_t parts);
  /// Names and values as `parse` reads them, in which every time that counts is
  /// stated.
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

/// Runs one step of `program`, which must hold all its ranks and be verified
/// (Verify.h). Takes time linear in the commands. Memory beyond the program: 8 bytes
/// an event (24 with pairs that start separately), and 24 bytes a command with
/// `keepTimes`. Fails where a cost names no stage, where times could leave the
/// range of ticks, where ranks are missing, and where the program cannot finish.
Result<Simulation> simulate(const program::Program &program, const SimulationCosts &costs,
                            bool keepTimes = false);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_SIMULATION_H
