//===- PrintPipelines.cpp - the declarations of a schedule ---------------------===//

#include "PrintPipelines.h"
#include "dualpipe/Schedule/Placement.h"

#include "dualpipe/Schedule/ModelContract.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

using namespace dualpipe;
using namespace dualpipe::pipe_text;

//===----------------------------------------------------------------------===//
// Families
//===----------------------------------------------------------------------===//

namespace {
/// "p(3)": a member of the family `p`.
struct MemberName {
  std::string_view family;
  int64_t number;
};
} // namespace

static std::optional<MemberName> parseMember(std::string_view name) {
  size_t open = name.find('(');
  if (open == name.npos || name.back() != ')' || !isName(name.substr(0, open)))
    return std::nullopt;
  int64_t number = 0;
  const char *end = name.data() + name.size() - 1;
  auto [stop, error] = std::from_chars(name.data() + open + 1, end, number);
  if (error != std::errc() || stop != end)
    return std::nullopt;
  return MemberName{name.substr(0, open), number};
}

/// Members of a family that follow each other are one unit.
static std::vector<PipelineUnit> findUnits(const std::vector<std::string> &names) {
  std::vector<PipelineUnit> units;
  for (size_t p = 0; p != names.size(); ++p) {
    std::optional<MemberName> member = parseMember(names[p]);
    if (!member) {
      units.push_back({names[p], p, 1, std::nullopt});
      continue;
    }
    bool goesOn = !units.empty() && units.back().firstMember &&
                  units.back().name == member->family &&
                  *units.back().firstMember + int64_t(units.back().count) == member->number;
    if (goesOn)
      ++units.back().count;
    else
      units.push_back({std::string(member->family), p, 1, member->number});
  }
  return units;
}

Scope::Scope(const Schedule &schedule) {
  // The name of the schedule is not visible inside.
  this->schedule = Names().declare(schedule.name);
  for (const auto &[name, value] : schedule.params)
    params.push_back(names.declare(name));
  std::vector<std::string> wanted;
  for (const Pipeline &pipeline : schedule.pipelines)
    wanted.push_back(pipeline.name);
  for (const PipelineUnit &unit : findUnits(wanted)) {
    std::string name = names.declare(unit.name);
    for (size_t i = 0; i != unit.count; ++i)
      pipelines.push_back(
          unit.firstMember ? fmt::format("{}({})", name, *unit.firstMember + int64_t(i)) : name);
  }
  ranks = names.declare("P");
  microbatches = names.declare("M");
  rank = names.declare("r");
  stage = names.declare("s");
  member = names.declare("k");
  loop = names.declare("i");
}

//===----------------------------------------------------------------------===//
// Values by stage, rank or member
//===----------------------------------------------------------------------===//

namespace {

/// Spells values that depend on a stage, rank or member. A table in an expression is made anew
/// each time that the expression is evaluated: large ones are named by a `let` of the schedule.
class Tables {
public:
  explicit Tables(Scope &scope) : scope(scope) {}

  /// An expression that is `values[k]` where the name `index` has the value `first + k`.
  std::string spell(const std::vector<std::string> &values, const std::string &name,
                    const std::string &index, int64_t first = 0);
  /// The name of a table, one like `name`.
  std::string declare(const std::vector<std::string> &values, const std::string &name);
  /// The line, and those of the tables that it uses before it.
  void flush(std::string line, std::vector<std::string> &lines);

  Scope &scope;

private:
  static constexpr size_t kMaxInline = 16;

  std::vector<std::string> declarations;
};

} // namespace

/// A tuple has two values at least.
static std::string spellTuple(const std::vector<std::string> &values) {
  if (values.size() == 1)
    return fmt::format("({0}, {0})", values[0]);
  return fmt::format("({})", fmt::join(values, ", "));
}

std::string Tables::declare(const std::vector<std::string> &values, const std::string &name) {
  std::string declared = scope.names.declare(name);
  declarations.push_back(fmt::format("let {} = {}", declared, spellTuple(values)));
  return declared;
}

std::string Tables::spell(const std::vector<std::string> &values, const std::string &name,
                          const std::string &index, int64_t first) {
  bool isConstant = std::all_of(values.begin(), values.end(),
                                [&](const std::string &value) { return value == values[0]; });
  if (isConstant)
    return values[0];
  std::string table = values.size() <= kMaxInline ? spellTuple(values) : declare(values, name);
  std::string offset = first == 0  ? ""
                       : first < 0 ? fmt::format(" + {}", -first)
                                   : fmt::format(" - {}", first);
  return fmt::format("{}[{}{}]", table, index, offset);
}

void Tables::flush(std::string line, std::vector<std::string> &lines) {
  lines.insert(lines.end(), declarations.begin(), declarations.end());
  declarations.clear();
  lines.push_back(std::move(line));
}

template <typename Get> static std::vector<std::string> spellAll(size_t count, Get get) {
  std::vector<std::string> values;
  for (size_t i = 0; i != count; ++i)
    values.push_back(get(i));
  return values;
}

//===----------------------------------------------------------------------===//
// Placements
//===----------------------------------------------------------------------===//

/// A family with more placements than this has them in a table of tables.
static constexpr size_t kMaxCases = 8;

static std::vector<std::string> spellRanks(const Pipeline &pipeline) {
  return spellAll(pipeline.numStages,
                  [&](size_t s) { return std::to_string(pipeline.placement[s]); });
}

static std::string nameTable(const char *what, const std::string &pipelines) {
  return fmt::format("{}_of_{}", what, pipelines);
}

/// The usual maps from stages to ranks in closed form, any other as a table.
static std::string spellPlacement(const Pipeline &pipeline, uint32_t numRanks,
                                  const std::string &name, Tables &tables) {
  const Scope &scope = tables.scope;
  if (std::optional<PlacementShape> shape = findShape(pipeline.placement, numRanks))
    return spell(*shape, scope.stage, scope.ranks);
  return tables.spell(spellRanks(pipeline), nameTable("places", name), scope.stage);
}

/// The placements of a unit as a table of each different one, and which of them a member has.
static std::string spellPlacementTable(const Schedule &schedule, const PipelineUnit &unit,
                                       Tables &tables) {
  std::map<std::string, size_t> numbers;
  std::vector<std::string> rows;
  std::vector<std::string> rowOf = spellAll(unit.count, [&](size_t i) {
    std::string row = spellTuple(spellRanks(schedule.pipelines[unit.first + i]));
    auto [it, isNew] = numbers.try_emplace(row, rows.size());
    if (isNew)
      rows.push_back(row);
    return std::to_string(it->second);
  });
  std::string places = tables.declare(rows, nameTable("places", unit.name));
  return fmt::format(
      "{}[{}][{}]", places,
      tables.spell(rowOf, nameTable("row", unit.name), tables.scope.member, *unit.firstMember),
      tables.scope.stage);
}

/// The placement of every member of a unit.
static std::string spellPlacements(const Schedule &schedule, const PipelineUnit &unit,
                                   Tables &tables) {
  auto get = [&](size_t i) -> const Pipeline & { return schedule.pipelines[unit.first + i]; };
  auto isSame = [&](const Pipeline &a, const Pipeline &b) {
    std::optional<PlacementShape> shape = findShape(a.placement, schedule.numRanks);
    return shape == findShape(b.placement, schedule.numRanks) &&
           (shape || a.placement == b.placement);
  };
  size_t count = unit.count;
  while (count > 1 && isSame(get(count - 2), get(count - 1)))
    --count;
  if (count > kMaxCases)
    return spellPlacementTable(schedule, unit, tables);
  std::string text;
  for (size_t i = 0; i != count; ++i) {
    std::string map = spellPlacement(get(i), schedule.numRanks, unit.name, tables);
    if (i + 1 == count)
      return text + map;
    // A conditional as the value of `then` would take the `else`.
    bool isConditional = map.rfind("if ", 0) == 0;
    text += fmt::format("if {} == {} then {}{}{} else ", tables.scope.member,
                        *unit.firstMember + int64_t(i), isConditional ? "(" : "", map,
                        isConditional ? ")" : "");
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

static std::string printUnit(const Schedule &schedule, const PipelineUnit &unit, Tables &tables) {
  const Scope &scope = tables.scope;
  int64_t first = unit.firstMember.value_or(0);
  auto spell = [&](const char *what, uint32_t Pipeline::*count) {
    auto get = [&](size_t i) { return std::to_string(schedule.pipelines[unit.first + i].*count); };
    return tables.spell(spellAll(unit.count, get), nameTable(what, unit.name), scope.member, first);
  };
  std::string range;
  if (unit.firstMember)
    range = fmt::format("({} in {}..{})", scope.member, first, first + int64_t(unit.count));
  return fmt::format("pipeline {}{} {{ stages {}; microbatches {}; place {} -> {} }}", unit.name,
                     range, spell("stages", &Pipeline::numStages),
                     spell("microbatches", &Pipeline::numMicrobatches), scope.stage,
                     spellPlacements(schedule, unit, tables));
}

std::vector<std::string> dualpipe::pipe_text::printPipelines(const Schedule &schedule,
                                                             Scope &scope) {
  std::vector<std::string> lines;
  Tables tables(scope);
  // Pipelines with the same stages share their weights; a family is named whole.
  std::map<uint32_t, std::vector<std::string>> shares;
  std::map<uint32_t, size_t> numSharing;
  for (const PipelineUnit &unit : findUnits(scope.pipelines)) {
    tables.flush(printUnit(schedule, unit, tables), lines);
    uint32_t firstStage = schedule.pipelines[unit.first].firstStage;
    bool isShared = unit.count == 1 || schedule.pipelines[unit.first + 1].firstStage == firstStage;
    if (!isShared)
      continue;
    shares[firstStage].push_back(unit.name);
    numSharing[firstStage] += unit.count;
  }
  for (const auto &[firstStage, names] : shares)
    if (numSharing[firstStage] > 1)
      lines.push_back(fmt::format("share {}", fmt::join(names, ", ")));
  return lines;
}

static std::string printCosts(const Schedule &schedule, Tables &tables) {
  const Costs &costs = schedule.planCosts;
  std::vector<std::string> clauses;
  for (OpKind kind :
       {OpKind::Forward, OpKind::Backward, OpKind::BackwardInput, OpKind::BackwardWeight}) {
    const OpCost &cost = costs.of(kind);
    auto get = [&](size_t stage) { return Costs::printTicks(costs.get(kind, uint32_t(stage))); };
    const std::string &s = tables.scope.stage;
    if (!cost.ofStage.empty())
      clauses.push_back(fmt::format("{0} {1} -> {2}", getKeyword(kind), s,
                                    tables.spell(spellAll(schedule.numStages, get),
                                                 fmt::format("{}_times", getKeyword(kind)), s)));
    else if (cost.common)
      clauses.push_back(fmt::format("{} {}", getKeyword(kind), Costs::printTicks(*cost.common)));
  }
  if (costs.fused)
    clauses.push_back("fused " + Costs::printTicks(*costs.fused));
  if (costs.transfer)
    clauses.push_back("transfer " + Costs::printTicks(*costs.transfer));
  return clauses.empty() ? "" : fmt::format("cost {{ {} }}", fmt::join(clauses, "; "));
}

static std::string printMemory(const Schedule &schedule, Tables &tables) {
  const Scope &scope = tables.scope;
  const MemoryPlan &memory = schedule.memory;
  std::vector<std::string> clauses;
  auto add = [&](const char *what, const std::string &index, size_t count, auto get) {
    if (count != 0)
      clauses.push_back(fmt::format(
          "{} {} -> {}", what, index,
          tables.spell(spellAll(count, [&](size_t i) { return std::to_string(get(i)); }),
                       fmt::format("{}_units", what), index)));
  };
  add("activation", scope.stage, memory.activation.size(),
      [&](size_t i) { return memory.activation[i]; });
  add("context", scope.stage, memory.context.size(), [&](size_t i) { return memory.context[i]; });
  // The language has no word for one rank without a limit among others.
  add("limit", scope.rank, memory.limit.size(),
      [&](size_t i) { return memory.limit[i].value_or(MemoryPlan::kMaxUnits); });
  return clauses.empty() ? "" : fmt::format("memory {{ {} }}", fmt::join(clauses, "; "));
}

/// What differs from a contract that is not stated.
static std::string printModel(const Schedule &schedule, Tables &tables) {
  const Scope &scope = tables.scope;
  const program::Contract &model = schedule.model, usual;
  std::vector<std::string> clauses;
  if (!model.sizeGroup.empty())
    clauses.push_back(fmt::format(
        "group {} -> {}", scope.stage,
        tables.spell(spellAll(model.sizeGroup.size(),
                              [&](size_t i) { return std::to_string(model.sizeGroup[i]); }),
                     "groups", scope.stage)));
  for (OpKind half : {OpKind::Backward, OpKind::BackwardInput, OpKind::BackwardWeight})
    if (readsOf(model, half) != readsOf(usual, half))
      clauses.push_back(
          fmt::format("{} reads {}", getKeyword(half), spellReads(readsOf(model, half))));
  return clauses.empty() ? "" : fmt::format("model {{ {} }}", fmt::join(clauses, "; "));
}

std::vector<std::string> dualpipe::pipe_text::printPlans(const Schedule &schedule, Scope &scope) {
  std::vector<std::string> lines;
  Tables tables(scope);
  for (auto *print : {&printCosts, &printMemory, &printModel})
    if (std::string line = print(schedule, tables); !line.empty())
      tables.flush(std::move(line), lines);
  return lines;
}
