//===- LegalSizes.cpp - the nearest sizes that meet all requirements -------===//
//
// Requirements are ordinary conditions, so the nearest legal sizes are found by
// trying: first the number of ranks alone, then that of micro-batches alone,
// then both.
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

/// The nearest legal values below and above; 0 means none.
struct Neighbours {
  uint32_t below = 0;
  uint32_t above = 0;

  bool empty() const { return below == 0 && above == 0; }
  std::string format() const {
    if (below != 0 && above != 0)
      return std::to_string(below) + " or " + std::to_string(above);
    return std::to_string(below != 0 ? below : above);
  }
};

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
    return find(given.ranks, limits.maxRanks, kReach,
                [&](uint32_t n) { return isLegal(n, given.microbatches); });
  }
  Neighbours findMicrobatches() {
    return find(given.microbatches, uint32_t(limits.maxForwards), kReach,
                [&](uint32_t n) { return isLegal(given.ranks, n); });
  }
  std::optional<std::pair<uint32_t, uint32_t>> findPair();

private:
  bool isLegal(uint32_t ranks, uint32_t microbatches);
  template <typename Predicate>
  Neighbours find(uint32_t from, uint32_t largest, uint32_t reach, Predicate isLegal) const;

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
  if (steps > kAllSteps)
    return false;
  Sizes sizes = given;
  sizes.ranks = ranks;
  sizes.microbatches = microbatches;
  steps += kTrialCost;
  return tryHolds(schedule, sizes, world, steps);
}

template <typename Predicate>
Neighbours Search::find(uint32_t from, uint32_t largest, uint32_t reach, Predicate isLegal) const {
  Neighbours found;
  for (uint32_t d = 1; d <= reach && d < from && found.below == 0; ++d)
    if (isLegal(from - d))
      found.below = from - d;
  for (uint32_t d = 1; d <= reach && d <= largest - from && found.above == 0; ++d)
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
      Neighbours found = find(given.microbatches, uint32_t(limits.maxForwards), kPairReach,
                              [&](uint32_t n) { return isLegal(ranks, n); });
      if (!found.empty())
        return std::pair(ranks, found.above != 0 ? found.above : found.below);
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

void frontend::suggestLegalSizes(Diagnostic &diagnostic, const ScheduleDecl &schedule,
                                 const Sizes &sizes, const Limits &limits, bool training) {
  Search search(schedule, sizes, limits, training);
  SourceLoc ranksLoc = getParamLoc(schedule, ParamDecl::Kind::Ranks);
  Neighbours ranks = search.findRanks();
  if (!ranks.empty())
    diagnostic.note(ranksLoc, ("nearest legal number of ranks: " + ranks.format() + " (with " +
                               Twine(sizes.microbatches) + " micro-batches)")
                                  .str());
  Neighbours microbatches = search.findMicrobatches();
  if (!microbatches.empty())
    diagnostic.note(getParamLoc(schedule, ParamDecl::Kind::Microbatches),
                    ("nearest legal number of micro-batches: " + microbatches.format() + " (with " +
                     Twine(sizes.ranks) + " ranks)")
                        .str());
  if (!ranks.empty() || !microbatches.empty())
    return;
  if (auto pair = search.findPair())
    diagnostic.note(ranksLoc, ("nearest legal sizes: " + Twine(pair->first) + " ranks with " +
                               Twine(pair->second) + " micro-batches")
                                  .str());
}
