//===- RunSections.cpp - runs the sections that state an order -------------===//
//
// Ranks' programs run in parallel, a timeline and rules for all ranks at once.
//
//===----------------------------------------------------------------------===//

#include "RunSections.h"
#include "RankInterpreter.h"
#include "TimelineInterpreter.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/Parallel.h"

#include <map>

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::cast;

bool frontend::moveFindings(std::vector<Diagnostic> &findings, DiagnosticSink &sink) {
  for (Diagnostic &finding : findings) {
    Diagnostic &diagnostic = sink.error(finding.loc, std::move(finding.message));
    diagnostic.notes = std::move(finding.notes);
  }
  return findings.empty();
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

namespace {

/// Finds the places that the sections of a schedule can reach.
class ReachablePlaces {
public:
  explicit ReachablePlaces(size_t numPlaces) : places(numPlaces) {}
  void visit(const Item &item);
  llvm::BitVector places;

private:
  void visit(const Block &block);
  void visit(const Stmt &stmt);
  void finish();
  llvm::SmallPtrSet<const DefDecl *, 8> seen;
  llvm::SmallVector<const DefDecl *> waiting;
};

} // namespace

void ReachablePlaces::visit(const Item &item) {
  if (auto *rank = llvm::dyn_cast<RankItem>(&item)) {
    visit(rank->body);
  } else if (auto *timeline = llvm::dyn_cast<TimelineItem>(&item)) {
    visit(timeline->body);
  } else if (auto *greedy = llvm::dyn_cast<GreedyItem>(&item)) {
    for (const GreedyClause &clause : greedy->clauses)
      for (const ChoicePattern &choice : clause.choices)
        places.set(choice.id);
  }
  finish();
}

/// Definitions are visited one after the other: their calls may form a chain of
/// any length.
void ReachablePlaces::finish() {
  while (!waiting.empty())
    visit(waiting.pop_back_val()->body);
}

void ReachablePlaces::visit(const Block &block) {
  for (const Stmt *stmt : block.statements)
    visit(*stmt);
}

void ReachablePlaces::visit(const Stmt &stmt) {
  switch (stmt.kind) {
  case Stmt::Kind::Let:
    return;
  case Stmt::Kind::Op:
    places.set(cast<OpStmt>(stmt).id);
    return;
  case Stmt::Kind::Transfer:
    places.set(cast<TransferStmt>(stmt).id);
    return;
  case Stmt::Kind::If:
    visit(cast<IfStmt>(stmt).thenBlock);
    return visit(cast<IfStmt>(stmt).elseBlock);
  case Stmt::Kind::Repeat:
    return visit(cast<RepeatStmt>(stmt).body);
  case Stmt::Kind::For:
    return visit(cast<ForStmt>(stmt).body);
  case Stmt::Kind::Every:
    return visit(cast<EveryStmt>(stmt).body);
  case Stmt::Kind::Phase:
    return visit(cast<PhaseStmt>(stmt).body);
  case Stmt::Kind::Fused:
    return visit(cast<FusedStmt>(stmt).body);
  case Stmt::Kind::Call:
    if (seen.insert(cast<CallStmt>(stmt).target).second)
      waiting.push_back(cast<CallStmt>(stmt).target);
    return;
  }
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

namespace {

/// Ranks that run before it is looked whether to go on. A fixed number, so that
/// what is found does not depend on the machine.
constexpr uint32_t kWave = 64;

class Sections {
public:
  Sections(const ModuleImpl &module, const ScheduleDecl &declaration, const Evaluator &setUp,
           const World &world, Schedule &running, DiagnosticSink &sink)
      : module(module), declaration(declaration), setUp(setUp), world(world), running(running),
        sink(sink) {}

  bool run();

private:
  void tabulateLocations();
  bool run(const Item &item);
  bool runRanks(const RankItem &program);
  void joinFindings(const std::vector<std::unique_ptr<RankInterpreter>> &wave, bool areAll);
  bool runTimeline(const TimelineItem &timeline);
  bool runGreedy(const GreedyItem &greedy);
  void numberPhases();

  const ModuleImpl &module;
  const ScheduleDecl &declaration;
  const Evaluator &setUp;
  const World &world;
  Schedule &running;
  DiagnosticSink &sink;
  LocationTable locationOf;
};

} // namespace

bool Sections::run() {
  tabulateLocations();
  for (const Item *item : declaration.items)
    if (item->isSection() && !run(*item))
      return false;
  running.ownsTransfers =
      llvm::any_of(running.ranks, [](const RankOrder &rank) { return !rank.transfers.empty(); });
  numberPhases();
  return true;
}

bool Sections::run(const Item &item) {
  if (auto *program = llvm::dyn_cast<RankItem>(&item))
    return runRanks(*program);
  if (auto *timeline = llvm::dyn_cast<TimelineItem>(&item))
    return runTimeline(*timeline);
  return runGreedy(cast<GreedyItem>(item));
}

void Sections::tabulateLocations() {
  ReachablePlaces reachable(module.places.size());
  for (const Item *item : declaration.items)
    reachable.visit(*item);
  running.locations.push_back(declaration.loc);
  locationOf.assign(module.places.size(), 0);
  for (unsigned id : reachable.places.set_bits()) {
    locationOf[id] = running.locations.size();
    running.locations.push_back(module.places[id]);
  }
}

/// The same fault usually shows on many ranks: it is reported for the first of
/// them, with the number of those that have run.
void Sections::joinFindings(const std::vector<std::unique_ptr<RankInterpreter>> &wave,
                            bool areAll) {
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::pair<size_t, unsigned>> seen;
  std::vector<Diagnostic> joined;
  for (const auto &rank : wave) {
    for (Diagnostic &finding : rank->getFindings()) {
      auto [entry, isNew] =
          seen.try_emplace({finding.loc.file, finding.loc.line, finding.loc.column},
                           std::pair<size_t, unsigned>(joined.size(), 0u));
      if (!isNew)
        ++entry->second.second;
      else if (joined.size() < world.limits.maxErrors)
        joined.push_back(std::move(finding));
    }
  }
  for (const auto &[place, entry] : seen)
    if (entry.second != 0 && entry.first < joined.size())
      joined[entry.first].note(joined[entry.first].loc,
                               (areAll ? "also on " : "also on at least ") +
                                   std::to_string(entry.second) +
                                   (entry.second == 1 ? " other rank" : " other ranks"));
  moveFindings(joined, sink);
}

bool Sections::runRanks(const RankItem &program) {
  for (uint32_t begin = 0; begin < world.numRanks; begin += kWave) {
    uint32_t count = std::min(kWave, world.numRanks - begin);
    std::vector<std::unique_ptr<RankInterpreter>> wave(count);
    llvm::parallelFor(0, count, [&](size_t i) {
      RankOrder &order = running.ranks[begin + i];
      wave[i] = std::make_unique<RankInterpreter>(setUp, begin + uint32_t(i), locationOf,
                                                  std::move(order));
      wave[i]->run(program);
      order = wave[i]->takeOrder();
    });
    bool faulty = llvm::any_of(wave, [](const auto &rank) { return !rank->getFindings().empty(); });
    if (faulty) {
      joinFindings(wave, begin + count == world.numRanks);
      return false;
    }
  }
  return true;
}

bool Sections::runTimeline(const TimelineItem &timeline) {
  TimelineInterpreter interpreter(setUp, locationOf);
  interpreter.run(timeline);
  if (!moveFindings(interpreter.getFindings(), sink))
    return false;
  // Times are stated for the schedule's own costs: other ones on the command line are no reason
  // to give its weight halves other places.
  appendByTime(running, interpreter.takeOps(), world.costs);
  return true;
}

bool Sections::runGreedy(const GreedyItem &greedy) {
  Evaluator evaluator(setUp, std::nullopt);
  GreedyRules rules = evaluateGreedy(world, evaluator, greedy, locationOf);
  return moveFindings(evaluator.getFindings(), sink) &&
         extendGreedily(running, rules, running.planCosts, sink);
}

/// Renumbers the phases: those in use, in the order of the text, and an empty
/// name for ops that follow a phase and are in none.
void Sections::numberPhases() {
  constexpr uint32_t kUnused = ~0u;
  size_t none = module.phaseNames.size();
  std::vector<uint32_t> numbers(none + 1, kUnused);
  auto getModuleNumber = [&](const RankOrder::Phase &phase) {
    return phase.name == RankOrder::kNoPhase ? none : phase.name;
  };
  for (const RankOrder &rank : running.ranks)
    for (const RankOrder::Phase &phase : rank.phases)
      numbers[getModuleNumber(phase)] = 0;
  for (size_t i = 0; i <= none; ++i) {
    if (numbers[i] == kUnused)
      continue;
    numbers[i] = running.phaseNames.size();
    running.phaseNames.push_back(i == none ? std::string() : module.phaseNames[i]);
  }
  for (RankOrder &rank : running.ranks)
    for (RankOrder::Phase &phase : rank.phases)
      phase.name = numbers[getModuleNumber(phase)];
}

bool frontend::runSections(const ModuleImpl &module, const ScheduleDecl &declaration,
                           const Evaluator &setUp, const World &world, Schedule &running,
                           DiagnosticSink &sink) {
  return Sections(module, declaration, setUp, world, running, sink).run();
}
