//===- EvaluateGreedy.cpp - the rules of a section for each rank -----------===//

#include "RunSections.h"
#include "SuggestPlacement.h"

#include "llvm/ADT/STLExtras.h"

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::Twine;

namespace {

class RulesOfRank {
public:
  RulesOfRank(const World &world, Evaluator &evaluator, const LocationTable &locations,
              uint32_t rank)
      : world(world), evaluator(evaluator), locations(locations), rank(rank) {}

  void add(const GreedyClause &clause);
  RankRules take() { return std::move(rules); }

private:
  void addLines(const GreedyClause &loop);
  bool countRule(SourceLoc loc);
  void addChoice(const ChoicePattern &pattern);
  std::vector<ChunkRef> evaluateChunks(const OpPattern &pattern);
  void addChunk(const Expr &expr, std::vector<ChunkRef> &chunks);
  void addStages(uint32_t pipeline, std::vector<ChunkRef> &chunks) const;
  std::optional<int64_t> evaluateBound(const GreedyClause &clause, const char *what);

  const World &world;
  Evaluator &evaluator;
  const LocationTable &locations;
  uint32_t rank;
  RankRules rules;
  unsigned numRules = 0;
};

} // namespace

/// All stages of a pipeline on this rank.
void RulesOfRank::addStages(uint32_t pipeline, std::vector<ChunkRef> &chunks) const {
  const PipelineInfo &info = world.pipelines[pipeline];
  for (uint32_t stage : info.getStagesOn(rank))
    chunks.push_back({pipeline, info.firstStage + stage});
}

/// A pipeline stands for its stages on this rank, of which there may be none; a
/// chunk must be here.
void RulesOfRank::addChunk(const Expr &expr, std::vector<ChunkRef> &chunks) {
  if (!evaluator.spend(expr.size, expr.loc))
    return;
  Value value = evaluator.evaluate(expr);
  if (value.is(Value::Kind::Pipeline))
    return addStages(value.getPipeline(), chunks);
  if (value.is(Value::Kind::Family)) {
    const FamilyInfo &family = world.families[value.getFamily()];
    for (uint32_t i = 0; i != family.count; ++i)
      addStages(family.firstPipeline + i, chunks);
    return;
  }
  if (!value.is(Value::Kind::Chunk)) {
    if (!value.isPoison())
      evaluator.error(expr.loc, Twine("expected a pipeline or chunk after 'of', got ") +
                                    describe(value.kind));
    return;
  }
  const PipelineInfo &info = world.pipelines[value.getPipeline()];
  if (info.placement[value.getStage()] == rank) {
    chunks.push_back({value.getPipeline(), info.firstStage + value.getStage()});
    return;
  }
  if (Diagnostic *diagnostic = evaluator.error(
          expr.loc, "stage " + Twine(value.getStage()) + " of pipeline '" + info.name +
                        "' is on rank " + Twine(info.placement[value.getStage()]) +
                        ", not on rank " + Twine(rank))) {
    diagnostic->note(info.loc, "'" + info.name + "' is declared here");
    suggestPlacement(*diagnostic, world, info, value.getStage(), rank);
  }
}

std::vector<ChunkRef> RulesOfRank::evaluateChunks(const OpPattern &pattern) {
  std::vector<ChunkRef> chunks;
  if (pattern.chunks.empty())
    for (uint32_t pipeline = 0; pipeline != world.pipelines.size(); ++pipeline)
      addStages(pipeline, chunks);
  for (const Expr *expr : pattern.chunks) {
    size_t before = chunks.size();
    addChunk(*expr, chunks);
    for (size_t i = before; i < chunks.size(); ++i) {
      if (!llvm::is_contained(llvm::ArrayRef(chunks).take_front(before), chunks[i]))
        continue;
      evaluator.error(expr->loc, "a chunk of rank " + Twine(rank) + " stands twice after 'of'");
      break;
    }
  }
  return chunks;
}

void RulesOfRank::addChoice(const ChoicePattern &pattern) {
  Choice choice;
  choice.loc = locations[pattern.id];
  for (const OpPattern &member : pattern.members) {
    choice.members.push_back({member.op, evaluateChunks(member)});
    // Without an op of each member there is nothing to choose.
    if (choice.members.back().chunks.empty())
      return;
  }
  rules.choices.push_back(std::move(choice));
}

std::optional<int64_t> RulesOfRank::evaluateBound(const GreedyClause &clause, const char *what) {
  if (!evaluator.spend(clause.bound->size, clause.loc))
    return std::nullopt;
  std::optional<int64_t> bound = evaluator.evaluateInteger(*clause.bound, what);
  if (!bound || *bound >= 0)
    return bound;
  evaluator.error(clause.bound->loc,
                  "rank " + Twine(rank) + ": the bound of '" +
                      (clause.kind == GreedyClause::Kind::Limit ? "limit" : "until") +
                      "' is negative: " + Twine(*bound));
  return std::nullopt;
}

void RulesOfRank::add(const GreedyClause &clause) {
  if (!evaluator.spend(1, clause.loc) || !countRule(clause.loc))
    return;
  if (!clause.rank.name.empty())
    evaluator.setLocal(clause.rank, Value::ofInteger(rank));
  switch (clause.kind) {
  case GreedyClause::Kind::For:
    return addLines(clause);
  case GreedyClause::Kind::Prefer:
    for (const ChoicePattern &choice : clause.choices)
      if (countRule(choice.loc))
        addChoice(choice);
    return;
  case GreedyClause::Kind::Limit: {
    std::vector<ChunkRef> chunks = evaluateChunks(clause.op);
    std::optional<int64_t> most = evaluateBound(clause, "as the most in flight");
    if (most && !chunks.empty())
      rules.limits.push_back({clause.op.op, clause.last, std::move(chunks), *most, clause.loc});
    return;
  }
  case GreedyClause::Kind::Until: {
    std::vector<ChunkRef> chunks = evaluateChunks(clause.op);
    std::optional<int64_t> count = evaluateBound(clause, "as a count of ops");
    if (count)
      rules.stops.push_back({{clause.op.op, std::move(chunks)}, *count});
    return;
  }
  }
}

void RulesOfRank::addLines(const GreedyClause &loop) {
  std::optional<int64_t> begin =
      evaluator.evaluateInteger(*loop.begin, "as the first value of 'for'");
  std::optional<int64_t> end = evaluator.evaluateInteger(*loop.end, "as the end of 'for'");
  if (!begin || !end)
    return;
  if (*end < *begin)
    evaluator.error(loop.loc, "the range " + Twine(*begin) + ".." + Twine(*end) +
                                  " of 'for' has a negative length");
  for (int64_t i = *begin; i < *end && !evaluator.isStopped(); ++i) {
    evaluator.setLocal(loop.counter, Value::ofInteger(i));
    for (const GreedyClause &line : loop.lines)
      add(line);
  }
}

/// Every decision looks at every rule, so there is a bound.
bool RulesOfRank::countRule(SourceLoc loc) {
  constexpr unsigned kMaxRules = 1024;
  if (++numRules <= kMaxRules)
    return true;
  evaluator.error(loc, "rank " + Twine(rank) + ": 'greedy' has more than " + Twine(kMaxRules) +
                           " rules");
  return false;
}

GreedyRules frontend::evaluateGreedy(const World &world, Evaluator &evaluator,
                                     const GreedyItem &greedy, const LocationTable &locations) {
  GreedyRules rules;
  rules.loc = greedy.loc;
  for (uint32_t rank = 0; rank != world.numRanks && !evaluator.isStopped(); ++rank) {
    evaluator.setRank(rank);
    RulesOfRank ofRank(world, evaluator, locations, rank);
    evaluator.enterFrame(greedy.numSlots);
    for (const GreedyClause &clause : greedy.clauses)
      ofRank.add(clause);
    rules.ranks.push_back(ofRank.take());
  }
  return rules;
}
