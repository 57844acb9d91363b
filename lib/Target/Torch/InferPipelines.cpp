//===- InferPipelines.cpp - which pipelines a schedule file runs ------------===//

#include "InferPipelines.h"
#include "dualpipe/Schedule/Placement.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <optional>
#include <tuple>

using namespace dualpipe;
using namespace dualpipe::torch;

namespace {

constexpr uint32_t kUnknown = ~0u;
/// Runs of micro-batches with a placement of their own. Every op looks its pipeline up.
constexpr size_t kMaxPipelines = 256;
/// Pipelines that are described one by one.
constexpr size_t kMaxDescribed = 4;

struct Forward {
  uint32_t microbatch;
  uint32_t stage;
  uint32_t rank;
};

/// Stages that follow each other, visited by the same micro-batches.
struct Chain {
  uint32_t first = 0;
  uint32_t size = 0;
};

class Inference {
public:
  Inference(const Actions &actions, Schedule &schedule, DiagnosticSink &sink)
      : actions(actions), schedule(schedule), sink(sink) {}
  bool run();

private:
  using Range = std::pair<const Forward *, const Forward *>;

  bool fail(const std::string &message) {
    sink.error(schedule.loc, message);
    return false;
  }
  void collect();
  bool countStagesAndMicrobatches();
  bool findChains();
  bool checkSize();
  bool findPipelines();
  bool addRun(const Chain &chain, uint32_t mb, std::vector<uint32_t> placement);
  void namePipelines();
  void describe() const;
  std::string describePlacement(const Pipeline &pipeline) const;

  const Actions &actions;
  Schedule &schedule;
  DiagnosticSink &sink;
  std::vector<Forward> forwards;   ///< by micro-batch, then stage
  std::vector<Range> ofMicrobatch; ///< what each micro-batch visits
  std::vector<Chain> chainOf;      ///< by stage
};

} // namespace

/// The forwards by micro-batch and stage; of one that is there twice, the first. That it
/// is there twice, S1 reports.
void Inference::collect() {
  for (const std::vector<Action> &rank : actions)
    for (const Action &action : rank)
      if (action.type == ActionType::F)
        forwards.push_back({action.microbatch, action.stage, action.rank});
  auto key = [](const Forward &f) { return std::tie(f.microbatch, f.stage); };
  std::stable_sort(forwards.begin(), forwards.end(),
                   [&](const Forward &a, const Forward &b) { return key(a) < key(b); });
  auto isSame = [&](const Forward &a, const Forward &b) { return key(a) == key(b); };
  forwards.erase(std::unique(forwards.begin(), forwards.end(), isSame), forwards.end());
}

/// The first number from 0 on that is not in `numbers`, which get sorted.
static uint32_t findGap(std::vector<uint32_t> &numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  uint32_t gap = 0;
  while (gap != numbers.size() && numbers[gap] == gap)
    ++gap;
  return gap;
}

bool Inference::countStagesAndMicrobatches() {
  if (forwards.empty())
    return fail("the file has no forward: expected cells like '0F0'");
  auto count = [&](const char *what, uint32_t Forward::*member, uint32_t &number) {
    std::vector<uint32_t> numbers;
    for (const Forward &forward : forwards)
      numbers.push_back(forward.*member);
    number = findGap(numbers);
    if (number == numbers.size())
      return true;
    return fail(fmt::format("no rank runs a forward of {} {}, although there is a {} {}: expected "
                            "numbers from 0 without a gap",
                            what, number, what, numbers.back()));
  };
  return count("stage", &Forward::stage, schedule.numStages) &&
         count("micro-batch", &Forward::microbatch, schedule.numMicrobatches);
}

/// Stages that a micro-batch visits belong to one chain, whose stages must follow each
/// other.
bool Inference::findChains() {
  ofMicrobatch.resize(schedule.numMicrobatches);
  std::vector<uint32_t> root(schedule.numStages);
  std::iota(root.begin(), root.end(), 0);
  auto find = [&](uint32_t stage) {
    while (root[stage] != stage)
      stage = root[stage] = root[root[stage]];
    return stage;
  };
  const Forward *end = forwards.data() + forwards.size();
  for (const Forward *f = forwards.data(), *first = f; f != end; ++f) {
    if (f->microbatch != first->microbatch)
      first = f;
    ofMicrobatch[f->microbatch] = {first, f + 1};
    uint32_t a = find(first->stage), b = find(f->stage);
    root[std::max(a, b)] = std::min(a, b);
  }

  chainOf.resize(schedule.numStages);
  for (uint32_t stage = 0; stage != schedule.numStages; ++stage) {
    uint32_t first = find(stage);
    Chain &chain = chainOf[first];
    if (first + chain.size != stage)
      return fail(fmt::format("the micro-batches of stage {} visit stage {} too, but not stage {} "
                              "between: expected the stages of a pipeline to follow each other",
                              stage, first, stage - 1));
    chain.first = first;
    ++chain.size;
  }
  for (uint32_t stage = 0; stage != schedule.numStages; ++stage)
    chainOf[stage] = chainOf[find(stage)];
  return true;
}

/// Every op of the schedule gets a place in tables: keeps a file of few actions with
/// large numbers from asking for large ones.
bool Inference::checkSize() {
  size_t expected = 0;
  for (auto [begin, end] : ofMicrobatch)
    expected += chainOf[begin->stage].size;
  if (expected <= 2 * forwards.size())
    return true;
  return fail(fmt::format("only {} of the {} forwards are in the file: every micro-batch visits "
                          "every stage of its pipeline",
                          forwards.size(), expected));
}

/// Takes a micro-batch into the last pipeline, or opens one for it.
bool Inference::addRun(const Chain &chain, uint32_t mb, std::vector<uint32_t> placement) {
  auto fits = [](uint32_t a, uint32_t b) { return a == b || a == kUnknown || b == kUnknown; };
  std::vector<Pipeline> &all = schedule.pipelines;
  if (!all.empty() && all.back().firstStage == chain.first &&
      std::equal(placement.begin(), placement.end(), all.back().placement.begin(), fits)) {
    for (size_t s = 0; s != placement.size(); ++s)
      all.back().placement[s] = std::min(all.back().placement[s], placement[s]);
    ++all.back().numMicrobatches;
    return true;
  }
  if (all.size() == kMaxPipelines)
    return fail(fmt::format("the placement of the stages changes from micro-batch to micro-batch: "
                            "expected at most {} runs of micro-batches with a placement each",
                            kMaxPipelines));
  Pipeline &pipeline = all.emplace_back();
  pipeline.firstStage = chain.first;
  pipeline.numStages = chain.size;
  pipeline.firstMicrobatch = mb;
  pipeline.numMicrobatches = 1;
  pipeline.placement = std::move(placement);
  pipeline.loc = schedule.loc;
  return true;
}

bool Inference::findPipelines() {
  for (uint32_t mb = 0; mb != schedule.numMicrobatches; ++mb) {
    auto [begin, end] = ofMicrobatch[mb];
    const Chain &chain = chainOf[begin->stage];
    std::vector<uint32_t> placement(chain.size, kUnknown);
    for (const Forward *forward = begin; forward != end; ++forward)
      placement[forward->stage - chain.first] = forward->rank;
    if (!addRun(chain, mb, std::move(placement)))
      return false;
  }
  for (const Pipeline &pipeline : schedule.pipelines)
    for (uint32_t s = 0; s != pipeline.numStages; ++s)
      if (pipeline.placement[s] == kUnknown)
        return fail(fmt::format("no rank runs a forward of stage {} for micro-batches {} to {}, "
                                "which visit the stages beside it",
                                pipeline.firstStage + s, pipeline.firstMicrobatch,
                                pipeline.firstMicrobatch + pipeline.numMicrobatches - 1));
  return true;
}

static std::string describeShape(PlacementShape shape, uint32_t ranks, uint32_t stagesOfRank) {
  switch (shape) {
  case PlacementShape::Line:
    return fmt::format("one after the other over {} ranks", ranks);
  case PlacementShape::Reverse:
    return fmt::format("in reverse over {} ranks", ranks);
  case PlacementShape::Loop:
    return fmt::format("in a loop over {} ranks, {} stages each", ranks, stagesOfRank);
  case PlacementShape::V:
    return fmt::format("in a V over {} ranks, 2 stages each", ranks);
  case PlacementShape::Waves:
    return fmt::format("in waves over {} ranks, {} stages each", ranks, stagesOfRank);
  }
  return "";
}

void Inference::namePipelines() {
  if (schedule.pipelines.size() == 1)
    schedule.pipelines[0].name = "main";
  else
    for (size_t i = 0; i != schedule.pipelines.size(); ++i)
      schedule.pipelines[i].name = fmt::format("p{}", i);
}

/// The shape of a placement that fills its turns, by the names that the literature has for it.
std::string Inference::describePlacement(const Pipeline &pipeline) const {
  const std::vector<uint32_t> &placement = pipeline.placement;
  uint32_t ranks = schedule.numRanks;
  std::optional<PlacementShape> shape = findShape(placement, ranks);
  if (shape && placement.size() % ranks == 0)
    return describeShape(*shape, ranks, uint32_t(placement.size() / ranks));
  constexpr size_t kMaxShown = 32;
  auto end = placement.begin() + std::min(placement.size(), kMaxShown);
  return fmt::format("on ranks {}{}", fmt::join(placement.begin(), end, ", "),
                     end == placement.end() ? "" : ", ...");
}

void Inference::describe() const {
  const std::vector<Pipeline> &all = schedule.pipelines;
  for (size_t i = 0; i != std::min(all.size(), kMaxDescribed); ++i) {
    const Pipeline &pipeline = all[i];
    sink.remark(schedule.loc, fmt::format("placement: stages {} to {} {}, micro-batches {} to {}",
                                          pipeline.firstStage, pipeline.getLastStage(),
                                          describePlacement(pipeline), pipeline.firstMicrobatch,
                                          pipeline.firstMicrobatch + pipeline.numMicrobatches - 1));
  }
  if (all.size() > kMaxDescribed)
    sink.remark(schedule.loc, fmt::format("placement: {} more runs of micro-batches have one of "
                                          "their own",
                                          all.size() - kMaxDescribed));
  for (size_t i = 1; i != all.size(); ++i)
    if (all[i].firstStage == all[i - 1].firstStage) {
      sink.remark(schedule.loc,
                  fmt::format("stages {} to {} stand on several ranks: each has a copy of the "
                              "weights, and their gradients are summed",
                              all[i].firstStage, all[i].getLastStage()));
      return;
    }
}

bool Inference::run() {
  collect();
  if (!countStagesAndMicrobatches() || !findChains() || !checkSize() || !findPipelines())
    return false;
  namePipelines();
  describe();
  return true;
}

bool torch::inferPipelines(const Actions &actions, Schedule &schedule, DiagnosticSink &sink) {
  return Inference(actions, schedule, sink).run();
}
