//===- ReportParts.cpp - what reports for people and for programs share -----===//

#include "ReportParts.h"

#include "dualpipe/Program/Keywords.h"

#include <fmt/format.h>

#include <algorithm>

namespace dualpipe::runtime {

using program::Command;
using program::CommandOp;
using program::Function;
using program::RankProgram;

/// Loading belongs to the forward that needs it.
static const char *getOpKeyword(Function function) {
  const bool loads = function == Function::LoadInput || function == Function::LoadLabels;
  return program::getKeyword(loads ? Function::Forward : function);
}

static WaitingOp describeLaunch(const RankProgram &rank, uint32_t command) {
  const program::Launch &launch = rank.launches[rank.commands[command].arg];
  return {getOpKeyword(launch.function), launch.stage, launch.microbatch};
}

WaitingOp findWaitingOp(const program::Program &program, CommandRef ref) {
  const RankProgram &rank = program.ranks[ref.rank];
  const Command &command = rank.commands[ref.command];
  switch (command.op) {
  case CommandOp::Launch:
    return describeLaunch(rank, ref.command);
  case CommandOp::Pair: {
    WaitingOp op = describeLaunch(rank, ref.command + 1);
    op.kind = "fused " + op.kind;
    return op;
  }
  case CommandOp::Step:
    return {"step", command.arg, program::kNone};
  case CommandOp::Reduce:
    return {"reduce", rank.reductions[command.arg].stage, program::kNone};
  case CommandOp::Send:
  case CommandOp::Recv: {
    const program::Transfer &transfer = rank.transfers[command.arg];
    return {"transfer", transfer.stage, transfer.microbatch};
  }
  case CommandOp::Group:
  case CommandOp::Record:
  case CommandOp::Wait:
    break;
  }
  return {};
}

static std::string describePairStart(const SimulationCosts &costs) {
  if (costs.pairStart == PairStart::Separate)
    return "separate, each member starts when its own inputs are there, and its result is there "
           "after its own time";
  const std::string start = "joint, they start when the inputs of all members are there, and ";
  if (!costs.hasOffsets())
    return start + "all results are there at the end";
  const auto describe = [](std::optional<Ticks> ticks) {
    return ticks ? Costs::printTicks(*ticks) + " after that" : "at the end";
  };
  return start +
         fmt::format("forwards have their results {}, backwards {}, none later than the pair ends",
                     describe(costs.forwardDone), describe(costs.backwardDone));
}

using PrintedCosts = std::vector<std::pair<std::string, std::string>>;

/// More than so many costs of single stages are told as a range.
static constexpr size_t kMaxStages = 4;

static std::string getBase(const std::string &name) { return name.substr(0, name.find('[')); }

/// "fwd[0] 1, fwd[1] 3, ..." becomes "fwd 1 to 3 by stage".
static PrintedCosts summarizeCosts(const PrintedCosts &costs) {
  PrintedCosts summary;
  for (size_t first = 0; first != costs.size();) {
    size_t end = first + 1;
    while (end != costs.size() && costs[first].first != getBase(costs[first].first) &&
           getBase(costs[end].first) == getBase(costs[first].first))
      ++end;
    if (end - first <= kMaxStages) {
      summary.insert(summary.end(), costs.begin() + ptrdiff_t(first),
                     costs.begin() + ptrdiff_t(end));
    } else {
      const auto isLess = [](const auto &a, const auto &b) {
        return Costs::parseTicks(a.second).value_or(0) < Costs::parseTicks(b.second).value_or(0);
      };
      const auto [least, most] = std::minmax_element(costs.begin() + ptrdiff_t(first),
                                                     costs.begin() + ptrdiff_t(end), isLess);
      summary.emplace_back(getBase(costs[first].first),
                           fmt::format("{} to {} by stage", least->second, most->second));
    }
    first = end;
  }
  return summary;
}

std::string describeCosts(const SimulationCosts &costs) {
  std::string text;
  for (const auto &[name, value] : summarizeCosts(costs.print()))
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  return text;
}

std::string describeAssumptions(const Prediction &prediction) {
  if (!prediction.hasPairs)
    return "";
  const SimulationCosts &costs = prediction.costs;
  const bool isGiven = costs.ops.fused || !costs.pairs.empty();
  return "fused pairs: " + describePairStart(costs) +
         (isGiven ? "\n" : "; a pair takes the sum of its members\n");
}

} // namespace dualpipe::runtime
