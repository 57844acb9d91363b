//===- Prediction.h - what a schedule costs, before it runs -----------------===//
//
// What a report says about a program: read off its run in virtual time
// (Simulation.h), never off a second model of the schedule.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_PREDICTION_H
#define DUALPIPE_RUNTIME_PREDICTION_H

#include "dualpipe/Runtime/RankMemory.h"
#include "dualpipe/Runtime/Simulation.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dualpipe::runtime {

/// Why a rank computed nothing between two of its ops: the kind of what ended last
/// before the later one could start.
enum class WaitCause : uint8_t {
  Peer,      ///< a value had not come from another rank
  Slot,      ///< a value could not come or go: the slot for it was still in use
  Reduction, ///< gradients had not been summed
};
const char *getName(WaitCause cause);

/// A wait between two computes of a rank.
struct RankWait {
  CommandRef command; ///< the compute that waited
  Ticks begin = 0, length = 0;
  WaitCause cause = WaitCause::Peer;
  /// The rank at the other end of the transfer that was waited for, if it was one.
  uint32_t peer = program::kNone;
  /// What another rank had to end first; none where the cause is on the rank itself.
  CommandRef blame;
};

/// The time in which a rank computes nothing, by cause. The parts add up to `total`.
struct RankBubble {
  Ticks total = 0;
  Ticks warmUp = 0; ///< before its first op
  Ticks drain = 0;  ///< after its last op
  Ticks slots = 0;
  Ticks reductions = 0;
  Ticks cores = 0; ///< computes took longer, for want of a core
  /// What the others leave: between the ends of the members of pairs that started
  /// separately; in a measured run what the runtime itself took, too.
  Ticks pairs = 0;
  std::map<uint32_t, Ticks> peers; ///< waits for other ranks, by rank
  Ticks getPeers() const;
};

/// A published formula that holds for the schedule at these times and this size.
struct PublishedFormula {
  const char *name;
  const char *bubbleText;
  Ticks bubble; ///< of the worst rank
  const char *activationsText;
  uint32_t activations; ///< of the worst rank
};

/// Kinds of commands on a critical path.
enum class PathKind : uint8_t { Fwd, Bwd, BwdInput, BwdWeight, Pair, Transfer, Reduce, Step };
inline constexpr unsigned kNumPathKinds = 8;
const char *getName(PathKind kind);
/// What a command counts as; loads count as forwards, what takes no time as a transfer.
PathKind getPathKind(const program::Program &program, CommandRef ref);

struct PathShare {
  uint64_t commands = 0;
  Ticks time = 0;
};

/// All that a report says. Times in ticks.
struct Prediction {
  std::string schedule;
  std::vector<std::pair<std::string, int64_t>> params;
  uint32_t numStages = 0, numMicrobatches = 0;
  /// Into how many stages what a rank holds of a pipeline is cut.
  uint32_t parts = 1;
  uint64_t numCommands = 0;
  bool hasPairs = false;
  SimulationCosts costs;

  Ticks makespan = 0;
  Ticks ideal = 0; ///< the work of the rank that has most
  Ticks span = 0;  ///< the longest of one rank, from its first start to its last end
  std::vector<RankTimes> ranks;
  std::vector<RankBubble> bubbles; ///< by rank
  std::optional<PublishedFormula> formula;
  /// Of one path of commands without a wait from the beginning to the end.
  std::array<PathShare, kNumPathKinds> criticalPath;
  /// The longest, longest first; at most kMaxWaits.
  std::vector<RankWait> waits;
  /// By rank, where the sizes of a model are known (measureMemory); empty otherwise.
  std::vector<RankMemory> memory;
  static constexpr size_t kMaxWaits = 10;

  Ticks getWorstBubble() const;
  uint32_t getPeakActivations() const;
  uint32_t getDeepestWeightQueue() const;
  uint64_t getNumSends() const;
  /// The bubble rate of the Zero Bubble paper: the part of `span` that is no work.
  double getRate() const;
  /// Whether some rank computes for less than half of the time.
  bool isMostlyBubble() const { return getWorstBubble() > makespan - getWorstBubble(); }
};

/// Simulates `program`, which must be whole and verified, and reads off the run what
/// there is to say. Fails as `simulate` does.
Result<Prediction> predict(const program::Program &program, const SimulationCosts &costs,
                           const OnProgress &onProgress = {});

/// The published formula for a schedule of this name, if there is one and the times
/// and the size are inside its domain.
std::optional<PublishedFormula> findFormula(const program::SharedInfo &shared,
                                            const SimulationCosts &costs);

/// The report as text with a line per rank. `program` is what was predicted.
std::string printText(const Prediction &prediction, const program::Program &program);
/// The report as a JSON object (docs/reports.md), with a newline at the end.
std::string printJson(const Prediction &prediction, const program::Program &program);
/// What `SimulationCosts::print` states, in a line: "fwd 1, bwd 2". Times of more than four single
/// stages are told as a range, "fwd 1 to 3 by stage".
std::string describeCosts(const SimulationCosts &costs);
/// How many stages of one pipeline a rank holds.
uint32_t getPartsPerRank(const program::SharedInfo &shared);

/// One line per schedule. Activations and pending weight halves are in units of what
/// a rank holds for a micro-batch.
std::string printComparison(const std::vector<Prediction> &predictions);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_PREDICTION_H
