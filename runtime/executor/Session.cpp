//===- Session.cpp - a program on the ranks of one process ------------------===//

#include "dualpipe/Runtime/Session.h"
#include "SessionState.h"
#include "Watchdog.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>
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
    state->options.peers->finishRun(describeEnd(state->own));

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
