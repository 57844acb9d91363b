//===- Main.cpp - the schedule compiler -------------------------------------===//
//
// A `.pipe` file or a schedule in PyTorch's grammar goes to order tables and through
// the lowering to the level that `--emit` or the ending of the output names. An
// `.mlir` file goes through `mlir-opt` with our dialects and passes, or from wherever
// it stands to a level further down. A program is printed, or checked.
//
//===----------------------------------------------------------------------===//

#include "Main.h"
#include "CompileModule.h"
#include "CompileSchedule.h"
#include "Complain.h"
#include "DiffSchedules.h"
#include "FormatPipe.h"
#include "Input.h"
#include "Options.h"
#include "VerifyInput.h"
#include "WriteReport.h"

#include "dialects/Pipe/Pipe.h"
#include "dialects/Stream/Stream.h"
#include "dualpipe/Conversion/Passes.h"
#include "dualpipe/Pipelines/Lowering.h"
#include "dualpipe/Target/Program.h"
#include "dualpipe/Transforms/Passes.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <string>
#include <vector>

using namespace dualpipe;
using namespace dualpipe::opt;

static const char overview[] =
    "compiles pipeline-parallel training schedules\n\n"
    "  dualpipe-opt x.pipe --ranks=8 --microbatches=20 -o x.dpx      a program for the launcher\n"
    "  dualpipe-opt x.pipe --ranks=8 --microbatches=20 --emit=streams  what it will run, as text\n"
    "  dualpipe-opt x.pipe --ranks=8 --microbatches=20 --emit=report   time, bubble, memory\n"
    "  dualpipe-opt x.pipe --ranks=8 --microbatches=20 -o x.svg        a chart of it; or x.html\n"
    "  dualpipe-opt --compare x.pipe y.pipe --ranks=8 --microbatches=20  the same in one table\n"
    "  dualpipe-opt x.pipe --ranks=8 --microbatches=20 --emit=cuda -o x  its steps as CUDA C++\n"
    "  dualpipe-opt x.csv -o x.dpx                                    a schedule of PyTorch\n"
    "  dualpipe-opt --diff x.pipe x.csv --ranks=8 --microbatches=20   do they run the same?\n"
    "  dualpipe-opt --verify x.dpx                                    what is proven of a program\n"
    "  dualpipe-opt x.mlir --pipe-assign-slots                        single passes\n"
    "  dualpipe-opt x.pipe --format-pipe -o x.pipe                    the formatter\n\n";

/// `mlir-opt` on an input that is open.
static llvm::LogicalResult runMlirOpt(Input input, llvm::StringRef output,
                                      mlir::DialectRegistry &registry) {
  std::string error;
  std::unique_ptr<llvm::ToolOutputFile> file = mlir::openOutputFile(output, &error);
  if (!file)
    return complain(error);
  if (llvm::failed(mlir::MlirOptMain(file->os(), std::move(input.buffer), registry,
                                     mlir::MlirOptMainConfig::createFromCLOptions())))
    return llvm::failure();
  file->keep();
  return llvm::success();
}

/// An input that is not named is the standard input, too.
static bool namesStandardInput(int argc, char **argv) {
  return std::find(argv, argv + argc, llvm::StringRef("-")) != argv + argc;
}

/// "--compare A B C" as options of one value each and the positional input: LLVM's
/// options take a fixed number of values.
static std::vector<std::string> spellOutComparison(int argc, char **argv) {
  std::vector<std::string> args(argv, argv + argc);
  auto isInput = [](const std::string &arg) { return arg == "-" || !arg.starts_with("-"); };
  auto begin = std::find_if(args.begin(), args.end(), [](const std::string &arg) {
    return arg == "--compare" || arg == "-compare";
  });
  if (begin == args.end())
    return args;
  auto end = std::find_if_not(begin + 1, args.end(), isInput);
  if (end - begin <= 2) { // fewer than two inputs, which the options complain about
    *begin = "--compare=";
    return args;
  }
  for (auto input = begin + 1; input != end - 1; ++input)
    *input = "--compare=" + *input;
  args.erase(begin);
  return args;
}

int opt::main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  std::vector<std::string> args = spellOutComparison(argc, argv);
  std::vector<char *> pointers;
  for (std::string &arg : args)
    pointers.push_back(arg.data());
  argc = int(pointers.size());
  pointers.push_back(nullptr);
  argv = pointers.data();
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
  if (!options)
    return mlir::failed(complain(options.message()));
  if (options->formatPipe)
    return mlir::failed(formatPipe(*options));
  mlir::MlirOptMainConfig config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::failed(mlir::MlirOptMain(argc, argv, input, output, registry));

  if (options->isDiff() && input == "-" && !namesStandardInput(argc, argv))
    return mlir::failed(complain("--diff takes two inputs, got one: --diff A B, where '-' is the "
                                 "standard input"));
  if (options->isDiff())
    return diffSchedules(*options, registry);
  Result<Input> opened = openInput(input);
  if (!opened)
    return mlir::failed(complain(opened.message()));
  options->inputKind = opened->kind;
  if (Status status = checkOptionsApply(*options); !status)
    return mlir::failed(complain(status.message()));
  if (options->compares)
    return mlir::failed(comparePredictions(*options, std::move(*opened), registry));
  if (options->verify)
    return mlir::failed(verifyInput(*options, std::move(*opened), registry));
  if (opened->kind != InputKind::Module)
    return mlir::failed(compileSchedule(*options, std::move(*opened), registry));
  if (options->emit != Emit::Default)
    return mlir::failed(compileModule(*options, std::move(*opened), registry));
  return mlir::failed(runMlirOpt(std::move(*opened), output, registry));
}
