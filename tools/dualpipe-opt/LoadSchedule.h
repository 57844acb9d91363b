//===- LoadSchedule.h - order tables from any input -------------------------===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_LOADSCHEDULE_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_LOADSCHEDULE_H

#include "Options.h"

#include "dualpipe/Program/Program.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/SourceMgr.h"

#include <optional>

namespace dualpipe::opt {

/// Hands findings to MLIR's diagnostic engine; places are in `files`, `input` stands for
/// those that name none. Fails where an error is among them.
llvm::LogicalResult reportFindings(const DiagnosticSink &sink, llvm::ArrayRef<std::string> files,
                                   llvm::StringRef input, mlir::MLIRContext &context);

/// Reads the order tables of the main buffer of `sources`, which is of `options.inputKind`
/// and none of MLIR. Reports what it finds; does not check the order.
llvm::LogicalResult loadSchedule(const DriverOptions &options, llvm::SourceMgr &sources,
                                 mlir::MLIRContext &context, Schedule &schedule);

/// Reads the program in the main buffer of `sources`. Nothing, and why is printed, where
/// it is none.
std::optional<program::Program> loadProgram(const DriverOptions &options, llvm::SourceMgr &sources);

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_LOADSCHEDULE_H
