//===- CompileModule.cpp - from an `.mlir` file further down ----------------===//

#include "CompileModule.h"
#include "Output.h"
#include "RunPasses.h"

#include "dialects/Pipe/Pipe.h"
#include "dualpipe/Pipelines/Lowering.h"
#include "dualpipe/Target/Program.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace dualpipe;
using namespace dualpipe::opt;
using namespace mlir;

/// Ranks that are still in the `pipe` dialect go down to `level`; programs are verified.
static LogicalResult lower(ModuleOp module, Level level, unsigned spares,
                           const MlirOptMainConfig &config) {
  bool hasRanks = !module.getOps<pipe::RankOp>().empty();
  auto lowering = [&](PassManager &pm) {
    if (hasRanks)
      buildLowering(pm, level, spares);
    if (level == Level::Streams)
      pm.addPass(createStreamVerify());
    return success();
  };
  if (failed(runPasses(module, config, lowering)))
    return failure();
  return runPasses(module, config, [&](PassManager &pm) { return config.setupPassPipeline(pm); });
}

static LogicalResult compile(const DriverOptions &options, const MlirOptMainConfig &config,
                             llvm::SourceMgr &sources, MLIRContext &context) {
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return failure();
  Level level = options.emit == Emit::Dataflow ? Level::Dataflow : Level::Streams;
  if (failed(lower(*module, level, options.spares, config)))
    return failure();
  if (options.emit != Emit::Program)
    return writeModule(options.output, *module, config);
  FailureOr<program::Program> program = exportModule(*module);
  if (failed(program))
    return failure();
  return writeProgram(options.output, *program, context);
}

LogicalResult opt::compileModule(const DriverOptions &options, DialectRegistry &registry) {
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(options.input, &error);
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
    return compile(options, config, sources, context);
  }
  SourceMgrDiagnosticVerifierHandler handler(sources, &context, config.verifyDiagnosticsLevel());
  (void)compile(options, config, sources, context);
  return handler.verify();
}
