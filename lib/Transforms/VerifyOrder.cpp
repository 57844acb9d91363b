//===- VerifyOrder.cpp - the order phase of the pipe dialect ----------------===//
//
// Ops stand in order, with transfers placed, and nothing else: no values, no
// slots, no inputs.
//
//===----------------------------------------------------------------------===//

#include "DescribePipe.h"
#include "dualpipe/Transforms/Passes.h"

namespace dualpipe {
#define GEN_PASS_DEF_PIPEVERIFYORDER
#include "lib/Transforms/Passes.h.inc"
} // namespace dualpipe

using namespace dualpipe;
using namespace mlir;

static LogicalResult verifyOp(pipe::RankOp rank, Operation *op) {
  if (isa<pipe::InputOp>(op))
    return emitRankError(rank, op) << "pipe.input does not belong in the order phase";
  if (op->getNumOperands() != 0 || op->getNumResults() != 0)
    return emitRankError(rank, op)
           << describeOp(op) << " has values, which the order phase does not";
  auto compute = dyn_cast<pipe::ComputeOpInterface>(op);
  if (compute && compute.getAccumulate())
    return emitRankError(rank, op)
           << describeOp(op) << " says accumulate, which the dataflow phase decides";
  return success();
}

LogicalResult dualpipe::verifyOrderPhase(pipe::RankOp rank) {
  if (!rank.getSlots().classes.empty())
    return emitRankError(rank, rank) << "slot classes do not belong in the order phase";
  WalkResult result = rank.getBodyRegion().walk([&](Operation *op) {
    return failed(verifyOp(rank, op)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {
struct PipeVerifyOrderPass : dualpipe::impl::PipeVerifyOrderBase<PipeVerifyOrderPass> {
  void runOnOperation() override {
    if (failed(verifyOrderPhase(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
