//===- Compiler.cpp - a schedule to a verified program, rank by rank --------===//

#include "dualpipe/Pipelines/Compiler.h"

#include "dualpipe/Pipelines/BuildRank.h"
#include "dualpipe/Pipelines/BuildSharedInfo.h"
#include "dualpipe/Pipelines/Lowering.h"
#include "dualpipe/Program/Verify.h"
#include "dualpipe/Target/Program.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Threading.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLExtras.h"

#include <atomic>

using namespace dualpipe;
using namespace mlir;

namespace {

class Compiler {
public:
  Compiler(MLIRContext *context, const Timeline &timeline, const CompileOptions &options)
      : context(context), timeline(timeline), options(options),
        locations(getLocations(context, timeline.getIndex().getSchedule())),
        tables(buildSharedInfo(timeline, options.planCosts), context) {}

  FailureOr<program::Program> run();

private:
  FailureOr<program::RankProgram> compileRank(uint32_t rank) const;
  LogicalResult verifyRank(const program::RankProgram &rank) const;
  LogicalResult report(const program::Verdict &verdict,
                       llvm::ArrayRef<const program::RankProgram *> ranks) const;
  Location getLocation(program::CommandRef ref,
                       llvm::ArrayRef<const program::RankProgram *> ranks) const;

  MLIRContext *context;
  const Timeline &timeline;
  const CompileOptions &options;
  std::vector<Location> locations;
  SharedTables tables;
};

} // namespace

FailureOr<program::RankProgram> Compiler::compileRank(uint32_t rank) const {
  // A module of its own, so that the same passes run as on a module of all ranks.
  OwningOpRef<ModuleOp> module = ModuleOp::create(locations[0]);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  buildRank(builder, timeline, rank, locations);

  PassManager pm(context);
  pm.enableVerifier(false);
  lowerRanks(pm, Level::Order, Level::Streams, options.spares);
  if (failed(pm.run(*module)))
    return failure();

  auto streams = *module->getOps<stream::ProgramOp>().begin();
  FailureOr<program::RankProgram> program = exportRank(streams, tables);
  if (failed(program) || failed(verifyRank(*program)))
    return failure();
  return program;
}

/// Each check relies on those before it.
LogicalResult Compiler::verifyRank(const program::RankProgram &rank) const {
  for (auto *check : {program::verifyRank, program::verifyResults, program::verifyMemory})
    if (failed(report(check(tables.getInfo(), rank), &rank)))
      return failure();
  return report(program::verifyGroups(tables.getInfo(), rank), &rank);
}

Location Compiler::getLocation(program::CommandRef ref,
                               llvm::ArrayRef<const program::RankProgram *> ranks) const {
  for (const program::RankProgram *rank : ranks)
    if (rank->rank == ref.rank && ref.command < rank->commands.size() &&
        rank->commands[ref.command].loc < locations.size())
      return locations[rank->commands[ref.command].loc];
  return locations[0];
}

LogicalResult Compiler::report(const program::Verdict &verdict,
                               llvm::ArrayRef<const program::RankProgram *> ranks) const {
  if (!verdict)
    return success();
  return reportViolation(*verdict, tables.getInfo(), ranks,
                         [&](program::CommandRef where) { return getLocation(where, ranks); });
}

FailureOr<program::Program> Compiler::run() {
  if (failed(report(program::verifyShared(tables.getInfo()), {})))
    return failure();

  // 1. Every rank on its own.
  std::vector<uint32_t> wanted;
  for (uint32_t rank = 0; rank != tables.getInfo().numRanks; ++rank)
    if (!options.onlyRank || *options.onlyRank == rank)
      wanted.push_back(rank);
  program::Program program;
  program.ranks.resize(wanted.size());
  // All of them: which errors are reported must not depend on the threads.
  std::vector<char> hasFailed(wanted.size(), false);
  std::atomic<uint64_t> numDone = 0;
  parallelFor(context, 0, wanted.size(), [&](size_t i) {
    FailureOr<program::RankProgram> rank = compileRank(wanted[i]);
    if (options.onProgress)
      options.onProgress(++numDone, wanted.size());
    hasFailed[i] = failed(rank);
    if (succeeded(rank))
      program.ranks[i] = std::move(*rank);
  });
  if (llvm::is_contained(hasFailed, true))
    return failure();

  // 2. What holds between them.
  std::vector<const program::RankProgram *> ranks;
  for (const program::RankProgram &rank : program.ranks)
    ranks.push_back(&rank);
  if (!options.onlyRank &&
      failed(report(program::verifyAcrossRanks(tables.getInfo(), ranks), ranks)))
    return failure();
  program.shared = std::move(tables).takeInfo();
  return program;
}

FailureOr<program::Program> dualpipe::compileProgram(MLIRContext *context, const Timeline &timeline,
                                                     const CompileOptions &options) {
  return Compiler(context, timeline, options).run();
}
