//===- RunPasses.h - a pass manager with the options of the command line ----===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_RUNPASSES_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_RUNPASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace dualpipe::opt {

/// Runs the passes that `setUp` adds. A pass manager of its own each time:
/// `--pass-pipeline` replaces whatever a manager held before.
inline llvm::LogicalResult
runPasses(mlir::ModuleOp module, const mlir::MlirOptMainConfig &config,
          llvm::function_ref<llvm::LogicalResult(mlir::PassManager &)> setUp) {
  mlir::PassManager pm(module.getContext());
  pm.enableVerifier(config.shouldVerifyPasses());
  if (failed(mlir::applyPassManagerCLOptions(pm)))
    return llvm::failure();
  mlir::applyDefaultTimingPassManagerCLOptions(pm);
  if (failed(setUp(pm)))
    return llvm::failure();
  return pm.run(module);
}

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_RUNPASSES_H
