//===- PrintPipe.cpp - schedules as explicit `.pipe` programs ------------------===//

#include "dualpipe/Target/PrintPipe.h"
#include "FoldStatements.h"
#include "PrintPipelines.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <limits>

using namespace dualpipe;
using namespace dualpipe::pipe_text;

/// Bodies that would go beyond this column are broken.
static constexpr size_t kMaxColumn = 100;

namespace {

/// The program of one rank.
class RankPrinter {
public:
  RankPrinter(const Schedule &schedule, const Scope &scope, uint32_t rank)
      : schedule(schedule), scope(scope), order(schedule.ranks[rank]) {
    collect();
  }

  bool isEmpty() const { return statements.empty(); }
  void print(std::string &out, size_t indent) const;

private:
  void collect();
  void collectTransfers(size_t before);
  void enterPhase(size_t op);
  Action makeAction(std::string_view word, uint32_t stage, uint32_t microbatch) const;
  void printFold(std::string &out, const Fold &fold, size_t indent) const;
  void printLoopOfPhases(std::string &out, const Fold &fold, size_t indent) const;
  bool spansPhases(const Fold &fold) const;
  std::string spellHead(const Fold &fold) const;
  std::string spell(const Fold &fold, size_t statement) const;
  std::string spell(const Action &action, int64_t step, int64_t loopBegin) const;

  const Schedule &schedule;
  const Scope &scope;
  const RankOrder &order;
  std::vector<Statement> statements;
  std::string_view phase; ///< of the op that comes next
  size_t nextPhase = 0, nextTransfer = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

Action RankPrinter::makeAction(std::string_view word, uint32_t stage, uint32_t microbatch) const {
  uint32_t p = uint32_t(schedule.findPipeline(microbatch));
  const Pipeline &pipeline = schedule.pipelines[p];
  return {word, p, stage - pipeline.firstStage, int64_t(microbatch) - pipeline.firstMicrobatch};
}

void RankPrinter::collect() {
  for (size_t begin = 0, end; begin != order.size(); begin = end) {
    end = order.groupEnd(begin);
    collectTransfers(begin);
    enterPhase(begin);
    Statement &statement = statements.emplace_back();
    statement.phase = phase;
    for (size_t op = begin; op != end; ++op)
      statement.actions.push_back(
          makeAction(getKeyword(order.kind[op]), order.stage[op], order.microbatch[op]));
  }
  collectTransfers(order.size());
}

void RankPrinter::collectTransfers(size_t before) {
  for (; nextTransfer != order.transfers.size() && order.transfers[nextTransfer].before <= before;
       ++nextTransfer) {
    const RankOrder::Transfer &end = order.transfers[nextTransfer];
    const char *word = end.isSend ? (end.isGrad ? "send bwd" : "send fwd")
                                  : (end.isGrad ? "recv bwd" : "recv fwd");
    statements.push_back({phase, {makeAction(word, end.stage, end.microbatch)}});
  }
}

/// Of phases that begin at one op all but the last have no ops.
void RankPrinter::enterPhase(size_t op) {
  while (nextPhase != order.phases.size() && order.phases[nextPhase].begin <= op)
    phase = schedule.phaseNames[order.phases[nextPhase++].name];
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// `action` where its micro-batch moves by `step` in a loop that begins with `loopBegin`.
std::string RankPrinter::spell(const Action &action, int64_t step, int64_t loopBegin) const {
  int64_t constant = action.microbatch - step * loopBegin;
  const std::string &i = scope.loop;
  std::string mb;
  if (step == 0)
    mb = std::to_string(constant);
  else if (step < 0)
    mb = step == -1 ? fmt::format("{} - {}", constant, i)
                    : fmt::format("{} - {} * {}", constant, -step, i);
  else
    mb = (step == 1 ? i : fmt::format("{} * {}", step, i)) + (constant == 0 ? ""
                                                              : constant < 0
                                                                  ? fmt::format(" - {}", -constant)
                                                                  : fmt::format(" + {}", constant));
  return fmt::format("{} {}.stage({}) @ {}", action.word, scope.pipelines[action.pipeline],
                     action.stage, mb);
}

static int64_t getStep(const std::vector<Statement> &statements, const Fold &fold, size_t statement,
                       size_t member) {
  if (fold.count == 1)
    return 0;
  return statements[statement + fold.length].actions[member].microbatch -
         statements[statement].actions[member].microbatch;
}

/// The loop counts the micro-batches of its first op where these follow each other.
static int64_t getLoopBegin(const std::vector<Statement> &statements, const Fold &fold) {
  bool follows = getStep(statements, fold, fold.begin, 0) == 1;
  return follows ? statements[fold.begin].actions[0].microbatch : 0;
}

std::string RankPrinter::spell(const Fold &fold, size_t statement) const {
  std::string text;
  const std::vector<Action> &members = statements[statement].actions;
  for (size_t i = 0; i != members.size(); ++i)
    text += (i == 0 ? "" : "; ") + spell(members[i], getStep(statements, fold, statement, i),
                                         getLoopBegin(statements, fold));
  return members.size() == 1 ? text : fmt::format("fused {{ {} }}", text);
}

std::string RankPrinter::spellHead(const Fold &fold) const {
  int64_t begin = getLoopBegin(statements, fold);
  return fmt::format("for {} in {}..{} {{", scope.loop, begin, begin + int64_t(fold.count));
}

/// A fold of statements in one phase, or in none.
void RankPrinter::printFold(std::string &out, const Fold &fold, size_t indent) const {
  auto to = std::back_inserter(out);
  if (fold.count == 1) {
    fmt::format_to(to, "{:{}}{}\n", "", indent, spell(fold, fold.begin));
    return;
  }
  std::string head = spellHead(fold);
  std::string line, lines;
  for (size_t i = fold.begin; i != fold.begin + fold.length; ++i) {
    std::string text = spell(fold, i);
    line += (i == fold.begin ? " " : "; ") + text;
    lines += fmt::format("{:{}}{}\n", "", indent + 2, text);
  }
  if (indent + head.size() + line.size() + 2 <= kMaxColumn)
    fmt::format_to(to, "{:{}}{}{} }}\n", "", indent, head, line);
  else
    fmt::format_to(to, "{0:{1}}{2}\n{3}{0:{1}}}}\n", "", indent, head, lines);
}

/// Prints what `printBody` prints at an indentation, in a block of the phase where there is one.
template <typename Print>
static void printInPhase(std::string &out, std::string_view phase, size_t indent, Print printBody) {
  if (phase.empty())
    return printBody(indent);
  auto to = std::back_inserter(out);
  fmt::format_to(to, "{:{}}phase {} {{\n", "", indent, quote(phase));
  printBody(indent + 2);
  fmt::format_to(to, "{:{}}}}\n", "", indent);
}

bool RankPrinter::spansPhases(const Fold &fold) const {
  auto begin = statements.begin() + fold.begin, end = begin + fold.length;
  return std::any_of(begin, end, [&](const Statement &s) { return s.phase != begin->phase; });
}

/// A loop with phases in it.
void RankPrinter::printLoopOfPhases(std::string &out, const Fold &fold, size_t indent) const {
  auto to = std::back_inserter(out);
  fmt::format_to(to, "{:{}}{}\n", "", indent, spellHead(fold));
  size_t end = fold.begin + fold.length;
  for (size_t i = fold.begin; i != end;) {
    std::string_view phase = statements[i].phase;
    printInPhase(out, phase, indent + 2, [&](size_t inner) {
      for (; i != end && statements[i].phase == phase; ++i)
        fmt::format_to(to, "{:{}}{}\n", "", inner, spell(fold, i));
    });
  }
  fmt::format_to(to, "{:{}}}}\n", "", indent);
}

void RankPrinter::print(std::string &out, size_t indent) const {
  std::vector<Fold> folds = foldStatements(statements, 0, statements.size());
  for (auto fold = folds.begin(); fold != folds.end();) {
    if (spansPhases(*fold)) {
      printLoopOfPhases(out, *fold++, indent);
      continue;
    }
    std::string_view phase = statements[fold->begin].phase;
    printInPhase(out, phase, indent, [&](size_t inner) {
      while (fold != folds.end() && !spansPhases(*fold) && statements[fold->begin].phase == phase)
        printFold(out, *fold++, inner);
    });
  }
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

/// Phases are numbered as they first stand in the text: where that is not their order in
/// the table, they are named before all else.
static std::string printPhaseOrder(const Schedule &schedule) {
  uint32_t known = 0;
  bool inOrder = true;
  for (const RankOrder &order : schedule.ranks)
    for (const RankOrder::Phase &phase : order.phases) {
      if (schedule.phaseNames[phase.name].empty())
        continue;
      inOrder &= phase.name <= known;
      known += phase.name == known;
    }
  std::string text;
  for (const std::string &name : schedule.phaseNames)
    if (!inOrder && !name.empty())
      text += fmt::format("    phase {} {{ }}\n", quote(name));
  return text;
}

/// An integer as the language reads it: a sign is an operator there, and the least of all
/// integers has no literal.
static std::string spellInteger(int64_t value) {
  if (value == std::numeric_limits<int64_t>::min())
    return fmt::format("{} - 1", value + 1);
  return std::to_string(value);
}

static std::string printHead(const Schedule &schedule, const Scope &scope) {
  std::string text =
      fmt::format("// Every op of '{0}' for {1} ranks and {2} micro-batches:\n//\n"
                  "//   dualpipe-opt FILE.pipe --ranks={1} --microbatches={2}{3}\n\npipe 1\n\n",
                  scope.schedule, schedule.numRanks, schedule.numMicrobatches,
                  schedule.training ? "" : " --forward-only");
  text += fmt::format("schedule {}(ranks {}, microbatches {}", scope.schedule, scope.ranks,
                      scope.microbatches);
  for (size_t i = 0; i != scope.params.size(); ++i)
    text += fmt::format(", param {}: int = {}", scope.params[i],
                        spellInteger(schedule.params[i].second));
  text += ") {\n";
  text += fmt::format("  require {0} == {1} \"is written for {1} ranks, got {{{0}}}\"\n",
                      scope.ranks, schedule.numRanks);
  text += fmt::format("  require {0} == {1} \"is written for {1} micro-batches, got {{{0}}}\"\n",
                      scope.microbatches, schedule.numMicrobatches);
  for (size_t i = 0; i != scope.params.size(); ++i)
    text += fmt::format("  require {0} == {1} \"is written for {0} = {1}, got {{{0}}}\"\n",
                        scope.params[i], spellInteger(schedule.params[i].second));
  if (!schedule.training)
    text += "  require not training \"runs forward only: compile it with --forward-only\"\n";
  return text;
}

/// A program numbers stages and micro-batches in the order in which it declares their
/// pipelines, and has no other way to say which ones they are.
static Status checkNumbers(const Schedule &schedule) {
  uint32_t stages = 0, microbatches = 0;
  for (const Pipeline &pipeline : schedule.pipelines) {
    if (pipeline.firstMicrobatch != microbatches)
      return Status::failure(fmt::format(
          "pipeline '{}' begins with micro-batch {}, expected {}: a program numbers micro-batches "
          "in the order of its pipelines",
          pipeline.name, pipeline.firstMicrobatch, microbatches));
    if (pipeline.firstStage > stages)
      return Status::failure(fmt::format(
          "pipeline '{}', of the micro-batches from {} on, begins with stage {}, expected {}: a "
          "program numbers stages in the order of its micro-batches; number them so in the input",
          pipeline.name, microbatches, pipeline.firstStage, stages));
    stages = std::max(stages, pipeline.firstStage + pipeline.numStages);
    microbatches += pipeline.numMicrobatches;
  }
  return Status::success();
}

Result<std::string> dualpipe::printPipe(const Schedule &schedule) {
  if (Status status = checkNumbers(schedule); !status)
    return Status::failure("the schedule is no explicit program: " + status.message());
  Scope scope(schedule);
  std::string text = printHead(schedule, scope) + "\n";
  for (const std::string &line : printPipelines(schedule, scope))
    text += "  " + line + "\n";
  for (const std::string &line : printPlans(schedule, scope))
    text += "  " + line + "\n";
  text += fmt::format("\n  rank {} {{\n", scope.rank) + printPhaseOrder(schedule);
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    RankPrinter printer(schedule, scope, rank);
    if (printer.isEmpty())
      continue;
    text += fmt::format("    if {} == {} {{\n", scope.rank, rank);
    printer.print(text, 6);
    text += "    }\n";
  }
  return text + "  }\n}\n";
}
