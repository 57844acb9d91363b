//===- Input.h - opening what is to be compiled -----------------------------===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_INPUT_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_INPUT_H

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/SourceMgr.h"

#include <string>

namespace dualpipe::opt {

/// Calls `compile` with the text of the input and a context with all dialects.
/// Diagnostics are printed with the line of the input, or checked against its
/// `expected-error` comments under `--verify-diagnostics`; whether `compile`
/// failed is what those say, then.
llvm::LogicalResult compileInput(
    const std::string &input, const mlir::MlirOptMainConfig &config,
    mlir::DialectRegistry &registry,
    llvm::function_ref<llvm::LogicalResult(llvm::SourceMgr &, mlir::MLIRContext &)> compile);

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_INPUT_H
