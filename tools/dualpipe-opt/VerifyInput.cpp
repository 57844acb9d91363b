//===- VerifyInput.cpp - every invariant of a program that is at hand -------===//

#include "VerifyInput.h"
#include "Output.h"

#include "dualpipe/Program/Proof.h"
#include "dualpipe/Program/Reader.h"
#include "dualpipe/Program/Verify.h"
#include "dualpipe/Target/Program.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Location.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

using namespace dualpipe;
using namespace dualpipe::opt;
using namespace mlir;

/// A file is read without its checks: they are what is asked for.
static FailureOr<program::Program> loadFile(const DriverOptions &options,
                                            llvm::SourceMgr &sources) {
  StringRef bytes = sources.getMemoryBuffer(sources.getMainFileID())->getBuffer();
  Result<program::Program> program =
      program::readUnverifiedProgram(options.input, bytes.bytes_begin(), bytes.size());
  if (program)
    return std::move(*program);
  llvm::errs() << "dualpipe-opt: error: " << program.message() << "\n";
  return failure();
}

static FailureOr<program::Program> loadModule(llvm::SourceMgr &sources, MLIRContext &context) {
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return failure();
  return exportModule(*module);
}

/// The line of the schedule that a command comes from; the input, where none is known.
static Location locate(const program::Program &program, program::CommandRef where, StringRef input,
                       MLIRContext &context) {
  for (const program::RankProgram &rank : program.ranks) {
    if (rank.rank != where.rank || where.command >= rank.commands.size())
      continue;
    uint32_t number = rank.commands[where.command].loc;
    if (number >= program.shared.locations.size())
      break;
    const program::Location &place = program.shared.locations[number];
    if (place.line != 0 && place.file < program.shared.files.size())
      return FileLineColLoc::get(&context, program.shared.files[place.file], place.line,
                                 place.column);
  }
  return FileLineColLoc::get(&context, input, 0, 0);
}

static std::vector<const program::RankProgram *> listRanks(const program::Program &program) {
  std::vector<const program::RankProgram *> ranks;
  for (const program::RankProgram &rank : program.ranks)
    ranks.push_back(&rank);
  return ranks;
}

static LogicalResult report(const program::Violation &violation, const DriverOptions &options,
                            const program::Program &program, MLIRContext &context) {
  return reportViolation(
      violation, program.shared, listRanks(program),
      [&](program::CommandRef where) { return locate(program, where, options.input, context); });
}

LogicalResult opt::checkQueues(const DriverOptions &options, const program::Program &program,
                               MLIRContext &context) {
  if (!options.hardwareQueues)
    return success();
  program::Verdict verdict =
      program::verifyQueues(program.shared, listRanks(program), *options.hardwareQueues);
  return verdict ? report(*verdict, options, program, context) : success();
}

static LogicalResult verify(const DriverOptions &options, const program::Program &program,
                            MLIRContext &context) {
  const program::WholeOptions whole{options.hardwareQueues,
                                    options.groupLimit.value_or(program::kDefaultGroupLimit)};
  if (program::Verdict verdict = program::verifyWholeProgram(program, whole))
    return report(*verdict, options, program, context);
  const program::SharedInfo &shared = program.shared;
  return writeText(options.output, [&](llvm::raw_ostream &os) {
    os << fmt::format("{}: {}, {} ranks, {} stages, {} micro-batches, {}\n", options.input,
                      shared.schedule, shared.numRanks, shared.numStages, shared.numMicrobatches,
                      shared.training ? "training" : "forward only")
       << program::describeProof(program, whole);
  });
}

LogicalResult opt::verifyInput(const DriverOptions &options, Input input,
                               DialectRegistry &registry) {
  bool isFile = input.kind == InputKind::Program;
  return compileInput(std::move(input), MlirOptMainConfig::createFromCLOptions(), registry,
                      [&](llvm::SourceMgr &sources, MLIRContext &context) {
                        FailureOr<program::Program> program =
                            isFile ? loadFile(options, sources) : loadModule(sources, context);
                        return failed(program) ? failure() : verify(options, *program, context);
                      });
}
