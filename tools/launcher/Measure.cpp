//===- Measure.cpp - what a run has shown of time ---------------------------===//

#include "Measure.h"
#include "Output.h"

#include "dualpipe/Runtime/Explain.h"
#include "dualpipe/Runtime/MeasureModel.h"
#include "dualpipe/Runtime/Measured.h"
#include "dualpipe/Runtime/Profile.h"
#include "dualpipe/Runtime/Trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>

namespace dualpipe::launcher {

/// More add nothing to a median, and each takes 48 bytes a command.
static constexpr uint32_t kMaxRecordedSteps = 20;

uint32_t getNumRecordedSteps(const Options &options) {
  if (options.explain || !options.profile.empty())
    return std::min(options.steps, kMaxRecordedSteps);
  return options.trace.empty() ? 0 : 1;
}

static uint32_t getNumCores() { return std::max(1u, std::thread::hardware_concurrency()); }

static runtime::ProfileOrigin getOrigin(const Options &options, const program::SharedInfo &shared,
                                        const runtime::Model &model, bool onGpus) {
  return {shared.schedule,  shared.params,          shared.numRanks,
          shared.numStages, shared.numMicrobatches, shared.contract.numComponents,
          model.getName(),  options.settings,       onGpus ? "cuda" : "cpu",
          getNumCores()};
}

/// The last step, in microseconds.
static Status writeTrace(const Options &options, const program::Program &program,
                         const runtime::ModelSizes &sizes, const runtime::RunReport &run) {
  Result<runtime::Simulation> times = runtime::readRecording(program, run.recordings.back());
  if (!times.ok())
    return times.getStatus();
  runtime::TraceOptions trace;
  trace.slotSize = [&](program::SlotKind kind, uint32_t sizeGroup) {
    return sizes.getSlotBytes(program.shared.contract, kind, sizeGroup);
  };
  trace.notes = {{"times", "measured"},
                 {"model", options.model},
                 {"step", fmt::format("{}", run.recordings.back().step)}};
  return writeOutput(options.trace, runtime::printTrace(program, times->commands, trace));
}

Result<std::string> reportTimes(const Options &options, const program::Program &program,
                                const runtime::Model &model, const runtime::Optimizer &optimizer,
                                const runtime::RunReport &run, bool onGpus) {
  const runtime::ModelSizes sizes = runtime::measureModel(model, optimizer);
  if (!options.trace.empty())
    if (Status status = writeTrace(options, program, sizes, run); !status.ok())
      return status;
  if (options.profile.empty() && !options.explain)
    return std::string();
  Result<runtime::Profile> profile = runtime::measureProfile(
      program, run.recordings, getOrigin(options, program.shared, model, onGpus), sizes);
  if (!profile.ok())
    return profile.getStatus();
  if (!options.profile.empty())
    if (Status status = writeOutput(options.profile, runtime::printProfile(*profile)); !status.ok())
      return status;
  if (!options.explain)
    return std::string();
  const std::optional<uint32_t> cores =
      onGpus ? std::nullopt : std::optional<uint32_t>(getNumCores());
  Result<runtime::Explanation> explanation =
      runtime::explain(program, *profile, run.recordings, cores);
  if (!explanation.ok())
    return explanation.getStatus();
  return options.json ? runtime::printExplanationJson(*explanation)
                      : runtime::printExplanation(*explanation);
}

} // namespace dualpipe::launcher
