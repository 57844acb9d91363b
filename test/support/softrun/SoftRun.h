//===- SoftRun.h - a program on GPUs made of software ---------------------------===//

#ifndef DUALPIPE_TEST_SUPPORT_SOFTRUN_SOFTRUN_H
#define DUALPIPE_TEST_SUPPORT_SOFTRUN_SOFTRUN_H

#include "test/support/softgpu/SoftGpu.h"

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Cuda/Graph.h"
#include "dualpipe/Runtime/Session.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dualpipe::test {

/// How ranks of a program reach each other.
enum class SoftTransport {
  Copies, ///< all on one GPU
  Nccl,   ///< a GPU each, a communicator per channel
  Folded, ///< a GPU each, one communicator for all channels
};

struct SoftRunOptions {
  SoftGpuOptions gpu = {}; ///< `numGpus` is set by the transport
  SoftTransport transport = SoftTransport::Copies;
  runtime::TrainingOptions training = {.seed = 7, .numSteps = 2, .learningRate = 1};
  double timeoutSeconds = 60;
  uint32_t numRecordedSteps = 0;          ///< as in SessionOptions
  const dp_model_api *model = nullptr;    ///< null is the exact one
  runtime::cuda::GraphOptions graph = {}; ///< `together` is set by the transport
  /// As in SoftGpuOptions; 0 is one per rank.
  uint32_t hostThreads = 0;
  /// So many bytes are missing at the end of every allocation of this size.
  size_t missingBytes = 0;
  size_t missingOf = 0;
};

/// What became of it.
struct SoftRunResult {
  std::string failure; ///< empty where the run succeeded
  runtime::TrainingResult result;
  std::vector<runtime::StepRecording> recordings;
  std::vector<std::string> reports; ///< of the GPUs
  uint64_t numRun = 0;              ///< operations of the GPUs
  uint32_t numReplayed = 0;         ///< steps that ran as graphs
  std::string note;                 ///< why steps did not, where they were to
};

/// Trains the exact model with a program of which all ranks are there.
SoftRunResult runOnSoftGpus(const program::Program &program, const SoftRunOptions &options);

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_SUPPORT_SOFTRUN_SOFTRUN_H
