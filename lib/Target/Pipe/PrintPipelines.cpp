//===- PrintPipelines.cpp - the declarations of a schedule ---------------------===//

#include "PrintPipelines.h"

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

std::string dualpipe::pipe_text::spellTable(const std::vector<std::string> &values,
                                            const std::string &index, int64_t first) {
  bool isConstant = std::all_of(values.begin(), values.end(),
                                [&](const std::string &value) { return value == values[0]; });
  if (isConstant)
    return values[0];
  std::string offset = first == 0  ? ""
                       : first < 0 ? fmt::format(" + {}", -first)
                                   : fmt::format(" - {}", first);
  return fmt::format("({})[{}{}]", fmt::join(values, ", "), index, offset);
}

template <typename Get>
static std::string spellNumbers(size_t count, const std::string &index, Get get,
                                int64_t first = 0) {
  std::vector<std::string> values;
  for (size_t i = 0; i != count; ++i)
    values.push_back(get(i));
  return spellTable(values, index, first);
}

/// The usual maps from stages to ranks in closed form, any other as a table.
static std::string spellPlacement(const Pipeline &pipeline, uint32_t numRanks, const Scope &scope) {
  auto is = [&](auto rankOf) {
    for (uint32_t s = 0; s != pipeline.numStages; ++s)
      if (int64_t(pipeline.placement[s]) != rankOf(int64_t(s)))
        return false;
    return true;
  };
  int64_t ranks = numRanks;
  const std::string &s = scope.stage, &p = scope.ranks;
  if (is([](int64_t stage) { return stage; }))
    return s;
  if (is([&](int64_t stage) { return ranks - 1 - stage; }))
    return fmt::format("{} - 1 - {}", p, s);
  if (is([&](int64_t stage) { return stage % ranks; }))
    return fmt::format("{} mod {}", s, p);
  if (is([&](int64_t stage) { return stage < ranks ? stage : 2 * ranks - 1 - stage; }))
    return fmt::format("if {0} < {1} then {0} else 2 * {1} - 1 - {0}", s, p);
  return spellNumbers(pipeline.numStages, s,
                      [&](size_t stage) { return std::to_string(pipeline.placement[stage]); });
}

/// The placement of every member of a unit.
static std::string spellPlacements(const Schedule &schedule, const PipelineUnit &unit,
                                   const Scope &scope) {
  std::vector<std::string> maps;
  for (size_t i = 0; i != unit.count; ++i)
    maps.push_back(spellPlacement(schedule.pipelines[unit.first + i], schedule.numRanks, scope));
  std::string text;
  while (maps.size() > 1 && maps[maps.size() - 2] == maps.back())
    maps.pop_back();
  for (size_t i = 0; i + 1 < maps.size(); ++i) {
    // A conditional as the value of `then` would take the `else`.
    bool isConditional = maps[i].rfind("if ", 0) == 0;
    text +=
        fmt::format("if {} == {} then {}{}{} else ", scope.member, *unit.firstMember + int64_t(i),
                    isConditional ? "(" : "", maps[i], isConditional ? ")" : "");
  }
  return text + maps.back();
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

static std::string printUnit(const Schedule &schedule, const PipelineUnit &unit,
                             const Scope &scope) {
  int64_t first = unit.firstMember.value_or(0);
  auto spell = [&](uint32_t Pipeline::*count) {
    return spellNumbers(
        unit.count, scope.member,
        [&](size_t i) { return std::to_string(schedule.pipelines[unit.first + i].*count); }, first);
  };
  std::string range;
  if (unit.firstMember)
    range = fmt::format("({} in {}..{})", scope.member, first, first + int64_t(unit.count));
  return fmt::format("pipeline {}{} {{ stages {}; microbatches {}; place {} -> {} }}", unit.name,
                     range, spell(&Pipeline::numStages), spell(&Pipeline::numMicrobatches),
                     scope.stage, spellPlacements(schedule, unit, scope));
}

std::vector<std::string> dualpipe::pipe_text::printPipelines(const Schedule &schedule,
                                                             const Scope &scope) {
  std::vector<std::string> lines;
  // Pipelines with the same stages share their weights; a family is named whole.
  std::map<uint32_t, std::vector<std::string>> shares;
  std::map<uint32_t, size_t> numSharing;
  for (const PipelineUnit &unit : findUnits(scope.pipelines)) {
    lines.push_back(printUnit(schedule, unit, scope));
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

static std::string printCosts(const Schedule &schedule, const Scope &scope) {
  const Costs &costs = schedule.planCosts;
  std::vector<std::string> clauses;
  for (OpKind kind :
       {OpKind::Forward, OpKind::Backward, OpKind::BackwardInput, OpKind::BackwardWeight}) {
    const OpCost &cost = costs.of(kind);
    if (!cost.ofStage.empty())
      clauses.push_back(
          fmt::format("{} {} -> {}", getKeyword(kind), scope.stage,
                      spellNumbers(schedule.numStages, scope.stage, [&](size_t stage) {
                        return Costs::printTicks(costs.get(kind, uint32_t(stage)));
                      })));
    else if (cost.common)
      clauses.push_back(fmt::format("{} {}", getKeyword(kind), Costs::printTicks(*cost.common)));
  }
  if (costs.fused)
    clauses.push_back("fused " + Costs::printTicks(*costs.fused));
  if (costs.transfer)
    clauses.push_back("transfer " + Costs::printTicks(*costs.transfer));
  return clauses.empty() ? "" : fmt::format("cost {{ {} }}", fmt::join(clauses, "; "));
}

static std::string printMemory(const Schedule &schedule, const Scope &scope) {
  const MemoryPlan &memory = schedule.memory;
  std::vector<std::string> clauses;
  auto add = [&](const char *what, const std::string &index, size_t count, auto get) {
    if (count != 0)
      clauses.push_back(fmt::format(
          "{} {} -> {}", what, index,
          spellNumbers(count, index, [&](size_t i) { return std::to_string(get(i)); })));
  };
  add("activation", scope.stage, memory.activation.size(),
      [&](size_t i) { return memory.activation[i]; });
  add("context", scope.stage, memory.context.size(), [&](size_t i) { return memory.context[i]; });
  // The language has no word for one rank without a limit among others.
  add("limit", scope.rank, memory.limit.size(),
      [&](size_t i) { return memory.limit[i].value_or(MemoryPlan::kMaxUnits); });
  return clauses.empty() ? "" : fmt::format("memory {{ {} }}", fmt::join(clauses, "; "));
}

std::vector<std::string> dualpipe::pipe_text::printPlans(const Schedule &schedule,
                                                         const Scope &scope) {
  std::vector<std::string> lines;
  for (std::string line : {printCosts(schedule, scope), printMemory(schedule, scope)})
    if (!line.empty())
      lines.push_back(std::move(line));
  return lines;
}
