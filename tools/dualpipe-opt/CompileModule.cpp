//===- CompileModule.cpp - from an `.mlir` file further down ----------------===//

#include "CompileModule.h"
#include "Input.h"
#include "Output.h"
#include "RunPasses.h"
#include "VerifyInput.h"
#include "WritePicture.h"
#include "WriteReport.h"
#include "WriteStep.h"

#include "dialects/Pipe/Pipe.h"
#include "dualpipe/Pipelines/Lowering.h"
#include "dualpipe/Target/Program.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

using namespace dualpipe;
using namespace dualpipe::opt;
using namespace mlir;

/// A rank in the dataflow phase has values, or inputs of its own.
static bool hasValues(pipe::RankOp rank) {
  return llvm::any_of(*rank.getBody(), [](Operation &op) {
    return op.getNumOperands() != 0 || op.getNumResults() != 0;
  });
}

/// The level from which a module goes on to `to`. Ranks of several levels are left
/// to the pass that checks the first phase.
static FailureOr<Level> findLevel(ModuleOp module, Level to) {
  auto programs = module.getOps<stream::ProgramOp>();
  if (!programs.empty() && to != Level::Streams)
    return (*programs.begin()).emitError() << "is of the stream dialect, and --emit asks for a "
                                              "level before it: expected pipe.rank";
  auto ranks = module.getOps<pipe::RankOp>();
  if (!ranks.empty())
    return llvm::any_of(ranks, hasValues) ? Level::Dataflow : Level::Order;
  if (programs.empty())
    return module.emitError() << "expected a pipe.rank or a stream.program for each rank, got none";
  return Level::Streams;
}

static LogicalResult compile(const DriverOptions &options, const MlirOptMainConfig &config,
                             llvm::SourceMgr &sources, MLIRContext &context) {
  // 1. In, from the level where the module stands to the wanted one.
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return failure();
  Level to = options.emit == Emit::Dataflow ? Level::Dataflow : Level::Streams;
  FailureOr<Level> from = findLevel(*module, to);
  if (failed(from))
    return failure();
  auto lower = [&](PassManager &pm) {
    buildLowering(pm, *from, to, options.spares, options.groupLimit);
    return success();
  };

  // 2. The passes, then those that the user names.
  const uint32_t groupLimit = options.groupLimit.value_or(program::kDefaultGroupLimit);
  if (failed(runPasses(*module, config, lower)) ||
      failed(runUserPasses(*module, config, to, groupLimit)))
    return failure();

  // 3. Out.
  if (options.emit != Emit::Program && options.emit != Emit::Report && options.emit != Emit::Cuda &&
      !isPicture(options.emit))
    return writeModule(options.output, *module, config);
  FailureOr<program::Program> program = exportModule(*module);
  if (failed(program) || failed(checkQueues(options, *program, context)))
    return failure();
  if (options.emit == Emit::Report)
    return writeReport(options, *program, context);
  if (isPicture(options.emit))
    return writePicture(options, *program);
  if (options.emit == Emit::Cuda)
    return writeStep(options, *program, context);
  return writeProgram(options.output, *program, context);
}

LogicalResult opt::compileModule(const DriverOptions &options, Input input,
                                 DialectRegistry &registry) {
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  return compileInput(std::move(input), config, registry,
                      [&](llvm::SourceMgr &sources, MLIRContext &context) {
                        return compile(options, config, sources, context);
                      });
}
