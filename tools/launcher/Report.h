//===- Report.h - what the launcher prints ----------------------------------===//

#ifndef DUALPIPE_TOOLS_LAUNCHER_REPORT_H
#define DUALPIPE_TOOLS_LAUNCHER_REPORT_H

#include "Options.h"

#include "dualpipe/Runtime/Cuda/CudaBackend.h"
#include "dualpipe/Runtime/Reference.h"
#include "dualpipe/Runtime/Session.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace dualpipe::launcher {

/// What is said of one rank before the first step.
struct RankReport {
  uint32_t rank = 0;
  uint64_t numCommands = 0;  ///< of a step
  std::string memory;        ///< summarizeRank
  std::string communicators; ///< of NCCL; empty where it has none
  /// Its memory (docs/reports.md) and its communicators.
  nlohmann::ordered_json json;
};

/// What runs, known before it does.
struct RunDescription {
  const program::SharedInfo *shared;
  std::string model;
  std::string device;
  std::vector<RankReport> ranks;
  /// Steps that ran as graphs, where they were to; known after the run.
  std::optional<uint32_t> numCapturedSteps = {};
};

/// The ranks of this process. `cuda` is null on the CPU.
std::vector<RankReport> reportRanks(const program::Program &program,
                                    const std::vector<runtime::RankMemory> &memory,
                                    const runtime::cuda::CudaBackend *cuda);

/// The lines before the first step.
std::string describeRun(const RunDescription &run, const Options &options);
/// One line per step.
std::string describeStep(const runtime::StepReport &step);
/// One number for the bytes of the weights of a copy.
uint64_t digestWeights(const runtime::StageCopy &copy);
/// All results as one JSON object; `digests` are of the weights of all copies, `check` may be null,
/// `explanation` empty.
std::string toJson(const RunDescription &run, const Options &options,
                   const runtime::RunReport &report, const std::vector<uint64_t> &digests,
                   const runtime::CheckReport *check, const std::string &explanation);

} // namespace dualpipe::launcher

#endif // DUALPIPE_TOOLS_LAUNCHER_REPORT_H
