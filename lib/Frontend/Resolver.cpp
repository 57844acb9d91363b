//===- Resolver.cpp - declarations and statements --------------------------===//

#include "Resolver.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::cast;
using llvm::StringRef;

Resolver::Scope::~Scope() {
  for (StringRef name : llvm::drop_begin(resolver.order, declared))
    resolver.values.erase(name);
  resolver.order.resize(declared);
  resolver.nextSlot = slots;
}

Diagnostic *Resolver::error(SourceLoc loc, std::string message) {
  if (sink.numErrors() - errorsBefore >= limits.maxErrors)
    return nullptr;
  return &sink.error(loc, std::move(message));
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

void Resolver::declareValue(Binding &binding, Storage storage, uint32_t slot) {
  binding.slot = slot;
  auto [entry, isNew] = values.try_emplace(binding.name, Value{binding.loc, storage, slot});
  if (isNew) {
    order.push_back(entry->first());
    return;
  }
  if (Diagnostic *diagnostic =
          error(binding.loc, "'" + binding.name.str() +
                                 "' is already declared; a name keeps its value, so take another"))
    diagnostic->note(entry->second.loc, "it is declared here");
}

void Resolver::declareLocal(Binding &binding) {
  declareValue(binding, Storage::Local, nextSlot++);
  numSlots = std::max(numSlots, nextSlot);
}

void Resolver::declareDef(DefDecl &def) {
  auto [entry, isNew] = defs.try_emplace(def.name.name, &def);
  // The same file imported twice brings the same definitions.
  if (isNew || entry->second == &def)
    return;
  if (Diagnostic *diagnostic =
          error(def.name.loc, "'" + def.name.name.str() + "' is already defined"))
    diagnostic->note(entry->second->name.loc, "it is defined here");
}

void Resolver::declareDefs(const FileDecl &file) {
  for (const ImportDecl &import : file.imports)
    for (DefDecl *def : module.trees[import.file].defs)
      declareDef(*def);
  for (DefDecl *def : file.defs)
    declareDef(*def);
}

void Resolver::resolveFile(FileDecl &file) {
  for (auto [id, name] : llvm::enumerate(module.phaseNames))
    phases[name] = id;
  declareDefs(file);
  for (DefDecl *def : file.defs)
    resolveDef(*def);
  llvm::StringMap<SourceLoc> schedules;
  for (ScheduleDecl *schedule : file.schedules) {
    auto [entry, isNew] = schedules.try_emplace(schedule->name.name, schedule->name.loc);
    if (!isNew)
      if (Diagnostic *diagnostic =
              error(schedule->name.loc,
                    "schedule '" + schedule->name.name.str() + "' is already declared"))
        diagnostic->note(entry->second, "it is declared here");
    resolveSchedule(*schedule);
  }
}

/// A body has a frame of its own: parameters first, then locals.
void Resolver::resolveDef(DefDecl &def) {
  Scope scope(*this);
  nextSlot = numSlots = 0;
  for (Binding &param : def.params)
    declareLocal(param);
  if (def.value)
    resolve(def.value);
  else
    resolveBlock(def.body);
  def.numSlots = numSlots;
}

void Resolver::resolveSchedule(ScheduleDecl &schedule) {
  Scope scope(*this);
  scheduleSlots = 0;
  numPipelines = 0;
  for (ParamDecl &param : schedule.params) {
    if (param.defaultValue)
      resolve(param.defaultValue);
    declareScheduleValue(param.binding);
  }
  llvm::SmallVector<StringRef> ownDefs;
  for (Item *item : schedule.items) {
    if (auto *def = llvm::dyn_cast<DefItem>(item))
      if (!defs.contains(def->def->name.name))
        ownDefs.push_back(def->def->name.name);
    resolveItem(*item);
  }
  for (StringRef name : ownDefs)
    defs.erase(name);
  schedule.numSlots = scheduleSlots;
  schedule.numPipelines = numPipelines;
  if (!schedule.rank)
    error(schedule.name.loc, "schedule '" + schedule.name.name.str() +
                                 "' has no 'rank r { … }' program, so no rank does anything");
  else if (numPipelines == 0)
    error(schedule.name.loc, "schedule '" + schedule.name.name.str() + "' has no pipeline");
}

void Resolver::resolveItem(Item &item) {
  switch (item.kind) {
  case Item::Kind::Require:
    resolve(cast<RequireItem>(item).condition);
    resolve(cast<RequireItem>(item).message);
    return;
  case Item::Kind::Let: {
    LetStmt &let = *cast<LetItem>(item).let;
    resolve(let.value);
    for (Binding &binding : let.bindings)
      declareScheduleValue(binding);
    return;
  }
  case Item::Kind::Pipeline:
    return resolvePipeline(cast<PipelineItem>(item));
  case Item::Kind::Share:
    for (NameExpr *pipeline : cast<ShareItem>(item).pipelines)
      resolveName(*pipeline);
    return;
  case Item::Kind::Def:
    // Declared first: a definition may call itself.
    declareDef(*cast<DefItem>(item).def);
    return resolveDef(*cast<DefItem>(item).def);
  case Item::Kind::Rank: {
    auto &rank = cast<RankItem>(item);
    Scope scope(*this);
    nextSlot = numSlots = 0;
    declareLocal(rank.rank);
    resolveBlock(rank.body);
    rank.numSlots = numSlots;
    return;
  }
  }
}

void Resolver::resolvePipeline(PipelineItem &pipeline) {
  resolve(pipeline.stages);
  resolve(pipeline.microbatches);
  {
    Scope scope(*this);
    nextSlot = numSlots = 0;
    declareLocal(pipeline.placedStage);
    resolve(pipeline.placement);
  }
  pipeline.id = numPipelines++;
  declareScheduleValue(pipeline.name);
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void Resolver::resolveBlock(const Block &block) {
  Scope scope(*this);
  for (Stmt *stmt : block.statements)
    resolveStatement(*stmt);
}

void Resolver::resolveStatement(Stmt &stmt) {
  switch (stmt.kind) {
  case Stmt::Kind::Let: {
    auto &let = cast<LetStmt>(stmt);
    resolve(let.value);
    for (Binding &binding : let.bindings)
      declareLocal(binding);
    return;
  }
  case Stmt::Kind::If:
    resolve(cast<IfStmt>(stmt).condition);
    resolveBlock(cast<IfStmt>(stmt).thenBlock);
    return resolveBlock(cast<IfStmt>(stmt).elseBlock);
  case Stmt::Kind::Repeat:
  case Stmt::Kind::For:
    return resolveLoop(stmt);
  case Stmt::Kind::Phase:
    cast<PhaseStmt>(stmt).id = getPhase(cast<PhaseStmt>(stmt).name);
    return resolveBlock(cast<PhaseStmt>(stmt).body);
  case Stmt::Kind::Op:
    return resolveOp(cast<OpStmt>(stmt));
  case Stmt::Kind::Fused:
    return resolveBlock(cast<FusedStmt>(stmt).body);
  case Stmt::Kind::Call: {
    auto &call = cast<CallStmt>(stmt);
    resolveAll(call.arguments);
    call.target = resolveCallee(call.callee, call.loc, call.arguments.size());
    if (call.target && call.target->isFunction())
      if (Diagnostic *diagnostic =
              error(call.loc, "'" + call.callee.str() +
                                  "' is a value; expected a definition with a block '{ … }'"))
        diagnostic->note(call.target->name.loc, "it is defined here");
    return;
  }
  }
}

void Resolver::resolveLoop(Stmt &stmt) {
  Scope scope(*this);
  if (auto *repeat = llvm::dyn_cast<RepeatStmt>(&stmt)) {
    resolve(repeat->count);
    if (!repeat->counter.name.empty())
      declareLocal(repeat->counter);
    return resolveBlock(repeat->body);
  }
  auto &loop = cast<ForStmt>(stmt);
  resolve(loop.begin);
  resolve(loop.end);
  declareLocal(loop.counter);
  resolveBlock(loop.body);
}

void Resolver::resolveOp(OpStmt &op) {
  op.id = module.ops.size();
  module.ops.push_back(&op);
  resolve(op.chunk);
  resolve(op.microbatch);
  resolve(op.split);
}

uint32_t Resolver::getPhase(StringRef name) {
  auto [entry, isNew] = phases.try_emplace(name, module.phaseNames.size());
  if (isNew)
    module.phaseNames.push_back(name.str());
  return entry->second;
}
