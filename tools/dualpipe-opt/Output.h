//===- Output.h - writing what was compiled ---------------------------------===//
//
// Everything is written in whole or not at all: text and bytes go to a file
// beside the output, which then takes its place.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_OUTPUT_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_OUTPUT_H

#include "dualpipe/Program/Program.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <string>

namespace dualpipe::opt {

/// Writes what `print` prints; "-" is the standard output. Prints why it cannot.
llvm::LogicalResult writeText(const std::string &output,
                              llvm::function_ref<void(llvm::raw_ostream &)> print);

/// Writes a module as text, or as bytecode under `--emit-bytecode`.
llvm::LogicalResult writeModule(const std::string &output, mlir::ModuleOp module,
                                const mlir::MlirOptMainConfig &config);

/// Writes a `.dpx` file; ranks are serialised in parallel.
llvm::LogicalResult writeProgram(const std::string &output, const program::Program &program,
                                 mlir::MLIRContext &context);

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_OUTPUT_H
