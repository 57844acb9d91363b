//===- LoadSchedule.cpp - order tables from any input -----------------------===//

#include "LoadSchedule.h"
#include "Complain.h"

#include "dualpipe/Program/Reader.h"
#include "dualpipe/Schedule/Checker.h"
#include "dualpipe/Target/ProgramOrders.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/Path.h"

#include <fmt/format.h>

using namespace dualpipe;
using namespace dualpipe::opt;
using namespace mlir;

static InFlightDiagnostic emit(Severity severity, Location loc) {
  switch (severity) {
  case Severity::Error:
    return mlir::emitError(loc);
  case Severity::Warning:
    return mlir::emitWarning(loc);
  case Severity::Remark:
    return mlir::emitRemark(loc);
  }
  return mlir::emitError(loc);
}

LogicalResult opt::reportFindings(const DiagnosticSink &sink, ArrayRef<std::string> files,
                                  StringRef input, MLIRContext &context) {
  auto toLocation = [&](SourceLoc loc) -> Location {
    StringRef file = loc.file < files.size() ? StringRef(files[loc.file]) : input;
    return FileLineColLoc::get(&context, file, loc.line, loc.column);
  };
  for (const dualpipe::Diagnostic &found : sink.diagnostics()) {
    InFlightDiagnostic diagnostic = emit(found.severity, toLocation(found.loc));
    diagnostic << found.message;
    for (const dualpipe::Diagnostic::Note &note : found.notes)
      diagnostic.attachNote(toLocation(note.loc)) << note.message;
  }
  return success(!sink.hasErrors());
}

//===----------------------------------------------------------------------===//
// .pipe
//===----------------------------------------------------------------------===//

static LogicalResult loadPipe(const DriverOptions &options, llvm::SourceMgr &sources,
                              MLIRContext &context, Schedule &schedule) {
  DiagnosticSink syntax;
  frontend::Module module =
      frontend::parse(sources, sources.getMainFileID(), syntax, options.schedule.limits);
  if (failed(reportFindings(syntax, module.getFiles(), options.input, context)))
    return failure();
  DiagnosticSink findings;
  LogicalResult instantiated = frontend::instantiate(module, options.schedule, schedule, findings);
  LogicalResult reported = reportFindings(findings, module.getFiles(), options.input, context);
  return success(succeeded(instantiated) && succeeded(reported));
}

//===----------------------------------------------------------------------===//
// .csv
//===----------------------------------------------------------------------===//

/// The sizes are in the file; where they are given too, they must be the same.
static void checkSizes(const DriverOptions &options, const Schedule &schedule,
                       DiagnosticSink &sink) {
  auto check = [&](const char *option, std::optional<uint32_t> given, const char *what,
                   uint32_t found) {
    if (given && *given != found)
      sink.error(schedule.loc, fmt::format("--{} is {}, but the file has {} {}: the option can be "
                                           "left out",
                                           option, *given, found, what));
  };
  check("ranks", options.schedule.ranks, "lines, one for each rank", schedule.numRanks);
  check("microbatches", options.schedule.microbatches, "micro-batches", schedule.numMicrobatches);
}

static LogicalResult loadCsv(const DriverOptions &options, llvm::SourceMgr &sources,
                             MLIRContext &context, Schedule &schedule) {
  TorchReadOptions reading = options.torch;
  reading.file = options.input;
  reading.name = options.input == "-" ? "schedule" : llvm::sys::path::stem(options.input).str();
  DiagnosticSink findings;
  bool isRead = readTorchCsv(sources.getMemoryBuffer(sources.getMainFileID())->getBuffer(), reading,
                             schedule, findings);
  if (isRead && !options.isDiff())
    checkSizes(options, schedule, findings);
  schedule.planCosts = options.schedule.planCosts;
  schedule.planCosts.spellOut(schedule.numStages);
  if (isRead && options.schedule.forwardOnly)
    dropBackward(schedule);
  return reportFindings(findings, options.input, options.input, context);
}

//===----------------------------------------------------------------------===//
// .dpx
//===----------------------------------------------------------------------===//

FailureOr<program::Program> opt::loadProgram(const DriverOptions &options,
                                             llvm::SourceMgr &sources) {
  StringRef bytes = sources.getMemoryBuffer(sources.getMainFileID())->getBuffer();
  Result<program::Program> program =
      program::readProgram(options.input, bytes.bytes_begin(), bytes.size());
  if (!program)
    return complain(program.message());
  return std::move(*program);
}

static LogicalResult loadOrders(const DriverOptions &options, llvm::SourceMgr &sources,
                                Schedule &schedule) {
  FailureOr<program::Program> program = loadProgram(options, sources);
  if (failed(program))
    return failure();
  Result<Schedule> orders = readOrders(*program);
  if (!orders)
    return complain(llvm::Twine(options.input) + ": " + orders.message());
  schedule = std::move(*orders);
  return success();
}

static LogicalResult loadSchedule(const DriverOptions &options, llvm::SourceMgr &sources,
                                  MLIRContext &context, Schedule &schedule) {
  switch (options.inputKind) {
  case InputKind::Schedule:
    return loadPipe(options, sources, context, schedule);
  case InputKind::Csv:
    return loadCsv(options, sources, context, schedule);
  case InputKind::Program:
    return loadOrders(options, sources, schedule);
  case InputKind::Module:
    return complain("'" + llvm::Twine(options.input) + "' is " +
                    (sources.getMemoryBuffer(sources.getMainFileID())->getBufferSize() == 0
                         ? "empty"
                         : "an MLIR module") +
                    ", expected a .pipe, .csv or .dpx file");
  }
  return failure();
}

FailureOr<OpIndex> opt::loadChecked(const DriverOptions &options, llvm::SourceMgr &sources,
                                    MLIRContext &context, Schedule &schedule) {
  if (failed(loadSchedule(options, sources, context, schedule)))
    return failure();
  DiagnosticSink violations;
  OpIndex index = checkSchedule(schedule, violations);
  if (Status status = schedule.planCosts.checkRange(schedule); !status)
    violations.error(schedule.loc, status.message());
  if (failed(reportFindings(violations, schedule.files, options.input, context)))
    return failure();
  return index;
}
