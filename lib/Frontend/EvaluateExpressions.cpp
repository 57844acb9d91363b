//===- EvaluateExpressions.cpp - the values of expressions -----------------===//

#include "Arithmetic.h"
#include "Evaluator.h"

#include "llvm/ADT/SmallVector.h"

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::cast;
using llvm::StringRef;
using llvm::Twine;

namespace {
/// Strings may grow by repetition; none that is meant for reading is longer.
constexpr size_t kMaxStringBytes = 1 << 16;
} // namespace

Value Evaluator::evaluate(const Expr &expr) {
  switch (expr.kind) {
  case Expr::Kind::Integer:
    return Value::ofInteger(cast<IntegerExpr>(expr).value);
  case Expr::Kind::Decimal:
    return Value::ofDecimal(cast<DecimalExpr>(expr).millionths);
  case Expr::Kind::Name:
    return getValue(cast<NameExpr>(expr));
  case Expr::Kind::Boolean:
    return Value::ofBoolean(cast<BooleanExpr>(expr).value);
  case Expr::Kind::Training:
    return Value::ofBoolean(world.training);
  case Expr::Kind::Binary:
    return evaluateBinary(cast<BinaryExpr>(expr));
  case Expr::Kind::If:
    return evaluateIf(cast<IfExpr>(expr));
  case Expr::Kind::Index:
    return evaluateIndex(cast<IndexExpr>(expr));
  case Expr::Kind::Stage:
    return evaluateStage(cast<StageExpr>(expr));
  case Expr::Kind::Negate:
    return evaluateNegate(cast<NegateExpr>(expr));
  case Expr::Kind::Not:
    return evaluateNot(cast<NotExpr>(expr));
  case Expr::Kind::MinMax:
    return evaluateMinMax(cast<MinMaxExpr>(expr));
  case Expr::Kind::Tuple:
    return evaluateTuple(cast<TupleExpr>(expr));
  case Expr::Kind::Call:
    return evaluateCall(cast<CallExpr>(expr));
  case Expr::Kind::String:
    return evaluateString(cast<StringExpr>(expr));
  }
  return Value::poison();
}

std::optional<int64_t> Evaluator::evaluateInteger(const Expr &expr, StringRef what) {
  Value value = evaluate(expr);
  if (value.is(Value::Kind::Integer)) [[likely]]
    return value.integer;
  reportKind(expr.loc, "an integer", value, what);
  return std::nullopt;
}

std::optional<bool> Evaluator::evaluateBoolean(const Expr &expr, StringRef what) {
  Value value = evaluate(expr);
  if (value.is(Value::Kind::Boolean)) [[likely]]
    return value.getBoolean();
  reportKind(expr.loc, "a boolean", value, what);
  return std::nullopt;
}

Value Evaluator::evaluateIf(const IfExpr &expr) {
  std::optional<bool> condition = evaluateBoolean(*expr.condition, "as the condition of 'if'");
  if (!condition)
    return Value::poison();
  return evaluate(*condition ? *expr.thenValue : *expr.elseValue);
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

static std::string operandOf(BinaryOp op) {
  return ("as an operand of '" + getSpelling(op) + "'").str();
}

Value Evaluator::evaluateBinary(const BinaryExpr &expr) {
  if (expr.op <= BinaryOp::And)
    return evaluateLogic(expr);
  Value lhs = evaluate(*expr.lhs);
  Value rhs = evaluate(*expr.rhs);
  if (expr.op <= BinaryOp::NotEqual)
    return evaluateEquality(expr, lhs, rhs);
  if (!lhs.is(Value::Kind::Integer) || !rhs.is(Value::Kind::Integer)) [[unlikely]] {
    if (!lhs.isPoison() && !rhs.isPoison())
      reportKind(expr.loc, "an integer", lhs.is(Value::Kind::Integer) ? rhs : lhs,
                 operandOf(expr.op));
    return Value::poison();
  }
  if (expr.op <= BinaryOp::GreaterEqual)
    return evaluateOrder(expr, lhs, rhs);
  int64_t result = 0;
  ArithmeticFault fault = compute(expr.op, lhs.integer, rhs.integer, result);
  if (fault == ArithmeticFault::None) [[likely]]
    return Value::ofInteger(result);
  return failArithmetic(expr, lhs.integer, rhs.integer, uint8_t(fault));
}

Value Evaluator::failArithmetic(const BinaryExpr &expr, int64_t lhs, int64_t rhs, uint8_t fault) {
  std::string term = ("'" + Twine(lhs) + " " + getSpelling(expr.op) + " " + Twine(rhs) + "'").str();
  switch (ArithmeticFault(fault)) {
  case ArithmeticFault::DivisionByZero:
    error(expr.loc, term + " divides by zero");
    break;
  case ArithmeticFault::NotExact:
    error(expr.loc, term + " is not exact; use 'div' to round down, or a 'require' to rule it out");
    break;
  default:
    error(expr.loc, term + " does not fit in 64 bits");
    break;
  }
  return Value::poison();
}

/// `and` and `or` do not look at the second operand where the first decides.
Value Evaluator::evaluateLogic(const BinaryExpr &expr) {
  bool decides = expr.op == BinaryOp::Or;
  for (const Expr *side : {expr.lhs, expr.rhs}) {
    Value value = evaluate(*side);
    if (!value.is(Value::Kind::Boolean)) {
      reportKind(expr.loc, "a boolean", value, operandOf(expr.op));
      return Value::poison();
    }
    if (value.getBoolean() == decides)
      return value;
  }
  return Value::ofBoolean(!decides);
}

Value Evaluator::evaluateOrder(const BinaryExpr &expr, Value lhs, Value rhs) {
  switch (expr.op) {
  case BinaryOp::Less:
    return Value::ofBoolean(lhs.integer < rhs.integer);
  case BinaryOp::LessEqual:
    return Value::ofBoolean(lhs.integer <= rhs.integer);
  case BinaryOp::Greater:
    return Value::ofBoolean(lhs.integer > rhs.integer);
  default:
    return Value::ofBoolean(lhs.integer >= rhs.integer);
  }
}

Value Evaluator::evaluateEquality(const BinaryExpr &expr, Value lhs, Value rhs) {
  if (lhs.isPoison() || rhs.isPoison())
    return Value::poison();
  std::optional<bool> same = equal(lhs, rhs, expr.loc);
  if (!same)
    return Value::poison();
  return Value::ofBoolean(*same == (expr.op == BinaryOp::Equal));
}

std::optional<bool> Evaluator::equal(Value lhs, Value rhs, SourceLoc loc) {
  if (lhs.isPoison() || rhs.isPoison() || !spend(1, loc))
    return std::nullopt;
  if (lhs.kind != rhs.kind) {
    error(loc, Twine("cannot compare ") + describe(lhs.kind) + " with " + describe(rhs.kind));
    return std::nullopt;
  }
  if (lhs.is(Value::Kind::String))
    return lhs.getString() == rhs.getString();
  if (!lhs.is(Value::Kind::Tuple))
    return lhs.count == rhs.count && lhs.integer == rhs.integer;
  if (lhs.count != rhs.count)
    return false;
  for (size_t i = 0; i < lhs.count; ++i) {
    std::optional<bool> same = equal(tuples[lhs.getOffset() + i], tuples[rhs.getOffset() + i], loc);
    if (!same || !*same)
      return same;
  }
  return true;
}

Value Evaluator::evaluateNegate(const NegateExpr &expr) {
  std::optional<int64_t> operand = evaluateInteger(*expr.operand, "as the operand of '-'");
  if (!operand)
    return Value::poison();
  int64_t result;
  if (!__builtin_sub_overflow(int64_t(0), *operand, &result))
    return Value::ofInteger(result);
  error(expr.loc, "'-(" + Twine(*operand) + ")' does not fit in 64 bits");
  return Value::poison();
}

Value Evaluator::evaluateNot(const NotExpr &expr) {
  std::optional<bool> operand = evaluateBoolean(*expr.operand, "as the operand of 'not'");
  return operand ? Value::ofBoolean(!*operand) : Value::poison();
}

Value Evaluator::evaluateMinMax(const MinMaxExpr &expr) {
  StringRef what = expr.isMax ? "as an argument of 'max'" : "as an argument of 'min'";
  std::optional<int64_t> best;
  bool faulty = false;
  for (const Expr *argument : expr.arguments) {
    std::optional<int64_t> value = evaluateInteger(*argument, what);
    if (!value)
      faulty = true;
    else if (!best || (expr.isMax ? *value > *best : *value < *best))
      best = value;
  }
  return faulty ? Value::poison() : Value::ofInteger(*best);
}

//===----------------------------------------------------------------------===//
// Tuples, chunks, strings
//===----------------------------------------------------------------------===//

Value Evaluator::evaluateTuple(const TupleExpr &expr) {
  llvm::SmallVector<Value, 4> elements;
  for (const Expr *element : expr.elements)
    elements.push_back(evaluate(*element));
  size_t offset = tuples.size();
  tuples.insert(tuples.end(), elements.begin(), elements.end());
  return Value::ofTuple(offset, elements.size());
}

Value Evaluator::evaluateIndex(const IndexExpr &expr) {
  Value indexed = evaluate(*expr.base);
  std::optional<int64_t> index = evaluateInteger(*expr.index, "as an index");
  if (!index)
    return Value::poison();
  if (indexed.is(Value::Kind::Pipeline))
    return indexPipeline(expr, indexed.getPipeline(), *index);
  if (!indexed.is(Value::Kind::Tuple)) {
    reportKind(expr.loc, "a pipeline or a tuple", indexed, "before '['");
    return Value::poison();
  }
  if (*index >= 0 && *index < int64_t(indexed.count))
    return tuples[indexed.getOffset() + *index];
  error(expr.loc,
        "index " + Twine(*index) + " is outside a tuple of " + Twine(indexed.count) + " values");
  return Value::poison();
}

/// `p[k]` is the k-th stage of `p` on this rank.
Value Evaluator::indexPipeline(const IndexExpr &expr, uint32_t pipeline, int64_t index) {
  const PipelineInfo &info = world.pipelines[pipeline];
  if (!rank) {
    error(expr.loc, "'" + info.name +
                        "[k]' is a chunk of a rank, and there is no rank here; "
                        "use '" +
                        info.name + ".stage(s)'");
    return Value::poison();
  }
  llvm::ArrayRef<uint32_t> stages = info.getStagesOn(*rank);
  if (index >= 0 && index < int64_t(stages.size()))
    return Value::ofChunk(pipeline, stages[index]);
  if (Diagnostic *diagnostic =
          error(expr.loc, "rank " + Twine(*rank) + " has no chunk " + Twine(index) +
                              " of pipeline '" + info.name + "'; it holds " + Twine(stages.size()) +
                              (stages.size() == 1 ? " stage" : " stages") + " of it"))
    diagnostic->note(info.loc, "'" + info.name + "' is declared here");
  return Value::poison();
}

Value Evaluator::evaluateStage(const StageExpr &expr) {
  Value pipeline = evaluate(*expr.base);
  std::optional<int64_t> stage = evaluateInteger(*expr.stage, "as a stage");
  if (!stage)
    return Value::poison();
  if (!pipeline.is(Value::Kind::Pipeline)) {
    reportKind(expr.loc, "a pipeline", pipeline, "before '.stage'");
    return Value::poison();
  }
  const PipelineInfo &info = world.pipelines[pipeline.getPipeline()];
  if (*stage >= 0 && *stage < int64_t(info.numStages))
    return Value::ofChunk(pipeline.getPipeline(), uint32_t(*stage));
  if (Diagnostic *diagnostic = error(expr.loc, "stage " + Twine(*stage) + " is outside 0 to " +
                                                   Twine(int64_t(info.numStages) - 1) +
                                                   " of pipeline '" + info.name + "'"))
    diagnostic->note(info.loc, "'" + info.name + "' is declared here");
  return Value::poison();
}

/// Adds the text of `value`; false where it grows too long.
bool Evaluator::append(std::string &text, Value value, SourceLoc loc) {
  if (!spend(1, loc))
    return false;
  switch (value.kind) {
  case Value::Kind::Poison:
    return false;
  case Value::Kind::Integer:
    text += std::to_string(value.integer);
    break;
  case Value::Kind::Decimal:
    text += Costs::printTicks(value.integer);
    break;
  case Value::Kind::Family:
    text += world.families[value.getFamily()].name;
    break;
  case Value::Kind::Boolean:
    text += value.getBoolean() ? "true" : "false";
    break;
  case Value::Kind::String:
    text += value.getString();
    break;
  case Value::Kind::Pipeline:
    text += world.pipelines[value.getPipeline()].name;
    break;
  case Value::Kind::Chunk:
    text += world.pipelines[value.getPipeline()].name;
    text += (".stage(" + Twine(value.getStage()) + ")").str();
    break;
  case Value::Kind::Tuple:
    text += '(';
    for (size_t i = 0; i < value.count; ++i) {
      if (i != 0)
        text += ", ";
      if (!append(text, tuples[value.getOffset() + i], loc))
        return false;
    }
    text += ')';
    break;
  }
  if (text.size() <= kMaxStringBytes)
    return true;
  error(loc, "the string is longer than " + Twine(kMaxStringBytes) + " bytes");
  return false;
}

std::optional<std::string> Evaluator::evaluateText(const StringExpr &expr) {
  std::string text = expr.texts.front().str();
  for (size_t i = 0; i < expr.values.size(); ++i) {
    if (!append(text, evaluate(*expr.values[i]), expr.values[i]->loc))
      return std::nullopt;
    text += expr.texts[i + 1];
  }
  return text;
}

Value Evaluator::evaluateString(const StringExpr &expr) {
  if (expr.values.empty())
    return Value::ofString(expr.texts.front());
  std::optional<std::string> text = evaluateText(expr);
  // Kept until the iteration ends, so its bytes count as steps.
  if (!text || !spend(8 + text->size() / 8, expr.loc))
    return Value::poison();
  return Value::ofString(strings.emplace_back(std::move(*text)));
}
