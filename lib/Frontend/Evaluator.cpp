//===- Evaluator.cpp - faults, calls and bindings --------------------------===//

#include "Evaluator.h"

#include "llvm/ADT/SmallVector.h"

#include <algorithm>

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::StringRef;
using llvm::Twine;

const char *frontend::describe(Value::Kind kind) {
  switch (kind) {
  case Value::Kind::Poison:
    return "a faulty value";
  case Value::Kind::Integer:
    return "an integer";
  case Value::Kind::Decimal:
    return "a decimal number";
  case Value::Kind::Boolean:
    return "a boolean";
  case Value::Kind::String:
    return "a string";
  case Value::Kind::Tuple:
    return "a tuple";
  case Value::Kind::Pipeline:
    return "a pipeline";
  case Value::Kind::Family:
    return "a family of pipelines";
  case Value::Kind::Chunk:
    return "a chunk";
  }
  return "a value";
}

llvm::ArrayRef<uint32_t> PipelineInfo::getStagesOn(uint32_t rank) const {
  auto isBefore = [&](uint32_t stage, uint32_t r) { return placement[stage] < r; };
  auto begin = std::lower_bound(stagesByRank.begin(), stagesByRank.end(), rank, isBefore);
  auto end = std::lower_bound(begin, stagesByRank.end(), rank + 1, isBefore);
  return llvm::ArrayRef<uint32_t>(stagesByRank).slice(begin - stagesByRank.begin(), end - begin);
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

/// Notes that tell how the program came here, innermost first.
static void addContext(Diagnostic &diagnostic, const Context *context) {
  constexpr unsigned kMaxNotes = 6;
  unsigned notes = 0;
  for (; context && notes < kMaxNotes; context = context->parent, ++notes) {
    std::string text;
    switch (context->kind) {
    case Context::Kind::Repeat:
      text = ("in iteration " + Twine(context->value + 1) + " of " + Twine(context->count) +
              " of this 'repeat'")
                 .str();
      if (!context->name.empty())
        text += (", where " + context->name + " is " + Twine(context->value)).str();
      break;
    case Context::Kind::For:
      text = ("in this 'for', where " + context->name + " is " + Twine(context->value)).str();
      break;
    case Context::Kind::Every:
      text = ("in this 'every', where " + context->name + " is " + Twine(context->value)).str();
      break;
    case Context::Kind::Call:
      text = ("in this call of '" + context->name + "'").str();
      break;
    }
    diagnostic.note(context->loc, std::move(text));
  }
  if (context)
    diagnostic.note(context->loc, "and further out");
}

Diagnostic *Evaluator::error(SourceLoc loc, const Twine &message) {
  if (muted || stopped)
    return nullptr;
  if (!faultyPlaces.insert({loc.file, loc.line, loc.column}).second)
    return nullptr;
  Diagnostic &diagnostic =
      findings.emplace_back(Diagnostic{Severity::Error, loc, message.str(), {}});
  addContext(diagnostic, context);
  stopped = findings.size() >= world.limits.maxErrors;
  return &diagnostic;
}

bool Evaluator::failSteps(SourceLoc loc) {
  error(loc, "the program takes more than " + Twine(maxSteps) + " steps" +
                 (rank ? " on rank " + Twine(*rank) : Twine()) + "; is a count too large?");
  stopped = true;
  return false;
}

void Evaluator::reportKind(SourceLoc loc, StringRef expected, Value got, StringRef what) {
  if (!got.isPoison())
    error(loc, "expected " + expected + " " + what + ", got " + describe(got.kind));
}

//===----------------------------------------------------------------------===//
// Bindings
//===----------------------------------------------------------------------===//

void Evaluator::bind(const LetStmt &let, Storage storage) {
  Value value = evaluate(*let.value);
  auto set = [&](const Binding &binding, Value element) {
    if (storage == Storage::Local)
      setLocal(binding, element);
    else
      setScheduleValue(binding, element);
  };
  if (!let.isTuple)
    return set(let.bindings.front(), value);
  bool fits = value.is(Value::Kind::Tuple) && value.count == let.bindings.size();
  if (!fits && value.is(Value::Kind::Tuple))
    error(let.loc, "expected a tuple of " + Twine(let.bindings.size()) + " values, got " +
                       Twine(value.count));
  else if (!fits)
    reportKind(let.loc, "a tuple", value, "for the names in brackets");
  for (size_t i = 0; i < let.bindings.size(); ++i)
    set(let.bindings[i], fits ? tuples[value.getOffset() + i] : Value::poison());
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

Evaluator::Call::Call(Evaluator &evaluator, const DefDecl &def, llvm::ArrayRef<Expr *> arguments,
                      SourceLoc loc)
    : evaluator(evaluator), callerBase(evaluator.base), depth(def.getDepth()),
      context{evaluator.context, Context::Kind::Call, loc, def.name.name} {
  llvm::SmallVector<Value, 8> values;
  for (const Expr *argument : arguments)
    values.push_back(evaluator.evaluate(*argument));
  size_t calleeBase = evaluator.frames.size();
  evaluator.frames.resize(calleeBase + def.numSlots);
  std::copy(values.begin(), values.end(), evaluator.frames.begin() + calleeBase);
  evaluator.base = calleeBase;
  evaluator.context = &context;
  evaluator.depth += depth;
  valid = !evaluator.stopped;
  if (valid && evaluator.depth > evaluator.world.limits.maxCallDepth) {
    evaluator.error(loc, "calls of '" + def.name.name + "' are nested too deeply; does it end?");
    evaluator.stopped = true;
    valid = false;
  }
}

Evaluator::Call::~Call() {
  evaluator.frames.resize(evaluator.base);
  evaluator.base = callerBase;
  evaluator.context = context.parent;
  evaluator.depth -= depth;
}

/// `p(i)`
Value Evaluator::evaluateMember(const CallExpr &expr) {
  Value value = evaluate(*expr.family);
  std::optional<int64_t> number =
      evaluateInteger(*expr.arguments.front(), "as a pipeline's number");
  // A family whose declaration is faulty is poison.
  if (!number || !value.is(Value::Kind::Family))
    return Value::poison();
  const FamilyInfo &family = world.families[value.getFamily()];
  if (*number >= family.begin && *number < family.begin + int64_t(family.count))
    return Value::ofPipeline(family.firstPipeline + uint32_t(*number - family.begin));
  if (Diagnostic *diagnostic =
          error(expr.loc, "family '" + family.name + "' has the pipelines " + Twine(family.begin) +
                              " to " + Twine(family.begin + family.count - 1) + ", got " +
                              Twine(*number)))
    diagnostic->note(family.loc, "'" + family.name.str() + "' is declared here");
  return Value::poison();
}

Value Evaluator::evaluateCall(const CallExpr &expr) {
  if (expr.family)
    return evaluateMember(expr);
  const Expr &value = *expr.target->value;
  Call call(*this, *expr.target, expr.arguments, expr.loc);
  if (!call.isValid() || !spend(value.size + 4, expr.loc))
    return Value::poison();
  return evaluate(value);
}
