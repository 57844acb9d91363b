//===- DiffSchedules.h - do two inputs run the same schedule? ---------------===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_DIFFSCHEDULES_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_DIFFSCHEDULES_H

#include "Options.h"

#include "mlir/IR/DialectRegistry.h"

namespace dualpipe::opt {

/// Compares the schedules of `options.diff` and of `options.input`, and writes how they differ.
/// \returns the exit code of the tool: 0 where they do the same in the same order.
int diffSchedules(const DriverOptions &options, mlir::DialectRegistry &registry);

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_DIFFSCHEDULES_H
