//===- StatementInterpreter.h - control flow of programs and timelines -----===//
//
// Statements are walked directly. What an op, a pair or a transfer does is up to
// the interpreter of a rank's program or of a timeline.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_LIB_FRONTEND_STATEMENTINTERPRETER_H
#define DUALPIPE_LIB_FRONTEND_STATEMENTINTERPRETER_H

#include "Evaluator.h"

namespace dualpipe::frontend {

class StatementInterpreter : public Evaluator {
public:
  StatementInterpreter(const Evaluator &setUp, std::optional<uint32_t> rank)
      : Evaluator(setUp, rank) {}
  virtual ~StatementInterpreter() = default;

protected:
  void execute(const Block &block);
  void execute(const Stmt &stmt);
  /// Runs the body of a loop for `begin` up to `end`; `enter` is called before each time.
  template <typename Enter>
  void loop(Context::Kind kind, const Stmt &stmt, llvm::StringRef name, int64_t begin, int64_t end,
            const Block &body, Enter enter);
  /// "rank 3: ", or nothing in a timeline.
  std::string getPrefix() const;

  virtual void executeOp(const OpStmt &op) = 0;
  virtual void executeFused(const FusedStmt &fused) = 0;
  virtual void executeTransfer(const TransferStmt &transfer) = 0;
  virtual void executeEvery(const EveryStmt &every) = 0;
  /// Whether the present place is inside `fused`.
  virtual bool isInFused() const = 0;

  uint32_t phase = RankOrder::kNoPhase;

private:
  void executeIf(const IfStmt &stmt);
  void executeRepeat(const RepeatStmt &stmt);
  void executeFor(const ForStmt &stmt);
  void executePhase(const PhaseStmt &stmt);
  void executeCall(const CallStmt &stmt);
};

template <typename Enter>
void StatementInterpreter::loop(Context::Kind kind, const Stmt &stmt, llvm::StringRef name,
                                int64_t begin, int64_t end, const Block &body, Enter enter) {
  Context here{context, kind, stmt.loc, name, begin, end};
  context = &here;
  for (; here.value < end && !stopped; ++here.value) {
    if (!spend(1, stmt.loc))
      break;
    Iteration iteration(*this);
    enter(here.value);
    execute(body);
  }
  context = here.parent;
}

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_STATEMENTINTERPRETER_H
