//===- Session.cpp - a program on the ranks of one process ------------------===//

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
struct Session::State : FailureSink, Peers::Listener {
  State(std::shared_ptr<const program::Program> givenProgram,
        std::shared_ptr<const Model> givenModel, std::shared_ptr<const Optimizer> givenOptimizer,
        SessionOptions givenOptions)
      : program(std::move(givenProgram)), model(std::move(givenModel)),
        optimizer(std::move(givenOptimizer)), options(std::move(givenOptions)),
        backend(options.backend ? options.backend
                                : std::make_shared<CpuBackend>(program->shared, options.device)) {}

  struct Rank {
    const program::RankProgram *program;
    std::unique_ptr<RankRecorder> recorder; ///< null where nothing is recorded
    Backend::Ends ends;
    /// In memory of the device, where that is not the host's; else those of the result are used.
    std::vector<StageCopy> copies;
    std::unique_ptr<Executor> executor;
  };

  Status prepare();
  Status selectRanks();
  Status makeRoom();
  Status connect(const program::RankProgram &rankProgram);
  Status prepareRank(Rank &rank);
  static bool hasOwnMemory(const Rank &rank);
  Status placeCopies(Rank &rank, std::span<const StageCopy> results);
  Status fetchCopies();
  std::span<StageCopy> findCopies(uint32_t rank);
  Status checkMemory();
  void fail(Status status) override;
  void stop(Status status);
  void onPeerStep(uint32_t step, std::span<const MicrobatchLoss> losses) override;
  void onPeerFailure(Status status) override { stop(std::move(status)); }
  void runRank(uint32_t rank);
  bool runStep(uint32_t rank, uint32_t step);
  bool isRecorded(uint32_t step) const {
    return step >= options.training.numSteps - recordings.size();
  }
  bool waitForStep(uint32_t step);
  void finishStep(const Rank &rank, uint32_t step);
  void countStep(uint32_t step, std::span<const MicrobatchLoss> losses = {});
  void finishThread();
  bool isDone() const;
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
  std::vector<const program::RankProgram *> own; ///< what this process runs
  std::vector<Rank> ranks;                       ///< of them
  uint32_t numCounted = 0;                       ///< ranks whose steps are counted
  std::vector<RankMemory> memory;                ///< by rank
  Clock::time_point start;
  bool hasRun = false;
  bool isStuck = false;

  std::mutex mutex; ///< guards what follows
  std::condition_variable changed;
  std::optional<Status> failure;
  std::vector<uint32_t> finishedRanks; ///< by step
  std::vector<Clock::time_point> stepEnds;
  uint32_t numSteps = 0;    ///< steps that all counted ranks have finished
  uint32_t numReported = 0; ///< of those, steps that `onStep` has seen
  size_t numFinishedThreads = 0;
};

Status Session::State::selectRanks() {
  for (const program::RankProgram &rank : program->ranks)
    if (!options.onlyRank || rank.rank == *options.onlyRank)
      own.push_back(&rank);
  const uint32_t numRanks = program->shared.numRanks;
  if (own.size() != (options.onlyRank ? 1 : numRanks))
    return Status::failure(
        fmt::format("the program file holds {} of {} ranks, expected {}; "
                    "compile it without --only-rank",
                    program->ranks.size(), numRanks,
                    options.onlyRank ? fmt::format("rank {}", *options.onlyRank) : "all of them"));
  numCounted = options.peers && options.peers->collects() ? numRanks : uint32_t(own.size());
  return Status::success();
}

/// For what the run leaves behind.
Status Session::State::makeRoom() {
  const program::SharedInfo &shared = program->shared;
  Result<std::vector<double>> losses =
      createLosses(options.training.numSteps, shared.numMicrobatches);
  if (!losses.ok())
    return losses.getStatus();
  result.losses = std::move(*losses);
  const uint32_t numRecorded = std::min(options.numRecordedSteps, options.training.numSteps);
  for (uint32_t i = 0; i != numRecorded; ++i)
    recordings.push_back({options.training.numSteps - numRecorded + i,
                          std::vector<std::vector<CommandSpan>>(own.size())});
  finishedRanks.resize(options.training.numSteps, 0);
  stepEnds.resize(options.training.numSteps);
  Result<std::vector<StageCopy>> copies =
      createCopies(*model, *optimizer, shared, options.training.seed, options.onlyRank);
  if (!copies.ok())
    return copies.getStatus();
  result.copies = std::move(*copies);
  result.numMicrobatches = shared.numMicrobatches;
  return Status::success();
}

/// Ranks are connected before any of them waits for others, and before anybody may stop them.
Status Session::State::prepare() {
  if (Status status = selectRanks(); !status.ok())
    return status;
  if (options.emitted && options.numRecordedSteps != 0)
    return Status::failure("times of commands cannot be taken of an emitted step; trace, profile "
                           "and explain runs of the program file");
  if (options.emitted)
    if (Status status = options.emitted->checkProgram(*program); !status.ok())
      return status;
  if (Status status = model->checkProgram(program->shared); !status.ok())
    return status;
  if (Status status = makeRoom(); !status.ok())
    return status;
  ranks.reserve(own.size());
  for (const program::RankProgram *rank : own)
    if (Status status = connect(*rank); !status.ok())
      return status;
  if (options.peers)
    options.peers->listen(this);
  for (const Rank &rank : ranks)
    if (Status status = rank.ends.transport->meet(); !status.ok())
      return status;
  for (Rank &rank : ranks)
    if (Status status = prepareRank(rank); !status.ok())
      return status;
  return checkMemory();
}

Status Session::State::connect(const program::RankProgram &rankProgram) {
  Rank &rank = ranks.emplace_back();
  rank.program = &rankProgram;
  if (options.numRecordedSteps != 0)
    rank.recorder = std::make_unique<RankRecorder>(rankProgram.commands.size());
  Result<Backend::Ends> ends = backend->connect(rankProgram, *model, *this, rank.recorder.get());
  if (!ends.ok())
    return ends.getStatus();
  rank.ends = std::move(*ends);
  if (rank.recorder && rank.ends.graph)
    return Status::failure("times of commands cannot be taken in a captured step; record the run "
                           "without graphs");
  return Status::success();
}

Status Session::State::prepareRank(Rank &rank) {
  const std::span<StageCopy> results = findCopies(rank.program->rank);
  if (Status status = placeCopies(rank, results); !status.ok())
    return status;
  const std::span<StageCopy> copies = hasOwnMemory(rank) ? rank.copies : results;
  Result<std::unique_ptr<Executor>> executor =
      Executor::create({&program->shared, rank.program, model.get(), optimizer.get(),
                        rank.ends.device.get(), rank.ends.transport.get(), this, copies,
                        rank.ends.math.get(), rank.recorder.get(), rank.ends.graph.get(),
                        options.emitted ? options.emitted->findRank(rank.program->rank) : nullptr});
  if (!executor.ok())
    return executor.getStatus();
  rank.executor = std::move(*executor);
  if (!hasOwnMemory(rank))
    return Status::success();
  Status status = rank.executor->initializeCopies(options.training.seed);
  const std::lock_guard lock(mutex);
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
    const std::span<StageCopy> results = findCopies(ranks[i].program->rank);
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
  for (const Rank &rank : ranks) {
    const size_t index = size_t(rank.program - program->ranks.data());
    memory.push_back((*predicted)[index]);
    if (Status status = checkAllocation(
            measureAllocation(*rank.executor, findCopies(rank.program->rank)), memory.back());
        !status.ok())
      return status;
  }
  return Status::success();
}

void Session::State::fail(Status status) {
  if (options.peers)
    options.peers->fail(status);
  stop(std::move(status));
}

/// Others know.
void Session::State::stop(Status status) {
  {
    const std::lock_guard lock(mutex);
    if (!failure)
      failure = std::move(status);
  }
  for (const Rank &rank : ranks)
    if (rank.ends.device) // else it could not be connected
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
    finishStep(ranks[rank], step);
  finishThread();
}

void Session::State::finishStep(const Rank &rank, uint32_t step) {
  if (options.peers) {
    const double *losses = result.losses.data() + size_t(step) * result.numMicrobatches;
    std::vector<MicrobatchLoss> known;
    for (const uint32_t microbatch : rank.executor->getLossMicrobatches())
      known.push_back({microbatch, losses[microbatch]});
    options.peers->finishStep(step, known);
  }
  countStep(step);
}

void Session::State::onPeerStep(uint32_t step, std::span<const MicrobatchLoss> losses) {
  if (step < options.training.numSteps) // else the other one has more of them
    countStep(step, losses);
}

/// `losses` are those that a rank of another process has.
void Session::State::countStep(uint32_t step, std::span<const MicrobatchLoss> losses) {
  {
    const std::lock_guard lock(mutex);
    for (const auto &[microbatch, loss] : losses)
      if (microbatch < result.numMicrobatches)
        result.losses[size_t(step) * result.numMicrobatches + microbatch] = loss;
    if (++finishedRanks[step] != numCounted)
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
  const bool isExpired = watchdog.isExpired(positions);
  if (!isExpired && !options.peers)
    return;
  std::string text;
  for (size_t rank = 0; rank != ranks.size() && isExpired; ++rank)
    text += fmt::format("{}{}", rank == 0 ? "" : "\n  ",
                        describeHoldUp(program->shared, *ranks[rank].program, positions[rank]));
  if (options.peers)
    return options.peers->standStill(isExpired ? std::optional(std::move(text)) : std::nullopt);
  fail(Status::failure(fmt::format("no progress for {} s; what each rank waits for:\n  {}",
                                   options.timeoutSeconds, text)));
}

/// All threads, and the steps of other processes.
bool Session::State::isDone() const {
  return numFinishedThreads == ranks.size() && numSteps == options.training.numSteps;
}

/// Watches until all is done. False where one has not, some time after a failure.
bool Session::State::waitForThreads() {
  Watchdog watchdog(options.timeoutSeconds);
  std::unique_lock lock(mutex);
  while (!isDone() && !failure) {
    changed.wait_for(lock, watchdog.getInterval(),
                     [&] { return isDone() || failure || numReported != numSteps; });
    reportSteps(lock);
    if (isDone() || failure)
      break;
    lock.unlock();
    checkProgress(watchdog);
    lock.lock();
  }
  reportSteps(lock);
  return changed.wait_for(lock, kGrace, [&] { return numFinishedThreads == ranks.size(); });
}

Session::Session(std::shared_ptr<State> state) : state(std::move(state)) {}
Session::~Session() {
  if (state->options.peers)
    state->options.peers->listen(nullptr);
}

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const program::Program> program,
                                                 std::shared_ptr<const Model> model,
                                                 std::shared_ptr<const Optimizer> optimizer,
                                                 SessionOptions options) {
  auto state = std::make_shared<State>(std::move(program), std::move(model), std::move(optimizer),
                                       std::move(options));
  const std::shared_ptr<State> made = state;
  std::unique_ptr<Session> session(new Session(std::move(state)));
  Status status = made->prepare();
  if (status.ok())
    return session;
  made->fail(status); // communicators that wait for other ranks are aborted, not waited for
  return *made->failure;
}

const std::vector<RankMemory> &Session::getMemory() const { return state->memory; }

uint64_t Session::getNumCommands() const {
  uint64_t commands = 0;
  for (const program::RankProgram *rank : state->own)
    commands += rank->commands.size();
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
      state->fail(Status::failure(fmt::format("cannot start a thread for rank {}: {}",
                                              state->own[rank]->rank, error.what())));
      state->finishThread();
    }
  }
  return threads;
}

/// For others, who may still run.
static std::string describeEnd(const std::vector<const program::RankProgram *> &own) {
  std::string text;
  for (const program::RankProgram *rank : own)
    text += fmt::format("{}rank {} has finished", text.empty() ? "" : "\n  ", rank->rank);
  return text;
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
  if (state->options.peers)
    state->options.peers->standStill(describeEnd(state->own));

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
