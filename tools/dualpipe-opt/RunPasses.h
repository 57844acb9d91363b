//===- RunPasses.h - a pass manager with the options of the command line ----===//

#ifndef DUALPIPE_TOOLS_DUALPIPEOPT_RUNPASSES_H
#define DUALPIPE_TOOLS_DUALPIPEOPT_RUNPASSES_H

#include "Complain.h"

#include "dualpipe/Pipelines/Lowering.h"
#include "dualpipe/Target/Program.h"

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

/// Runs the passes that the command line names. Programs are checked once more
/// after them: what is written is what was checked.
inline llvm::LogicalResult runUserPasses(mlir::ModuleOp module,
                                         const mlir::MlirOptMainConfig &config, Level level,
                                         uint32_t groupLimit = program::kDefaultGroupLimit) {
  return runPasses(module, config, [&](mlir::PassManager &pm) {
    if (failed(config.setupPassPipeline(pm)))
      return llvm::failure();
    if (level == Level::Streams && !pm.empty())
      pm.addPass(createStreamVerify({groupLimit}));
    return llvm::success();
  });
}

/// Fails where the command line names passes, or passes that do not exist, for an
/// output that is made without a module.
inline llvm::LogicalResult rejectUserPasses(mlir::MLIRContext &context,
                                            const mlir::MlirOptMainConfig &config) {
  mlir::PassManager pm(&context);
  if (failed(config.setupPassPipeline(pm)))
    return llvm::failure();
  if (pm.empty())
    return llvm::success();
  return complain("passes do not apply to this output of a schedule: run them with --emit=order, "
                  "dataflow or streams");
}

} // namespace dualpipe::opt

#endif // DUALPIPE_TOOLS_DUALPIPEOPT_RUNPASSES_H
