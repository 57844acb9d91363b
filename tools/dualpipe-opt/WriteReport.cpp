//===- WriteReport.cpp - what programs will cost ----------------------------===//

#include "WriteReport.h"
#include "CompileSchedule.h"
#include "Complain.h"
#include "LoadSchedule.h"
#include "Output.h"

#include "dualpipe/Runtime/Prediction.h"
#include "dualpipe/Runtime/Progress.h"

#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

using namespace dualpipe;
using namespace dualpipe::opt;
using namespace mlir;
using runtime::Prediction;
using runtime::SimulationCosts;

/// Where the schedule stands: entry 0 of the places of a program.
static SourceLoc getPlace(const program::SharedInfo &shared) {
  if (shared.locations.empty())
    return {};
  const program::Location &loc = shared.locations.front();
  return {loc.file, loc.line, loc.column};
}

static void warnOfBubble(const DriverOptions &options, const Prediction &prediction,
                         const program::SharedInfo &shared, MLIRContext &context) {
  if (!prediction.isMostlyBubble())
    return;
  DiagnosticSink sink;
  sink.warning(getPlace(shared),
               fmt::format("a rank computes for less than half of the time: its bubble is {} of "
                           "{}; more micro-batches make it a smaller part",
                           Costs::printTicks(prediction.getWorstBubble()),
                           Costs::printTicks(prediction.makespan)));
  (void)reportFindings(sink, shared.files, options.input, context);
}

Result<SimulationCosts> opt::getPredictionCosts(const DriverOptions &options,
                                                const program::Program &program) {
  return options.predictionCosts.getCosts(program);
}

static Result<Prediction> predictVisibly(const program::Program &program,
                                         const SimulationCosts &costs) {
  runtime::ProgressLine line("simulating");
  return runtime::predict(program, costs,
                          [&](uint64_t done, uint64_t total) { line.show(done, total); });
}

static std::string print(const DriverOptions &options, const Prediction &prediction,
                         const program::Program &program) {
  return options.reportFormat == ReportFormat::Json ? printJson(prediction, program)
                                                    : printText(prediction, program);
}

LogicalResult opt::writeReport(const DriverOptions &options, const program::Program &program,
                               MLIRContext &context) {
  Result<SimulationCosts> costs = getPredictionCosts(options, program);
  if (!costs)
    return complain(options.input + ": " + costs.message());
  Result<Prediction> prediction = predictVisibly(program, *costs);
  if (!prediction)
    return complain(options.input + ": " + prediction.message());
  warnOfBubble(options, *prediction, program.shared, context);
  return writeText(options.output,
                   [&](raw_ostream &os) { os << print(options, *prediction, program); });
}

namespace {

/// Predictions of several inputs, and their reports for programs.
struct Comparison {
  std::vector<Prediction> predictions;
  std::string reports;
};

} // namespace

static LogicalResult addProgram(const DriverOptions &options, const program::Program &program,
                                Comparison &comparison) {
  if (!comparison.predictions.empty() &&
      options.predictionCosts.overrides.find('[') != std::string::npos &&
      comparison.predictions.front().numStages != program.shared.numStages)
    return complain(fmt::format(
        "{}: --cost={} has times of single stages, and '{}' has {} stages, '{}' {}: compare "
        "schedules of equally many, or give times of all stages",
        options.input, options.predictionCosts.text, comparison.predictions.front().schedule,
        comparison.predictions.front().numStages, program.shared.schedule,
        program.shared.numStages));
  Result<SimulationCosts> costs = getPredictionCosts(options, program);
  if (!costs)
    return complain(options.input + ": " + costs.message());
  // A profile has the times of the stages that there are.
  if (!options.predictionCosts.profile)
    costs->divideAmong(runtime::getPartsPerRank(program.shared));
  Result<Prediction> prediction = predictVisibly(program, *costs);
  if (!prediction)
    return complain(options.input + ": " + prediction.message());
  comparison.reports += (comparison.reports.empty() ? "" : ",\n");
  comparison.reports += StringRef(printJson(*prediction, program)).rtrim();
  comparison.predictions.push_back(std::move(*prediction));
  return success();
}

static LogicalResult addInput(DriverOptions options, Input input, DialectRegistry &registry,
                              Comparison &comparison) {
  options.input = input.name;
  options.inputKind = input.kind;
  if (input.kind == InputKind::Module)
    return complain(
        fmt::format("'{}' is an MLIR module, expected a .pipe, .csv or .dpx file", input.name));
  return compileInput(std::move(input), MlirOptMainConfig::createFromCLOptions(), registry,
                      [&](llvm::SourceMgr &sources, MLIRContext &context) -> LogicalResult {
                        FailureOr<program::Program> program =
                            compileToProgram(options, sources, context);
                        if (failed(program))
                          return failure();
                        return addProgram(options, *program, comparison);
                      });
}

LogicalResult opt::comparePredictions(const DriverOptions &options, Input last,
                                      DialectRegistry &registry) {
  Comparison comparison;
  for (const std::string &name : options.compared) {
    Result<Input> input = openInput(name);
    if (!input)
      return complain(input.message());
    if (failed(addInput(options, std::move(*input), registry, comparison)))
      return failure();
  }
  if (failed(addInput(options, std::move(last), registry, comparison)))
    return failure();
  return writeText(options.output, [&](raw_ostream &os) {
    if (options.reportFormat == ReportFormat::Json)
      os << "[\n" << comparison.reports << "\n]\n";
    else
      os << runtime::printComparison(comparison.predictions);
  });
}
