//===- DiffSchedules.cpp - do two inputs run the same schedule? -------------===//

#include "DiffSchedules.h"
#include "LoadSchedule.h"
#include "Output.h"

#include "dualpipe/Schedule/Checker.h"
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
                      [&](llvm::SourceMgr &sources, MLIRContext &context) {
                        if (failed(loadSchedule(options, sources, context, schedule)))
                          return failure();
                        DiagnosticSink violations;
                        checkSchedule(schedule, violations);
                        return reportFindings(violations, schedule.files, options.input, context);
                      });
}

static std::string summarize(const Schedule &schedule) {
  return fmt::format("{} ranks, {} stages, {} micro-batches, {} ops", schedule.numRanks,
                     schedule.numStages, schedule.numMicrobatches, schedule.getNumOps());
}

int opt::diffSchedules(const DriverOptions &options, Input second, DialectRegistry &registry) {
  Result<Input> first = openInput(options.diff);
  if (!first) {
    llvm::errs() << "dualpipe-opt: error: " << first.message() << "\n";
    return 1;
  }
  Schedule a, b;
  std::string nameA = first->name, nameB = second.name;
  if (failed(load(options, std::move(*first), registry, a)) ||
      failed(load(options, std::move(second), registry, b)))
    return 1;

  std::vector<std::string> differences = dualpipe::diffSchedules(a, b);
  LogicalResult written = writeText(options.output, [&](llvm::raw_ostream &os) {
    if (differences.empty())
      os << "no difference: " << summarize(a) << "\n";
    else
      os << "a: " << nameA << ": " << summarize(a) << "\n"
         << "b: " << nameB << ": " << summarize(b) << "\n";
    for (const std::string &line : differences)
      os << line << "\n";
  });
  return failed(written) || !differences.empty();
}
