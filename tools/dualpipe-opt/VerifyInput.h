//===- VerifyInput.h - every invariant of a program that is at hand ---------===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_VERIFYINPUT_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_VERIFYINPUT_H

#include "Input.h"
#include "Options.h"

#include "dualpipe/Program/Program.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/LogicalResult.h"

namespace dualpipe::opt {

/// Checks a program file or a module of `stream.program` ops, whatever made it, and writes a line
/// for each invariant that holds. A broken one is reported at its line of the schedule.
llvm::LogicalResult verifyInput(const DriverOptions &options, Input input,
                                mlir::DialectRegistry &registry);

/// D3 on the queues of `--hardware-queues`, where it is given. `program` has all its ranks and
/// satisfies P1 to D2.
llvm::LogicalResult checkQueues(const DriverOptions &options, const program::Program &program,
                                mlir::MLIRContext &context);

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_VERIFYINPUT_H
