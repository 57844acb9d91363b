//===- DiffSchedules.cpp - do two inputs run the same schedule? -------------===//

#include "DiffSchedules.h"
#include "Complain.h"
#include "Input.h"
#include "LoadSchedule.h"
#include "Output.h"

#include "dualpipe/Schedule/Diff.h"

#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

using namespace dualpipe;
using namespace dualpipe::opt;
using namespace mlir;

/// Loads and checks one of the two: a schedule that cannot run has nothing to compare.
static LogicalResult load(DriverOptions options, Input input, DialectRegistry &registry,
                          Schedule &schedule) {
  options.input = input.name;
  options.inputKind = input.kind;
  return compileInput(std::move(input), MlirOptMainConfig::createFromCLOptions(), registry,
                      [&](llvm::SourceMgr &sources, MLIRContext &context) -> LogicalResult {
                        return loadChecked(options, sources, context, schedule);
                      });
}

static std::string summarize(const Schedule &schedule) {
  return fmt::format("{} ranks, {} stages, {} micro-batches, {} ops", schedule.numRanks,
                     schedule.numStages, schedule.numMicrobatches, schedule.getNumOps());
}

/// Opens both inputs and loads their schedules.
static LogicalResult loadBoth(DriverOptions options, DialectRegistry &registry, Schedule &a,
                              Schedule &b) {
  Result<Input> first = openInput(options.diff);
  if (!first)
    return complain(first.message());
  Result<Input> second = openInput(options.input);
  if (!second)
    return complain(second.message());
  options.diffKind = first->kind;
  options.inputKind = second->kind;
  if (Status status = checkOptionsApply(options); !status)
    return complain(status.message());
  return success(succeeded(load(options, std::move(*first), registry, a)) &&
                 succeeded(load(options, std::move(*second), registry, b)));
}

int opt::diffSchedules(const DriverOptions &options, DialectRegistry &registry) {
  Schedule a, b;
  if (failed(loadBoth(options, registry, a, b)))
    return 1;

  std::vector<std::string> differences = dualpipe::diffSchedules(a, b);
  LogicalResult written = writeText(options.output, [&](llvm::raw_ostream &os) {
    if (differences.empty())
      os << "no difference: " << summarize(a) << "\n";
    else
      os << "a: " << options.diff << ": " << summarize(a) << "\n"
         << "b: " << options.input << ": " << summarize(b) << "\n";
    for (const std::string &line : differences)
      os << line << "\n";
  });
  return failed(written) || !differences.empty();
}
