//===- WritePicture.cpp - programs as pictures ------------------------------===//

#include "WritePicture.h"
#include "Complain.h"
#include "Output.h"
#include "WriteReport.h"

#include "dualpipe/Runtime/Measured.h"
#include "dualpipe/Runtime/Pictures.h"
#include "dualpipe/Runtime/Trace.h"

#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

using namespace dualpipe;
using namespace dualpipe::opt;
using namespace mlir;

bool opt::isPicture(Emit emit) {
  return emit == Emit::Svg || emit == Emit::Html || emit == Emit::Trace;
}

static std::string printTrace(const program::Program &program, const runtime::Simulation &run,
                              const runtime::SimulationCosts &costs) {
  runtime::TraceOptions trace;
  if (const std::optional<runtime::ModelSizes> &sizes = costs.model)
    trace.slotSize = [&](program::SlotKind kind, uint32_t sizeGroup) {
      return sizes->getSlotBytes(program.shared.contract, kind, sizeGroup);
    };
  trace.notes.emplace_back("times", "predicted: a unit of the costs is a millisecond");
  if (!costs.profileOption.empty())
    trace.notes.emplace_back("cost_option", costs.profileOption);
  for (const auto &[name, value] : costs.print())
    trace.notes.emplace_back("cost " + name, value);
  return runtime::printTrace(program, run.commands, trace);
}

static Result<std::string> print(const DriverOptions &options, const program::Program &program) {
  Result<runtime::SimulationCosts> costs = getPredictionCosts(options, program);
  if (!costs)
    return costs.getStatus();
  Result<runtime::Simulation> run = runtime::simulate(program, *costs, /*keepTimes=*/true);
  if (!run)
    return run.getStatus();
  if (options.emit == Emit::Trace)
    return printTrace(program, *run, *costs);
  const runtime::Prediction prediction = runtime::describeRun(program, *costs, *run);
  if (options.emit == Emit::Html)
    return runtime::printPage(program, prediction, options.theme);
  return runtime::printSvg(program, *run, prediction, options.theme);
}

LogicalResult opt::writePicture(const DriverOptions &options, const program::Program &program) {
  Result<std::string> text = print(options, program);
  if (!text)
    return complain(options.input + ": " + text.message());
  return writeText(options.output, [&](raw_ostream &os) { os << *text; });
}
