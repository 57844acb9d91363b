//===- WriteStep.h - programs as CUDA C++ -----------------------------------===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_WRITESTEP_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_WRITESTEP_H

#include "Options.h"

#include "dualpipe/Program/Program.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/LogicalResult.h"

namespace dualpipe::opt {

/// Writes the files of --emit=cuda into the folder `options.output`, which is made where there is
/// none, and the program file that goes with them. Each is written in whole or not at all.
llvm::LogicalResult writeStep(const DriverOptions &options, const program::Program &program,
                              mlir::MLIRContext &context);

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_WRITESTEP_H
