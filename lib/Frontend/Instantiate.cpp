//===- Instantiate.cpp - runs a schedule of a module -----------------------===//
//
// Chooses the schedule, checks the options, sets the schedule up, runs the ranks
// in parallel and joins what they found.
//
//===----------------------------------------------------------------------===//

#include "ModuleImpl.h"
#include "RankInterpreter.h"
#include "SetUp.h"
#include "Suggest.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/Parallel.h"

#include <map>

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::cast;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// Ranks that run before it is looked whether to go on. A fixed number, so that
/// what is found does not depend on the machine.
constexpr uint32_t kWave = 64;

class Instantiation {
public:
  Instantiation(const ModuleImpl &module, const Options &options, DiagnosticSink &sink)
      : module(module), options(options), sink(sink) {}

  bool run(Schedule &result);

private:
  bool chooseSchedule();
  bool chooseSizes();
  bool checkSize(ParamDecl::Kind kind, std::optional<uint32_t> given, StringRef what,
                 StringRef option, uint32_t &size);
  bool chooseParams();
  bool reportUnknownParam(StringRef name);
  bool setUp();
  void tabulateLocations();
  bool runRanks();
  void joinFindings(std::vector<std::unique_ptr<RankInterpreter>> &wave);
  bool moveFindings(std::vector<Diagnostic> &findings);
  void fill(Schedule &result);
  void fillPipelines(Schedule &result) const;
  void fillPhases(Schedule &result) const;

  const ModuleImpl &module;
  const Options &options;
  DiagnosticSink &sink;
  const ScheduleDecl *schedule = nullptr;
  Sizes sizes;
  World world;
  std::unique_ptr<Evaluator> evaluator;
  std::vector<std::pair<std::string, int64_t>> params;
  LocationTable locationOf;
  std::vector<SourceLoc> locations;
  std::vector<RankOrder> ranks;
};

} // namespace

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

bool Instantiation::chooseSchedule() {
  llvm::ArrayRef<ScheduleDecl *> schedules = module.trees.front().schedules;
  const std::string &file = module.files.front();
  if (options.schedule.empty()) {
    if (schedules.size() == 1) {
      schedule = schedules.front();
      return true;
    }
    if (schedules.empty()) {
      sink.error({}, "'" + file + "' declares no schedule");
      return false;
    }
    Diagnostic &diagnostic =
        sink.error({}, "'" + file + "' declares " + std::to_string(schedules.size()) +
                           " schedules; choose one with --schedule=NAME");
    for (const ScheduleDecl *candidate : schedules)
      diagnostic.note(candidate->name.loc, "'" + candidate->name.name.str() + "' is declared here");
    return false;
  }
  Suggestion suggestion(options.schedule);
  for (const ScheduleDecl *candidate : schedules) {
    if (candidate->name.name == options.schedule) {
      schedule = candidate;
      return true;
    }
    suggestion.offer(candidate->name.name);
  }
  Diagnostic &diagnostic = sink.error({}, "'" + file + "' declares no schedule '" +
                                              options.schedule + "'" + suggestion.getHint());
  for (const ScheduleDecl *candidate : schedules)
    diagnostic.note(candidate->name.loc, "'" + candidate->name.name.str() + "' is declared here");
  return false;
}

bool Instantiation::checkSize(ParamDecl::Kind kind, std::optional<uint32_t> given, StringRef what,
                              StringRef option, uint32_t &size) {
  SourceLoc loc;
  for (const ParamDecl &param : schedule->params)
    if (param.kind == kind)
      loc = param.loc;
  uint64_t largest =
      kind == ParamDecl::Kind::Ranks ? options.limits.maxRanks : options.limits.maxForwards;
  if (!given)
    sink.error(loc, ("the number of " + what + " is not given; pass " + option + "=N").str());
  else if (*given == 0)
    sink.error(loc, ("the number of " + what + " must be at least 1, got 0").str());
  else if (*given > largest)
    sink.error(loc, ("the number of " + what + " must be at most " + Twine(largest) + ", got " +
                     Twine(*given))
                        .str());
  else
    size = *given;
  return size != 0;
}

bool Instantiation::chooseSizes() {
  bool hasRanks = checkSize(ParamDecl::Kind::Ranks, options.ranks, "ranks", "--ranks", sizes.ranks);
  bool hasMicrobatches = checkSize(ParamDecl::Kind::Microbatches, options.microbatches,
                                   "micro-batches", "--microbatches", sizes.microbatches);
  return hasRanks && hasMicrobatches;
}

bool Instantiation::reportUnknownParam(StringRef name) {
  std::string hint;
  Suggestion suggestion(name);
  for (const ParamDecl &param : schedule->params) {
    if (param.kind == ParamDecl::Kind::Param)
      suggestion.offer(param.binding.name);
    else if (param.binding.name == name)
      hint = param.kind == ParamDecl::Kind::Ranks ? "; pass it with --ranks=N"
                                                  : "; pass it with --microbatches=N";
  }
  sink.error(schedule->name.loc, "schedule '" + schedule->name.name.str() +
                                     "' has no 'param' named '" + name.str() + "'" +
                                     (hint.empty() ? suggestion.getHint() : hint));
  return false;
}

bool Instantiation::chooseParams() {
  bool valid = true;
  std::map<std::string, size_t> numbers;
  for (const ParamDecl &param : schedule->params)
    if (param.kind == ParamDecl::Kind::Param)
      numbers.emplace(param.binding.name.str(), numbers.size());
  sizes.params.resize(numbers.size());
  for (const auto &[name, value] : options.params) {
    auto found = numbers.find(name);
    if (found == numbers.end()) {
      valid = reportUnknownParam(name);
      continue;
    }
    std::optional<int64_t> &given = sizes.params[found->second];
    if (given) {
      sink.error(schedule->name.loc, "parameter '" + name + "' is given twice: " +
                                         std::to_string(*given) + " and " + std::to_string(value));
      valid = false;
    }
    given = value;
  }
  for (const ParamDecl &param : schedule->params) {
    if (param.kind != ParamDecl::Kind::Param || param.defaultValue ||
        sizes.params[numbers[param.binding.name.str()]])
      continue;
    std::string name = param.binding.name.str();
    sink.error(param.loc, "parameter '" + name +
                              "' has no default and is not given; pass --param " + name + "=VALUE");
    valid = false;
  }
  return valid;
}

//===----------------------------------------------------------------------===//
// Places of ops
//===----------------------------------------------------------------------===//

namespace {

/// Finds the op statements that the program of a schedule can reach.
class ReachableOps {
public:
  explicit ReachableOps(size_t numOps) : ops(numOps) {}
  void visit(const Block &block) {
    for (const Stmt *stmt : block.statements)
      visit(*stmt);
  }
  llvm::BitVector ops;

private:
  void visit(const Stmt &stmt);
  llvm::SmallPtrSet<const DefDecl *, 8> seen;
  llvm::SmallVector<const DefDecl *> waiting;

public:
  /// Definitions are visited one after the other: their calls may form a chain
  /// of any length.
  void finish() {
    while (!waiting.empty())
      visit(waiting.pop_back_val()->body);
  }
};

} // namespace

void ReachableOps::visit(const Stmt &stmt) {
  switch (stmt.kind) {
  case Stmt::Kind::Let:
    return;
  case Stmt::Kind::Op:
    ops.set(cast<OpStmt>(stmt).id);
    return;
  case Stmt::Kind::If:
    visit(cast<IfStmt>(stmt).thenBlock);
    return visit(cast<IfStmt>(stmt).elseBlock);
  case Stmt::Kind::Repeat:
    return visit(cast<RepeatStmt>(stmt).body);
  case Stmt::Kind::For:
    return visit(cast<ForStmt>(stmt).body);
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

void Instantiation::tabulateLocations() {
  ReachableOps reachable(module.ops.size());
  reachable.visit(schedule->rank->body);
  reachable.finish();
  locations.push_back(schedule->loc);
  locationOf.assign(module.ops.size(), 0);
  for (unsigned id : reachable.ops.set_bits()) {
    locationOf[id] = locations.size();
    locations.push_back(module.ops[id]->loc);
  }
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

bool Instantiation::moveFindings(std::vector<Diagnostic> &findings) {
  for (Diagnostic &finding : findings) {
    Diagnostic &diagnostic = sink.error(finding.loc, std::move(finding.message));
    diagnostic.notes = std::move(finding.notes);
  }
  return findings.empty();
}

bool Instantiation::setUp() {
  world.limits = options.limits;
  world.training = !options.forwardOnly;
  evaluator = std::make_unique<Evaluator>(world, schedule->numSlots);
  bindParameters(*evaluator, *schedule, sizes, &params);
  setUpSchedule(world, *evaluator, *schedule, sizes);
  return moveFindings(evaluator->getFindings());
}

/// The same fault usually shows on many ranks: it is reported for the first of
/// them, with their number.
void Instantiation::joinFindings(std::vector<std::unique_ptr<RankInterpreter>> &wave) {
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::pair<size_t, unsigned>> seen;
  std::vector<Diagnostic> joined;
  for (const auto &rank : wave) {
    for (Diagnostic &finding : rank->getFindings()) {
      auto [entry, isNew] =
          seen.try_emplace({finding.loc.file, finding.loc.line, finding.loc.column},
                           std::pair<size_t, unsigned>(joined.size(), 0u));
      if (!isNew)
        ++entry->second.second;
      else if (joined.size() < options.limits.maxErrors)
        joined.push_back(std::move(finding));
    }
  }
  for (const auto &[place, entry] : seen)
    if (entry.second != 0 && entry.first < joined.size())
      joined[entry.first].note(joined[entry.first].loc,
                               "also on " + std::to_string(entry.second) +
                                   (entry.second == 1 ? " other rank" : " other ranks"));
  moveFindings(joined);
}

bool Instantiation::runRanks() {
  ranks.resize(sizes.ranks);
  for (uint32_t begin = 0; begin < sizes.ranks; begin += kWave) {
    uint32_t count = std::min(kWave, sizes.ranks - begin);
    std::vector<std::unique_ptr<RankInterpreter>> wave(count);
    llvm::parallelFor(0, count, [&](size_t i) {
      wave[i] = std::make_unique<RankInterpreter>(*evaluator, begin + uint32_t(i), locationOf);
      wave[i]->run(*schedule->rank);
      ranks[begin + i] = wave[i]->takeOrder();
    });
    bool faulty = llvm::any_of(wave, [](const auto &rank) { return !rank->getFindings().empty(); });
    if (faulty) {
      joinFindings(wave);
      return false;
    }
  }
  return true;
}

//===----------------------------------------------------------------------===//
// The result
//===----------------------------------------------------------------------===//

void Instantiation::fillPipelines(Schedule &result) const {
  for (const PipelineInfo &info : world.pipelines) {
    Pipeline &pipeline = result.pipelines.emplace_back();
    pipeline.name = info.name.str();
    pipeline.firstStage = info.firstStage;
    pipeline.numStages = info.numStages;
    pipeline.firstMicrobatch = info.firstMicrobatch;
    pipeline.numMicrobatches = info.numMicrobatches;
    pipeline.placement = info.placement;
    pipeline.loc = info.loc;
    result.numStages = std::max(result.numStages, info.firstStage + info.numStages);
    result.numMicrobatches += info.numMicrobatches;
  }
}

/// Renumbers the phases: those in use, in the order of the text, and an empty
/// name for ops that follow a phase and are in none.
void Instantiation::fillPhases(Schedule &result) const {
  constexpr uint32_t kUnused = ~0u;
  size_t none = module.phaseNames.size();
  std::vector<uint32_t> numbers(none + 1, kUnused);
  auto getModuleNumber = [&](const RankOrder::Phase &phase) {
    return phase.name == kNoPhase ? none : phase.name;
  };
  for (const RankOrder &rank : result.ranks)
    for (const RankOrder::Phase &phase : rank.phases)
      numbers[getModuleNumber(phase)] = 0;
  for (size_t i = 0; i <= none; ++i) {
    if (numbers[i] == kUnused)
      continue;
    numbers[i] = result.phaseNames.size();
    result.phaseNames.push_back(i == none ? std::string() : module.phaseNames[i]);
  }
  for (RankOrder &rank : result.ranks)
    for (RankOrder::Phase &phase : rank.phases)
      phase.name = numbers[getModuleNumber(phase)];
}

void Instantiation::fill(Schedule &result) {
  result = Schedule();
  result.name = schedule->name.name.str();
  result.numRanks = sizes.ranks;
  result.training = world.training;
  result.params = std::move(params);
  fillPipelines(result);
  result.ranks = std::move(ranks);
  fillPhases(result);
  result.files = module.files;
  result.locations = std::move(locations);
  result.loc = schedule->loc;
}

bool Instantiation::run(Schedule &result) {
  if (!chooseSchedule())
    return false;
  bool hasSizes = chooseSizes();
  bool hasParams = chooseParams();
  if (!hasSizes || !hasParams || !setUp())
    return false;
  tabulateLocations();
  if (!runRanks())
    return false;
  fill(result);
  return true;
}

llvm::LogicalResult frontend::instantiate(const Module &module, const Options &options,
                                          Schedule &schedule, DiagnosticSink &sink) {
  if (!module.isValid()) {
    sink.error({}, "the file has errors and cannot be compiled");
    return llvm::failure();
  }
  return llvm::success(Instantiation(module.getImpl(), options, sink).run(schedule));
}
