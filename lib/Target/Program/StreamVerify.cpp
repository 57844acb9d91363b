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
#include "llvm/ADT/STLFunctionalExtras.h"

namespace dualpipe {
#define GEN_PASS_DEF_STREAMVERIFY
#include "lib/Target/Program/Passes.h.inc"
} // namespace dualpipe

using namespace dualpipe;
using namespace mlir;
using program::CommandRef;
using program::Verdict;

namespace {

/// The programs of a module with the ops that they came from.
class ModuleChecker {
public:
  ModuleChecker(ModuleOp module, uint32_t groupLimit) : module(module), groupLimit(groupLimit) {}
  LogicalResult run();

private:
  LogicalResult verify(const SharedTables &tables);
  using Check =
      llvm::function_ref<Verdict(const program::SharedInfo &, const program::RankProgram &)>;
  std::vector<Verdict> checkRanks(const program::SharedInfo &shared, Check check);
  Location find(CommandRef where);

  ModuleOp module;
  uint32_t groupLimit;
  SmallVector<stream::ProgramOp> ops;
  std::vector<program::RankProgram> programs;
  std::vector<std::vector<Operation *>> commands;
};

} // namespace

Location ModuleChecker::find(CommandRef where) {
  for (auto [op, ofRank] : llvm::zip_equal(ops, commands))
    if (op.getRank() == where.rank)
      return where.command < ofRank.size() ? ofRank[where.command]->getLoc() : op.getLoc();
  return module.getLoc();
}

std::vector<Verdict> ModuleChecker::checkRanks(const program::SharedInfo &shared, Check check) {
  std::vector<Verdict> verdicts(programs.size());
  parallelFor(module.getContext(), 0, programs.size(),
              [&](size_t i) { verdicts[i] = check(shared, programs[i]); });
  return verdicts;
}

/// Each rank alone first: what is checked across ranks relies on that, and what ranks compute
/// relies on both. A placement that was made up says nothing of what they should compute.
LogicalResult ModuleChecker::verify(const SharedTables &tables) {
  const program::SharedInfo &shared = tables.getInfo();
  std::vector<const program::RankProgram *> all;
  for (const program::RankProgram &rank : programs)
    all.push_back(&rank);
  auto report = [&](ArrayRef<Verdict> verdicts) {
    LogicalResult result = success();
    for (const Verdict &verdict : verdicts)
      if (verdict)
        result =
            reportViolation(*verdict, shared, all, [&](CommandRef where) { return find(where); });
    return result;
  };
  if (failed(report(program::verifyShared(shared))) ||
      failed(report(checkRanks(shared, program::verifyRank))))
    return failure();
  auto checkGroups = [&](const program::SharedInfo &info, const program::RankProgram &rank) {
    return program::verifyGroups(info, rank, groupLimit);
  };
  if (failed(report(checkRanks(shared, checkGroups))))
    return failure();
  if (tables.isPartial())
    return success();
  if (failed(report(program::verifyAcrossRanks(shared, all))) ||
      failed(report(checkRanks(shared, program::verifyResults))))
    return failure();
  return report(checkRanks(shared, program::verifyMemory));
}

LogicalResult ModuleChecker::run() {
  FailureOr<SharedTables> tables = SharedTables::scan(module);
  if (failed(tables))
    return failure();
  llvm::append_range(ops, module.getOps<stream::ProgramOp>());
  llvm::sort(ops,
             [](stream::ProgramOp a, stream::ProgramOp b) { return a.getRank() < b.getRank(); });
  if (failed(exportRanks(ops, *tables, programs, &commands)))
    return failure();
  tables->sumChannels(programs);
  return verify(*tables);
}

namespace {
struct StreamVerifyPass : dualpipe::impl::StreamVerifyBase<StreamVerifyPass> {
  using StreamVerifyBase::StreamVerifyBase;

  void runOnOperation() override {
    if (failed(ModuleChecker(getOperation(), groupLimit).run()))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
