//===- WriteReport.h - what programs will cost ------------------------------===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_WRITEREPORT_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_WRITEREPORT_H

#include "Options.h"

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Simulation.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/LogicalResult.h"

namespace dualpipe::opt {

/// The costs that a program was planned with, or those of a profile, under what else
/// `--cost` gives.
Result<runtime::SimulationCosts> getPredictionCosts(const DriverOptions &options,
                                                    const program::Program &program);

/// Predicts `program` and writes the report to `options.output`. Warns where some rank
/// computes for less than half of the time.
llvm::LogicalResult writeReport(const DriverOptions &options, const program::Program &program,
                                mlir::MLIRContext &context);

/// Predicts `options.compared` and then `last`, and writes one table, or a JSON array of
/// reports. The costs are those of what a rank holds: where it holds several stages of a
/// pipeline, each takes its part.
llvm::LogicalResult comparePredictions(const DriverOptions &options, Input last,
                                       mlir::DialectRegistry &registry);

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_WRITEREPORT_H
