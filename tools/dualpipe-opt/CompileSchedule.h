//===- CompileSchedule.h - from a schedule to any level --------------------===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_COMPILESCHEDULE_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_COMPILESCHEDULE_H

#include "Options.h"

#include "dualpipe/Program/Program.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/SourceMgr.h"

namespace dualpipe::opt {

/// Compiles an input that is no module and writes the wanted level to `options.output`.
/// Findings are printed with the line of the input, or checked against the
/// `expected-error` comments of the file under `--verify-diagnostics`. Nothing
/// is written on failure.
llvm::LogicalResult compileSchedule(const DriverOptions &options, Input input,
                                    mlir::DialectRegistry &registry);

/// The whole program of the main buffer of `sources`, which is no module: read where
/// it is compiled already. Reports what it finds.
llvm::FailureOr<program::Program> compileToProgram(const DriverOptions &options,
                                                   llvm::SourceMgr &sources,
                                                   mlir::MLIRContext &context);

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_COMPILESCHEDULE_H
