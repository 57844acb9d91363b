//===- ShuffledRun.cpp - a program in a random legal order ------------------===//

#include "dualpipe/Runtime/ShuffledRun.h"
#include "Executor.h"
#include "FirstFailure.h"
#include "Watchdog.h"

#include "dualpipe/Runtime/ShuffledDevice.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>

namespace dualpipe::runtime {

namespace {

class ShuffledRun {
public:
  ShuffledRun(const Model &model, const program::Program &program, const Optimizer &optimizer,
              const TrainingOptions &options, uint64_t shuffleSeed)
      : model(model), program(program), optimizer(optimizer), options(options),
        hub(program.shared, failures, shuffleSeed) {}

  Result<RunReport> run();

private:
  struct Rank {
    ShuffledHub::Rank ends;
    std::unique_ptr<Executor> executor;
  };

  Status prepare();
  Status prepareRank(const program::RankProgram &rank);
  Status runStep(uint32_t step);
  Status describeFailure() const;

  const Model &model;
  const program::Program &program;
  const Optimizer &optimizer;
  const TrainingOptions &options;
  FirstFailure failures;
  ShuffledHub hub;
  TrainingResult result;
  std::vector<StepReport> steps;
  std::vector<Rank> ranks;
};

} // namespace

Status ShuffledRun::prepare() {
  if (program.ranks.size() != program.shared.numRanks)
    return Status::failure(fmt::format("expected the programs of all {} ranks, got {}",
                                       program.shared.numRanks, program.ranks.size()));
  if (Status status = model.checkProgram(program.shared); !status.ok())
    return status;
  Result<std::vector<double>> losses =
      createLosses(options.numSteps, program.shared.numMicrobatches);
  if (!losses.ok())
    return losses.getStatus();
  Result<std::vector<StageCopy>> copies =
      createCopies(model, optimizer, program.shared, options.seed);
  if (!copies.ok())
    return copies.getStatus();
  result = {program.shared.numMicrobatches, std::move(*losses), std::move(*copies)};
  for (const program::RankProgram &rank : program.ranks)
    if (Status status = prepareRank(rank); !status.ok())
      return status;
  return Status::success();
}

Status ShuffledRun::prepareRank(const program::RankProgram &rankProgram) {
  Rank &rank = ranks.emplace_back();
  rank.ends = hub.connect(rankProgram);
  // Copies are in the order of their ranks.
  const auto isBefore = [](const StageCopy &copy, uint32_t number) {
    return copy.getRank() < number;
  };
  const auto begin =
      std::lower_bound(result.copies.begin(), result.copies.end(), rankProgram.rank, isBefore);
  const auto end = std::lower_bound(begin, result.copies.end(), rankProgram.rank + 1, isBefore);
  Result<std::unique_ptr<Executor>> executor = Executor::create({&program.shared,
                                                                 &rankProgram,
                                                                 &model,
                                                                 &optimizer,
                                                                 rank.ends.device.get(),
                                                                 rank.ends.transport.get(),
                                                                 &failures,
                                                                 {begin, end}});
  if (!executor.ok())
    return executor.getStatus();
  rank.executor = std::move(*executor);
  return Status::success();
}

Status ShuffledRun::describeFailure() const {
  if (failures.failure)
    return *failures.failure;
  std::string text = "nothing can go on; what each rank waits for:";
  for (size_t rank = 0; rank != ranks.size(); ++rank)
    text += "\n  " + describeHoldUp(program.shared, program.ranks[rank],
                                    ranks[rank].ends.device->getPosition());
  return Status::failure(std::move(text));
}

Status ShuffledRun::runStep(uint32_t step) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  double *losses = result.losses.data() + size_t(step) * result.numMicrobatches;
  for (Rank &rank : ranks)
    if (!rank.executor->issueStep({step, options.seed, options.learningRate}, losses))
      return describeFailure();
  for (Rank &rank : ranks)
    if (!rank.executor->finishStep())
      return describeFailure();
  const double sum = std::accumulate(losses, losses + result.numMicrobatches, 0.0);
  const std::chrono::duration<double> time = Clock::now() - start;
  steps.push_back({step, sum / result.numMicrobatches, time.count()});
  return Status::success();
}

/// One thread: the time of the wall and that of the CPU are the same.
Result<RunReport> ShuffledRun::run() {
  if (Status status = prepare(); !status.ok())
    return status;
  RunReport report;
  for (uint32_t step = 0; step != options.numSteps; ++step) {
    if (Status status = runStep(step); !status.ok())
      return status;
    report.wallSeconds += steps.back().seconds;
  }
  report.cpuSeconds = report.wallSeconds;
  report.result = std::move(result);
  report.steps = std::move(steps);
  return report;
}

Result<RunReport> runShuffled(const Model &model, const program::Program &program,
                              const Optimizer &optimizer, const TrainingOptions &options,
                              uint64_t shuffleSeed) {
  return ShuffledRun(model, program, optimizer, options, shuffleSeed).run();
}

} // namespace dualpipe::runtime
