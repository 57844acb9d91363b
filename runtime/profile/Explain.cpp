//===- Explain.cpp - predicted against measured -----------------------------===//

#include "dualpipe/Runtime/Explain.h"

#include "dualpipe/Runtime/Measured.h"

#include <algorithm>

namespace dualpipe::runtime {

using program::Command;
using program::CommandOp;
using program::Function;
using program::RankProgram;

static bool isLoad(const RankProgram &rank, const Command &command) {
  if (command.op != CommandOp::Launch)
    return false;
  const Function function = rank.launches[command.arg].function;
  return function == Function::LoadInput || function == Function::LoadLabels;
}

/// What is no compute is idle time of the rank.
static RankTimeByKind sumKinds(const program::Program &program, const Simulation &run,
                               uint32_t rank) {
  RankTimeByKind times{};
  times[kIdleTime] = run.makespan;
  const RankProgram &own = program.ranks[rank];
  for (uint32_t i = 0; i != own.commands.size(); ++i) {
    const Command &command = own.commands[i];
    if (command.op != CommandOp::Launch && command.op != CommandOp::Pair &&
        command.op != CommandOp::Step)
      continue;
    const Ticks time = run.commands[rank][i].end - run.commands[rank][i].start;
    times[isLoad(own, command) ? kLoadTime : size_t(getPathKind(program, {rank, i}))] += time;
    times[kIdleTime] -= time;
    if (command.op == CommandOp::Pair)
      i += command.arg;
  }
  return times;
}

static ExplainedRun describe(const program::Program &program, const SimulationCosts &costs,
                             const Simulation &run) {
  ExplainedRun explained{describeRun(program, costs, run), {}};
  for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
    explained.ranks.push_back(sumKinds(program, run, rank));
  return explained;
}

Result<SimulationCosts> getOwnCosts(const program::Program &program, const Profile &profile,
                                    std::optional<uint32_t> cores) {
  Result<SimulationCosts> costs = getCosts(profile, program);
  if (costs && cores && program.ranks.size() > *cores)
    costs->cores = *cores;
  return costs;
}

namespace {

/// A recorded step after the first.
struct Step {
  uint32_t number;
  Simulation run;
};

} // namespace

static Result<std::vector<Step>> readSteps(const program::Program &program,
                                           const std::vector<StepRecording> &recordings) {
  std::vector<Step> steps;
  for (const StepRecording &recording : recordings) {
    if (recording.step == 0)
      continue;
    Result<Simulation> run = readRecording(program, recording);
    if (!run)
      return run.getStatus();
    steps.push_back({recording.step, std::move(*run)});
  }
  return steps;
}

Result<Explanation> explain(const program::Program &program, const Profile &profile,
                            const std::vector<StepRecording> &recordings,
                            std::optional<uint32_t> cores) {
  Result<SimulationCosts> costs = getOwnCosts(program, profile, cores);
  if (!costs)
    return costs.getStatus();
  Result<Simulation> predicted = simulate(program, *costs, /*keepTimes=*/true);
  if (!predicted)
    return predicted.getStatus();
  Result<std::vector<Step>> steps = readSteps(program, recordings);
  if (!steps)
    return steps.getStatus();
  if (steps->empty())
    return Status::failure("no step after the first was recorded, expected at least two steps to "
                           "compare with");
  const auto middle = steps->begin() + ptrdiff_t((steps->size() - 1) / 2);
  std::nth_element(steps->begin(), middle, steps->end(),
                   [](const Step &a, const Step &b) { return a.run.makespan < b.run.makespan; });
  return Explanation{describe(program, *costs, *predicted), describe(program, *costs, middle->run),
                     middle->number, uint32_t(steps->size())};
}

} // namespace dualpipe::runtime
