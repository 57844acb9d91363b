//===- Measure.cpp - what a run has shown of time ---------------------------===//

#include "Measure.h"

#include "dualpipe/Runtime/Explain.h"
#include "dualpipe/Runtime/MeasureModel.h"
#include "dualpipe/Runtime/Measured.h"
#include "dualpipe/Runtime/Profile.h"
#include "dualpipe/Runtime/Trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <thread>

namespace dualpipe::launcher {

/// More add nothing to a median, and each takes 48 bytes a command.
static constexpr uint32_t kMaxRecordedSteps = 20;

uint32_t getNumRecordedSteps(const Options &options) {
  if (options.explain || !options.profile.empty())
    return std::min(options.steps, kMaxRecordedSteps);
  return options.trace.empty() ? 0 : 1;
}

static Status cannotWrite(const std::string &path) {
  return Status::failure(fmt::format("cannot write '{}'", path));
}

Status checkOutputs(const Options &options) {
  for (const std::string &path : {options.trace, options.profile}) {
    if (path.empty())
      continue;
    const bool existed = std::ifstream(path).good();
    const bool opens = std::ofstream(path, std::ios::app).good();
    if (!existed && opens)
      std::remove(path.c_str());
    if (!opens)
      return cannotWrite(path);
  }
  return Status::success();
}

static Status write(const std::string &path, const std::string &text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text << std::flush;
  return file.good() ? Status::success() : cannotWrite(path);
}

static uint32_t getNumCores() { return std::max(1u, std::thread::hardware_concurrency()); }

static runtime::ProfileOrigin getOrigin(const Options &options, const program::SharedInfo &shared,
                                        const runtime::Model &model) {
  return {shared.schedule,  shared.params,          shared.numRanks,
          shared.numStages, shared.numMicrobatches, shared.contract.numComponents,
          model.getName(),  options.settings,       "cpu",
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
  return write(options.trace, runtime::printTrace(program, times->commands, trace));
}

Result<std::string> reportTimes(const Options &options, const program::Program &program,
                                const runtime::Model &model, const runtime::Optimizer &optimizer,
                                const runtime::RunReport &run) {
  const runtime::ModelSizes sizes = runtime::measureModel(model, optimizer);
  if (!options.trace.empty())
    if (Status status = writeTrace(options, program, sizes, run); !status.ok())
      return status;
  if (options.profile.empty() && !options.explain)
    return std::string();
  Result<runtime::Profile> profile = runtime::measureProfile(
      program, run.recordings, getOrigin(options, program.shared, model), sizes);
  if (!profile.ok())
    return profile.getStatus();
  if (!options.profile.empty())
    if (Status status = write(options.profile, runtime::printProfile(*profile)); !status.ok())
      return status;
  if (!options.explain)
    return std::string();
  Result<runtime::Explanation> explanation =
      runtime::explain(program, *profile, run.recordings, getNumCores());
  if (!explanation.ok())
    return explanation.getStatus();
  return options.json ? runtime::printExplanationJson(*explanation)
                      : runtime::printExplanation(*explanation);
}

} // namespace dualpipe::launcher
