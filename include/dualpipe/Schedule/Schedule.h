//===- Schedule.h - order tables: what each rank computes, in which order --===//
//
// The plain-data form of a schedule for given numbers of ranks and
// micro-batches. The interpreter of `.pipe` files fills it; the checker, the
// global timeline and the exporters read it. Transfers and reductions are derived
// from the compute ops (Timeline.h), unless the schedule places its transfers
// itself.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_SCHEDULE_SCHEDULE_H
#define DUALPIPE_SCHEDULE_SCHEDULE_H

#include "dualpipe/Program/Contract.h"
#include "dualpipe/Schedule/Costs.h"
#include "dualpipe/Schedule/OpKind.h"
#include "dualpipe/Support/Diagnostics.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dualpipe {

/// An ordered chain of stages and the micro-batches that flow through it.
///
/// Stages are numbered over the whole schedule: pipelines that share weights
/// have the same `firstStage`, others follow each other. Micro-batches are
/// numbered over the whole schedule too, so (stage, micro-batch) is unique even
/// where two pipelines share stages.
struct Pipeline {
  std::string name;
  uint32_t firstStage = 0;
  uint32_t numStages = 0;
  uint32_t firstMicrobatch = 0;
  uint32_t numMicrobatches = 0;
  /// The rank of each stage of the chain; `numStages` entries.
  std::vector<uint32_t> placement;
  SourceLoc loc;

  bool holdsMicrobatch(uint32_t mb) const {
    return mb >= firstMicrobatch && mb - firstMicrobatch < numMicrobatches;
  }
  bool holdsStage(uint32_t stage) const {
    return stage >= firstStage && stage - firstStage < numStages;
  }
  uint32_t getRank(uint32_t stage) const { return placement[stage - firstStage]; }
  uint32_t getLastStage() const { return firstStage + numStages - 1; }
};

/// The compute ops of one rank in program order, as a structure of arrays.
struct RankOrder {
  static constexpr uint32_t kAlone = ~0u;
  /// The number of "outside of any phase" while an order is made.
  static constexpr uint32_t kNoPhase = ~0u;

  /// From op `begin` on, the rank is in the phase `name` (an index into
  /// `Schedule::phaseNames`).
  struct Phase {
    uint32_t name;
    uint32_t begin;
  };

  /// One end of a transfer that the schedule places itself. It stands outside of
  /// fused groups.
  struct Transfer {
    bool isSend;         ///< a send, not a receive
    bool isGrad;         ///< the gradient that a backward makes, not the output of a forward
    uint32_t stage;      ///< the stage on this rank whose op makes the value, or needs it
    uint32_t microbatch; ///< over the whole schedule
    uint32_t before;     ///< the op that it stands before; the number of ops at the end
    uint32_t loc;        ///< index into `Schedule::locations`
  };

  std::vector<OpKind> kind;
  std::vector<uint32_t> stage;
  std::vector<uint32_t> microbatch;
  /// Members of one fused group stand next to each other and carry the same
  /// number, unique on the rank; an op on its own carries `kAlone`.
  std::vector<uint32_t> group;
  /// Index into `Schedule::locations`.
  std::vector<uint32_t> loc;
  std::vector<Phase> phases;
  /// In program order; empty unless `Schedule::ownsTransfers`.
  std::vector<Transfer> transfers;

  size_t size() const { return kind.size(); }
  void push(OpKind k, uint32_t s, uint32_t mb, uint32_t g, uint32_t l) {
    kind.push_back(k);
    stage.push_back(s);
    microbatch.push_back(mb);
    group.push_back(g);
    loc.push_back(l);
  }
  /// What is appended from now on is in the phase `name`.
  void enterPhase(uint32_t name) {
    if (name != (phases.empty() ? kNoPhase : phases.back().name))
      phases.push_back({name, uint32_t(size())});
  }
  /// Appends one end of a transfer after all ops so far. Must not be called between the
  /// members of a fused group.
  void pushTransfer(bool isSend, bool isGrad, uint32_t s, uint32_t mb, uint32_t l) {
    transfers.push_back({isSend, isGrad, s, mb, uint32_t(size()), l});
  }
  /// One past the last member of the fused group that begins at op `i`; `i + 1`
  /// for an op on its own.
  size_t groupEnd(size_t i) const {
    size_t end = i + 1;
    if (group[i] != kAlone)
      while (end < size() && group[end] == group[i])
        ++end;
    return end;
  }
};

/// What the ranks hold while they run, in units of the author's own, and how much
/// they may (S5, Memory.h). An activation is held from the start of the forward to
/// the end of the `bwd` or `bwd_weight`, a weight context from the start of the
/// `bwd_input` to the end of the `bwd_weight`.
struct MemoryPlan {
  /// No value is larger, so that sums over all ops stay in range.
  static constexpr int64_t kMaxUnits = int64_t(1) << 32;

  /// Units of one micro-batch by global stage. Empty: 1 everywhere.
  std::vector<int64_t> activation;
  /// Further units of a pending weight half, by global stage. Empty: none.
  std::vector<int64_t> context;
  /// The most that each rank may hold at once. Empty: no rank has a limit.
  std::vector<std::optional<int64_t>> limit;
  /// Where the limits stand.
  SourceLoc loc;

  int64_t getActivation(uint32_t stage) const { return activation.empty() ? 1 : activation[stage]; }
  int64_t getContext(uint32_t stage) const { return context.empty() ? 0 : context[stage]; }
  /// Units that an op takes when it starts, and those that it gives back when it ends.
  int64_t getTaken(OpKind kind, uint32_t stage) const;
  int64_t getFreed(OpKind kind, uint32_t stage) const;
  std::optional<int64_t> getLimit(uint32_t rank) const {
    return limit.empty() ? std::nullopt : limit[rank];
  }
};

/// A schedule for given numbers of ranks and micro-batches.
struct Schedule {
  std::string name;
  uint32_t numRanks = 0;
  uint32_t numMicrobatches = 0;
  uint32_t numStages = 0;
  bool training = true;
  /// The schedule places every transfer itself (`RankOrder::transfers`); otherwise all are
  /// derived.
  bool ownsTransfers = false;
  /// Further parameters and their values, in the order of declaration.
  std::vector<std::pair<std::string, int64_t>> params;
  /// In the order of their micro-batches.
  std::vector<Pipeline> pipelines;
  std::vector<RankOrder> ranks;
  std::vector<std::string> phaseNames;
  /// The times that rules, gaps and the global timeline are planned with: those of the
  /// command line, then the schedule's own.
  Costs planCosts;
  MemoryPlan memory;
  /// What the schedule asks of the stages of a model (ModelContract.h).
  program::Contract model;
  /// Names of the source files; `SourceLoc::file` indexes it.
  std::vector<std::string> files;
  /// Every distinct place of an op; entry 0 is the schedule itself.
  std::vector<SourceLoc> locations;
  SourceLoc loc;

  SourceLoc getLoc(uint32_t rank, size_t op) const { return locations[ranks[rank].loc[op]]; }
  /// The index of the pipeline that micro-batch `mb` flows through, or
  /// `pipelines.size()` where no pipeline has it.
  size_t findPipeline(uint32_t mb) const;
  size_t getNumOps() const;
};

/// Makes a training schedule a forward-only one: drops all backward ops and the transfers
/// of gradients.
void dropBackward(Schedule &schedule);

} // namespace dualpipe

#endif // DUALPIPE_SCHEDULE_SCHEDULE_H
