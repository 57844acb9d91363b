//===- Main.cpp - the schedule compiler -------------------------------------===//
//
// A `.pipe` file goes through the front end and the lowering to the level that
// `--emit` or the ending of the output names. An `.mlir` file goes through
// `mlir-opt` with our dialects and passes, or from wherever it stands to a level
// further down.
//
//===----------------------------------------------------------------------===//

#include "Main.h"
#include "CompileModule.h"
#include "CompileSchedule.h"
#include "FormatPipe.h"
#include "Options.h"

#include "dialects/Pipe/Pipe.h"
#include "dialects/Stream/Stream.h"
#include "dualpipe/Conversion/Passes.h"
#include "dualpipe/Pipelines/Lowering.h"
#include "dualpipe/Target/Program.h"
#include "dualpipe/Transforms/Passes.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace dualpipe;
using namespace dualpipe::opt;

static const char overview[] =
    "compiles pipeline-parallel training schedules\n\n"
    "  dualpipe-opt x.pipe --ranks=8 --microbatches=20 -o x.dpx      a program for the launcher\n"
    "  dualpipe-opt x.pipe --ranks=8 --microbatches=20 --emit=streams  what it will run, as text\n"
    "  dualpipe-opt x.mlir --pipe-assign-slots                        single passes\n"
    "  dualpipe-opt x.pipe --format-pipe -o x.pipe                    the formatter\n\n";

int opt::main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::DialectRegistry registry;
  registry.insert<pipe::PipeDialect, stream::StreamDialect>();
  registerDualPipeTransformsPasses();
  registerDualPipeConversionPasses();
  registerDualPipeTargetProgramPasses();
  registerLoweringPipelines();
  mlir::registerCSEPass();
  mlir::registerStripDebugInfoPass();

  prepareCommandLine();
  auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, overview, registry);
  Result<DriverOptions> options = readOptions(input, output);
  if (!options) {
    llvm::errs() << "dualpipe-opt: error: " << options.message() << "\n";
    return 1;
  }
  if (options->formatPipe)
    return mlir::failed(formatPipe(*options));
  if (options->inputIsSchedule())
    return mlir::failed(compileSchedule(*options, registry));
  if (options->emit != Emit::Default)
    return mlir::failed(compileModule(*options, registry));
  return mlir::failed(mlir::MlirOptMain(argc, argv, input, output, registry));
}
