//===- Session.cpp - a program on all ranks of one process ------------------===//

#include "dualpipe/Runtime/Session.h"
#include "Allocation.h"
#include "Executor.h"
#include "Watchdog.h"

#include "dualpipe/Runtime/MeasureModel.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>

namespace dualpipe::runtime {

using Clock = std::chrono::steady_clock;

/// How long threads may take to notice that a run has failed and been stopped.
static constexpr std::chrono::seconds kGrace{2};

static double getProcessSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

static double getSeconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// Everything that the threads of a run use. They share its ownership.
struct Session::State : FailureSink {
  State(std::shared_ptr<const program::Program> givenProgram,
        std::shared_ptr<const Model> givenModel, std::shared_ptr<const Optimizer> givenOptimizer,
        SessionOptions givenOptions)
      : program(std::move(givenProgram)), model(std::move(givenModel)),
        optimizer(std::move(givenOptimizer)), options(std::move(givenOptions)),
        backend(options.backend ? options.backend
                                : std::make_shared<CpuBackend>(program->shared, options.device)) {}

  struct Rank {
    std::unique_ptr<RankRecorder> recorder; ///< null where nothing is recorded
    Backend::Ends ends;
    /// In memory of the device, where that is not the host's; else those of the result are used.
    std::vector<StageCopy> copies;
    std::unique_ptr<Executor> executor;
  };

  Status prepare();
  Status prepareRank(const program::RankProgram &rankProgram);
  static bool hasOwnMemory(const Rank &rank);
  Status placeCopies(Rank &rank, std::span<const StageCopy> results);
  Status fetchCopies();
  std::span<StageCopy> findCopies(uint32_t rank);
  Status checkMemory();
  void fail(Status status) override;
  void runRank(uint32_t rank);
  bool runStep(uint32_t rank, uint32_t step);
  bool isRecorded(uint32_t step) const {
    return step >= options.training.numSteps - recordings.size();
  }
  bool waitForStep(uint32_t step);
  void finishStep(uint32_t step);
  void finishThread();
  bool hasFailed();
  bool waitForThreads();
  void reportSteps(std::unique_lock<std::mutex> &lock);
  void checkProgress(Watchdog &watchdog);
  StepReport makeStepReport(uint32_t step) const;
  std::vector<DevicePosition> getPositions() const;

  const std::shared_ptr<const program::Program> program;
  const std::shared_ptr<const Model> model;
  const std::shared_ptr<const Optimizer> optimizer;
  const SessionOptions options;
  const std::shared_ptr<Backend> backend;
  TrainingResult result;
  std::vector<StepRecording> recordings;
  std::vector<Rank> ranks;
  std::vector<RankMemory> memory; ///< by rank
  Clock::time_point start;
  bool hasRun = false;
  bool isStuck = false;

  std::mutex mutex; ///< guards what follows
  std::condition_variable changed;
  std::optional<Status> failure;
  std::vector<uint32_t> finishedRanks; ///< by step
  std::vector<Clock::time_point> stepEnds;
  uint32_t numSteps = 0;    ///< steps that all ranks have finished
  uint32_t numReported = 0; ///< of those, steps that `onStep` has seen
  size_t numFinishedThreads = 0;
};

Status Session::State::prepare() {
  const program::SharedInfo &shared = program->shared;
  if (program->ranks.size() != shared.numRanks)
    return Status::failure(fmt::format("the program file holds {} of {} ranks, expected all of "
                                       "them; compile it without --only-rank",
                                       program->ranks.size(), shared.numRanks));
  if (options.emitted && options.numRecordedSteps != 0)
    return Status::failure("times of commands cannot be taken of an emitted step; trace, profile "
                           "and explain runs of the program file");
  if (options.emitted)
    if (Status status = options.emitted->checkProgram(*program); !status.ok())
      return status;
  if (Status status = model->checkProgram(shared); !status.ok())
    return status;
  Result<std::vector<double>> losses =
      createLosses(options.training.numSteps, shared.numMicrobatches);
  if (!losses.ok())
    return losses.getStatus();
  result.losses = std::move(*losses);
  const uint32_t numRecorded = std::min(options.numRecordedSteps, options.training.numSteps);
  for (uint32_t i = 0; i != numRecorded; ++i)
    recordings.push_back({options.training.numSteps - numRecorded + i,
                          std::vector<std::vector<CommandSpan>>(shared.numRanks)});
  finishedRanks.resize(options.training.numSteps, 0);
  stepEnds.resize(options.training.numSteps);
  Result<std::vector<StageCopy>> copies =
      createCopies(*model, *optimizer, shared, options.training.seed);
  if (!copies.ok())
    return copies.getStatus();
  result.copies = std::move(*copies);
  result.numMicrobatches = shared.numMicrobatches;
  ranks.reserve(shared.numRanks);
  for (const program::RankProgram &rank : program->ranks)
    if (Status status = prepareRank(rank); !status.ok())
      return status;
  return checkMemory();
}

Status Session::State::prepareRank(const program::RankProgram &rankProgram) {
  Rank &rank = ranks.emplace_back();
  if (options.numRecordedSteps != 0)
    rank.recorder = std::make_unique<RankRecorder>(rankProgram.commands.size());
  Result<Backend::Ends> ends = backend->connect(rankProgram, *model, *this, rank.recorder.get());
  if (!ends.ok())
    return ends.getStatus();
  rank.ends = std::move(*ends);
  if (rank.recorder && rank.ends.graph)
    return Status::failure("times of commands cannot be taken in a captured step; record the run "
                           "without graphs");

  const std::span<StageCopy> results = findCopies(rankProgram.rank);
  if (Status status = placeCopies(rank, results); !status.ok())
    return status;
  const std::span<StageCopy> copies = hasOwnMemory(rank) ? rank.copies : results;
  Result<std::unique_ptr<Executor>> executor =
      Executor::create({&program->shared, &rankProgram, model.get(), optimizer.get(),
                        rank.ends.device.get(), rank.ends.transport.get(), this, copies,
                        rank.ends.math.get(), rank.recorder.get(), rank.ends.graph.get(),
                        options.emitted ? options.emitted->findRank(rankProgram.rank) : nullptr});
  if (!executor.ok())
    return executor.getStatus();
  rank.executor = std::move(*executor);
  if (!hasOwnMemory(rank))
    return Status::success();
  Status status = rank.executor->initializeCopies(options.training.seed);
  return failure ? *failure : status; // what the device has reported says more
}

bool Session::State::hasOwnMemory(const Rank &rank) {
  return rank.ends.device->getPlace().device_type != kDLCPU;
}

/// The likes of the result's copies on a device; their weights come from there.
Status Session::State::placeCopies(Rank &rank, std::span<const StageCopy> results) {
  if (!hasOwnMemory(rank))
    return Status::success();
  rank.copies.reserve(results.size());
  for (const StageCopy &copy : results) {
    Result<StageCopy> placed =
        StageCopy::create(*model, copy.getRank(), copy.getStage(), program->shared.training,
                          optimizer->getStateFactor(), *rank.ends.device);
    if (!placed.ok())
      return placed.getStatus();
    rank.copies.push_back(std::move(*placed));
  }
  return Status::success();
}

/// After the last step: what a device has goes to the result.
Status Session::State::fetchCopies() {
  for (size_t i = 0; i != ranks.size(); ++i) {
    const std::span<StageCopy> results = findCopies(program->ranks[i].rank);
    for (size_t k = 0; k != ranks[i].copies.size(); ++k)
      if (Status status = ranks[i].copies[k].download(*ranks[i].ends.device, results[k]);
          !status.ok())
        return status;
  }
  return Status::success();
}

/// Copies are in the order of their ranks.
std::span<StageCopy> Session::State::findCopies(uint32_t rank) {
  const auto begin =
      std::partition_point(result.copies.begin(), result.copies.end(),
                           [&](const StageCopy &copy) { return copy.getRank() < rank; });
  const auto end = std::partition_point(
      begin, result.copies.end(), [&](const StageCopy &copy) { return copy.getRank() == rank; });
  return {begin, end};
}

/// What is allocated by now is what the program and the sizes of the model say.
Status Session::State::checkMemory() {
  Result<std::vector<RankMemory>> predicted =
      measureMemory(*program, measureModel(*model, *optimizer));
  if (!predicted.ok())
    return predicted.getStatus();
  memory = std::move(*predicted);
  for (size_t rank = 0; rank != ranks.size(); ++rank)
    if (Status status = checkAllocation(
            measureAllocation(*ranks[rank].executor, findCopies(uint32_t(rank))), memory[rank]);
        !status.ok())
      return status;
  return Status::success();
}

void Session::State::fail(Status status) {
  {
    const std::lock_guard lock(mutex);
    if (!failure)
      failure = std::move(status);
  }
  for (const Rank &rank : ranks)
    rank.ends.device->abort();
  changed.notify_all();
}

bool Session::State::hasFailed() {
  const std::lock_guard lock(mutex);
  return failure.has_value();
}

/// Recorded steps begin when all ranks have finished the one before: as in a simulation.
bool Session::State::runStep(uint32_t rank, uint32_t step) {
  const TrainingOptions &training = options.training;
  RankRecorder *recorder = ranks[rank].recorder.get();
  if (recorder) {
    if (!waitForStep(step))
      return false;
    const Clock::time_point begin = step == 0 ? start : stepEnds[step - 1];
    recorder->beginStep(
        std::chrono::duration_cast<std::chrono::nanoseconds>(begin.time_since_epoch()).count());
  }
  double *losses = result.losses.data() + size_t(step) * result.numMicrobatches;
  if (!ranks[rank].executor->runStep({step, training.seed, training.learningRate}, losses))
    return false;
  if (!recorder || !isRecorded(step))
    return true;
  const size_t first = training.numSteps - recordings.size();
  recordings[step - first].ranks[rank] = recorder->takeStep();
  return true;
}

/// False where the run has failed.
bool Session::State::waitForStep(uint32_t step) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return numSteps == step || failure; });
  return !failure;
}

void Session::State::runRank(uint32_t rank) {
  for (uint32_t step = 0; step != options.training.numSteps && runStep(rank, step); ++step)
    finishStep(step);
  finishThread();
}

void Session::State::finishStep(uint32_t step) {
  {
    const std::lock_guard lock(mutex);
    if (++finishedRanks[step] != ranks.size())
      return;
    stepEnds[step] = Clock::now();
    numSteps = step + 1;
  }
  changed.notify_all();
}

void Session::State::finishThread() {
  {
    const std::lock_guard lock(mutex);
    ++numFinishedThreads;
  }
  changed.notify_all();
}

StepReport Session::State::makeStepReport(uint32_t step) const {
  const auto first = result.losses.begin() + ptrdiff_t(step) * result.numMicrobatches;
  const double sum = std::accumulate(first, first + result.numMicrobatches, 0.0);
  const Clock::time_point before = step == 0 ? start : stepEnds[step - 1];
  return {step, sum / result.numMicrobatches, getSeconds(stepEnds[step] - before)};
}

/// Hands finished steps to the user, without holding the lock meanwhile.
void Session::State::reportSteps(std::unique_lock<std::mutex> &lock) {
  while (numReported != numSteps) {
    const StepReport report = makeStepReport(numReported++);
    if (!options.onStep)
      continue;
    lock.unlock();
    options.onStep(report);
    lock.lock();
  }
}

std::vector<DevicePosition> Session::State::getPositions() const {
  std::vector<DevicePosition> positions;
  for (const Rank &rank : ranks)
    positions.push_back(rank.ends.device->getPosition());
  return positions;
}

void Session::State::checkProgress(Watchdog &watchdog) {
  const std::vector<DevicePosition> positions = getPositions();
  if (!watchdog.isExpired(positions))
    return;
  std::string text =
      fmt::format("no progress for {} s; what each rank waits for:", options.timeoutSeconds);
  for (size_t rank = 0; rank != ranks.size(); ++rank)
    text += "\n  " + describeHoldUp(program->shared, program->ranks[rank], positions[rank]);
  fail(Status::failure(std::move(text)));
}

/// Watches until all threads have finished. False where one has not, some time after a failure.
bool Session::State::waitForThreads() {
  Watchdog watchdog(options.timeoutSeconds);
  std::unique_lock lock(mutex);
  const auto allDone = [&] { return numFinishedThreads == ranks.size(); };
  while (!allDone() && !failure) {
    changed.wait_for(lock, watchdog.getInterval(),
                     [&] { return allDone() || failure || numReported != numSteps; });
    reportSteps(lock);
    if (allDone() || failure)
      break;
    lock.unlock();
    checkProgress(watchdog);
    lock.lock();
  }
  reportSteps(lock);
  return changed.wait_for(lock, kGrace, allDone);
}

Session::Session(std::shared_ptr<State> state) : state(std::move(state)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const program::Program> program,
                                                 std::shared_ptr<const Model> model,
                                                 std::shared_ptr<const Optimizer> optimizer,
                                                 SessionOptions options) {
  auto state = std::make_shared<State>(std::move(program), std::move(model), std::move(optimizer),
                                       std::move(options));
  if (Status status = state->prepare(); !status.ok())
    return status;
  return std::unique_ptr<Session>(new Session(std::move(state)));
}

const std::vector<RankMemory> &Session::getMemory() const { return state->memory; }

uint64_t Session::getNumCommands() const {
  uint64_t commands = 0;
  for (const program::RankProgram &rank : state->program->ranks)
    commands += rank.commands.size();
  return commands;
}

bool Session::hasStuckThread() const { return state->isStuck; }

/// One thread per rank. A rank for which the system has no thread fails the run.
std::vector<std::thread> Session::startThreads(const std::shared_ptr<State> &state) {
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank != state->ranks.size(); ++rank) {
    try {
      threads.emplace_back([shared = state, rank] { shared->runRank(rank); });
    } catch (const std::system_error &error) {
      state->fail(Status::failure(
          fmt::format("cannot start a thread for rank {}: {}", rank, error.what())));
      state->finishThread();
    }
  }
  return threads;
}

Result<RunReport> Session::run() {
  if (state->hasRun)
    return Status::failure("a session runs once");
  state->hasRun = true;
  const double cpuBefore = getProcessSeconds();
  state->start = Clock::now();
  std::vector<std::thread> threads = startThreads(state);
  state->isStuck = !state->waitForThreads();
  for (std::thread &thread : threads)
    state->isStuck ? thread.detach() : thread.join();
  if (state->hasFailed())
    return *state->failure;
  if (Status status = state->fetchCopies(); !status.ok())
    return status;

  RunReport report;
  report.wallSeconds = getSeconds(Clock::now() - state->start);
  report.cpuSeconds = getProcessSeconds() - cpuBefore;
  for (uint32_t step = 0; step != state->numSteps; ++step)
    report.steps.push_back(state->makeStepReport(step));
  report.result = std::move(state->result);
  report.recordings = std::move(state->recordings);
  for (StepRecording &recording : report.recordings)
    alignEnds(*state->program, recording);
  return report;
}

} // namespace dualpipe::runtime
