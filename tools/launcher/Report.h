//===- Report.h - what the launcher prints ----------------------------------===//

#ifndef DUALPIPE_TOOLS_LAUNCHER_REPORT_H
#define DUALPIPE_TOOLS_LAUNCHER_REPORT_H

#include "Options.h"

#include "dualpipe/Runtime/Reference.h"
#include "dualpipe/Runtime/Session.h"

#include <optional>
#include <string>

namespace dualpipe::launcher {

/// What runs, known before it does.
struct RunDescription {
  const program::Program *program;
  std::string model;
  std::string device;
  const std::vector<runtime::RankMemory> *memory;
  uint64_t numCommands = 0;
  /// Steps that ran as graphs, where they were to; known after the run.
  std::optional<uint32_t> numCapturedSteps = {};
};

/// The lines before the first step.
std::string describeRun(const RunDescription &run, const Options &options);
/// One line per step.
std::string describeStep(const runtime::StepReport &step);
/// All results as one JSON object; `check` may be null, `explanation` empty.
std::string toJson(const RunDescription &run, const Options &options,
                   const runtime::RunReport &report, const runtime::CheckReport *check,
                   const std::string &explanation);

} // namespace dualpipe::launcher

#endif // DUALPIPE_TOOLS_LAUNCHER_REPORT_H
