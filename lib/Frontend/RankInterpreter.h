//===- RankInterpreter.h - runs the program of one rank --------------------===//
//
// Ranks share nothing that changes, so each can be run on its own thread. A
// program goes on where earlier sections of the schedule have left the rank.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_LIB_FRONTEND_RANKINTERPRETER_H
#define DUALPIPE_LIB_FRONTEND_RANKINTERPRETER_H

#include "RunSections.h"
#include "StatementInterpreter.h"

namespace dualpipe::frontend {

class RankInterpreter : public StatementInterpreter {
public:
  /// `soFar` is what earlier sections have given this rank.
  RankInterpreter(const Evaluator &setUp, uint32_t rank, const LocationTable &locations,
                  RankOrder soFar);

  /// Runs the program. The order is complete only where there are no findings;
  /// its phases carry the numbers of the module, or `RankOrder::kNoPhase`.
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
    /// The next micro-batch of each of the four kinds of transfer.
    std::array<uint32_t, 4> nextTransfer = {};
    /// What earlier sections have run; empty where there are none.
    std::vector<bool> forwardDone = {}, backwardDone = {};
    std::array<std::vector<bool>, 4> transferDone = {};
    /// A counter that has run out is reported once.
    bool forwardFaulty = false;
    bool backwardFaulty = false;
    std::array<bool, 4> transferFaulty = {};
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

  // What earlier sections have done.
  void goOn();
  size_t findChunk(uint32_t globalStage, uint32_t globalMicrobatch) const;
  void markDone(size_t op, std::vector<std::vector<uint32_t>> &pendingOf);
  void markDone(const RankOrder::Transfer &transfer);
  static unsigned getTransferKind(bool isSend, bool isGrad) {
    return unsigned(isSend) * 2 + unsigned(isGrad);
  }

  // Groups.
  void executeFused(const FusedStmt &stmt) override;
  bool isInFused() const override { return group != RankOrder::kAlone; }
  void closeGroup(size_t begin);
  void executeEvery(const EveryStmt &every) override;

  // Ops.
  void executeOp(const OpStmt &op) override;
  void executeWeight(const OpStmt &op);
  bool rejectTime(const Expr *time, bool inGaps, SourceLoc loc);
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
  bool count(uint64_t &number, uint64_t most, const char *what, SourceLoc loc);
  void emit(const OpStmt &op, OpKind kind, const Chunk &chunk, uint32_t microbatch);

  // Transfers.
  void executeTransfer(const TransferStmt &transfer) override;
  std::optional<uint32_t> takeTransfer(const TransferStmt &transfer, Chunk &chunk);

  const LocationTable &locations;
  std::vector<Chunk> chunks;
  /// The first chunk of each pipeline.
  std::vector<uint32_t> firstChunk;
  std::vector<Pending> pending;
  size_t oldestPending = 0;
  RankOrder order;
  uint64_t maxOps = 64, maxTransfers = 64;
  uint64_t numOps = 0, numTransfers = 0;
  uint32_t group = RankOrder::kAlone;
  uint32_t nextGroup = 0;
  /// Ops of the present fused group, with those that are not emitted.
  uint32_t numMembers = 0;
};

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_RANKINTERPRETER_H
