//===- MaterializeDataflow.cpp - from order to values -----------------------===//
//
// One walk over the rank's list. A table holds what has been defined so far by
// (type, stage, micro-batch): activations and gradients under the stage that
// reads them, so a transfer and a hand-over inside the rank look alike.
//
//===----------------------------------------------------------------------===//

#include "DescribePipe.h"
#include "dualpipe/Schedule/ModelContract.h"
#include "dualpipe/Transforms/Passes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace dualpipe {
#define GEN_PASS_DEF_PIPEMATERIALIZEDATAFLOW
#include "lib/Transforms/Passes.h.inc"
} // namespace dualpipe

using namespace dualpipe;
using namespace mlir;
using program::SlotKind;

namespace {

/// A value's place in the table.
struct ValueKey {
  enum Kind : uint64_t { Act, Grad, Saved, Wctx, Labels };

  Kind kind;
  uint32_t stage;
  uint32_t microbatch;

  /// Stages stay below 2^24 (program file), so kinds fit above them.
  uint64_t pack() const {
    return (static_cast<uint64_t>(kind) << 60) | (static_cast<uint64_t>(stage) << 32) | microbatch;
  }
};

class DataflowBuilder {
public:
  explicit DataflowBuilder(pipe::RankOp rank)
      : rank(rank), builder(rank.getContext()),
        types{pipe::ActType::get(rank.getContext()), pipe::GradType::get(rank.getContext()),
              pipe::SavedType::get(rank.getContext()), pipe::WctxType::get(rank.getContext()),
              pipe::LabelsType::get(rank.getContext())} {}

  FailureOr<unsigned> run();

private:
  LogicalResult visit(Operation &op);
  LogicalResult visitSend(pipe::SendOp op);
  LogicalResult visitRecv(pipe::RecvOp op);
  LogicalResult visitFused(pipe::FusedFbOp op);
  LogicalResult visitCompute(pipe::ComputeOpInterface op);

  FailureOr<Operation *> rebuild(pipe::ComputeOpInterface op);
  template <typename ComputeOp>
  Operation *create(ComputeOp op, ValueRange inputs, TypeRange types, uint32_t reads);
  bool accumulates(pipe::ComputeOpInterface op);

  FailureOr<SmallVector<Value, 2>> findInputs(pipe::ComputeOpInterface op, uint32_t roles);
  LogicalResult addInputs(pipe::ComputeOpInterface op);
  LogicalResult addInput(pipe::ComputeOpInterface op, ValueKey key);
  FailureOr<Value> find(Operation *user, ValueKey key, StringRef role);
  LogicalResult define(Operation *producer, ValueKey key, Value value);
  LogicalResult defineResults(Operation *producer, pipe::ComputeOpInterface op, ValueRange values);
  void noteLaterProducer(InFlightDiagnostic &diag, Operation *user, ValueKey key);

  Type getType(ValueKey::Kind kind) const { return types[kind]; }

  pipe::RankOp rank;
  OpBuilder builder;
  std::array<Type, 5> types;
  llvm::DenseMap<uint64_t, Value> values;
  llvm::DenseSet<uint32_t> stagesWithGradient;
  unsigned numInputs = 0;
};

using Keys = SmallVector<ValueKey, 2>;

} // namespace

/// Where a value with this role comes from: an output is the input of the next stage.
static ValueKey getInputKey(pipe::ComputeOpInterface op, SlotKind role) {
  uint32_t stage = op.getStage(), mb = op.getMicrobatch();
  switch (role) {
  case SlotKind::Input:
    return {ValueKey::Act, stage, mb};
  case SlotKind::Output:
    return {ValueKey::Act, stage + 1, mb};
  case SlotKind::GradOutput:
    return {ValueKey::Grad, stage, mb};
  case SlotKind::GradInput:
    return {ValueKey::Grad, stage - 1, mb};
  case SlotKind::Saved:
    return {ValueKey::Saved, stage, mb};
  case SlotKind::WeightContext:
    return {ValueKey::Wctx, stage, mb};
  case SlotKind::Labels:
    return {ValueKey::Labels, stage, mb};
  }
  llvm_unreachable("every kind returns above");
}

/// What a compute op yields; the order is that of pipe::getOutputTypes.
static Keys getOutputKeys(pipe::ComputeOpInterface op, bool forwardOnly) {
  uint32_t stage = op.getStage(), mb = op.getMicrobatch();
  Keys keys;
  if (op.getKind() == OpKind::Forward) {
    if (!op.getLast())
      keys.push_back({ValueKey::Act, stage + 1, mb});
    if (!forwardOnly)
      keys.push_back({ValueKey::Saved, stage, mb});
    return keys;
  }
  if (op.getKind() != OpKind::BackwardWeight && !op.getFirst())
    keys.push_back({ValueKey::Grad, stage - 1, mb});
  if (op.getKind() == OpKind::BackwardInput)
    keys.push_back({ValueKey::Wctx, stage, mb});
  return keys;
}

static StringRef describeRole(SlotKind role) {
  switch (role) {
  case SlotKind::Input:
    return "input";
  case SlotKind::Output:
    return "output";
  case SlotKind::GradOutput:
    return "output gradient";
  case SlotKind::GradInput:
    return "input gradient";
  case SlotKind::Saved:
    return "saved context";
  case SlotKind::WeightContext:
    return "weight context";
  case SlotKind::Labels:
    return "labels";
  }
  llvm_unreachable("every kind returns above");
}

static ValueKey::Kind getKeyKind(TransferKind kind) {
  return kind == TransferKind::Activation ? ValueKey::Act : ValueKey::Grad;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// Where the value comes from after all, for a note: only looked up on failure.
void DataflowBuilder::noteLaterProducer(InFlightDiagnostic &diag, Operation *user, ValueKey key) {
  Operation *place = user->getParentOp() == rank ? user : user->getParentOp();
  auto defines = [&](Operation *op) {
    if (auto recv = dyn_cast<pipe::RecvOp>(op))
      return key.pack() ==
             ValueKey{getKeyKind(recv.getKind()), recv.getStage(), recv.getMicrobatch()}.pack();
    auto compute = dyn_cast<pipe::ComputeOpInterface>(op);
    return compute && llvm::any_of(getOutputKeys(compute, rank.getForwardOnly()),
                                   [&](ValueKey k) { return k.pack() == key.pack(); });
  };
  for (Operation *op = place; op; op = op->getNextNode()) {
    WalkResult found = op->walk([&](Operation *candidate) {
      if (candidate == user || !defines(candidate))
        return WalkResult::advance();
      diag.attachNote(candidate->getLoc())
          << (op == place ? "it comes from the same fused group" : "it comes from here, too late");
      return WalkResult::interrupt();
    });
    if (found.wasInterrupted())
      return;
  }
}

FailureOr<Value> DataflowBuilder::find(Operation *user, ValueKey key, StringRef role) {
  auto found = values.find(key.pack());
  if (found != values.end())
    return found->second;
  InFlightDiagnostic diag = emitRankError(rank, user);
  diag << describeOp(user) << " has no " << role << ": nothing before it on this rank yields "
       << describeValue(getType(key.kind), key.stage, key.microbatch);
  noteLaterProducer(diag, user, key);
  return failure();
}

LogicalResult DataflowBuilder::define(Operation *producer, ValueKey key, Value value) {
  auto [entry, isNew] = values.try_emplace(key.pack(), value);
  if (isNew)
    return success();
  InFlightDiagnostic diag = emitRankError(rank, producer);
  diag << "second definition of " << describeValue(getType(key.kind), key.stage, key.microbatch);
  diag.attachNote(entry->second.getLoc()) << "defined first here";
  return diag;
}

LogicalResult DataflowBuilder::defineResults(Operation *producer, pipe::ComputeOpInterface op,
                                             ValueRange results) {
  for (auto [key, value] : llvm::zip_equal(getOutputKeys(op, rank.getForwardOnly()), results))
    if (failed(define(producer, key, value)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Compute ops
//===----------------------------------------------------------------------===//

LogicalResult DataflowBuilder::addInput(pipe::ComputeOpInterface op, ValueKey key) {
  auto input =
      pipe::InputOp::create(builder, op.getLoc(), getType(key.kind), key.stage, key.microbatch);
  ++numInputs;
  return define(op, key, input.getValue());
}

/// Data enters right before the forward that reads it.
LogicalResult DataflowBuilder::addInputs(pipe::ComputeOpInterface op) {
  if (op.getKind() != OpKind::Forward)
    return success();
  uint32_t stage = op.getStage(), mb = op.getMicrobatch();
  if (op.getFirst() && failed(addInput(op, {ValueKey::Act, stage, mb})))
    return failure();
  return op.getLast() ? addInput(op, {ValueKey::Labels, stage, mb}) : success();
}

/// The first gradient of a stage on the rank overwrites, all others add.
bool DataflowBuilder::accumulates(pipe::ComputeOpInterface op) {
  return op.yieldsWeightGradient() && !stagesWithGradient.insert(op.getStage()).second;
}

template <typename ComputeOp>
Operation *DataflowBuilder::create(ComputeOp op, ValueRange inputs, TypeRange outputs,
                                   uint32_t reads) {
  bool accumulate = accumulates(cast<pipe::ComputeOpInterface>(op.getOperation()));
  return ComputeOp::create(builder, op.getLoc(), outputs, op.getStage(), op.getMicrobatch(),
                           op.getFirst(), op.getLast(), accumulate, inputs, reads);
}

FailureOr<SmallVector<Value, 2>> DataflowBuilder::findInputs(pipe::ComputeOpInterface op,
                                                             uint32_t roles) {
  SmallVector<Value, 2> inputs;
  bool hasFailed = false;
  pipe::forEachRole(roles, [&](SlotKind role) {
    if (hasFailed)
      return;
    FailureOr<Value> value = find(op, getInputKey(op, role), describeRole(role));
    hasFailed = failed(value);
    if (!hasFailed)
      inputs.push_back(*value);
  });
  if (hasFailed)
    return failure();
  return inputs;
}

/// The same op with its values, at the builder's place.
FailureOr<Operation *> DataflowBuilder::rebuild(pipe::ComputeOpInterface op) {
  if (op.getKind() != OpKind::Forward && rank.getForwardOnly())
    return emitRankError(rank, op) << describeOp(op) << " stands in a forward-only program";
  uint32_t roles = program::getReads(rank.getModel(), getFunction(op.getKind()), op.getLast());
  FailureOr<SmallVector<Value, 2>> inputs = findInputs(op, roles);
  if (failed(inputs))
    return failure();
  SmallVector<Type, 2> outputs;
  for (ValueKey key : getOutputKeys(op, rank.getForwardOnly()))
    outputs.push_back(getType(key.kind));
  // Named where they are not the usual ones.
  uint32_t reads = roles == pipe::getInputRoles(op.getKind(), op.getLast(), 0) ? 0 : roles;
  switch (op.getKind()) {
  case OpKind::Forward:
    return create(cast<pipe::FwdOp>(op.getOperation()), *inputs, outputs, reads);
  case OpKind::Backward:
    return create(cast<pipe::BwdOp>(op.getOperation()), *inputs, outputs, reads);
  case OpKind::BackwardInput:
    return create(cast<pipe::BwdInputOp>(op.getOperation()), *inputs, outputs, reads);
  case OpKind::BackwardWeight:
    return create(cast<pipe::BwdWeightOp>(op.getOperation()), *inputs, outputs, reads);
  }
  llvm_unreachable("every kind returns above");
}

LogicalResult DataflowBuilder::visitCompute(pipe::ComputeOpInterface op) {
  if (failed(addInputs(op)))
    return failure();
  FailureOr<Operation *> rebuilt = rebuild(op);
  if (failed(rebuilt) || failed(defineResults(op, op, (*rebuilt)->getResults())))
    return failure();
  op->erase();
  return success();
}

/// Members read what was there before the group; their results leave it together.
LogicalResult DataflowBuilder::visitFused(pipe::FusedFbOp op) {
  auto members = llvm::make_early_inc_range(op.getBody()->without_terminator());
  for (Operation &member : op.getBody()->without_terminator())
    if (failed(addInputs(cast<pipe::ComputeOpInterface>(member))))
      return failure();
  SmallVector<Value> yielded;
  for (Operation &member : members) {
    builder.setInsertionPoint(&member);
    FailureOr<Operation *> rebuilt = rebuild(cast<pipe::ComputeOpInterface>(member));
    if (failed(rebuilt))
      return failure();
    llvm::append_range(yielded, (*rebuilt)->getResults());
    member.erase();
  }
  op.getBody()->getTerminator()->setOperands(yielded);
  builder.setInsertionPoint(op);
  auto rebuilt = pipe::FusedFbOp::create(builder, op.getLoc(), ValueRange(yielded).getTypes());
  rebuilt.getBodyRegion().takeBody(op.getBodyRegion());
  op->erase();
  ValueRange results = rebuilt.getResults();
  for (Operation &member : rebuilt.getBody()->without_terminator()) {
    if (failed(defineResults(&member, cast<pipe::ComputeOpInterface>(member),
                             results.take_front(member.getNumResults()))))
      return failure();
    results = results.drop_front(member.getNumResults());
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

LogicalResult DataflowBuilder::visitSend(pipe::SendOp op) {
  ValueKey key{getKeyKind(op.getKind()), op.getStage(), op.getMicrobatch()};
  FailureOr<Value> value = find(op, key, "value");
  if (failed(value))
    return failure();
  op.getValueMutable().assign(*value);
  return success();
}

LogicalResult DataflowBuilder::visitRecv(pipe::RecvOp op) {
  auto rebuilt = pipe::RecvOp::create(builder, op.getLoc(), op.getKind(), op.getStage(),
                                      op.getMicrobatch(), op.getPeer(), /*withResult=*/true);
  ValueKey key{getKeyKind(op.getKind()), op.getStage(), op.getMicrobatch()};
  if (failed(define(op, key, rebuilt.getValue())))
    return failure();
  op->erase();
  return success();
}

LogicalResult DataflowBuilder::visit(Operation &op) {
  builder.setInsertionPoint(&op);
  if (auto compute = dyn_cast<pipe::ComputeOpInterface>(op))
    return visitCompute(compute);
  if (auto send = dyn_cast<pipe::SendOp>(op))
    return visitSend(send);
  if (auto recv = dyn_cast<pipe::RecvOp>(op))
    return visitRecv(recv);
  if (auto fused = dyn_cast<pipe::FusedFbOp>(op))
    return visitFused(fused);
  return success();
}

FailureOr<unsigned> DataflowBuilder::run() {
  for (Operation &op : llvm::make_early_inc_range(*rank.getBody()))
    if (failed(visit(op)))
      return failure();
  return numInputs;
}

FailureOr<unsigned> dualpipe::materializeDataflow(pipe::RankOp rank) {
  if (failed(verifyOrderPhase(rank)))
    return failure();
  FailureOr<unsigned> numInputs = DataflowBuilder(rank).run();
  if (failed(numInputs) || failed(verifyDataflowPhase(rank)))
    return failure();
  return numInputs;
}

namespace {
struct PipeMaterializeDataflowPass
    : dualpipe::impl::PipeMaterializeDataflowBase<PipeMaterializeDataflowPass> {
  void runOnOperation() override {
    FailureOr<unsigned> added = materializeDataflow(getOperation());
    if (failed(added))
      return signalPassFailure();
    numInputs += *added;
  }
};
} // namespace
