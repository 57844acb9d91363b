//===- WritePicture.cpp - programs as pictures ------------------------------===//

#include "WritePicture.h"
#include "Complain.h"
#include "Output.h"
#include "WriteReport.h"

#include "dualpipe/Runtime/Trace.h"

#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

using namespace dualpipe;
using namespace dualpipe::opt;
using namespace mlir;

bool opt::isPicture(Emit emit) { return emit == Emit::Trace; }

static Result<std::string> printTrace(const program::Program &program,
                                      const runtime::SimulationCosts &costs) {
  Result<runtime::Simulation> run = runtime::simulate(program, costs, /*keepTimes=*/true);
  if (!run)
    return run.getStatus();
  runtime::TraceOptions trace;
  trace.notes.emplace_back("times", "predicted: a unit of the costs is a millisecond");
  for (const auto &[name, value] : costs.print())
    trace.notes.emplace_back("cost " + name, value);
  return runtime::printTrace(program, run->commands, trace);
}

LogicalResult opt::writePicture(const DriverOptions &options, const program::Program &program) {
  Result<runtime::SimulationCosts> costs = getPredictionCosts(options, program.shared);
  if (!costs)
    return complain(options.input + ": " + costs.message());
  Result<std::string> text = printTrace(program, *costs);
  if (!text)
    return complain(options.input + ": " + text.message());
  return writeText(options.output, [&](raw_ostream &os) { os << *text; });
}
