//===- ResolveExpressions.cpp - names and calls in expressions -------------===//

#include "Resolver.h"
#include "Suggest.h"

#include "llvm/ADT/Twine.h"

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::cast;
using llvm::StringRef;

void Resolver::resolveAll(llvm::ArrayRef<Expr *> exprs) {
  for (Expr *expr : exprs)
    resolve(expr);
}

/// Resolves what is below `expr`, which may be missing.
void Resolver::resolve(Expr *expr) {
  if (!expr)
    return;
  switch (expr->kind) {
  case Expr::Kind::Integer:
  case Expr::Kind::Decimal:
  case Expr::Kind::Boolean:
  case Expr::Kind::Training:
    return;
  case Expr::Kind::String:
    return resolveAll(cast<StringExpr>(expr)->values);
  case Expr::Kind::Name:
    return resolveName(*cast<NameExpr>(expr));
  case Expr::Kind::Negate:
    return resolve(cast<NegateExpr>(expr)->operand);
  case Expr::Kind::Not:
    return resolve(cast<NotExpr>(expr)->operand);
  case Expr::Kind::Binary:
    resolve(cast<BinaryExpr>(expr)->lhs);
    return resolve(cast<BinaryExpr>(expr)->rhs);
  case Expr::Kind::If:
    resolve(cast<IfExpr>(expr)->condition);
    resolve(cast<IfExpr>(expr)->thenValue);
    return resolve(cast<IfExpr>(expr)->elseValue);
  case Expr::Kind::Tuple:
    return resolveAll(cast<TupleExpr>(expr)->elements);
  case Expr::Kind::MinMax:
    return resolveAll(cast<MinMaxExpr>(expr)->arguments);
  case Expr::Kind::Index:
    resolve(cast<IndexExpr>(expr)->base);
    return resolve(cast<IndexExpr>(expr)->index);
  case Expr::Kind::Stage:
    resolve(cast<StageExpr>(expr)->base);
    return resolve(cast<StageExpr>(expr)->stage);
  case Expr::Kind::Call:
    return resolveCall(*cast<CallExpr>(expr));
  }
}

/// `p(i)` is a pipeline where `p` is a family; elsewhere a definition is called.
void Resolver::resolveCall(CallExpr &call) {
  resolveAll(call.arguments);
  auto family = values.find(call.callee);
  if (family != values.end() && family->second.isFamily) {
    if (call.arguments.size() != 1)
      error(call.loc, ("a pipeline of the family '" + call.callee + "' has 1 number, got " +
                       llvm::Twine(call.arguments.size()))
                          .str());
    return resolveName(*call.family);
  }
  call.family = nullptr;
  call.target = resolveCallee(call.callee, call.loc, call.arguments.size());
  if (call.target && !call.target->isFunction())
    if (Diagnostic *diagnostic =
            error(call.loc, "'" + call.callee.str() +
                                "' is a block of statements; expected a definition with a value"))
      diagnostic->note(call.target->name.loc, "it is defined here");
}

void Resolver::resolveName(NameExpr &name) {
  auto found = values.find(name.name);
  if (found == values.end())
    return reportUnknownName(name);
  name.storage = found->second.storage;
  name.slot = found->second.slot;
}

void Resolver::reportUnknownName(const NameExpr &name) {
  if (!reported.insert(name.name).second)
    return;
  if (auto def = defs.find(name.name); def != defs.end()) {
    if (Diagnostic *diagnostic =
            error(name.loc, "'" + name.name.str() + "' is a definition, not a value; call it as '" +
                                name.name.str() + "(…)'"))
      diagnostic->note(def->second->name.loc, "it is defined here");
    return;
  }
  Suggestion suggestion(name.name);
  for (const auto &entry : values)
    suggestion.offer(entry.first());
  suggestion.offer("training");
  std::string hint = suggestion.getHint();
  if (hint.empty() && lacksRank)
    hint = "; a line of 'greedy' names its rank with 'on', as in 'on r <= P - r'";
  Diagnostic *diagnostic = error(name.loc, "unknown name '" + name.name.str() + "'" + hint);
  auto near = values.find(suggestion.get());
  if (diagnostic && near != values.end())
    diagnostic->note(near->second.loc, "'" + near->first().str() + "' is declared here");
}

const DefDecl *Resolver::resolveCallee(StringRef callee, SourceLoc loc, size_t numArguments) {
  auto found = defs.find(callee);
  if (found == defs.end()) {
    reportUnknownCallee(callee, loc);
    return nullptr;
  }
  const DefDecl *def = found->second;
  if (def->params.size() == numArguments)
    return def;
  if (Diagnostic *diagnostic =
          error(loc, ("'" + callee + "' takes " + llvm::Twine(def->params.size()) +
                      (def->params.size() == 1 ? " argument" : " arguments") + ", got " +
                      llvm::Twine(numArguments))
                         .str()))
    diagnostic->note(def->name.loc, "it is defined here");
  return nullptr;
}

void Resolver::reportUnknownCallee(StringRef callee, SourceLoc loc) {
  if (auto value = values.find(callee); value != values.end()) {
    if (Diagnostic *diagnostic =
            error(loc, "'" + callee.str() + "' is a value and cannot be called"))
      diagnostic->note(value->second.loc, "it is declared here");
    return;
  }
  // A call and a name of the same spelling are different faults.
  if (!reported.insert((callee + "(").str()).second)
    return;
  Suggestion suggestion(callee);
  for (const auto &entry : defs)
    suggestion.offer(entry.first());
  suggestion.offer("min");
  suggestion.offer("max");
  Diagnostic *diagnostic =
      error(loc, "unknown definition '" + callee.str() + "'" + suggestion.getHint());
  auto near = defs.find(suggestion.get());
  if (diagnostic && near != defs.end())
    diagnostic->note(near->second->name.loc, "'" + near->first().str() + "' is defined here");
}
