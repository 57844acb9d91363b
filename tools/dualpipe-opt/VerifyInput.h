//===- VerifyInput.h - every invariant of a program that is at hand ---------===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_VERIFYINPUT_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_VERIFYINPUT_H

#include "Input.h"
#include "Options.h"

#include "mlir/IR/DialectRegistry.h"
#include "llvm/Support/LogicalResult.h"

namespace dualpipe::opt {

/// Checks a program file or a module of `stream.program` ops, whatever made it, and writes a line
/// for each invariant that holds. A broken one is reported at its line of the schedule.
llvm::LogicalResult verifyInput(const DriverOptions &options, Input input,
                                mlir::DialectRegistry &registry);

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_VERIFYINPUT_H
