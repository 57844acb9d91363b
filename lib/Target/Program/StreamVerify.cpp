//===- StreamVerify.cpp - the checks on programs, reported at ops -----------===//
//
// There is one checker of programs, and it knows nothing of MLIR. This pass
// hands it what would be written to the file, and finds the op of the command
// that it complains about.
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Program/Verify.h"
#include "dualpipe/Target/Program.h"

#include "mlir/IR/Threading.h"
#include "llvm/ADT/STLExtras.h"

namespace dualpipe {
#define GEN_PASS_DEF_STREAMVERIFY
#include "lib/Target/Program/Passes.h.inc"
} // namespace dualpipe

using namespace dualpipe;
using namespace mlir;
using program::CommandRef;
using program::kNone;
using program::Verdict;
using program::Violation;

namespace {

/// The programs of a module with the ops that they came from.
class ModuleChecker {
public:
  explicit ModuleChecker(ModuleOp module) : module(module) {}
  LogicalResult run();

private:
  LogicalResult exportRanks(SharedTables &tables);
  LogicalResult verify(const SharedTables &tables);
  LogicalResult report(const Violation &violation);
  Location find(CommandRef where);

  ModuleOp module;
  SmallVector<stream::ProgramOp> ops;
  std::vector<program::RankProgram> programs;
  std::vector<std::vector<Operation *>> commands;
};

} // namespace

LogicalResult ModuleChecker::exportRanks(SharedTables &tables) {
  llvm::append_range(ops, module.getOps<stream::ProgramOp>());
  llvm::sort(ops,
             [](stream::ProgramOp a, stream::ProgramOp b) { return a.getRank() < b.getRank(); });
  programs.resize(ops.size());
  commands.resize(ops.size());
  return failableParallelForEachN(
      module.getContext(), 0, ops.size(), [&](size_t i) -> LogicalResult {
        FailureOr<program::RankProgram> rank = exportRank(ops[i], tables, &commands[i]);
        if (failed(rank))
          return failure();
        programs[i] = std::move(*rank);
        return success();
      });
}

Location ModuleChecker::find(CommandRef where) {
  for (auto [op, ofRank] : llvm::zip_equal(ops, commands))
    if (op.getRank() == where.rank)
      return where.command < ofRank.size() ? ofRank[where.command]->getLoc() : op.getLoc();
  return module.getLoc();
}

static std::string describe(CommandRef where) {
  if (where.rank == kNone)
    return "";
  if (where.command == kNone)
    return ("rank " + Twine(where.rank) + ": ").str();
  return ("rank " + Twine(where.rank) + ", command " + Twine(where.command) + ": ").str();
}

LogicalResult ModuleChecker::report(const Violation &violation) {
  InFlightDiagnostic diag = emitError(find(violation.where))
                            << violation.id << ": " << describe(violation.where)
                            << violation.message;
  for (const Violation::Note &note : violation.notes)
    diag.attachNote(find(note.where)) << describe(note.where) << note.message;
  return diag;
}

/// Each rank alone first: what is checked across ranks relies on that.
LogicalResult ModuleChecker::verify(const SharedTables &tables) {
  const program::SharedInfo &shared = tables.getInfo();
  if (Verdict verdict = program::verifyShared(shared))
    return report(*verdict);
  bool hasFailed = false;
  for (const program::RankProgram &rank : programs)
    if (Verdict verdict = program::verifyRank(shared, rank))
      hasFailed |= failed(report(*verdict));
  if (hasFailed || tables.isPartial())
    return failure(hasFailed);
  std::vector<const program::RankProgram *> all;
  for (const program::RankProgram &rank : programs)
    all.push_back(&rank);
  if (Verdict verdict = program::verifyAcrossRanks(shared, all))
    return report(*verdict);
  return success();
}

LogicalResult ModuleChecker::run() {
  FailureOr<SharedTables> tables = SharedTables::scan(module);
  if (failed(tables) || failed(exportRanks(*tables)))
    return failure();
  tables->sumChannels(programs);
  return verify(*tables);
}

namespace {
struct StreamVerifyPass : dualpipe::impl::StreamVerifyBase<StreamVerifyPass> {
  void runOnOperation() override {
    if (failed(ModuleChecker(getOperation()).run()))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
