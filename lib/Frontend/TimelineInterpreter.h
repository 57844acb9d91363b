//===- TimelineInterpreter.h - runs a timeline for all ranks ---------------===//
//
// A timeline is one program for all ranks: each op names its stage, which tells
// the rank, its micro-batch and its time. A rank's order is by time, then by
// the order in which the ops were stated.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_LIB_FRONTEND_TIMELINEINTERPRETER_H
#define DUALPIPE_LIB_FRONTEND_TIMELINEINTERPRETER_H

#include "RunSections.h"
#include "StatementInterpreter.h"
#include "dualpipe/Schedule/StatedTimes.h"

namespace dualpipe::frontend {

class TimelineInterpreter : public StatementInterpreter {
public:
  TimelineInterpreter(const Evaluator &setUp, const LocationTable &locations);

  void run(const TimelineItem &timeline);
  std::vector<TimedOp> takeOps() { return std::move(ops); }

private:
  void executeOp(const OpStmt &op) override;
  void executeFused(const FusedStmt &fused) override;
  void executeTransfer(const TransferStmt &transfer) override;
  void executeEvery(const EveryStmt &every) override;
  bool isInFused() const override { return group != RankOrder::kAlone; }

  std::optional<Value> evaluateChunk(const Expr &expr);
  std::optional<uint32_t> evaluateMicrobatch(const OpStmt &op, const PipelineInfo &pipeline);
  std::optional<OpKind> evaluateKind(const OpStmt &op);
  std::optional<int64_t> evaluateTime(const Expr *time, SourceLoc loc);
  bool checkTime(const OpStmt &op);
  bool checkGroup(size_t begin, SourceLoc loc);

  const LocationTable &locations;
  std::vector<TimedOp> ops;
  uint64_t maxOps = 64;
  /// What `every` adds to the times inside.
  int64_t offset = 0;
  uint32_t group = RankOrder::kAlone;
  int64_t groupTime = 0;
  uint32_t nextGroup = 0;
};

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_TIMELINEINTERPRETER_H
