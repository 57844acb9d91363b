//===- Graph.h - a rank's step as a CUDA graph -----------------------------------===//
//
// The first step is issued command by command: libraries load what they need, and
// NCCL connects. The second one is captured and launched, and every later one is a
// launch of the same graph. What changes from step to step stands in memory of the
// device (dp_step_state). Every rank launches graphs or none does: where a step
// cannot be captured on one of them, all go on issuing. Never run on a GPU so far.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_CUDA_GRAPH_H
#define DUALPIPE_RUNTIME_CUDA_GRAPH_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Cuda/CudaDevice.h"
#include "dualpipe/Runtime/StepGraph.h"

#include <functional>
#include <memory>
#include <string>

namespace dualpipe::runtime::cuda {

enum class GraphUse {
  Never,
  Try,     ///< steps that cannot be captured are issued, and a note says why
  Require, ///< the run fails then
};

struct GraphOptions {
  GraphUse use = GraphUse::Never;
  /// Ranks share a GPU and wait for each other there: one capture takes down all of them, and one
  /// launch runs them. Else each rank has a graph of its own, on its own GPU.
  bool together = false;
  /// Where ranks are in several processes: is given what was wrong in this one, or nothing, and
  /// returns what was wrong in the first one where something was. Called once, on one thread.
  std::function<Result<std::string>(const std::string &failure)> agree;
};

struct GraphShare;

/// What the ranks of a process share. Outlives the graphs that it gives out.
class GraphHub {
public:
  /// `shared` outlives the hub.
  GraphHub(const program::SharedInfo &shared, GraphOptions options);
  ~GraphHub();

  /// Each rank of the process, before any of them runs a step. Program and device outlive the
  /// graph, and the graph goes before the transport.
  Result<std::unique_ptr<StepGraph>> connect(const program::RankProgram &rank, CudaDevice &device);

  /// Why steps are issued after all: once, then empty. From any thread.
  std::string takeNote();
  /// Steps that ran as graphs on all ranks so far.
  uint32_t getNumReplayed() const;

private:
  std::unique_ptr<GraphShare> state;
};

} // namespace dualpipe::runtime::cuda

#endif // DUALPIPE_RUNTIME_CUDA_GRAPH_H
