//===- Input.h - opening what is to be compiled -----------------------------===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_INPUT_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_INPUT_H

#include "dualpipe/Support/Status.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <memory>
#include <string>

namespace dualpipe::opt {

enum class InputKind {
  Schedule, ///< a `.pipe` file
  Csv,      ///< a schedule in PyTorch's action grammar
  Program,  ///< a `.dpx` file
  Module,   ///< MLIR, as text or bytecode
};

/// "a .pipe file", "an MLIR module": what an input is, for messages.
const char *describe(InputKind kind);

/// An input that has been opened. Read once: it may be a pipe.
struct Input {
  std::string name;
  InputKind kind;
  std::unique_ptr<llvm::MemoryBuffer> buffer;
};

/// Opens `name`, "-" for the standard input. The ending of the name tells the kind; where
/// it says nothing, what the input begins with does: `pipe 1` after comments, a cell, the
/// mark of a program.
Result<Input> openInput(const std::string &name);

/// Calls `compile` with the text of the input and a context with all dialects.
/// Diagnostics are printed with the line of the input, or checked against its
/// `expected-error` comments under `--verify-diagnostics`; whether `compile`
/// failed is what those say, then. A line of a schedule in cells is longer than anyone
/// reads: for such an input its place alone is printed.
llvm::LogicalResult compileInput(
    Input input, const mlir::MlirOptMainConfig &config, mlir::DialectRegistry &registry,
    llvm::function_ref<llvm::LogicalResult(llvm::SourceMgr &, mlir::MLIRContext &)> compile);

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_INPUT_H
