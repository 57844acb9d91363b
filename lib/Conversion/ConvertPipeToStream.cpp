//===- ConvertPipeToStream.cpp - the pass over all ranks of a module --------===//
//
// Ranks are converted side by side into detached programs, then put in place in
// order, since a block takes one writer at a time.
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Conversion/Passes.h"

#include "mlir/IR/Threading.h"

namespace dualpipe {
#define GEN_PASS_DEF_CONVERTPIPETOSTREAM
#include "lib/Conversion/Passes.h.inc"
} // namespace dualpipe

using namespace dualpipe;
using namespace mlir;

namespace {
struct ConvertPipeToStreamPass : dualpipe::impl::ConvertPipeToStreamBase<ConvertPipeToStreamPass> {
  void runOnOperation() override;
};
} // namespace

static void replace(pipe::RankOp rank, stream::ProgramOp program) {
  rank->getBlock()->getOperations().insert(rank->getIterator(), program);
  rank.erase();
}

void ConvertPipeToStreamPass::runOnOperation() {
  // 1. Find the ranks.
  SmallVector<pipe::RankOp> ranks;
  getOperation().walk([&](pipe::RankOp rank) { ranks.push_back(rank); });
  // 2. Convert each into a program of its own.
  SmallVector<stream::ProgramOp> programs(ranks.size());
  // All of them: which errors are reported must not depend on the threads.
  parallelFor(&getContext(), 0, ranks.size(), [&](size_t i) {
    OpBuilder builder(&getContext());
    if (FailureOr<stream::ProgramOp> program = convertRank(ranks[i], builder); succeeded(program))
      programs[i] = *program;
  });
  bool hasFailed = llvm::is_contained(programs, stream::ProgramOp());
  // 3. Put the programs where the ranks stood, or drop them.
  for (auto [rank, program] : llvm::zip_equal(ranks, programs)) {
    if (!hasFailed) {
      numStreams += program.getStreams().size();
      replace(rank, program);
    } else if (program) {
      program.erase();
    }
  }
  if (hasFailed)
    signalPassFailure();
}
