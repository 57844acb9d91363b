//===- ReportText.cpp - a prediction for people -----------------------------===//

#include "ReportParts.h"

#include "dualpipe/Program/Verify.h"

#include <fmt/format.h>

#include <algorithm>

namespace dualpipe::runtime {

static std::string print(Ticks ticks) { return Costs::printTicks(ticks); }

static double getPercent(Ticks part, Ticks whole) {
  return whole == 0 ? 0 : 100 * double(part) / double(whole);
}

//===----------------------------------------------------------------------===//
// Head
//===----------------------------------------------------------------------===//

/// What of a profile the costs do not state.
static std::string describeProfile(const SimulationCosts &costs) {
  if (costs.profileOption.empty())
    return "";
  const std::string pairs =
      costs.pairs.empty() ? "" : fmt::format("times of {} fused pairs and ", costs.pairs.size());
  return fmt::format("in milliseconds, from --cost={}, which has {}sizes of the model as well\n",
                     costs.profileOption, pairs);
}

static std::string printHead(const Prediction &prediction) {
  std::string text =
      fmt::format("{}: {} ranks, {} stages, {} micro-batches", prediction.schedule,
                  prediction.ranks.size(), prediction.numStages, prediction.numMicrobatches);
  for (const auto &[name, value] : prediction.params)
    text += fmt::format(", {} = {}", name, value);
  return text + "\ncosts: " + describeCosts(prediction.costs) + "\n" +
         describeProfile(prediction.costs) + describeAssumptions(prediction);
}

static std::string printTotals(const Prediction &prediction) {
  const Ticks worst = prediction.getWorstBubble();
  std::string text =
      fmt::format("makespan {}, ideal {}; worst rank's bubble: {} ({:.1f} %); rate {:.4f}\n",
                  print(prediction.makespan), print(prediction.ideal), print(worst),
                  getPercent(worst, prediction.makespan), prediction.getRate());
  if (const std::optional<PublishedFormula> &formula = prediction.formula)
    text += fmt::format("published for {}: bubble {} = {}, here {}; activations {} = {}, here {}\n",
                        formula->name, formula->bubbleText, print(formula->bubble), print(worst),
                        formula->activationsText, formula->activations,
                        prediction.getPeakActivations());
  return text;
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

/// "1: 2, 3: 0.5", the rank and how long it was waited for.
static std::string printPeers(const RankBubble &bubble) {
  std::string text;
  for (const auto &[rank, time] : bubble.peers)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", rank, print(time));
  return text;
}

static bool sharesCores(const Prediction &prediction) { return prediction.costs.cores != 0; }

static std::string printRanks(const Prediction &prediction) {
  std::vector<std::vector<std::string>> rows = {{"rank", "busy", "bubble", "%", "warm-up", "drain",
                                                 "peers", "slots", "reduce", "pairs", "activations",
                                                 "weights", "sends", "peers by rank"}};
  for (size_t rank = 0; rank != prediction.ranks.size(); ++rank) {
    const RankTimes &times = prediction.ranks[rank];
    const RankBubble &bubble = prediction.bubbles[rank];
    rows.push_back({fmt::format("{}", rank), print(times.busy), print(bubble.total),
                    fmt::format("{:.1f}", getPercent(bubble.total, prediction.makespan)),
                    print(bubble.warmUp), print(bubble.drain), print(bubble.getPeers()),
                    print(bubble.slots), print(bubble.reductions), print(bubble.pairs),
                    fmt::format("{}", times.peakActivations),
                    fmt::format("{}", times.deepestWeightQueue), fmt::format("{}", times.sends),
                    printPeers(bubble)});
  }
  if (!sharesCores(prediction))
    return printTable(rows);
  constexpr ptrdiff_t kBehindPairs = 10;
  rows[0].insert(rows[0].begin() + kBehindPairs, "cores");
  for (size_t rank = 0; rank != prediction.ranks.size(); ++rank)
    rows[rank + 1].insert(rows[rank + 1].begin() + kBehindPairs,
                          print(prediction.bubbles[rank].cores));
  return printTable(rows);
}

std::string printTable(const std::vector<std::vector<std::string>> &rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const std::vector<std::string> &row : rows)
    for (size_t i = 0; i != row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const std::vector<std::string> &row : rows) {
    std::string line;
    for (size_t i = 0; i != row.size(); ++i) {
      const bool isText = i + 1 == row.size();
      line += i == 0 ? "" : "  ";
      line += isText ? row[i] : fmt::format("{:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Critical path and waits
//===----------------------------------------------------------------------===//

static std::string printCriticalPath(const Prediction &prediction) {
  std::string text = "critical path:";
  const char *separator = " ";
  for (unsigned kind = 0; kind != kNumPathKinds; ++kind) {
    const PathShare &share = prediction.criticalPath[kind];
    if (share.time == 0)
      continue;
    text += fmt::format("{}{} in {} {}", separator, print(share.time), share.commands,
                        getName(PathKind(kind)));
    separator = ", ";
  }
  return text + "\n";
}

/// "for rank 2, bwd stage 3 mb 4"
static std::string printBlame(const program::Program &program, CommandRef ref, const char *word) {
  const WaitingOp op = findWaitingOp(program, ref);
  std::string text = fmt::format(", {} rank {}, {}", word, ref.rank, op.kind);
  if (op.microbatch != program::kNone)
    text += fmt::format(" stage {} mb {}", op.stage, op.microbatch);
  return text;
}

static std::string printWait(const RankWait &wait, const program::Program &program) {
  const WaitingOp op = findWaitingOp(program, wait.command);
  std::string text = fmt::format("  {} at {}: rank {}, {} stage {}", print(wait.length),
                                 print(wait.begin), wait.command.rank, op.kind, op.stage);
  if (op.microbatch != program::kNone)
    text += fmt::format(" mb {}", op.microbatch);
  const bool isForPeer = wait.cause == WaitCause::Peer;
  if (!isForPeer)
    text += fmt::format(", for a {}", getName(wait.cause));
  if (!wait.blame.isNone())
    text += printBlame(program, wait.blame, isForPeer ? "for" : "after");
  else if (wait.peer != program::kNone)
    text += fmt::format(", for rank {}", wait.peer);
  const uint32_t loc = program.ranks[wait.command.rank].commands[wait.command.command].loc;
  return text + fmt::format(" ({})\n", program::describeLocation(program.shared, loc));
}

static std::string printWaits(const Prediction &prediction, const program::Program &program) {
  if (prediction.waits.empty())
    return "no rank waits between its first and its last op\n";
  std::string text = "longest waits:\n";
  for (const RankWait &wait : prediction.waits)
    text += printWait(wait, program);
  return text;
}

std::string printText(const Prediction &prediction, const program::Program &program) {
  const std::string memory = prediction.memory.empty()
                                 ? ""
                                 : printTable(tabulateMemory(prediction.memory, program)) + "\n";
  return printHead(prediction) + printTotals(prediction) + "\n" + printRanks(prediction) + "\n" +
         memory + printCriticalPath(prediction) + printWaits(prediction, program);
}

/// "4.5" for 9 halves.
static std::string printPart(uint32_t count, uint32_t parts) {
  return print(Ticks(count) * Costs::kTicksPerUnit / parts);
}

std::string printComparison(const std::vector<Prediction> &predictions) {
  std::vector<std::vector<std::string>> rows = {{"makespan", "ideal", "bubble", "%", "rate",
                                                 "activations", "weights", "sends", "ranks",
                                                 "stages", "micro-batches", "schedule"}};
  for (const Prediction &prediction : predictions) {
    const Ticks worst = prediction.getWorstBubble();
    rows.push_back({print(prediction.makespan), print(prediction.ideal), print(worst),
                    fmt::format("{:.1f}", getPercent(worst, prediction.makespan)),
                    fmt::format("{:.4f}", prediction.getRate()),
                    printPart(prediction.getPeakActivations(), prediction.parts),
                    printPart(prediction.getDeepestWeightQueue(), prediction.parts),
                    fmt::format("{}", prediction.getNumSends()),
                    fmt::format("{}", prediction.ranks.size()),
                    fmt::format("{}", prediction.numStages),
                    fmt::format("{}", prediction.numMicrobatches), prediction.schedule});
  }
  return printTable(rows);
}

} // namespace dualpipe::runtime
