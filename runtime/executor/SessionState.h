//===- SessionState.h - what the threads of a session share ------------------===//

#ifndef DUALPIPE_RUNTIME_EXECUTOR_SESSIONSTATE_H
#define DUALPIPE_RUNTIME_EXECUTOR_SESSIONSTATE_H

#include "Executor.h"

#include "dualpipe/Runtime/Session.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

namespace dualpipe::runtime {

class Watchdog;

/// Everything that the threads of a run use. They share its ownership.
struct Session::State : FailureSink, Peers::Listener {
  using Clock = std::chrono::steady_clock;

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

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_EXECUTOR_SESSIONSTATE_H
