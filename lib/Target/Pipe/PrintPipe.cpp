//===- PrintPipe.cpp - schedules as explicit `.pipe` programs ------------------===//

#include "dualpipe/Target/PrintPipe.h"
#include "FoldStatements.h"
#include "PrintPipelines.h"

#include <fmt/format.h>
#include <iterator>

using namespace dualpipe;
using namespace dualpipe::pipe_text;

/// Bodies that would go beyond this column are broken.
static constexpr size_t kMaxColumn = 100;

namespace {

/// A run of statements in one phase.
struct Segment {
  std::string phase; ///< empty: in none
  size_t begin;
};

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
  std::string spell(const Fold &fold, size_t statement) const;
  std::string spell(const Action &action, int64_t step, int64_t loopBegin) const;

  const Schedule &schedule;
  const Scope &scope;
  const RankOrder &order;
  std::vector<Statement> statements;
  std::vector<Segment> segments{{"", 0}};
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
    for (size_t op = begin; op != end; ++op)
      statement.push_back(
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
    statements.push_back({makeAction(word, end.stage, end.microbatch)});
  }
}

/// Of phases that begin at one op all but the last have no ops.
void RankPrinter::enterPhase(size_t op) {
  const std::string *name = nullptr;
  while (nextPhase != order.phases.size() && order.phases[nextPhase].begin <= op)
    name = &schedule.phaseNames[order.phases[nextPhase++].name];
  if (name && *name != segments.back().phase)
    segments.push_back({*name, statements.size()});
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
  return statements[statement + fold.length][member].microbatch -
         statements[statement][member].microbatch;
}

/// The loop counts the micro-batches of its first op where these follow each other.
static int64_t getLoopBegin(const std::vector<Statement> &statements, const Fold &fold) {
  bool follows = getStep(statements, fold, fold.begin, 0) == 1;
  return follows ? statements[fold.begin][0].microbatch : 0;
}

std::string RankPrinter::spell(const Fold &fold, size_t statement) const {
  std::string text;
  const Statement &members = statements[statement];
  for (size_t i = 0; i != members.size(); ++i)
    text += (i == 0 ? "" : "; ") + spell(members[i], getStep(statements, fold, statement, i),
                                         getLoopBegin(statements, fold));
  return members.size() == 1 ? text : fmt::format("fused {{ {} }}", text);
}

void RankPrinter::printFold(std::string &out, const Fold &fold, size_t indent) const {
  auto to = std::back_inserter(out);
  if (fold.count == 1) {
    fmt::format_to(to, "{:{}}{}\n", "", indent, spell(fold, fold.begin));
    return;
  }
  int64_t begin = getLoopBegin(statements, fold);
  std::string head =
      fmt::format("for {} in {}..{} {{", scope.loop, begin, begin + int64_t(fold.count));
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

void RankPrinter::print(std::string &out, size_t indent) const {
  auto to = std::back_inserter(out);
  for (size_t i = 0; i != segments.size(); ++i) {
    size_t end = i + 1 == segments.size() ? statements.size() : segments[i + 1].begin;
    if (segments[i].begin == end)
      continue;
    bool isPhase = !segments[i].phase.empty();
    if (isPhase)
      fmt::format_to(to, "{:{}}phase {} {{\n", "", indent, quote(segments[i].phase));
    for (const Fold &fold : foldStatements(statements, segments[i].begin, end))
      printFold(out, fold, isPhase ? indent + 2 : indent);
    if (isPhase)
      fmt::format_to(to, "{:{}}}}\n", "", indent);
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

static std::string printHead(const Schedule &schedule, const Scope &scope) {
  std::string text =
      fmt::format("// Every op of '{0}' for {1} ranks and {2} micro-batches:\n//\n"
                  "//   dualpipe-opt FILE.pipe --ranks={1} --microbatches={2}{3}\n\npipe 1\n\n",
                  scope.schedule, schedule.numRanks, schedule.numMicrobatches,
                  schedule.training ? "" : " --forward-only");
  text += fmt::format("schedule {}(ranks {}, microbatches {}", scope.schedule, scope.ranks,
                      scope.microbatches);
  for (size_t i = 0; i != scope.params.size(); ++i)
    text += fmt::format(", param {}: int = {}", scope.params[i], schedule.params[i].second);
  text += ") {\n";
  text += fmt::format("  require {0} == {1} \"is written for {1} ranks, got {{{0}}}\"\n",
                      scope.ranks, schedule.numRanks);
  text += fmt::format("  require {0} == {1} \"is written for {1} micro-batches, got {{{0}}}\"\n",
                      scope.microbatches, schedule.numMicrobatches);
  if (!schedule.training)
    text += "  require not training \"runs forward only: compile it with --forward-only\"\n";
  return text;
}

std::string dualpipe::printPipe(const Schedule &schedule) {
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
