//===- ListScheduler.h - the simulation behind `greedy` ----------------------===//
//
// One simulation of all ranks. What earlier sections have put into an order runs
// first on its rank; then the rank takes what its rules say. At one time all ends and
// arrivals come before all decisions, and what a rank decides concerns other ranks
// only later: the order of the ranks at one time plays no part.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_LIB_SCHEDULE_LISTSCHEDULER_H
#define DUALPIPE_LIB_SCHEDULE_LISTSCHEDULER_H

#include "dualpipe/Schedule/Greedy.h"
#include "dualpipe/Schedule/OpIndex.h"

#include <array>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <vector>

namespace dualpipe {

/// Micro-batches of one chunk, the smallest first.
using MicrobatchQueue =
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<uint32_t>>;

/// The products that an op of this kind makes: the first, and how many in a row.
struct Products {
  size_t first, count;
};
Products getProducts(OpKind kind);

/// How far a micro-batch has come in a chunk: bits of `ChunkState::progress`.
enum Progress : uint8_t {
  HasInput = 1,
  ForwardTaken = 2, ///< run, or in the order of an earlier section
  ForwardDone = 4,
  HasGradient = 8,
  BackwardTaken = 16,
  HalfDone = 32, ///< the input half of a split backward
  WeightTaken = 64,
};

/// A chunk while the ranks run. Micro-batches are counted within the pipeline.
struct ChunkState {
  ChunkRef ref;
  uint32_t rank;
  std::vector<uint8_t> progress;
  /// What could run at once, by the gradient or output that it makes first.
  std::array<MicrobatchQueue, 3> ready;
  /// Ops that have started, by product.
  std::array<int64_t, 3> started = {};
  /// The limits of the rank that begin or end to count with a product of this chunk.
  std::array<std::vector<uint32_t>, 3> opens, closes;

  /// Whether the op has all that it needs.
  bool isReady(OpKind kind, uint32_t mb) const;
};

/// An op by its chunk (an index into `ListScheduler::getChunks`) and the
/// micro-batch within the pipeline.
struct ChunkOp {
  OpKind kind;
  uint32_t chunk;
  uint32_t mb;
};

class ListScheduler {
public:
  ListScheduler(Schedule &schedule, const GreedyRules &rules, const Costs &costs);

  /// Runs until no rank can go on.
  void run();

  /// What holds an op back although it is ready.
  struct Hold {
    const Limit *limit; ///< null: the memory limit
    int64_t memory;     ///< units with the op
  };
  std::optional<Hold> findHold(OpKind kind, const ChunkState &chunk) const;

  const std::vector<ChunkState> &getChunks() const { return chunks; }
  size_t findChunk(ChunkRef ref) const {
    return firstChunk[ref.pipeline] + ref.stage - schedule.pipelines[ref.pipeline].firstStage;
  }
  ChunkOp getFixedOp(uint32_t rank, size_t op) const;
  /// The first op of an earlier section that has not run; nothing where all have.
  std::optional<size_t> getFixedOpLeft(uint32_t rank) const;
  bool isStopped(uint32_t rank) const;

private:
  struct RankState {
    size_t next = 0;     ///< into the order, while less than `numFixed`
    size_t numFixed = 0; ///< ops of earlier sections
    uint32_t nextGroup = 0;
    std::vector<ChunkOp> running;
    std::vector<int64_t> counts; ///< by limit
    int64_t memory = 0;
    bool isAwake = false; ///< something has changed for it at this time
  };

  struct Event {
    Ticks time;
    enum Kind : uint8_t { GroupEnds, InputArrives, GradientArrives } kind;
    uint32_t index; ///< rank or chunk
    uint32_t mb;
    bool operator>(const Event &other) const {
      return std::tie(time, kind, index, mb) >
             std::tie(other.time, other.kind, other.index, other.mb);
    }
  };

  void addChunks();
  void addLimits(uint32_t rank);
  void reserveFixedOps(uint32_t rank);

  void handle(const Event &event);
  void wake(uint32_t rank);
  void arrive(uint32_t chunk, uint32_t mb, Progress what);
  void setReady(uint32_t chunk, uint32_t mb, Product product);
  void finish(uint32_t rank, const ChunkOp &op);
  void passOn(const ChunkOp &op);

  void decide(uint32_t rank);
  void runFixedGroup(uint32_t rank);
  bool take(uint32_t rank, const Choice &choice);
  std::optional<ChunkOp> pick(const Member &member) const;
  void start(const ChunkOp &op);
  void append(uint32_t rank, uint32_t loc);
  void putBackAll(uint32_t rank);
  void count(const ChunkOp &op, int by);

  Schedule &schedule;
  const GreedyRules &rules;
  const Costs &costs;
  std::vector<size_t> firstChunk; ///< by pipeline
  std::vector<ChunkState> chunks;
  std::vector<RankState> ranks;
  std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events;
  std::vector<uint32_t> awake;
  Ticks now = 0;
};

} // namespace dualpipe

#endif // DUALPIPE_LIB_SCHEDULE_LISTSCHEDULER_H
