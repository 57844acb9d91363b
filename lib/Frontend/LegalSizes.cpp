//===- LegalSizes.cpp - the nearest sizes that meet all requirements -------===//
//
// Requirements are ordinary conditions, so the nearest legal sizes are found by
// trying: the number of ranks alone, that of micro-batches alone and each further
// parameter alone, then ranks and micro-batches together.
//
//===----------------------------------------------------------------------===//

#include "SetUp.h"

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::cast;
using llvm::Twine;

namespace {

/// How far from what was given a size is looked for.
constexpr uint32_t kReach = 4096;
/// And how far both are where they change together.
constexpr uint32_t kPairRankReach = 8;
constexpr uint32_t kPairReach = 1024;
/// Steps that one trial may take, and all of them; a trial costs some in any case.
constexpr uint64_t kTrialSteps = 10000;
constexpr uint64_t kAllSteps = 4'000'000;
constexpr uint64_t kTrialCost = 32;

/// The nearest legal values below and above.
struct Neighbours {
  std::optional<int64_t> below;
  std::optional<int64_t> above;

  bool empty() const { return !below && !above; }
  std::string format() const {
    if (below && above)
      return std::to_string(*below) + " or " + std::to_string(*above);
    return std::to_string(below ? *below : *above);
  }
};

/// `1 rank`, `3 ranks`
std::string count(int64_t number, const char *what, const char *plural) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : plural);
}

class Search {
public:
  Search(const ScheduleDecl &schedule, const Sizes &given, const Limits &limits, bool training)
      : schedule(schedule), given(given), limits(limits) {
    world.limits = limits;
    world.training = training;
    // A requirement may compare pipelines; what they hold is not known here.
    world.pipelines.resize(schedule.items.size());
  }

  Neighbours findRanks() {
    return find(given.ranks, 1, limits.maxRanks, kReach,
                [&](int64_t n) { return isLegal(uint32_t(n), given.microbatches); });
  }
  Neighbours findMicrobatches() {
    return find(given.microbatches, 1, int64_t(limits.maxForwards), kReach,
                [&](int64_t n) { return isLegal(given.ranks, uint32_t(n)); });
  }
  /// Of the parameter `number`, whose value is `from`.
  Neighbours findParam(size_t number, int64_t from) {
    constexpr int64_t kLargest = int64_t(1) << 40;
    if (from > kLargest || from < -kLargest)
      return {};
    return find(from, -kLargest, kLargest, kReach, [&](int64_t value) {
      Sizes sizes = given;
      sizes.params[number] = value;
      return isLegal(sizes);
    });
  }
  std::optional<std::pair<uint32_t, uint32_t>> findPair();

private:
  bool isLegal(uint32_t ranks, uint32_t microbatches);
  bool isLegal(const Sizes &sizes);
  template <typename Predicate>
  Neighbours find(int64_t from, int64_t least, int64_t most, int64_t reach,
                  Predicate isLegal) const;

  const ScheduleDecl &schedule;
  const Sizes &given;
  const Limits &limits;
  World world;
  uint64_t steps = 0;
};

} // namespace

/// Whether all requirements hold, as far as a limited number of steps tells. Adds
/// the steps taken to `steps`.
static bool tryHolds(const ScheduleDecl &schedule, const Sizes &sizes, const World &world,
                     uint64_t &steps) {
  Evaluator evaluator(world, schedule.numSlots);
  evaluator.setMuted(true);
  evaluator.setSteps(kTrialSteps);
  bindParameters(evaluator, schedule, sizes);
  bool holds = true;
  uint32_t numPipelines = 0;
  for (const Item *item : schedule.items) {
    uint64_t cost = 1;
    if (auto *let = llvm::dyn_cast<LetItem>(item)) {
      cost = let->let->cost;
      evaluator.bind(*let->let, Storage::Schedule);
    } else if (auto *pipeline = llvm::dyn_cast<PipelineItem>(item)) {
      evaluator.setScheduleValue(pipeline->name, pipeline->isFamily()
                                                     ? Value::poison()
                                                     : Value::ofPipeline(numPipelines++));
    } else if (auto *require = llvm::dyn_cast<RequireItem>(item)) {
      cost = require->condition->size;
      holds = evaluator.evaluateBoolean(*require->condition, "").value_or(false);
    }
    if (!evaluator.spend(cost, item->loc) || !holds)
      break;
  }
  steps += kTrialSteps - evaluator.getSteps();
  return holds && !evaluator.isStopped();
}

bool Search::isLegal(uint32_t ranks, uint32_t microbatches) {
  Sizes sizes = given;
  sizes.ranks = ranks;
  sizes.microbatches = microbatches;
  return isLegal(sizes);
}

bool Search::isLegal(const Sizes &sizes) {
  if (steps > kAllSteps)
    return false;
  steps += kTrialCost;
  return tryHolds(schedule, sizes, world, steps);
}

template <typename Predicate>
Neighbours Search::find(int64_t from, int64_t least, int64_t most, int64_t reach,
                        Predicate isLegal) const {
  Neighbours found;
  for (int64_t d = 1; d <= reach && from - d >= least && !found.below; ++d)
    if (isLegal(from - d))
      found.below = from - d;
  for (int64_t d = 1; d <= reach && from + d <= most && !found.above; ++d)
    if (isLegal(from + d))
      found.above = from + d;
  return found;
}

/// The nearest number of ranks for which a number of micro-batches is legal.
std::optional<std::pair<uint32_t, uint32_t>> Search::findPair() {
  for (uint32_t d = 1; d <= kPairRankReach; ++d) {
    for (uint32_t ranks : {given.ranks - d, given.ranks + d}) {
      if (d >= given.ranks && ranks != given.ranks + d)
        continue;
      if (ranks > limits.maxRanks)
        continue;
      Neighbours found = find(given.microbatches, 1, int64_t(limits.maxForwards), kPairReach,
                              [&](int64_t n) { return isLegal(ranks, uint32_t(n)); });
      if (!found.empty())
        return std::pair(ranks, uint32_t(found.above ? *found.above : *found.below));
    }
  }
  return std::nullopt;
}

static SourceLoc getParamLoc(const ScheduleDecl &schedule, ParamDecl::Kind kind) {
  for (const ParamDecl &param : schedule.params)
    if (param.kind == kind)
      return param.loc;
  return schedule.loc;
}

/// Adds a note for each integer parameter of which another value would do.
static bool suggestParams(Diagnostic &diagnostic, const ScheduleDecl &schedule, const Sizes &sizes,
                          Search &search, const Limits &limits, bool training) {
  World world;
  world.limits = limits;
  world.training = training;
  Evaluator evaluator(world, schedule.numSlots);
  evaluator.setMuted(true);
  std::vector<std::pair<std::string, int64_t>> values;
  bindParameters(evaluator, schedule, sizes, &values);
  if (values.size() != sizes.params.size())
    return false;
  size_t number = 0;
  bool found = false;
  for (const ParamDecl &param : schedule.params) {
    if (param.kind != ParamDecl::Kind::Param)
      continue;
    size_t here = number++;
    if (param.type != ParamDecl::Type::Integer)
      continue;
    Neighbours neighbours = search.findParam(here, values[here].second);
    if (neighbours.empty())
      continue;
    diagnostic.note(param.loc,
                    "nearest legal value of '" + values[here].first + "': " + neighbours.format());
    found = true;
  }
  return found;
}

void frontend::suggestLegalSizes(Diagnostic &diagnostic, const ScheduleDecl &schedule,
                                 const Sizes &sizes, const Limits &limits, bool training) {
  Search search(schedule, sizes, limits, training);
  SourceLoc ranksLoc = getParamLoc(schedule, ParamDecl::Kind::Ranks);
  Neighbours ranks = search.findRanks();
  if (!ranks.empty())
    diagnostic.note(ranksLoc, "nearest legal number of ranks: " + ranks.format() + " (with " +
                                  count(sizes.microbatches, "micro-batch", "es") + ")");
  Neighbours microbatches = search.findMicrobatches();
  if (!microbatches.empty())
    diagnostic.note(getParamLoc(schedule, ParamDecl::Kind::Microbatches),
                    "nearest legal number of micro-batches: " + microbatches.format() + " (with " +
                        count(sizes.ranks, "rank", "s") + ")");
  bool hasParam = suggestParams(diagnostic, schedule, sizes, search, limits, training);
  if (!ranks.empty() || !microbatches.empty() || hasParam)
    return;
  if (auto pair = search.findPair())
    diagnostic.note(ranksLoc, ("nearest legal sizes: " + Twine(pair->first) + " ranks with " +
                               Twine(pair->second) + " micro-batches")
                                  .str());
}
