//===- ExecuteStatements.cpp - control flow of rank programs ---------------===//

#include "RankInterpreter.h"

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::cast;
using llvm::Twine;

RankInterpreter::RankInterpreter(const Evaluator &setUp, uint32_t rank,
                                 const LocationTable &locations)
    : Evaluator(setUp, rank), locations(locations) {
  uint64_t expected = 0;
  for (const auto &pipeline : world.pipelines) {
    firstChunk.push_back(chunks.size());
    uint32_t number = &pipeline - world.pipelines.data();
    for (uint32_t stage : pipeline.getStagesOn(rank)) {
      chunks.push_back({number, stage});
      // A forward and two halves for each micro-batch, with room for the
      // duplicates that the checker reports.
      maxOps += uint64_t(pipeline.numMicrobatches) * 3;
      expected += uint64_t(pipeline.numMicrobatches) * (world.training ? 2 : 1);
    }
  }
  // Splits come on top, commonly few of them. A number out of all proportion is
  // more likely wrong than meant.
  reserveOrder(std::min<uint64_t>(expected + expected / 8, 1 << 20));
}

void RankInterpreter::reserveOrder(uint64_t numOps) {
  order.kind.reserve(numOps);
  order.stage.reserve(numOps);
  order.microbatch.reserve(numOps);
  order.group.reserve(numOps);
  order.loc.reserve(numOps);
}

void RankInterpreter::run(const RankItem &program) {
  enterFrame(program.numSlots);
  setLocal(program.rank, Value::ofInteger(*rank));
  execute(program.body);
}

void RankInterpreter::execute(const Block &block) {
  for (const Stmt *stmt : block.statements) {
    if (stopped)
      return;
    execute(*stmt);
  }
}

void RankInterpreter::execute(const Stmt &stmt) {
  if (!spend(stmt.cost, stmt.loc))
    return;
  switch (stmt.kind) {
  case Stmt::Kind::Op:
    return executeOp(cast<OpStmt>(stmt));
  case Stmt::Kind::Fused:
    return executeFused(cast<FusedStmt>(stmt));
  case Stmt::Kind::Let:
    return bind(cast<LetStmt>(stmt), Storage::Local);
  case Stmt::Kind::If:
    return executeIf(cast<IfStmt>(stmt));
  case Stmt::Kind::Repeat:
    return executeRepeat(cast<RepeatStmt>(stmt));
  case Stmt::Kind::For:
    return executeFor(cast<ForStmt>(stmt));
  case Stmt::Kind::Phase:
    return executePhase(cast<PhaseStmt>(stmt));
  case Stmt::Kind::Call:
    return executeCall(cast<CallStmt>(stmt));
  }
}

void RankInterpreter::executeIf(const IfStmt &stmt) {
  if (std::optional<bool> condition = evaluateBoolean(*stmt.condition, "as the condition of 'if'"))
    execute(*condition ? stmt.thenBlock : stmt.elseBlock);
}

void RankInterpreter::executeRepeat(const RepeatStmt &stmt) {
  std::optional<int64_t> count = evaluateInteger(*stmt.count, "as the count of 'repeat'");
  if (!count)
    return;
  if (*count < 0) {
    error(stmt.count->loc,
          "rank " + Twine(*rank) + ": the count of 'repeat' is negative: " + Twine(*count));
    return;
  }
  Context here{context, Context::Kind::Repeat, stmt.loc, stmt.counter.name, 0, *count};
  context = &here;
  for (; here.value < *count && !stopped; ++here.value) {
    if (!spend(1, stmt.loc))
      break;
    Iteration iteration(*this);
    if (!stmt.counter.name.empty())
      setLocal(stmt.counter, Value::ofInteger(here.value));
    execute(stmt.body);
  }
  context = here.parent;
}

void RankInterpreter::executeFor(const ForStmt &stmt) {
  std::optional<int64_t> begin = evaluateInteger(*stmt.begin, "as the first value of 'for'");
  std::optional<int64_t> end = evaluateInteger(*stmt.end, "as the end of 'for'");
  if (!begin || !end)
    return;
  if (*end < *begin) {
    error(stmt.begin->loc, "rank " + Twine(*rank) + ": the range " + Twine(*begin) + ".." +
                               Twine(*end) + " of 'for' has a negative length");
    return;
  }
  Context here{context, Context::Kind::For, stmt.loc, stmt.counter.name, *begin};
  context = &here;
  for (; here.value < *end && !stopped; ++here.value) {
    if (!spend(1, stmt.loc))
      break;
    Iteration iteration(*this);
    setLocal(stmt.counter, Value::ofInteger(here.value));
    execute(stmt.body);
  }
  context = here.parent;
}

void RankInterpreter::executePhase(const PhaseStmt &stmt) {
  if (group != RankOrder::kAlone) {
    error(stmt.loc, "'phase' must not stand inside 'fused'");
    return;
  }
  uint32_t outer = phase;
  phase = stmt.id;
  execute(stmt.body);
  phase = outer;
}

void RankInterpreter::executeFused(const FusedStmt &stmt) {
  if (group != RankOrder::kAlone) {
    error(stmt.loc, "'fused' must not stand inside 'fused'");
    return;
  }
  size_t begin = order.size();
  size_t faultsBefore = findings.size();
  group = nextGroup++;
  numMembers = 0;
  execute(stmt.body);
  // A member that could not be run has been reported.
  if (numMembers < 2 && findings.size() == faultsBefore)
    error(stmt.loc,
          "rank " + Twine(*rank) + ": 'fused' takes 2 or more ops, got " + Twine(numMembers));
  if (numMembers > world.limits.maxFusedOps)
    error(stmt.loc, "rank " + Twine(*rank) + ": 'fused' takes at most " +
                        Twine(world.limits.maxFusedOps) + " ops, got " + Twine(numMembers));
  closeGroup(begin);
}

/// A group of which fewer than two members are left is none.
void RankInterpreter::closeGroup(size_t begin) {
  group = RankOrder::kAlone;
  size_t members = order.size() - begin;
  if (members >= 2)
    return;
  --nextGroup;
  if (members == 1)
    order.group.back() = RankOrder::kAlone;
}

void RankInterpreter::executeCall(const CallStmt &stmt) {
  Call call(*this, *stmt.target, stmt.arguments, stmt.loc);
  if (call.isValid())
    execute(stmt.target->body);
}
