//===- Session.h - a program on the ranks of one process --------------------===//

#ifndef DUALPIPE_RUNTIME_SESSION_H
#define DUALPIPE_RUNTIME_SESSION_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Backend.h"
#include "dualpipe/Runtime/CpuDevice.h"
#include "dualpipe/Runtime/EmittedStep.h"
#include "dualpipe/Runtime/Model.h"
#include "dualpipe/Runtime/Peers.h"
#include "dualpipe/Runtime/RankMemory.h"
#include "dualpipe/Runtime/Recording.h"
#include "dualpipe/Runtime/Reference.h"
#include "dualpipe/Support/Status.h"

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace dualpipe::runtime {

/// What a step has shown once all ranks have finished it. Where other processes have the other
/// ranks (SessionOptions::peers), only the one that collects hears of them; a step of the others is
/// that of their own ranks.
struct StepReport {
  uint32_t step = 0;
  double loss = 0;    ///< mean over the micro-batches
  double seconds = 0; ///< from the end of the step before, or the start, to the end of this one
};

/// How a program runs. `timeoutSeconds` is a finite number above 0.
struct SessionOptions {
  TrainingOptions training;
  /// Without progress on any rank for so long the run is stopped.
  double timeoutSeconds = 120;
  /// Where ranks run; null is on threads of this process, as `device` says. The model must be made
  /// for it.
  std::shared_ptr<Backend> backend;
  CpuDeviceOptions device;
  /// Issues the steps of all ranks in place of their commands; may be null. Nothing can be recorded
  /// then.
  std::shared_ptr<const EmittedStep> emitted;
  /// The rank that this process runs, where every rank has a process; else it runs all of them.
  std::optional<uint32_t> onlyRank;
  /// The processes of the other ranks then. They outlive the session.
  Peers *peers = nullptr;
  /// How many of the last steps are recorded. With any, all ranks begin a step together.
  uint32_t numRecordedSteps = 0;
  /// Called on the thread of `run`, in order, as steps finish. May be empty.
  std::function<void(const StepReport &)> onStep;
};

/// What a run leaves behind.
struct RunReport {
  TrainingResult result; ///< with the copies of stages of this process' ranks
  std::vector<StepReport> steps;
  std::vector<StepRecording> recordings; ///< of the last steps, in their order
  double wallSeconds = 0;                ///< of all steps
  double cpuSeconds = 0;                 ///< of the process over all steps
};

/// One thread per rank of a program that this process runs.
class Session {
public:
  /// Checks that the program has these ranks and that the model fits, then
  /// allocates everything, and checks that this is what measureMemory says (P4).
  /// Programs must have passed verifyProgram. What is given is shared, since a stage
  /// function that never returns keeps using it.
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const program::Program> program,
                                                 std::shared_ptr<const Model> model,
                                                 std::shared_ptr<const Optimizer> optimizer,
                                                 SessionOptions options);
  ~Session();

  /// What each rank of this process has allocated, before the run as after it.
  const std::vector<RankMemory> &getMemory() const;
  /// Commands that the ranks of this process together run in a step.
  uint64_t getNumCommands() const;

  /// Runs all steps, once. Fails with the message of the first rank that failed,
  /// or, after a timeout, with what each rank waits for.
  Result<RunReport> run();
  /// After a failure: a stage function has not come back. Its thread goes on; the
  /// process should end without unloading anything.
  bool hasStuckThread() const;

private:
  struct State;
  explicit Session(std::shared_ptr<State> state);
  static std::vector<std::thread> startThreads(const std::shared_ptr<State> &state);

  std::shared_ptr<State> state;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_SESSION_H
