//===- CompileModule.h - from an `.mlir` file further down ------------------===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_COMPILEMODULE_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_COMPILEMODULE_H

#include "Options.h"

#include "mlir/IR/DialectRegistry.h"
#include "llvm/Support/LogicalResult.h"

namespace dualpipe::opt {

/// Takes a module of `pipe.rank` ops of either phase, or of `stream.program` ops,
/// to the level that `options.emit` names. Nothing is written on failure.
llvm::LogicalResult compileModule(const DriverOptions &options, Input input,
                                  mlir::DialectRegistry &registry);

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_COMPILEMODULE_H
