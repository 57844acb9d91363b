//===- VerifyDataflow.cpp - the dataflow phase of the pipe dialect ----------===//
//
// Every op has its values, every value has a use, and the first gradient of a
// stage on the rank overwrites while all others add.
//
//===----------------------------------------------------------------------===//

#include "DescribePipe.h"
#include "dualpipe/Schedule/ModelContract.h"
#include "dualpipe/Transforms/Passes.h"

#include "llvm/ADT/DenseMap.h"

namespace dualpipe {
#define GEN_PASS_DEF_PIPEVERIFYDATAFLOW
#include "lib/Transforms/Passes.h.inc"
} // namespace dualpipe

using namespace dualpipe;
using namespace mlir;
using program::SlotKind;

namespace {

class DataflowVerifier {
public:
  explicit DataflowVerifier(pipe::RankOp rank) : rank(rank) {}
  LogicalResult run();

private:
  LogicalResult verifyOp(Operation &op);
  LogicalResult verifyCompute(pipe::ComputeOpInterface op);
  LogicalResult verifyInputs(pipe::ComputeOpInterface op);
  LogicalResult verifyOutputs(pipe::ComputeOpInterface op);
  LogicalResult verifyAccumulate(pipe::ComputeOpInterface op);
  bool mayBeUnused(Type type);
  LogicalResult verifyUses(Operation &op);

  pipe::RankOp rank;
  llvm::DenseMap<uint32_t, Operation *> firstGradients; ///< by stage
};

} // namespace

/// Under some contracts a context is kept for nobody. A saved context needs a reader
/// where both a full backward and the halves of a split one would be.
bool DataflowVerifier::mayBeUnused(Type type) {
  const program::Contract &model = rank.getModel();
  if (isa<pipe::WctxType>(type))
    return !(model.backwardWeightReads & bit(SlotKind::WeightContext));
  const uint32_t byAll =
      model.backwardReads & (model.backwardInputReads | model.backwardWeightReads);
  return isa<pipe::SavedType>(type) && !(byAll & bit(SlotKind::Saved));
}

/// Reports all unused values: each is a fault of its own.
LogicalResult DataflowVerifier::run() {
  bool hasFailed = false;
  for (Operation &op : *rank.getBody()) {
    if (failed(verifyOp(op)))
      return failure();
    hasFailed |= failed(verifyUses(op));
  }
  return failure(hasFailed);
}

LogicalResult DataflowVerifier::verifyOp(Operation &op) {
  if (auto compute = dyn_cast<pipe::ComputeOpInterface>(op))
    return verifyCompute(compute);
  if (auto fused = dyn_cast<pipe::FusedFbOp>(op)) {
    for (Operation &member : fused.getBody()->without_terminator())
      if (failed(verifyCompute(cast<pipe::ComputeOpInterface>(member))))
        return failure();
    return success();
  }
  bool lacksValue = (isa<pipe::SendOp>(op) && op.getNumOperands() == 0) ||
                    (isa<pipe::RecvOp>(op) && op.getNumResults() == 0);
  if (lacksValue)
    return emitRankError(rank, &op)
           << describeOp(&op) << " has no value, which the dataflow phase asks for";
  return success();
}

LogicalResult DataflowVerifier::verifyCompute(pipe::ComputeOpInterface op) {
  if (op->getNumOperands() == 0)
    return emitRankError(rank, op)
           << describeOp(op) << " has no values, which the dataflow phase asks for";
  if (failed(verifyInputs(op)) || failed(verifyOutputs(op)))
    return failure();
  return verifyAccumulate(op);
}

/// The op reads what the model contract of the rank says.
LogicalResult DataflowVerifier::verifyInputs(pipe::ComputeOpInterface op) {
  uint32_t expected = program::getReads(rank.getModel(), getFunction(op.getKind()), op.getLast());
  uint32_t roles = pipe::getInputRoles(op);
  if (roles == expected)
    return success();
  return emitRankError(rank, op) << describeOp(op) << " reads " << describeSlotKinds(roles)
                                 << ", expected " << describeSlotKinds(expected)
                                 << " by the model of the rank";
}

/// What the op's verifier leaves open: a forward keeps a saved context exactly
/// where a backward can follow. A backward reads what a forward has kept, so none
/// can stand in a forward-only program whose forwards are right.
LogicalResult DataflowVerifier::verifyOutputs(pipe::ComputeOpInterface op) {
  if (op.getKind() != OpKind::Forward)
    return success();
  bool keeps = op->getNumResults() == (op.getLast() ? 1u : 2u);
  if (keeps == rank.getForwardOnly())
    return emitRankError(rank, op)
           << describeOp(op) << (keeps ? " keeps a" : " keeps no") << " saved context in a "
           << (keeps ? "forward-only" : "training") << " program";
  return success();
}

LogicalResult DataflowVerifier::verifyAccumulate(pipe::ComputeOpInterface op) {
  if (!op.yieldsWeightGradient())
    return success();
  auto [first, isFirst] = firstGradients.try_emplace(op.getStage(), op);
  if (op.getAccumulate() != isFirst)
    return success();
  InFlightDiagnostic diag = emitRankError(rank, op) << describeOp(op);
  if (isFirst)
    return diag << " is the first gradient of its stage and adds to it, expected no accumulate";
  diag << " overwrites the gradient of its stage, expected accumulate";
  diag.attachNote(first->second->getLoc()) << "the first gradient is here";
  return diag;
}

LogicalResult DataflowVerifier::verifyUses(Operation &op) {
  bool hasFailed = false;
  for (OpResult result : op.getResults()) {
    if (!result.use_empty() || mayBeUnused(result.getType()))
      continue;
    InFlightDiagnostic diag = emitRankError(rank, &op) << "nothing uses " << describeResult(result);
    if (isa<pipe::SavedType>(result.getType()))
      diag << ": expected its backward on this rank";
    else if (isa<pipe::WctxType>(result.getType()))
      diag << ": expected its weight half on this rank";
    hasFailed = true;
  }
  return failure(hasFailed);
}

LogicalResult dualpipe::verifyDataflowPhase(pipe::RankOp rank) {
  return DataflowVerifier(rank).run();
}

namespace {
struct PipeVerifyDataflowPass : dualpipe::impl::PipeVerifyDataflowBase<PipeVerifyDataflowPass> {
  void runOnOperation() override {
    if (failed(verifyDataflowPhase(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
