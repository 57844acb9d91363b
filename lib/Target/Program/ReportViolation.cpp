//===- ReportViolation.cpp - findings on programs as diagnostics ------------===//

#include "dualpipe/Target/Program.h"

#include "mlir/IR/Diagnostics.h"

using namespace dualpipe;
using namespace mlir;
using program::CommandRef;
using program::kNone;

/// "rank 1, command 4: send of the activation ...: ". The place is that of the
/// diagnostic already.
static std::string describe(CommandRef where, const program::SharedInfo &shared,
                            ArrayRef<const program::RankProgram *> ranks) {
  if (where.rank == kNone)
    return "";
  for (const program::RankProgram *rank : ranks) {
    if (rank->rank != where.rank || where.command >= rank->commands.size())
      continue;
    std::string text = program::describeCommand(shared, *rank, where.command);
    StringRef withoutPlace = text;
    withoutPlace.consume_back(
        " (" + program::describeLocation(shared, rank->commands[where.command].loc) + ")");
    return (withoutPlace + ": ").str();
  }
  return ("rank " + Twine(where.rank) + ": ").str();
}

LogicalResult dualpipe::reportViolation(const program::Violation &violation,
                                        const program::SharedInfo &shared,
                                        ArrayRef<const program::RankProgram *> ranks,
                                        llvm::function_ref<Location(CommandRef)> locate) {
  InFlightDiagnostic diag = emitError(locate(violation.where))
                            << violation.id << ": " << describe(violation.where, shared, ranks)
                            << violation.message;
  for (const program::Violation::Note &note : violation.notes)
    diag.attachNote(locate(note.where)) << describe(note.where, shared, ranks) << note.message;
  return diag;
}
