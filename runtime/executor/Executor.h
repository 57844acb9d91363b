//===- Executor.h - walks one rank's commands -------------------------------===//

#ifndef DUALPIPE_RUNTIME_EXECUTOR_EXECUTOR_H
#define DUALPIPE_RUNTIME_EXECUTOR_EXECUTOR_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Device.h"
#include "dualpipe/Runtime/Model.h"
#include "dualpipe/Runtime/Recording.h"
#include "dualpipe/Runtime/StepGraph.h"
#include "dualpipe/Runtime/Transport.h"
#include "dualpipe/emitted.h"

#include <memory>
#include <span>
#include <vector>

namespace dualpipe::runtime {

class EmittedRun;

/// What an executor works with. All of it outlives the executor.
struct ExecutorParts {
  const program::SharedInfo *shared;
  const program::RankProgram *rank;
  const Model *model;
  const Optimizer *optimizer;
  Device *device;
  Transport *transport;
  FailureSink *failures;
  std::span<StageCopy> copies;      ///< those of the rank, in memory of the device
  void *math = nullptr;             ///< dp_call::runtime
  RankRecorder *recorder = nullptr; ///< takes the times of commands, or is null
  StepGraph *graph = nullptr;       ///< captures steps, or is null
  /// Issues the step in place of the commands, or is null.
  const dp_step_rank *emitted = nullptr;
};

/// One rank's program, ready to run: slots have their memory, commands their
/// copies of stages.
class Executor : private StepCommands {
public:
  /// Allocates the rank's arena. Fails where memory runs out.
  static Result<std::unique_ptr<Executor>> create(const ExecutorParts &parts);
  ~Executor();

  /// Writes the initial weights of copies on a device, which runs nothing else yet.
  Status initializeCopies(uint64_t seed);
  /// Runs all commands once. The forwards of last stages write losses[microbatch].
  /// False after a failure, which the sink has then.
  bool runStep(const dp_step_state &state, double *losses);
  /// The two halves of it: issues all commands; waits for them.
  bool issueStep(const dp_step_state &state, double *losses);
  bool finishStep();

  /// Whose losses this rank writes.
  const std::vector<uint32_t> &getLossMicrobatches() const { return lossMicrobatches; }
  /// Bytes of the slots and of the scratch memory.
  size_t getSlotBytes() const { return slotBytes; }
  size_t getWorkspaceBytes() const { return workspaceBytes; }
  /// Those of the slots by class of the program.
  const std::vector<uint64_t> &getClassBytes() const { return classBytes; }

private:
  friend class EmittedRun;
  explicit Executor(const ExecutorParts &parts);

  Status allocateSlots();
  Status allocateCalls();
  Status allocateOnDevice();
  Status beginStep(const dp_step_state &state, double *losses);
  Status fetchLosses();
  bool fail(Status status);
  void resolveCopies();
  StageCopy *findCopy(uint32_t stage) const;
  Status issueAll() override;
  Status issueOne(uint32_t command) override { return issue(command); }
  Status issue(uint32_t index);
  template <typename Issue> Status mark(uint32_t first, uint32_t count, Issue &&issue);
  Status issueGroup(uint32_t first, uint32_t count);
  Status issueTransfer(uint32_t index);
  Status runRecorded(uint32_t index, Status (Executor::*run)(uint32_t));
  Status run(uint32_t index);
  Status runLaunch(uint32_t index);
  Status runPair(uint32_t first, uint32_t count);
  StageCall &prepare(uint32_t index, uint32_t member) {
    return prepare(getLaunch(index), *copies[index], member);
  }
  StageCall &prepare(const program::Launch &launch, StageCopy &copy, uint32_t member);
  bool hasOwnMemory() const { return parts.device->getPlace().device_type != kDLCPU; }
  const program::Launch &getLaunch(uint32_t index) const {
    return parts.rank->launches[parts.rank->commands[index].arg];
  }
  static Status runCommand(void *context, uint32_t index);

  ExecutorParts parts;
  dp_step_state stepState{};
  double *losses = nullptr; ///< of the host
  /// Where stage functions read the step's state and write losses: the two above, or their likes in
  /// memory of a device that has its own.
  const dp_step_state *deviceState = nullptr;
  double *deviceLosses = nullptr;
  std::vector<uint32_t> lossMicrobatches;
  std::vector<std::byte *> slots;
  std::vector<StageCopy *> copies; ///< by command; null where a command has none
  size_t slotBytes = 0;
  std::vector<uint64_t> classBytes;
  size_t workspaceBytes = 0;
  /// One per member of the largest pair.
  std::vector<std::unique_ptr<StageCall>> calls;
  std::vector<StageCall *> callPointers;
  std::vector<program::Function> functions;
  std::unique_ptr<EmittedRun> emitted; ///< null where commands are issued
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_EXECUTOR_EXECUTOR_H
