//===- Instantiate.cpp - runs a schedule of a module -----------------------===//
//
// Chooses the schedule, checks the options, sets the schedule up and runs its
// sections.
//
//===----------------------------------------------------------------------===//

#include "ModuleImpl.h"
#include "RunSections.h"
#include "SetUp.h"
#include "Suggest.h"

#include <map>

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::StringRef;
using llvm::Twine;

namespace {

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
  bool setParam(const ParamDecl &param, std::variant<int64_t, bool> value,
                std::optional<int64_t> &given);
  bool setUp();
  Schedule begin() const;
  void fillPipelines(Schedule &result) const;

  const ModuleImpl &module;
  const Options &options;
  DiagnosticSink &sink;
  const ScheduleDecl *schedule = nullptr;
  Sizes sizes;
  World world;
  std::unique_ptr<Evaluator> evaluator;
  std::vector<std::pair<std::string, int64_t>> params;
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
      sink.error({0, 1, 1}, "'" + file + "' declares no schedule");
      return false;
    }
    Diagnostic &diagnostic =
        sink.error({0, 1, 1}, "'" + file + "' declares " + std::to_string(schedules.size()) +
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
  Diagnostic &diagnostic = sink.error({0, 1, 1}, "'" + file + "' declares no schedule '" +
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

static std::string print(const ParamDecl &param, int64_t value) {
  if (param.type == ParamDecl::Type::Integer)
    return std::to_string(value);
  return value != 0 ? "true" : "false";
}

bool Instantiation::setParam(const ParamDecl &param, std::variant<int64_t, bool> value,
                             std::optional<int64_t> &given) {
  std::string name = param.binding.name.str();
  bool wantsBoolean = param.type == ParamDecl::Type::Boolean;
  if (std::holds_alternative<bool>(value) != wantsBoolean) {
    sink.error(param.loc, "parameter '" + name + "' is " +
                              (wantsBoolean ? "a boolean, expected true or false, got an integer"
                                            : "an integer, got a boolean"));
    return false;
  }
  int64_t number = wantsBoolean ? int64_t(std::get<bool>(value)) : std::get<int64_t>(value);
  bool isFirst = !given;
  if (!isFirst)
    sink.error(schedule->name.loc, "parameter '" + name + "' is given twice: " +
                                       print(param, *given) + " and " + print(param, number));
  given = number;
  return isFirst;
}

bool Instantiation::chooseParams() {
  bool valid = true;
  std::map<std::string, std::pair<const ParamDecl *, size_t>> numbers;
  for (const ParamDecl &param : schedule->params)
    if (param.kind == ParamDecl::Kind::Param)
      numbers.emplace(param.binding.name.str(), std::pair(&param, numbers.size()));
  sizes.params.resize(numbers.size());
  for (const auto &[name, value] : options.params) {
    auto found = numbers.find(name);
    if (found == numbers.end()) {
      valid = reportUnknownParam(name);
      continue;
    }
    valid &= setParam(*found->second.first, value, sizes.params[found->second.second]);
  }
  for (const ParamDecl &param : schedule->params) {
    if (param.kind != ParamDecl::Kind::Param || param.defaultValue ||
        sizes.params[numbers[param.binding.name.str()].second])
      continue;
    std::string name = param.binding.name.str();
    sink.error(param.loc, "parameter '" + name +
                              "' has no default and is not given; pass --param " + name + "=VALUE");
    valid = false;
  }
  return valid;
}

//===----------------------------------------------------------------------===//
// Set-up and result
//===----------------------------------------------------------------------===//

bool Instantiation::setUp() {
  world.limits = options.limits;
  world.training = !options.forwardOnly;
  world.numRanks = sizes.ranks;
  world.numMicrobatches = sizes.microbatches;
  for (const ParamDecl &param : schedule->params)
    if (param.kind == ParamDecl::Kind::Ranks)
      world.ranksName = param.binding.name;
  evaluator = std::make_unique<Evaluator>(world, schedule->numSlots);
  bindParameters(*evaluator, *schedule, sizes, &params);
  setUpSchedule(world, *evaluator, *schedule, sizes);
  return moveFindings(evaluator->getFindings(), sink);
}

void Instantiation::fillPipelines(Schedule &result) const {
  for (const PipelineInfo &info : world.pipelines) {
    Pipeline &pipeline = result.pipelines.emplace_back();
    pipeline.name = info.name;
    pipeline.firstStage = info.firstStage;
    pipeline.numStages = info.numStages;
    pipeline.firstMicrobatch = info.firstMicrobatch;
    pipeline.numMicrobatches = info.numMicrobatches;
    pipeline.placement = info.placement;
    pipeline.loc = info.loc;
  }
  result.numStages = world.numStages;
  result.numMicrobatches = sizes.microbatches;
}

/// A schedule in which no rank does anything yet.
Schedule Instantiation::begin() const {
  Schedule result;
  result.name = schedule->name.name.str();
  result.numRanks = sizes.ranks;
  result.params = params;
  fillPipelines(result);
  result.ranks.resize(sizes.ranks);
  result.memory = world.memory;
  result.model = world.model;
  result.planCosts = world.costs;
  result.planCosts.override(options.planCosts);
  result.planCosts.spellOut(result.numStages);
  result.files = module.files;
  result.loc = schedule->loc;
  return result;
}

bool Instantiation::run(Schedule &result) {
  if (!chooseSchedule())
    return false;
  bool hasSizes = chooseSizes();
  bool hasParams = chooseParams();
  if (!hasSizes || !hasParams || !setUp())
    return false;
  Schedule running = begin();
  if (!runSections(module, *schedule, *evaluator, world, running, sink))
    return false;
  // Rules and programs run in training form: a limit on what is in flight needs the backwards.
  if (options.forwardOnly)
    dropBackward(running);
  result = std::move(running);
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
