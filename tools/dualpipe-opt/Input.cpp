//===- Input.cpp - opening what is to be compiled ---------------------------===//

#include "Input.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/raw_ostream.h"

using namespace dualpipe;
using namespace mlir;

LogicalResult
opt::compileInput(const std::string &input, const MlirOptMainConfig &config,
                  DialectRegistry &registry,
                  llvm::function_ref<LogicalResult(llvm::SourceMgr &, MLIRContext &)> compile) {
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(input, &error);
  if (!buffer) {
    llvm::errs() << "dualpipe-opt: error: " << error << "\n";
    return failure();
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), SMLoc());
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  if (!config.shouldVerifyDiagnostics()) {
    SourceMgrDiagnosticHandler handler(sources, &context);
    return compile(sources, context);
  }
  SourceMgrDiagnosticVerifierHandler handler(sources, &context, config.verifyDiagnosticsLevel());
  (void)compile(sources, context);
  return handler.verify();
}
