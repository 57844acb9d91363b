//===- ReportJson.cpp - a prediction for programs ---------------------------===//
//
// The schema is in docs/reports.md. Times are decimal numbers in the units of the
// costs; lists are by rank.
//
//===----------------------------------------------------------------------===//

#include "ReportParts.h"

#include "dualpipe/Program/Verify.h"
#include "dualpipe/Support/Quote.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dualpipe::runtime {

static std::string print(Ticks ticks) { return Costs::printTicks(ticks); }

static std::string quote(const std::string &text) { return quoteJson(text); }

template <typename Range, typename Print>
static std::string join(const Range &range, Print printItem, const char *separator = ", ") {
  std::string text;
  for (const auto &item : range)
    text += (text.empty() ? "" : separator) + printItem(item);
  return text;
}

template <typename Range, typename Print>
static std::string list(const Range &range, Print printItem) {
  return "[" + join(range, printItem) + "]";
}

/// A list with an item a line.
template <typename Range, typename Print>
static std::string listLines(const Range &range, Print printItem) {
  if (range.empty())
    return "[]";
  return "[\n    " + join(range, printItem, ",\n    ") + "\n  ]";
}

static std::string printParams(const Prediction &prediction) {
  return "{" +
         join(prediction.params,
              [](const auto &param) {
                return fmt::format("{}: {}", quote(param.first), param.second);
              }) +
         "}";
}

static std::string printCosts(const Prediction &prediction) {
  return "{" +
         join(prediction.costs.print(),
              [](const auto &cost) {
                const bool isWord = cost.first == "start" || cost.first == "links";
                return fmt::format("{}: {}", quote(cost.first),
                                   isWord ? quote(cost.second) : cost.second);
              }) +
         "}";
}

//===----------------------------------------------------------------------===//
// Bubble
//===----------------------------------------------------------------------===//

static std::string printCauses(const RankBubble &bubble) {
  const std::string peers = list(bubble.peers, [](const auto &peer) {
    return fmt::format("{{\"rank\": {}, \"time\": {}}}", peer.first, print(peer.second));
  });
  return fmt::format("{{\"warm_up\": {}, \"drain\": {}, \"slots\": {}, \"reductions\": {}, "
                     "\"pairs\": {}, \"cores\": {}, \"peers\": {}}}",
                     print(bubble.warmUp), print(bubble.drain), print(bubble.slots),
                     print(bubble.reductions), print(bubble.pairs), print(bubble.cores), peers);
}

/// The three forms of fused pairs.
static const char *getPairForm(const SimulationCosts &costs) {
  if (costs.pairStart == PairStart::Separate)
    return "separate";
  return costs.hasOffsets() ? "joint, results apart" : "joint";
}

static std::string printBubble(const Prediction &prediction) {
  const double makespan = double(prediction.makespan);
  const auto time = [](const RankBubble &bubble) { return print(bubble.total); };
  const auto percent = [&](const RankBubble &bubble) {
    return fmt::format("{:.4f}", makespan == 0 ? 0 : 100 * double(bubble.total) / makespan);
  };
  return fmt::format("{{\n    \"per_rank\": {},\n    \"percent_per_rank\": {},\n"
                     "    \"max\": {},\n    \"rate\": {:.6f}\n  }}",
                     list(prediction.bubbles, time), list(prediction.bubbles, percent),
                     print(prediction.getWorstBubble()), prediction.getRate());
}

static std::string printFormula(const Prediction &prediction) {
  if (!prediction.formula)
    return "null";
  const PublishedFormula &formula = *prediction.formula;
  return fmt::format("{{\"name\": {}, \"bubble\": {}, \"bubble_formula\": {}, "
                     "\"activations\": {}, \"activations_formula\": {}}}",
                     quote(formula.name), print(formula.bubble), quote(formula.bubbleText),
                     formula.activations, quote(formula.activationsText));
}

//===----------------------------------------------------------------------===//
// Critical path and waits
//===----------------------------------------------------------------------===//

/// A rank a line.
static std::string printMemory(const Prediction &prediction, const program::Program &program) {
  if (prediction.memory.empty())
    return "null";
  return listLines(toJson(prediction.memory, program), [](const nlohmann::ordered_json &rank) {
    return rank.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  });
}

static std::string printCriticalPath(const Prediction &prediction) {
  std::string text;
  for (unsigned kind = 0; kind != kNumPathKinds; ++kind) {
    const PathShare &share = prediction.criticalPath[kind];
    text += fmt::format("{}{}: {{\"commands\": {}, \"time\": {}}}", kind == 0 ? "" : ", ",
                        quote(getName(PathKind(kind))), share.commands, print(share.time));
  }
  return "{" + text + "}";
}

static std::string printNumber(uint32_t number) {
  return number == program::kNone ? "null" : fmt::format("{}", number);
}

static std::string printWait(const RankWait &wait, const program::Program &program) {
  const WaitingOp op = findWaitingOp(program, wait.command);
  const program::Command &command = program.ranks[wait.command.rank].commands[wait.command.command];
  return fmt::format("{{\"time\": {}, \"begin\": {}, \"rank\": {}, \"op\": {}, \"stage\": {}, "
                     "\"microbatch\": {}, \"cause\": {}, \"peer\": {}, \"place\": {}}}",
                     print(wait.length), print(wait.begin), wait.command.rank, quote(op.kind),
                     printNumber(op.stage), printNumber(op.microbatch), quote(getName(wait.cause)),
                     printNumber(wait.peer),
                     quote(program::describeLocation(program.shared, command.loc)));
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

template <typename Number>
static std::string listRanks(const Prediction &prediction, Number RankTimes::*member) {
  return list(prediction.ranks,
              [&](const RankTimes &rank) { return fmt::format("{}", rank.*member); });
}

std::string printJson(const Prediction &prediction, const program::Program &program) {
  std::string text = "{\n";
  const auto add = [&](const char *name, const std::string &value) {
    text += fmt::format("{}  \"{}\": {}", text.size() == 2 ? "" : ",\n", name, value);
  };
  add("schedule", quote(prediction.schedule));
  add("params", printParams(prediction));
  add("ranks", fmt::format("{}", prediction.ranks.size()));
  add("stages", fmt::format("{}", prediction.numStages));
  add("microbatches", fmt::format("{}", prediction.numMicrobatches));
  add("costs", printCosts(prediction));
  add("cost_option",
      prediction.costs.profileOption.empty() ? "null" : quote(prediction.costs.profileOption));
  add("pair_start", quote(getPairForm(prediction.costs)));
  add("makespan", print(prediction.makespan));
  add("ideal", print(prediction.ideal));
  add("bubble", printBubble(prediction));
  add("causes", listLines(prediction.bubbles, printCauses));
  add("formula", printFormula(prediction));
  add("busy", list(prediction.ranks, [](const RankTimes &rank) { return print(rank.busy); }));
  add("peak_activations", listRanks(prediction, &RankTimes::peakActivations));
  add("weight_queue", listRanks(prediction, &RankTimes::deepestWeightQueue));
  add("sends", listRanks(prediction, &RankTimes::sends));
  add("memory", printMemory(prediction, program));
  add("critical_path", printCriticalPath(prediction));
  add("longest_waits",
      listLines(prediction.waits, [&](const RankWait &wait) { return printWait(wait, program); }));
  return text + "\n}\n";
}

} // namespace dualpipe::runtime
