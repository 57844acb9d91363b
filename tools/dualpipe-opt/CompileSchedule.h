//===- CompileSchedule.h - from a schedule to any level --------------------===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_COMPILESCHEDULE_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_COMPILESCHEDULE_H

#include "Options.h"

#include "mlir/IR/DialectRegistry.h"
#include "llvm/Support/LogicalResult.h"

namespace dualpipe::opt {

/// Compiles an input that is no module and writes the wanted level to `options.output`.
/// Findings are printed with the line of the input, or checked against the
/// `expected-error` comments of the file under `--verify-diagnostics`. Nothing
/// is written on failure.
llvm::LogicalResult compileSchedule(const DriverOptions &options, Input input,
                                    mlir::DialectRegistry &registry);

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_COMPILESCHEDULE_H
