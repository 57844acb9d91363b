//===- LoadSchedule.h - order tables from any input -------------------------===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_LOADSCHEDULE_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_LOADSCHEDULE_H

#include "Options.h"

#include "dualpipe/Program/Program.h"
#include "dualpipe/Schedule/OpIndex.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/SourceMgr.h"

namespace dualpipe::opt {

/// Hands findings to MLIR's diagnostic engine; places are in `files`, `input` stands for
/// those that name none. Fails where an error is among them.
llvm::LogicalResult reportFindings(const DiagnosticSink &sink, llvm::ArrayRef<std::string> files,
                                   llvm::StringRef input, mlir::MLIRContext &context);

/// Reads the order tables of the main buffer of `sources`, which is of `options.inputKind`,
/// and checks the order and the planning costs. Reports what it finds. What is returned
/// refers to `schedule`.
llvm::FailureOr<OpIndex> loadChecked(const DriverOptions &options, llvm::SourceMgr &sources,
                                     mlir::MLIRContext &context, Schedule &schedule);

/// Reads the program in the main buffer of `sources`; prints why it cannot.
llvm::FailureOr<program::Program> loadProgram(const DriverOptions &options,
                                              llvm::SourceMgr &sources);

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_LOADSCHEDULE_H
