//===- PrintExplanation.cpp - predicted against measured, as a table --------===//

#include "dualpipe/Runtime/Explain.h"

#include "runtime/sim/ReportParts.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dualpipe::runtime {

using nlohmann::ordered_json;

static double toMilliseconds(double ticks) { return ticks / double(Costs::kTicksPerUnit); }

static std::string print(double ticks) { return fmt::format("{:.3f}", toMilliseconds(ticks)); }

static std::string printChange(double predicted, double measured) {
  return fmt::format("{:+.3f}", toMilliseconds(measured - predicted));
}

static double getRatio(const Explanation &explanation) {
  const Ticks predicted = explanation.predicted.prediction.makespan;
  return predicted == 0 ? 0 : double(explanation.measured.prediction.makespan) / double(predicted);
}

static const char *getKindName(size_t kind) {
  if (kind == kLoadTime)
    return "load";
  return kind == kIdleTime ? "no op" : getName(PathKind(kind));
}

/// Over the ranks; the averages of all kinds add up to the makespan.
static double getAverage(const ExplainedRun &run, size_t kind) {
  double sum = 0;
  for (const RankTimeByKind &rank : run.ranks)
    sum += double(rank[kind]);
  return run.ranks.empty() ? 0 : sum / double(run.ranks.size());
}

using Rows = std::vector<std::vector<std::string>>;

static void addRow(Rows &rows, std::string name, double predicted, double measured) {
  rows.push_back(
      {std::move(name), print(predicted), print(measured), printChange(predicted, measured), ""});
}

static void addRanks(Rows &rows, const Explanation &explanation) {
  for (size_t rank = 0; rank != explanation.predicted.ranks.size(); ++rank)
    addRow(rows, fmt::format("bubble of rank {}", rank),
           double(explanation.predicted.prediction.bubbles[rank].total),
           double(explanation.measured.prediction.bubbles[rank].total));
}

/// Kinds that take no time on either side are left out.
static void addKinds(Rows &rows, const Explanation &explanation) {
  for (size_t kind = 0; kind != kIdleTime + 1; ++kind) {
    const double predicted = getAverage(explanation.predicted, kind);
    const double measured = getAverage(explanation.measured, kind);
    if (predicted != 0 || measured != 0)
      addRow(rows, fmt::format("{}, a rank", getKindName(kind)), predicted, measured);
  }
}

static double getCoreWaits(const ExplainedRun &run) {
  double sum = 0;
  for (const RankBubble &bubble : run.prediction.bubbles)
    sum += double(bubble.cores);
  return run.ranks.empty() ? 0 : sum / double(run.ranks.size());
}

std::string printExplanation(const Explanation &explanation) {
  const Prediction &predicted = explanation.predicted.prediction;
  const Prediction &measured = explanation.measured.prediction;
  std::string text =
      fmt::format("predicted with the costs of this run, measured in step {} (the median of {}); "
                  "milliseconds\n",
                  explanation.step, explanation.numSteps);
  if (predicted.costs.cores != 0)
    text += fmt::format("{} ranks share {} cores\n", predicted.ranks.size(), predicted.costs.cores);
  text += describeAssumptions(predicted);
  Rows rows = {{"", "predicted", "measured", "difference", ""}};
  addRow(rows, "makespan", double(predicted.makespan), double(measured.makespan));
  addRow(rows, "worst rank's bubble", double(predicted.getWorstBubble()),
         double(measured.getWorstBubble()));
  addKinds(rows, explanation);
  addRow(rows, "of these without a core, a rank", getCoreWaits(explanation.predicted),
         getCoreWaits(explanation.measured));
  addRanks(rows, explanation);
  return text + printTable(rows) +
         fmt::format("measured / predicted: {:.3f}\n", getRatio(explanation));
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static ordered_json toJson(const ExplainedRun &run) {
  ordered_json ranks = ordered_json::array();
  for (size_t rank = 0; rank != run.ranks.size(); ++rank) {
    const RankBubble &bubble = run.prediction.bubbles[rank];
    ordered_json kinds = ordered_json::object();
    for (size_t kind = 0; kind != kIdleTime + 1; ++kind)
      kinds[kind == kIdleTime ? "idle" : getKindName(kind)] =
          toMilliseconds(double(run.ranks[rank][kind]));
    ranks.push_back({{"busy", toMilliseconds(double(run.prediction.ranks[rank].busy))},
                     {"bubble", toMilliseconds(double(bubble.total))},
                     {"without_core", toMilliseconds(double(bubble.cores))},
                     {"time", kinds}});
  }
  return {{"makespan", toMilliseconds(double(run.prediction.makespan))},
          {"bubble", toMilliseconds(double(run.prediction.getWorstBubble()))},
          {"per_rank", ranks}};
}

std::string printExplanationJson(const Explanation &explanation) {
  const SimulationCosts &costs = explanation.predicted.prediction.costs;
  ordered_json object = {
      {"unit", "ms"},
      {"step", explanation.step},
      {"steps", explanation.numSteps},
      {"cores", costs.cores == 0 ? ordered_json(nullptr) : ordered_json(costs.cores)},
      {"ratio", getRatio(explanation)},
      {"predicted", toJson(explanation.predicted)},
      {"measured", toJson(explanation.measured)}};
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace dualpipe::runtime
