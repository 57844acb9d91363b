//===- EmittedRun.h - an emitted step of one rank ---------------------------===//

#ifndef DUALPIPE_RUNTIME_EXECUTOR_EMITTEDRUN_H
#define DUALPIPE_RUNTIME_EXECUTOR_EMITTEDRUN_H

#include "Executor.h"

#include "dualpipe/emitted.h"

#include <optional>
#include <vector>

namespace dualpipe::runtime {

/// Issues the commands of a rank by its emitted step (emitted.h). What the step calls directly are
/// the functions of the driver and of NCCL where the device and the transport have them; else
/// functions of the same meaning that go through Device and Transport, with handles that point to
/// what those need.
class EmittedRun {
public:
  /// Both outlive this.
  EmittedRun(Executor &executor, const dp_step_rank &rank);

  /// The failure names the command that the step was at.
  Status issue();

private:
  /// What handles point to where there is no driver, or no NCCL.
  struct EventHandle {
    EmittedRun *run;
    uint32_t number;
  };
  struct StreamHandle {
    uint32_t number;
  };
  struct LinkHandle {
    EmittedRun *run;
    uint32_t stream;
  };
  /// A stage function, a member of a pair or an optimizer step, from its call until it runs.
  struct Pending {
    program::Launch launch;
    StageCopy *copy = nullptr;
    uint32_t stream = 0;
    uint32_t numCalls = 0; ///< from here on; 0 for an optimizer step
  };

  void fillEvents();
  void fillTransfers();
  void fillCalls();
  int report(Status status);
  Status checkPlace(uint32_t stream, program::StreamKind kind, uint32_t numCommands) const;
  Status describe(uint32_t stream, const dp_step_call &call, Pending &made) const;
  Status launch(uint32_t stream, const dp_step_call *calls, uint32_t numCalls);
  Status takeOptimizerStep(uint32_t stream, uint32_t stage);
  Status sumGradients(uint32_t stream, uint32_t stage);
  Result<StageCopy *> findCopy(uint32_t stage) const;
  Status runPending(uint32_t command);
  Status runCalls(uint32_t command, const Pending &first);
  std::string describeCommand(uint32_t command) const;
  Status launchOnDevice(uint32_t stream);
  static Status runOnDevice(void *context, uint32_t command);

  static EmittedRun &get(dp_step_run *run) { return *reinterpret_cast<EmittedRun *>(run); }
  static int recordThroughDevice(CUevent_st *event, CUstream_st *stream);
  static int waitThroughDevice(CUstream_st *stream, CUevent_st *event, unsigned flags);
  static int sendThroughTransport(const void *data, size_t count, int type, int peer,
                                  ncclComm *communicator, CUstream_st *stream);
  static int recvThroughTransport(void *data, size_t count, int type, int peer,
                                  ncclComm *communicator, CUstream_st *stream);

  Executor &executor;
  const ExecutorParts &parts;
  const dp_step_rank &rank;
  DirectEvents *events;     ///< null: through the device
  DirectChannels *channels; ///< null: through the transport
  dp_step step{};
  std::vector<StreamHandle> streamHandles;
  std::vector<EventHandle> eventHandles;
  std::vector<LinkHandle> linkHandles;
  std::vector<CUstream_st *> streams;
  std::vector<CUevent_st *> eventPointers;
  std::vector<uint8_t> recorded;
  std::vector<void *> slots;
  std::vector<dp_step_link> links;
  std::vector<void *> owners; ///< by stream: for DirectChannels
  std::vector<size_t> inputBytes, gradOutputBytes;
  std::vector<StageCopy *> copies; ///< by stage; null where the rank has none
  std::vector<Pending> pending;    ///< by command
  std::optional<Status> failure;
  bool hasPlace = false; ///< the failure names its command already
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_EXECUTOR_EMITTEDRUN_H
