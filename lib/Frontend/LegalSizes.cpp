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
/// And for pairs, how many ranks away and how many trials in all.
constexpr uint32_t kRankReach = 16;
/// Steps that one trial may take, and trials in all.
constexpr uint64_t kTrialSteps = 10000;
constexpr uint64_t kAllSteps = 20'000'000;

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
      : schedule(schedule), given(given), limits(limits), training(training) {}

  Neighbours findRanks() {
    return find(given.ranks, limits.maxRanks,
                [&](uint32_t n) { return isLegal(n, given.microbatches); });
  }
  Neighbours findMicrobatches() {
    return find(given.microbatches, uint32_t(limits.maxForwards),
                [&](uint32_t n) { return isLegal(given.ranks, n); });
  }
  std::optional<std::pair<uint32_t, uint32_t>> findPair();

private:
  bool isLegal(uint32_t ranks, uint32_t microbatches);
  template <typename Predicate>
  Neighbours find(uint32_t from, uint32_t largest, Predicate isLegal) const;

  const ScheduleDecl &schedule;
  const Sizes &given;
  const Limits &limits;
  bool training;
  uint64_t budget = kAllSteps;
};

} // namespace

/// Whether all requirements hold, as far as a limited number of steps tells.
static bool tryHolds(const ScheduleDecl &schedule, const Sizes &sizes, bool training,
                     const Limits &limits) {
  World world;
  world.limits = limits;
  world.training = training;
  world.pipelines.resize(schedule.numPipelines);
  Evaluator evaluator(world, schedule.numSlots);
  evaluator.setMuted(true);
  evaluator.setSteps(kTrialSteps);
  bindParameters(evaluator, schedule, sizes);
  for (const Item *item : schedule.items) {
    if (auto *let = llvm::dyn_cast<LetItem>(item))
      evaluator.bind(*let->let, Storage::Schedule);
    if (auto *pipeline = llvm::dyn_cast<PipelineItem>(item))
      evaluator.setScheduleValue(pipeline->name, Value::ofPipeline(pipeline->id));
    auto *require = llvm::dyn_cast<RequireItem>(item);
    if (!require)
      continue;
    if (!evaluator.evaluateBoolean(*require->condition, "").value_or(false))
      return false;
  }
  return !evaluator.isStopped();
}

bool Search::isLegal(uint32_t ranks, uint32_t microbatches) {
  uint64_t cost = 16 + schedule.items.size();
  if (budget < cost)
    return false;
  budget -= cost;
  Sizes sizes = given;
  sizes.ranks = ranks;
  sizes.microbatches = microbatches;
  return tryHolds(schedule, sizes, training, limits);
}

template <typename Predicate>
Neighbours Search::find(uint32_t from, uint32_t largest, Predicate isLegal) const {
  Neighbours found;
  for (uint32_t d = 1; d <= kReach && d < from && found.below == 0; ++d)
    if (isLegal(from - d))
      found.below = from - d;
  for (uint32_t d = 1; d <= kReach && d <= largest - from && found.above == 0; ++d)
    if (isLegal(from + d))
      found.above = from + d;
  return found;
}

/// The nearest number of ranks for which a number of micro-batches is legal.
std::optional<std::pair<uint32_t, uint32_t>> Search::findPair() {
  for (uint32_t d = 1; d <= kRankReach; ++d) {
    for (uint32_t ranks : {given.ranks - d, given.ranks + d}) {
      if (d >= given.ranks && ranks != given.ranks + d)
        continue;
      if (ranks > limits.maxRanks)
        continue;
      Neighbours found = find(given.microbatches, uint32_t(limits.maxForwards),
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
