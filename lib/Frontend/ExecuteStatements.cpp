//===- ExecuteStatements.cpp - control flow of programs and timelines ------===//

#include "StatementInterpreter.h"

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::cast;
using llvm::Twine;

std::string StatementInterpreter::getPrefix() const {
  return rank ? "rank " + std::to_string(*rank) + ": " : "";
}

void StatementInterpreter::execute(const Block &block) {
  for (const Stmt *stmt : block.statements) {
    if (stopped)
      return;
    execute(*stmt);
  }
}

void StatementInterpreter::execute(const Stmt &stmt) {
  if (!spend(stmt.cost, stmt.loc))
    return;
  switch (stmt.kind) {
  case Stmt::Kind::Op:
    return executeOp(cast<OpStmt>(stmt));
  case Stmt::Kind::Fused:
    return executeFused(cast<FusedStmt>(stmt));
  case Stmt::Kind::Transfer:
    return executeTransfer(cast<TransferStmt>(stmt));
  case Stmt::Kind::Let:
    return bind(cast<LetStmt>(stmt), Storage::Local);
  case Stmt::Kind::If:
    return executeIf(cast<IfStmt>(stmt));
  case Stmt::Kind::Repeat:
    return executeRepeat(cast<RepeatStmt>(stmt));
  case Stmt::Kind::For:
    return executeFor(cast<ForStmt>(stmt));
  case Stmt::Kind::Every:
    return executeEvery(cast<EveryStmt>(stmt));
  case Stmt::Kind::Phase:
    return executePhase(cast<PhaseStmt>(stmt));
  case Stmt::Kind::Call:
    return executeCall(cast<CallStmt>(stmt));
  }
}

void StatementInterpreter::executeIf(const IfStmt &stmt) {
  if (std::optional<bool> condition = evaluateBoolean(*stmt.condition, "as the condition of 'if'"))
    execute(*condition ? stmt.thenBlock : stmt.elseBlock);
}

void StatementInterpreter::executeRepeat(const RepeatStmt &stmt) {
  std::optional<int64_t> count = evaluateInteger(*stmt.count, "as the count of 'repeat'");
  if (!count)
    return;
  if (*count < 0) {
    error(stmt.count->loc, getPrefix() + "the count of 'repeat' is negative: " + Twine(*count));
    return;
  }
  loop(Context::Kind::Repeat, stmt, stmt.counter.name, 0, *count, stmt.body, [&](int64_t i) {
    if (!stmt.counter.name.empty())
      setLocal(stmt.counter, Value::ofInteger(i));
  });
}

void StatementInterpreter::executeFor(const ForStmt &stmt) {
  std::optional<int64_t> begin = evaluateInteger(*stmt.begin, "as the first value of 'for'");
  std::optional<int64_t> end = evaluateInteger(*stmt.end, "as the end of 'for'");
  if (!begin || !end)
    return;
  if (*end < *begin) {
    error(stmt.begin->loc, getPrefix() + "the range " + Twine(*begin) + ".." + Twine(*end) +
                               " of 'for' has a negative length");
    return;
  }
  loop(Context::Kind::For, stmt, stmt.counter.name, *begin, *end, stmt.body,
       [&](int64_t i) { setLocal(stmt.counter, Value::ofInteger(i)); });
}

void StatementInterpreter::executePhase(const PhaseStmt &stmt) {
  if (isInFused()) {
    error(stmt.loc, "'phase' must not stand inside 'fused'");
    return;
  }
  uint32_t outer = phase;
  phase = stmt.id;
  execute(stmt.body);
  phase = outer;
}

void StatementInterpreter::executeCall(const CallStmt &stmt) {
  Call call(*this, *stmt.target, stmt.arguments, stmt.loc);
  if (call.isValid())
    execute(stmt.target->body);
}
