//===- Measure.h - what a run has shown of time -----------------------------===//

#ifndef DUALPIPE_TOOLS_LAUNCHER_MEASURE_H
#define DUALPIPE_TOOLS_LAUNCHER_MEASURE_H

#include "Options.h"

#include "dualpipe/Runtime/Session.h"

#include <string>

namespace dualpipe::launcher {

/// How many of the last steps have to be recorded for what the user asked for.
uint32_t getNumRecordedSteps(const Options &options);

/// Writes trace and profile, and returns the table of --explain, as JSON with --json;
/// empty without it. The run was on GPUs or on the CPU's cores.
Result<std::string> reportTimes(const Options &options, const program::Program &program,
                                const runtime::Model &model, const runtime::Optimizer &optimizer,
                                const runtime::RunReport &run, bool onGpus);

} // namespace dualpipe::launcher

#endif // DUALPIPE_TOOLS_LAUNCHER_MEASURE_H
