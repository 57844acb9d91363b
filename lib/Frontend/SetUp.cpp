//===- SetUp.cpp - parameters, requirements and pipelines of a schedule ----===//

#include "SetUp.h"

#include "EvaluatePlans.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::cast;
using llvm::StringRef;
using llvm::Twine;

namespace {
/// Every rank looks at every pipeline once.
constexpr uint32_t kMaxPipelines = 1024;
} // namespace

/// Booleans are kept as 0 and 1.
static std::optional<int64_t> evaluateDefault(Evaluator &evaluator, const ParamDecl &param) {
  constexpr StringRef what = "as the default of a parameter";
  if (param.type == ParamDecl::Type::Integer)
    return evaluator.evaluateInteger(*param.defaultValue, what);
  std::optional<bool> value = evaluator.evaluateBoolean(*param.defaultValue, what);
  return value ? std::optional<int64_t>(*value) : std::nullopt;
}

void frontend::bindParameters(Evaluator &evaluator, const ScheduleDecl &schedule,
                              const Sizes &sizes,
                              std::vector<std::pair<std::string, int64_t>> *values) {
  size_t number = 0;
  for (const ParamDecl &param : schedule.params) {
    std::optional<int64_t> value;
    if (param.kind == ParamDecl::Kind::Ranks)
      value = sizes.ranks;
    else if (param.kind == ParamDecl::Kind::Microbatches)
      value = sizes.microbatches;
    else if (!(value = sizes.params[number++]) && param.defaultValue)
      value = evaluateDefault(evaluator, param);
    bool isBoolean = param.type == ParamDecl::Type::Boolean;
    evaluator.setScheduleValue(param.binding, !value      ? Value::poison()
                                              : isBoolean ? Value::ofBoolean(*value != 0)
                                                          : Value::ofInteger(*value));
    if (value && values && param.kind == ParamDecl::Kind::Param)
      values->emplace_back(param.binding.name.str(), *value);
  }
}

namespace {

class SetUp {
public:
  SetUp(World &world, Evaluator &evaluator, const ScheduleDecl &schedule, const Sizes &sizes)
      : world(world), evaluator(evaluator), schedule(schedule), sizes(sizes) {}

  void run();

private:
  void evaluateItem(const Item &item);
  void evaluateRequire(const RequireItem &require);
  void declarePipelines(const PipelineItem &pipeline);
  bool declareFamily(const PipelineItem &pipeline);
  uint32_t addPipeline(const PipelineItem &pipeline, std::string name);
  void evaluatePipeline(const PipelineItem &pipeline, PipelineInfo &info);
  std::optional<uint32_t> evaluateCount(const Expr &expr, StringRef what, StringRef name);
  bool evaluatePlacement(const PipelineItem &pipeline, PipelineInfo &info);
  void sortStages(PipelineInfo &info);
  void evaluateShare(const ShareItem &share);
  void join(uint32_t pipeline, SourceLoc loc, std::optional<uint32_t> &first);
  void numberStages();
  void numberMicrobatches();

  World &world;
  Evaluator &evaluator;
  const ScheduleDecl &schedule;
  const Sizes &sizes;
  /// What follows a requirement that does not hold is not to be trusted.
  bool illegal = false;
  /// The first of the pipelines that a pipeline shares weights with.
  std::vector<uint32_t> sharedWith;
  uint64_t forwards = 0;
};

} // namespace

void SetUp::run() {
  for (const Item *item : schedule.items)
    evaluateItem(*item);
  evaluator.setMuted(false);
  if (!evaluator.getFindings().empty())
    return;
  numberStages();
  numberMicrobatches();
  // Costs and sizes are told by stage, so they come when stages have their numbers.
  for (const Item *item : schedule.items) {
    if (auto *cost = llvm::dyn_cast<CostItem>(item))
      evaluateCosts(world, evaluator, *cost);
    else if (auto *memory = llvm::dyn_cast<MemoryItem>(item))
      evaluateMemory(world, evaluator, *memory);
    else if (auto *model = llvm::dyn_cast<ModelItem>(item))
      evaluateModel(world, evaluator, *model);
  }
}

void SetUp::evaluateItem(const Item &item) {
  if (!evaluator.spend(1, item.loc))
    return;
  evaluator.setMuted(illegal);
  switch (item.kind) {
  case Item::Kind::Require:
    return evaluateRequire(cast<RequireItem>(item));
  case Item::Kind::Let:
    if (evaluator.spend(cast<LetItem>(item).let->cost, item.loc))
      evaluator.bind(*cast<LetItem>(item).let, Storage::Schedule);
    return;
  case Item::Kind::Pipeline:
    return declarePipelines(cast<PipelineItem>(item));
  case Item::Kind::Share:
    return evaluateShare(cast<ShareItem>(item));
  case Item::Kind::Cost:
  case Item::Kind::Memory:
  case Item::Kind::Model:
  case Item::Kind::Def:
  case Item::Kind::Rank:
  case Item::Kind::Timeline:
  case Item::Kind::Greedy:
    return;
  }
}

void SetUp::evaluateRequire(const RequireItem &require) {
  if (!evaluator.spend(require.condition->size, require.loc))
    return;
  std::optional<bool> holds =
      evaluator.evaluateBoolean(*require.condition, "as the condition of 'require'");
  if (!holds || *holds)
    return;
  evaluator.setMuted(false);
  std::optional<std::string> message = evaluator.evaluateText(*require.message);
  if (!message)
    return;
  Diagnostic *diagnostic =
      evaluator.error(require.loc, "schedule '" + schedule.name.name + "' " + *message);
  // Once is enough: what is suggested meets all requirements.
  if (diagnostic && !illegal)
    suggestLegalSizes(*diagnostic, schedule, sizes, world.limits, world.training);
  illegal = true;
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

/// The number of a new pipeline.
uint32_t SetUp::addPipeline(const PipelineItem &pipeline, std::string name) {
  uint32_t number = world.pipelines.size();
  PipelineInfo &info = world.pipelines.emplace_back();
  info.name = std::move(name);
  info.loc = pipeline.name.loc;
  info.placementLoc = pipeline.placement->loc;
  sharedWith.push_back(number);
  return number;
}

void SetUp::declarePipelines(const PipelineItem &pipeline) {
  // Poison until it is known to be sound.
  evaluator.setScheduleValue(pipeline.name, Value::poison());
  if (pipeline.isFamily() && !declareFamily(pipeline))
    return;
  if (!pipeline.isFamily()) {
    uint32_t number = addPipeline(pipeline, pipeline.name.name.str());
    evaluator.setScheduleValue(pipeline.name, Value::ofPipeline(number));
    evaluator.enterFrame(pipeline.numSlots);
    if (!illegal)
      evaluatePipeline(pipeline, world.pipelines[number]);
  }
  if (world.pipelines.size() <= kMaxPipelines || illegal)
    return;
  evaluator.error(schedule.name.loc,
                  "the schedule has more than the limit of " + Twine(kMaxPipelines) + " pipelines");
  illegal = true;
}

bool SetUp::declareFamily(const PipelineItem &pipeline) {
  evaluator.enterFrame(pipeline.numSlots);
  std::optional<int64_t> begin =
      evaluator.evaluateInteger(*pipeline.begin, "as the first number of a family");
  std::optional<int64_t> end = evaluator.evaluateInteger(*pipeline.end, "as the end of a family");
  if (!begin || !end || illegal)
    return false;
  int64_t count = 0;
  if (__builtin_sub_overflow(*end, *begin, &count) || count < 1 || count > kMaxPipelines) {
    evaluator.error(pipeline.begin->loc, "family '" + pipeline.name.name + "' takes 1 to " +
                                             Twine(kMaxPipelines) + " pipelines, got the range " +
                                             Twine(*begin) + ".." + Twine(*end));
    return false;
  }
  evaluator.setScheduleValue(pipeline.name, Value::ofFamily(world.families.size()));
  world.families.push_back({pipeline.name.name, pipeline.name.loc, *begin, uint32_t(count),
                            uint32_t(world.pipelines.size())});
  for (int64_t member = *begin; member != *end && !evaluator.isStopped(); ++member) {
    uint32_t number = addPipeline(pipeline, (pipeline.name.name + "(" + Twine(member) + ")").str());
    evaluator.enterFrame(pipeline.numSlots);
    evaluator.setLocal(pipeline.member, Value::ofInteger(member));
    evaluatePipeline(pipeline, world.pipelines[number]);
  }
  return true;
}

void SetUp::evaluatePipeline(const PipelineItem &pipeline, PipelineInfo &info) {
  std::optional<uint32_t> stages = evaluateCount(*pipeline.stages, "stage", info.name);
  std::optional<uint32_t> microbatches =
      evaluateCount(*pipeline.microbatches, "micro-batch", info.name);
  if (!stages || !microbatches)
    return;
  forwards += uint64_t(*stages) * *microbatches;
  if (forwards > world.limits.maxForwards) {
    evaluator.error(info.loc, "pipeline '" + info.name + "' has " + Twine(*stages) +
                                  " stages and " + Twine(*microbatches) +
                                  " micro-batches; the limit is " +
                                  Twine(world.limits.maxForwards) + " forwards in a schedule");
    return;
  }
  info.numStages = *stages;
  info.numMicrobatches = *microbatches;
  if (!evaluatePlacement(pipeline, info))
    info.numStages = 0;
}

std::optional<uint32_t> SetUp::evaluateCount(const Expr &expr, StringRef what, StringRef name) {
  if (!evaluator.spend(expr.size, expr.loc))
    return std::nullopt;
  std::optional<int64_t> count = evaluator.evaluateInteger(
      expr, ("as the number of " + what + (what == "stage" ? "s" : "es")).str());
  if (!count)
    return std::nullopt;
  if (*count < 1) {
    evaluator.error(expr.loc,
                    "pipeline '" + name + "' needs at least 1 " + what + ", got " + Twine(*count));
    return std::nullopt;
  }
  if (*count <= int64_t(world.limits.maxForwards))
    return uint32_t(*count);
  evaluator.error(expr.loc, "pipeline '" + name + "' has " + Twine(*count) + " " + what +
                                (what == "stage" ? "s" : "es") + ", more than the limit of " +
                                Twine(world.limits.maxForwards));
  return std::nullopt;
}

bool SetUp::evaluatePlacement(const PipelineItem &pipeline, PipelineInfo &info) {
  info.placement.reserve(info.numStages);
  for (uint32_t stage = 0; stage < info.numStages; ++stage) {
    if (!evaluator.spend(pipeline.placement->size, pipeline.placement->loc))
      return false;
    evaluator.setLocal(pipeline.placedStage, Value::ofInteger(stage));
    std::optional<int64_t> rank = evaluator.evaluateInteger(*pipeline.placement, "as a rank");
    if (!rank)
      return false;
    if (*rank < 0 || *rank >= int64_t(sizes.ranks)) {
      evaluator.error(pipeline.placement->loc, "stage " + Twine(stage) + " of pipeline '" +
                                                   info.name + "' is placed on rank " +
                                                   Twine(*rank) + "; expected 0 to " +
                                                   Twine(sizes.ranks - 1));
      return false;
    }
    info.placement.push_back(uint32_t(*rank));
  }
  sortStages(info);
  return true;
}

/// By rank, and on a rank by number.
void SetUp::sortStages(PipelineInfo &info) {
  info.stagesByRank.resize(info.numStages);
  std::iota(info.stagesByRank.begin(), info.stagesByRank.end(), 0);
  llvm::stable_sort(info.stagesByRank,
                    [&](uint32_t a, uint32_t b) { return info.placement[a] < info.placement[b]; });
  info.ordinal.resize(info.numStages);
  for (uint32_t i = 0; i < info.numStages; ++i) {
    uint32_t stage = info.stagesByRank[i];
    bool first = i == 0 || info.placement[info.stagesByRank[i - 1]] != info.placement[stage];
    info.ordinal[stage] = first ? 0 : info.ordinal[info.stagesByRank[i - 1]] + 1;
  }
}

//===----------------------------------------------------------------------===//
// Shared weights and global numbers
//===----------------------------------------------------------------------===//

void SetUp::evaluateShare(const ShareItem &share) {
  std::optional<uint32_t> first;
  bool faulty = false;
  uint32_t count = 0;
  for (const NameExpr *name : share.pipelines) {
    Value value = evaluator.evaluate(*name);
    uint32_t begin = 0, end = 0;
    if (value.is(Value::Kind::Pipeline)) {
      begin = value.getPipeline();
      end = begin + 1;
    } else if (value.is(Value::Kind::Family)) {
      begin = world.families[value.getFamily()].firstPipeline;
      end = begin + world.families[value.getFamily()].count;
    } else {
      faulty = true;
      if (!value.isPoison())
        evaluator.error(name->loc,
                        "expected a pipeline in 'share', got " + Twine(describe(value.kind)));
    }
    count += end - begin;
    for (uint32_t pipeline = begin; pipeline != end; ++pipeline)
      join(pipeline, name->loc, first);
  }
  if (count < 2 && !faulty)
    evaluator.error(share.loc, "'share' takes 2 or more pipelines, got 1");
}

/// Joins a pipeline to the group of the pipeline `first`.
void SetUp::join(uint32_t pipeline, SourceLoc loc, std::optional<uint32_t> &first) {
  if (!first) {
    first = pipeline;
    return;
  }
  const PipelineInfo &a = world.pipelines[*first], &b = world.pipelines[pipeline];
  // Without stages where its declaration is faulty.
  if (a.numStages == 0 || b.numStages == 0)
    return;
  uint32_t from = sharedWith[pipeline], to = sharedWith[*first];
  if (from == to) {
    evaluator.error(loc,
                    "pipelines '" + a.name + "' and '" + b.name + "' already share their weights");
    return;
  }
  if (a.numStages != b.numStages) {
    if (Diagnostic *diagnostic =
            evaluator.error(loc, "pipelines that share weights need the same number of stages; '" +
                                     a.name + "' has " + Twine(a.numStages) + ", '" + b.name +
                                     "' has " + Twine(b.numStages)))
      diagnostic->note(b.loc, "'" + b.name + "' is declared here");
    return;
  }
  uint32_t group = std::min(from, to);
  for (uint32_t &member : sharedWith)
    if (member == from || member == to)
      member = group;
}

void SetUp::numberStages() {
  uint32_t next = 0;
  for (auto [number, pipeline] : llvm::enumerate(world.pipelines)) {
    if (sharedWith[number] != number) {
      pipeline.firstStage = world.pipelines[sharedWith[number]].firstStage;
      continue;
    }
    pipeline.firstStage = next;
    next += pipeline.numStages;
  }
  world.numStages = next;
}

void SetUp::numberMicrobatches() {
  uint32_t next = 0;
  for (PipelineInfo &pipeline : world.pipelines) {
    pipeline.firstMicrobatch = next;
    next += pipeline.numMicrobatches;
  }
  if (next == sizes.microbatches)
    return;
  Diagnostic *diagnostic =
      evaluator.error(schedule.name.loc,
                      "the pipelines of schedule '" + schedule.name.name + "' have " + Twine(next) +
                          " micro-batches together, expected " + Twine(sizes.microbatches));
  if (diagnostic)
    for (const PipelineInfo &pipeline : world.pipelines)
      diagnostic->note(
          pipeline.loc,
          ("'" + pipeline.name + "' has " + Twine(pipeline.numMicrobatches) + " of them").str());
}

void frontend::setUpSchedule(World &world, Evaluator &evaluator, const ScheduleDecl &schedule,
                             const Sizes &sizes) {
  SetUp(world, evaluator, schedule, sizes).run();
}
