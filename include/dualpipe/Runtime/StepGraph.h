//===- StepGraph.h - steps that are captured once and run again ----------------===//

#ifndef DUALPIPE_RUNTIME_STEPGRAPH_H
#define DUALPIPE_RUNTIME_STEPGRAPH_H

#include "dualpipe/Support/Status.h"

#include <cstdint>

namespace dualpipe::runtime {

/// The commands of a rank's step, to be put on its streams.
class StepCommands {
public:
  virtual ~StepCommands() = default;
  /// All of them, in their order.
  virtual Status issueAll() = 0;
  /// One that calls stage functions or the optimizer: a launch, pair or step.
  virtual Status issueOne(uint32_t command) = 0;
};

/// How a rank's steps run on a device that can take them down. For the rank's own thread.
class StepGraph {
public:
  virtual ~StepGraph() = default;
  /// Runs a step after Device::beginStep: issues its commands, takes them down first, or runs what
  /// was taken down before. May wait for other ranks.
  virtual Status runStep(StepCommands &commands) = 0;
  /// After a failure, before the transport is aborted: NCCL waits for graphs that use it to go.
  virtual void drop() = 0;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_STEPGRAPH_H
