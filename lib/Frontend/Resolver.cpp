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
  auto [entry, isNew] = values.try_emplace(binding.name, Value{binding.loc, storage, slot, false});
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
  checkItems(schedule);
}

/// What a schedule must have, and may have once.
void Resolver::checkItems(const ScheduleDecl &schedule) {
  constexpr size_t kMaxSections = 256;
  size_t numSections = 0;
  for (const Item *item : schedule.items)
    if (item->isSection() && ++numSections == kMaxSections + 1)
      error(item->loc, "a schedule has at most " + std::to_string(kMaxSections) + " sections");
  rejectSecond(schedule, Item::Kind::Cost, "cost");
  rejectSecond(schedule, Item::Kind::Memory, "memory");
  rejectSecond(schedule, Item::Kind::Model, "model");
  auto has = [&](auto isWanted) {
    return llvm::any_of(schedule.items, [&](const Item *item) { return isWanted(*item); });
  };
  if (numSections == 0)
    error(schedule.name.loc, "schedule '" + schedule.name.name.str() +
                                 "' has no 'rank r { … }', 'timeline { … }' or 'greedy { … }', so "
                                 "no rank does anything");
  else if (!has([](const Item &item) { return item.kind == Item::Kind::Pipeline; }))
    error(schedule.name.loc, "schedule '" + schedule.name.name.str() + "' has no pipeline");
}

/// One plan of a kind, so that there is no question which of two holds.
void Resolver::rejectSecond(const ScheduleDecl &schedule, Item::Kind kind, const char *word) {
  const Item *first = nullptr;
  for (const Item *item : schedule.items) {
    if (item->kind != kind)
      continue;
    if (!first) {
      first = item;
      continue;
    }
    if (Diagnostic *diagnostic =
            error(item->loc, std::string("a schedule has one '") + word + "', got two"))
      diagnostic->note(first->loc, "the first is here");
    return;
  }
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
  case Item::Kind::Cost:
    return resolveClauses(cast<CostItem>(item).clauses);
  case Item::Kind::Memory:
    return resolveClauses(cast<MemoryItem>(item).clauses);
  case Item::Kind::Model:
    return resolveClauses(cast<ModelItem>(item).groups);
  case Item::Kind::Rank:
  case Item::Kind::Timeline:
  case Item::Kind::Greedy:
    return resolveSection(item);
  }
}

void Resolver::resolvePipeline(PipelineItem &pipeline) {
  resolve(pipeline.begin);
  resolve(pipeline.end);
  {
    Scope scope(*this);
    nextSlot = numSlots = 0;
    if (pipeline.isFamily())
      declareLocal(pipeline.member);
    resolve(pipeline.stages);
    resolve(pipeline.microbatches);
    declareLocal(pipeline.placedStage);
    resolve(pipeline.placement);
    pipeline.numSlots = numSlots;
  }
  declareScheduleValue(pipeline.name);
  values.find(pipeline.name.name)->second.isFamily = pipeline.isFamily();
}

/// The index of a clause is the one local of its value.
void Resolver::resolveClauses(llvm::MutableArrayRef<MapClause> clauses) {
  for (MapClause &clause : clauses) {
    Scope scope(*this);
    nextSlot = numSlots = 0;
    if (!clause.index.name.empty())
      declareLocal(clause.index);
    resolve(clause.value);
  }
}

//===----------------------------------------------------------------------===//
// Sections
//===----------------------------------------------------------------------===//

void Resolver::resolveSection(Item &item) {
  Scope scope(*this);
  nextSlot = numSlots = 0;
  if (auto *rank = llvm::dyn_cast<RankItem>(&item)) {
    declareLocal(rank->rank);
    resolveBlock(rank->body);
    rank->numSlots = numSlots;
  } else if (auto *timeline = llvm::dyn_cast<TimelineItem>(&item)) {
    resolveBlock(timeline->body);
    timeline->numSlots = numSlots;
  } else {
    auto &greedy = cast<GreedyItem>(item);
    for (GreedyClause &clause : greedy.clauses)
      resolveGreedyClause(clause);
    greedy.numSlots = numSlots;
  }
}

void Resolver::resolveGreedyClause(GreedyClause &clause) {
  Scope scope(*this);
  lacksRank = clause.rank.name.empty();
  if (!lacksRank)
    declareLocal(clause.rank);
  if (clause.kind == GreedyClause::Kind::For) {
    resolve(clause.begin);
    resolve(clause.end);
    declareLocal(clause.counter);
    for (GreedyClause &line : clause.lines)
      resolveGreedyClause(line);
  }
  for (ChoicePattern &choice : clause.choices) {
    choice.id = addPlace(choice.loc);
    for (const OpPattern &member : choice.members)
      resolveAll(member.chunks);
  }
  resolveAll(clause.op.chunks);
  resolve(clause.bound);
  lacksRank = false;
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
  case Stmt::Kind::Every:
    return resolveEvery(cast<EveryStmt>(stmt));
  case Stmt::Kind::Phase:
    cast<PhaseStmt>(stmt).id = getPhase(cast<PhaseStmt>(stmt).name);
    return resolveBlock(cast<PhaseStmt>(stmt).body);
  case Stmt::Kind::Op:
    return resolveOp(cast<OpStmt>(stmt));
  case Stmt::Kind::Fused:
    resolve(cast<FusedStmt>(stmt).time);
    return resolveBlock(cast<FusedStmt>(stmt).body);
  case Stmt::Kind::Transfer: {
    auto &transfer = cast<TransferStmt>(stmt);
    transfer.id = addPlace(transfer.loc);
    resolve(transfer.chunk);
    return resolve(transfer.microbatch);
  }
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

void Resolver::resolveEvery(EveryStmt &every) {
  Scope scope(*this);
  resolve(every.period);
  resolve(every.begin);
  resolve(every.end);
  declareLocal(every.counter);
  resolveBlock(every.body);
}

void Resolver::resolveOp(OpStmt &op) {
  op.id = addPlace(op.loc);
  resolve(op.chunk);
  resolve(op.microbatch);
  resolve(op.split);
  resolve(op.time);
}

uint32_t Resolver::addPlace(SourceLoc loc) {
  module.places.push_back(loc);
  return uint32_t(module.places.size() - 1);
}

uint32_t Resolver::getPhase(StringRef name) {
  auto [entry, isNew] = phases.try_emplace(name, module.phaseNames.size());
  if (isNew)
    module.phaseNames.push_back(name.str());
  return entry->second;
}
