//===- Resolver.h - binds names to slots and calls to definitions ----------===//
//
// Two kinds of names do not clash: values (looked up where a name stands alone)
// and definitions (looked up where a name is called). A value is visible from
// its declaration to the end of its block and cannot be declared again there:
// there is no assignment, and a second `let` would look like one. Definitions
// of a file, and those of the files that it imports, are visible in all of it.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_LIB_FRONTEND_RESOLVER_H
#define DUALPIPE_LIB_FRONTEND_RESOLVER_H

#include "ModuleImpl.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace dualpipe::frontend {

/// Resolves one file whose imports are loaded.
class Resolver {
public:
  Resolver(ModuleImpl &module, const Limits &limits, DiagnosticSink &sink)
      : module(module), limits(limits), sink(sink), errorsBefore(sink.numErrors()) {}

  void resolveFile(FileDecl &file);

private:
  struct Value {
    SourceLoc loc;
    Storage storage;
    uint32_t slot;
    bool isFamily = false;
  };

  /// Names that end with a block.
  class Scope {
  public:
    explicit Scope(Resolver &resolver)
        : resolver(resolver), declared(resolver.order.size()), slots(resolver.nextSlot) {}
    ~Scope();
    Scope(const Scope &) = delete;

  private:
    Resolver &resolver;
    size_t declared;
    uint32_t slots;
  };

  void declareDefs(const FileDecl &file);
  void declareDef(DefDecl &def);
  void declareValue(Binding &binding, Storage storage, uint32_t slot);
  void declareLocal(Binding &binding);
  void declareScheduleValue(Binding &binding) {
    declareValue(binding, Storage::Schedule, scheduleSlots++);
  }

  void resolveDef(DefDecl &def);
  void resolveSchedule(ScheduleDecl &schedule);
  void checkItems(const ScheduleDecl &schedule);
  void rejectSecond(const ScheduleDecl &schedule, Item::Kind kind, const char *word);
  void resolveItem(Item &item);
  void resolvePipeline(PipelineItem &pipeline);
  void resolveClauses(llvm::MutableArrayRef<MapClause> clauses);
  void resolveSection(Item &item);
  void resolveGreedyClause(GreedyClause &clause);
  void resolveBlock(const Block &block);
  void resolveStatement(Stmt &stmt);
  void resolveLoop(Stmt &stmt);
  void resolveEvery(EveryStmt &every);
  void resolveOp(OpStmt &op);
  uint32_t addPlace(SourceLoc loc);
  void resolve(Expr *expr);
  void resolveAll(llvm::ArrayRef<Expr *> exprs);
  void resolveName(NameExpr &name);
  void resolveCall(CallExpr &call);
  const DefDecl *resolveCallee(llvm::StringRef callee, SourceLoc loc, size_t numArguments);
  void reportUnknownName(const NameExpr &name);
  void reportUnknownCallee(llvm::StringRef callee, SourceLoc loc);
  uint32_t getPhase(llvm::StringRef name);

  /// Null once there are too many errors.
  Diagnostic *error(SourceLoc loc, std::string message);

  ModuleImpl &module;
  const Limits &limits;
  DiagnosticSink &sink;
  size_t errorsBefore;

  llvm::StringMap<Value> values;
  /// Names of `values` in order of declaration.
  llvm::SmallVector<llvm::StringRef> order;
  llvm::StringMap<DefDecl *> defs;
  /// Unknown names that were reported: once each is enough.
  llvm::StringSet<> reported;
  /// In a line of `greedy` that does not name its rank.
  bool lacksRank = false;
  uint32_t nextSlot = 0;
  uint32_t numSlots = 0;
  uint32_t scheduleSlots = 0;
  llvm::StringMap<uint32_t> phases;
};

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_RESOLVER_H
