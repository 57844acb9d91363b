//===- RankInterpreter.h - runs the program of one rank --------------------===//
//
// Statements are walked directly. Ranks share nothing that changes, so each can
// be run on its own thread.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_LIB_FRONTEND_RANKINTERPRETER_H
#define DUALPIPE_LIB_FRONTEND_RANKINTERPRETER_H

#include "Evaluator.h"

namespace dualpipe::frontend {

/// Numbers of op statements of the module to places in the schedule's table.
using LocationTable = std::vector<uint32_t>;

/// A phase of `RankOrder::phases` that stands for "outside of any phase".
constexpr uint32_t kNoPhase = ~0u;

class RankInterpreter : public Evaluator {
public:
  RankInterpreter(const Evaluator &setUp, uint32_t rank, const LocationTable &locations);

  /// Runs the program. The order is complete only where there are no findings;
  /// its phases carry the numbers of the module, or `kNoPhase`.
  void run(const RankItem &program);
  RankOrder takeOrder() { return std::move(order); }

private:
  /// What is left to do in a stage that this rank holds.
  struct Chunk {
    uint32_t pipeline;
    /// Counted within the pipeline.
    uint32_t stage;
    uint32_t nextForward = 0;
    uint32_t nextBackward = 0;
    /// A counter that has run out is reported once.
    bool forwardFaulty = false;
    bool backwardFaulty = false;
    /// The oldest weight half of the chunk that may be pending, and the newest.
    uint32_t firstPending = kNone;
    uint32_t lastPending = kNone;
  };
  /// A weight half whose input half has been run.
  struct Pending {
    uint32_t chunk;
    uint32_t microbatch;
    /// The next one of the same chunk.
    uint32_t next;
    bool done;
  };
  static constexpr uint32_t kNone = ~0u;

  void reserveOrder(uint64_t numOps);

  // Statements.
  void execute(const Block &block);
  void execute(const Stmt &stmt);
  void executeIf(const IfStmt &stmt);
  void executeRepeat(const RepeatStmt &stmt);
  void executeFor(const ForStmt &stmt);
  void executePhase(const PhaseStmt &stmt);
  void executeFused(const FusedStmt &stmt);
  void executeCall(const CallStmt &stmt);
  void closeGroup(size_t begin);

  // Ops.
  void executeOp(const OpStmt &op);
  void executeWeight(const OpStmt &op);
  Chunk *evaluateChunk(const Expr &expr);
  Chunk *getOnlyChunk(uint32_t pipeline, SourceLoc loc);
  Chunk *getChunk(uint32_t pipeline, uint32_t stage, SourceLoc loc);
  std::optional<uint32_t> takeMicrobatch(const OpStmt &op, Chunk &chunk);
  std::optional<uint32_t> nameMicrobatch(const Expr &expr, const Chunk &chunk);
  void reportExhausted(const OpStmt &op, const Chunk &chunk);
  void addPending(Chunk &chunk, uint32_t microbatch);
  Pending *findPending(const OpStmt &op);
  Pending *findPendingOf(const OpStmt &op, Chunk &chunk);
  void reportNothingPending(const OpStmt &op, const Chunk *chunk);
  void emit(const OpStmt &op, OpKind kind, const Chunk &chunk, uint32_t microbatch);

  const LocationTable &locations;
  std::vector<Chunk> chunks;
  /// The first chunk of each pipeline.
  std::vector<uint32_t> firstChunk;
  std::vector<Pending> pending;
  size_t oldestPending = 0;
  RankOrder order;
  uint64_t maxOps = 64;
  uint64_t numOps = 0;
  uint32_t phase = kNoPhase;
  uint32_t group = RankOrder::kAlone;
  uint32_t nextGroup = 0;
  /// Ops of the present fused group, with those that are not emitted.
  uint32_t numMembers = 0;
};

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_RANKINTERPRETER_H
