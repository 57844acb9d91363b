//===- CompileSchedule.cpp - from a schedule to any level -----------------===//

#include "CompileSchedule.h"
#include "Input.h"
#include "LoadSchedule.h"
#include "Output.h"
#include "RunPasses.h"
#include "VerifyInput.h"
#include "WritePicture.h"
#include "WriteReport.h"
#include "WriteStep.h"

#include "dualpipe/Pipelines/BuildRank.h"
#include "dualpipe/Pipelines/Compiler.h"
#include "dualpipe/Pipelines/Lowering.h"
#include "dualpipe/Runtime/Progress.h"
#include "dualpipe/Target/PrintPipe.h"
#include "dualpipe/Target/TorchCsv.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace dualpipe;
using namespace dualpipe::opt;
using namespace mlir;

namespace {

/// One compilation: from the text in a source manager to the wanted output.
class Compilation {
public:
  Compilation(const DriverOptions &options, const MlirOptMainConfig &config,
              llvm::SourceMgr &sources, MLIRContext &context)
      : options(options), config(config), sources(sources), context(context) {}

  LogicalResult run();
  FailureOr<program::Program> makeProgram();

private:
  LogicalResult report(const DiagnosticSink &sink, ArrayRef<std::string> files) {
    progress.clear();
    return reportFindings(sink, files, options.input, context);
  }
  LogicalResult printSyntax();
  LogicalResult printProgram();
  LogicalResult printPrediction();
  LogicalResult checkOutput(const Schedule &schedule);
  LogicalResult emitPipe(const Schedule &schedule);
  LogicalResult emitFrom(const Schedule &schedule, const Timeline &timeline);
  LogicalResult emitModule(const Schedule &schedule, const Timeline &timeline);
  FailureOr<program::Program> checked(FailureOr<program::Program> program);
  FailureOr<program::Program> compile(const Timeline &timeline);
  LogicalResult writeCompiled(const program::Program &program);
  LogicalResult emitProgram(const Timeline &timeline);

  const DriverOptions &options;
  const MlirOptMainConfig &config;
  llvm::SourceMgr &sources;
  MLIRContext &context;
  runtime::ProgressLine progress{"compiling"};
};

} // namespace

LogicalResult Compilation::printSyntax() {
  DiagnosticSink syntax;
  frontend::Module module =
      frontend::parse(sources, sources.getMainFileID(), syntax, options.schedule.limits);
  if (failed(report(syntax, module.getFiles())))
    return failure();
  return writeText(options.output, [&](raw_ostream &os) { module.print(os); });
}

/// A program as the module that it was written from.
LogicalResult Compilation::printProgram() {
  FailureOr<program::Program> program = loadProgram(options, sources);
  if (failed(program))
    return failure();
  OwningOpRef<ModuleOp> module = importProgram(*program, &context);
  if (failed(runUserPasses(*module, config, Level::Streams)))
    return failure();
  return writeModule(options.output, *module, config);
}

/// Whatever it comes from, on the queues that are asked for.
FailureOr<program::Program> Compilation::checked(FailureOr<program::Program> program) {
  if (failed(program) || failed(checkQueues(options, *program, context)))
    return failure();
  return program;
}

FailureOr<program::Program> Compilation::makeProgram() {
  if (options.inputKind == InputKind::Program)
    return checked(loadProgram(options, sources));
  Schedule schedule;
  FailureOr<OpIndex> index = loadChecked(options, sources, context, schedule);
  if (failed(index))
    return failure();
  return compile(Timeline(*index, schedule.planCosts));
}

/// A report or a picture, of a program in time.
LogicalResult Compilation::printPrediction() {
  FailureOr<program::Program> program = makeProgram();
  if (failed(program))
    return failure();
  if (isPicture(options.emit))
    return writePicture(options, *program);
  return writeReport(options, *program, context);
}

LogicalResult Compilation::run() {
  bool hasModule = options.emit == Emit::Default || options.emit == Emit::Order ||
                   options.emit == Emit::Dataflow || options.emit == Emit::Streams;
  if (!hasModule && failed(rejectUserPasses(context, config)))
    return failure();
  if (options.emit == Emit::Ast)
    return printSyntax();
  if (hasModule && options.inputKind == InputKind::Program)
    return printProgram();

  if (options.emit == Emit::Report || isPicture(options.emit))
    return printPrediction();
  if (options.emit == Emit::Cuda && options.inputKind == InputKind::Program) {
    FailureOr<program::Program> program = makeProgram();
    return failed(program) ? failure() : writeCompiled(*program);
  }

  Schedule schedule;
  FailureOr<OpIndex> index = loadChecked(options, sources, context, schedule);
  if (failed(index) || failed(checkOutput(schedule)))
    return failure();
  if (options.emit == Emit::Pipe)
    return emitPipe(schedule);
  if (options.emit == Emit::TorchCsv)
    return writeText(options.output,
                     [&](raw_ostream &os) { os << printTorchCsv(schedule, options.torchOutput); });
  return emitFrom(schedule, Timeline(*index, schedule.planCosts));
}

/// What is wrong with the schedule for the output that is asked for.
LogicalResult Compilation::checkOutput(const Schedule &schedule) {
  DiagnosticSink findings;
  if (options.onlyRank && *options.onlyRank >= schedule.numRanks)
    findings.error(schedule.loc, "--only-rank=" + std::to_string(*options.onlyRank) +
                                     " is out of range, the schedule has " +
                                     std::to_string(schedule.numRanks) + " ranks");
  if (options.emit == Emit::TorchCsv || options.emit == Emit::TorchCsvComms)
    warnWhatTorchCannotRun(schedule, findings);
  // Those of a program are mostly derived; a file does not tell.
  if (options.emit == Emit::TorchCsv && schedule.ownsTransfers &&
      options.inputKind != InputKind::Program)
    findings.warning(schedule.loc, "the transfers that the schedule places itself are left out: "
                                   "--emit=torch-csv-comms writes them, too");
  return report(findings, schedule.files);
}

LogicalResult Compilation::emitPipe(const Schedule &schedule) {
  Result<std::string> text = printPipe(schedule);
  if (text)
    return writeText(options.output, [&](raw_ostream &os) { os << *text; });
  DiagnosticSink findings;
  findings.error(schedule.loc, text.message());
  return report(findings, schedule.files);
}

LogicalResult Compilation::emitFrom(const Schedule &schedule, const Timeline &timeline) {
  if (options.emit == Emit::TorchCsvComms)
    return writeText(options.output, [&](raw_ostream &os) {
      os << printTorchCsvComms(timeline, options.torchOutput);
    });
  if (options.emit == Emit::Program || options.emit == Emit::Cuda)
    return emitProgram(timeline);
  return emitModule(schedule, timeline);
}

LogicalResult Compilation::emitModule(const Schedule &schedule, const Timeline &timeline) {
  // 1. All wanted ranks in one module, in the order phase.
  std::vector<Location> locations = getLocations(&context, schedule);
  OwningOpRef<ModuleOp> module = ModuleOp::create(locations[0]);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank)
    if (!options.onlyRank || *options.onlyRank == rank)
      buildRank(builder, timeline, rank, locations);

  // 2. Down to the wanted level, then whatever passes the user names.
  Level level = options.emit == Emit::Streams    ? Level::Streams
                : options.emit == Emit::Dataflow ? Level::Dataflow
                                                 : Level::Order;
  auto lower = [&](PassManager &pm) {
    buildLowering(pm, Level::Order, level, options.spares);
    return success();
  };
  if (failed(runPasses(*module, config, lower)) || failed(runUserPasses(*module, config, level)))
    return failure();

  // 3. Out.
  return writeModule(options.output, *module, config);
}

FailureOr<program::Program> Compilation::compile(const Timeline &timeline) {
  CompileOptions compile;
  compile.planCosts = timeline.getIndex().getSchedule().planCosts;
  compile.onlyRank = options.onlyRank;
  compile.spares = options.spares;
  compile.onProgress = [this](uint64_t done, uint64_t total) { progress.show(done, total); };
  progress.begin("compiling ranks");
  FailureOr<program::Program> program = compileProgram(&context, timeline, compile);
  progress.end();
  return checked(std::move(program));
}

/// As a file, or as code.
LogicalResult Compilation::writeCompiled(const program::Program &program) {
  return options.emit == Emit::Cuda ? writeStep(options, program, context)
                                    : writeProgram(options.output, program, context);
}

LogicalResult Compilation::emitProgram(const Timeline &timeline) {
  FailureOr<program::Program> program = compile(timeline);
  if (failed(program))
    return failure();
  return writeCompiled(*program);
}

FailureOr<program::Program> opt::compileToProgram(const DriverOptions &options,
                                                  llvm::SourceMgr &sources, MLIRContext &context) {
  context.printOpOnDiagnostic(false);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  return Compilation(options, config, sources, context).makeProgram();
}

LogicalResult opt::compileSchedule(const DriverOptions &options, Input input,
                                   DialectRegistry &registry) {
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  return compileInput(std::move(input), config, registry,
                      [&](llvm::SourceMgr &sources, MLIRContext &context) {
                        // The user wrote no ops: the line of the file says more.
                        context.printOpOnDiagnostic(false);
                        return Compilation(options, config, sources, context).run();
                      });
}
