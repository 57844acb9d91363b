//===- ConvertRank.cpp - one rank's ops as commands on streams --------------===//
//
// One walk over the list. Values become slots: those that pipe-assign-slots put
// on their producers. What a command touches goes to the StreamBuilder, which
// adds the events.
//
//===----------------------------------------------------------------------===//

#include "StreamBuilder.h"
#include "dualpipe/Conversion/Passes.h"
#include "dualpipe/Schedule/ModelContract.h"
#include "lib/Transforms/DescribePipe.h"

#include "llvm/ADT/DenseMap.h"

using namespace dualpipe;
using namespace mlir;
using program::Function;
using program::SlotKind;
using program::StreamKind;

namespace {

class RankConverter {
public:
  RankConverter(pipe::RankOp rank, stream::ProgramOp program)
      : rank(rank), program(program),
        numSlots(static_cast<uint32_t>(rank.getSlots().getNumSlots())), streams(program, numSlots) {
  }

  LogicalResult run();

private:
  LogicalResult visit(Operation &op);
  LogicalResult visitInput(pipe::InputOp op);
  LogicalResult visitSend(pipe::SendOp op);
  LogicalResult visitRecv(pipe::RecvOp op);
  LogicalResult visitCompute(pipe::ComputeOpInterface op);
  LogicalResult visitFused(pipe::FusedFbOp op);
  void visitReduce(pipe::ReduceGradOp op);
  void visitStep(pipe::StepOp op);

  LogicalResult touch(pipe::ComputeOpInterface op, stream::RoleSlots &roles);
  Operation *launch(pipe::ComputeOpInterface op, const stream::RoleSlots &roles);
  LogicalResult holdResults(Operation *op, ArrayRef<uint32_t> slots);
  FailureOr<uint32_t> getSlot(Operation *user, Value value);

  pipe::RankOp rank;
  stream::ProgramOp program;
  uint32_t numSlots;
  StreamBuilder streams;
  llvm::DenseMap<Value, uint32_t> slots;
};

} // namespace

static SlotKind getWriteRole(Type type) {
  if (isa<pipe::ActType>(type))
    return SlotKind::Output;
  if (isa<pipe::GradType>(type))
    return SlotKind::GradInput;
  return isa<pipe::SavedType>(type) ? SlotKind::Saved : SlotKind::WeightContext;
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

/// Remembers the slots of an op's results.
LogicalResult RankConverter::holdResults(Operation *op, ArrayRef<uint32_t> resultSlots) {
  if (resultSlots.size() != op->getNumResults())
    return emitRankError(rank, op)
           << describeOp(op) << " has no slots for its results: expected pipe-assign-slots before";
  for (auto [result, slot] : llvm::zip_equal(op->getResults(), resultSlots)) {
    if (slot >= numSlots)
      return emitRankError(rank, op) << "slot " << slot << " of " << numSlots << " is out of range";
    slots.try_emplace(result, slot);
  }
  return success();
}

FailureOr<uint32_t> RankConverter::getSlot(Operation *user, Value value) {
  auto found = slots.find(value);
  if (value && found != slots.end())
    return found->second;
  return emitRankError(rank, user)
         << describeOp(user) << " reads no value with a slot: expected the dataflow phase";
}

//===----------------------------------------------------------------------===//
// Compute
//===----------------------------------------------------------------------===//

/// Collects the slots of an op by role, and tells the builder of them.
LogicalResult RankConverter::touch(pipe::ComputeOpInterface op, stream::RoleSlots &roles) {
  if (op->getNumOperands() == 0)
    return emitRankError(rank, op)
           << describeOp(op) << " has no values: expected the dataflow phase";
  SmallVector<SlotKind> readRoles;
  pipe::forEachRole(pipe::getInputRoles(op), [&](SlotKind role) { readRoles.push_back(role); });
  for (auto [input, role] : llvm::zip_equal(op->getOperands(), readRoles)) {
    FailureOr<uint32_t> slot = getSlot(op, input);
    if (failed(slot))
      return failure();
    roles[role] = *slot;
    streams.read(*slot);
  }
  if (failed(holdResults(op, op.getSlots())))
    return failure();
  for (auto [result, slot] : llvm::zip_equal(op->getResults(), op.getSlots())) {
    roles[getWriteRole(result.getType())] = slot;
    streams.write(slot);
  }
  if (op.yieldsWeightGradient())
    streams.write(streams.getGradients(op.getStage()));
  return success();
}

Operation *RankConverter::launch(pipe::ComputeOpInterface op, const stream::RoleSlots &roles) {
  return stream::LaunchOp::create(streams.ops(), op.getLoc(), getFunction(op.getKind()),
                                  StreamBuilder::kComputeStream, op.getStage(), op.getMicrobatch(),
                                  roles, op.getFirst(), op.getLast(), op.getAccumulate());
}

LogicalResult RankConverter::visitCompute(pipe::ComputeOpInterface op) {
  stream::RoleSlots roles;
  if (failed(touch(op, roles)))
    return failure();
  streams.begin(op.getLoc(), StreamBuilder::kComputeStream);
  streams.finish(launch(op, roles));
  return success();
}

/// A group is one command: it waits for the inputs of all, and its end is that of all.
LogicalResult RankConverter::visitFused(pipe::FusedFbOp op) {
  SmallVector<std::pair<pipe::ComputeOpInterface, stream::RoleSlots>, 2> members;
  for (Operation &member : op.getBody()->without_terminator()) {
    auto &[compute, roles] =
        members.emplace_back(cast<pipe::ComputeOpInterface>(member), stream::RoleSlots());
    if (failed(touch(compute, roles)))
      return failure();
  }
  ValueRange yielded = op.getBody()->getTerminator()->getOperands();
  for (auto [result, value] : llvm::zip_equal(op.getResults(), yielded))
    slots.try_emplace(result, slots.lookup(value));
  streams.begin(op.getLoc(), StreamBuilder::kComputeStream);
  auto pair = stream::PairOp::create(streams.ops(), op.getLoc(), StreamBuilder::kComputeStream);
  {
    OpBuilder::InsertionGuard guard(streams.ops());
    streams.ops().setInsertionPointToEnd(pair.getBody());
    for (auto &[compute, roles] : members)
      launch(compute, roles);
  }
  streams.finish(pair);
  return success();
}

//===----------------------------------------------------------------------===//
// Data in and out
//===----------------------------------------------------------------------===//

/// Loads carry the flags of the stage that they load for.
LogicalResult RankConverter::visitInput(pipe::InputOp op) {
  if (failed(holdResults(op, op.getSlots())))
    return failure();
  bool isLabels = isa<pipe::LabelsType>(op.getValue().getType());
  bool first = !isLabels, last = isLabels;
  for (Operation *user : op.getValue().getUsers())
    if (auto compute = dyn_cast<pipe::ComputeOpInterface>(user)) {
      first = compute.getFirst();
      last = compute.getLast();
    }
  stream::RoleSlots roles;
  roles[isLabels ? SlotKind::Labels : SlotKind::Input] = op.getSlots().front();
  streams.write(op.getSlots().front());
  streams.begin(op.getLoc(), StreamBuilder::kComputeStream);
  streams.finish(stream::LaunchOp::create(
      streams.ops(), op.getLoc(), isLabels ? Function::LoadLabels : Function::LoadInput,
      StreamBuilder::kComputeStream, op.getStage(), op.getMicrobatch(), roles, first, last,
      /*accumulate=*/false));
  return success();
}

LogicalResult RankConverter::visitSend(pipe::SendOp op) {
  FailureOr<uint32_t> slot = getSlot(op, op.getValue());
  if (failed(slot))
    return failure();
  uint32_t onStream = streams.getChannelStream(StreamKind::Send, op.getKind(), op.getPeer());
  streams.read(*slot);
  streams.begin(op.getLoc(), onStream);
  streams.finish(stream::SendOp::create(streams.ops(), op.getLoc(), op.getKind(), onStream,
                                        op.getStage(), op.getMicrobatch(), op.getPeer(), *slot));
  return success();
}

LogicalResult RankConverter::visitRecv(pipe::RecvOp op) {
  if (!op.getValue())
    return emitRankError(rank, op)
           << describeOp(op) << " has no value: expected the dataflow phase";
  if (failed(holdResults(op, op.getSlots())))
    return failure();
  uint32_t slot = op.getSlots().front();
  uint32_t onStream = streams.getChannelStream(StreamKind::Recv, op.getKind(), op.getPeer());
  streams.write(slot);
  streams.begin(op.getLoc(), onStream);
  streams.finish(stream::RecvOp::create(streams.ops(), op.getLoc(), op.getKind(), onStream,
                                        op.getStage(), op.getMicrobatch(), op.getPeer(), slot));
  return success();
}

//===----------------------------------------------------------------------===//
// After the backwards
//===----------------------------------------------------------------------===//

void RankConverter::visitReduce(pipe::ReduceGradOp op) {
  uint32_t onStream = streams.getReduceStream(op.getRanksAttr());
  streams.write(streams.getGradients(op.getStage()));
  streams.begin(op.getLoc(), onStream);
  streams.finish(stream::ReduceOp::create(streams.ops(), op.getLoc(), onStream, op.getStage(),
                                          op.getRanksAttr()));
}

void RankConverter::visitStep(pipe::StepOp op) {
  streams.read(streams.getGradients(op.getStage()));
  streams.begin(op.getLoc(), StreamBuilder::kComputeStream);
  streams.finish(stream::StepOp::create(streams.ops(), op.getLoc(), StreamBuilder::kComputeStream,
                                        op.getStage()));
}

LogicalResult RankConverter::visit(Operation &op) {
  if (auto compute = dyn_cast<pipe::ComputeOpInterface>(op))
    return visitCompute(compute);
  if (auto send = dyn_cast<pipe::SendOp>(op))
    return visitSend(send);
  if (auto recv = dyn_cast<pipe::RecvOp>(op))
    return visitRecv(recv);
  if (auto fused = dyn_cast<pipe::FusedFbOp>(op))
    return visitFused(fused);
  if (auto input = dyn_cast<pipe::InputOp>(op))
    return visitInput(input);
  if (auto phase = dyn_cast<pipe::PhaseOp>(op))
    stream::PhaseOp::create(streams.ops(), phase.getLoc(), phase.getNameAttr());
  else if (auto reduce = dyn_cast<pipe::ReduceGradOp>(op))
    visitReduce(reduce);
  else if (auto step = dyn_cast<pipe::StepOp>(op))
    visitStep(step);
  else
    return emitRankError(rank, &op)
           << describeOp(&op) << " has no counterpart in the stream dialect";
  return success();
}

LogicalResult RankConverter::run() {
  for (Operation &op : *rank.getBody())
    if (failed(visit(op)))
      return failure();
  if (streams.getStreams().size() > stream::kMaxStreams)
    return emitRankError(rank, rank)
           << streams.getStreams().size() << " streams, expected at most " << stream::kMaxStreams
           << ": too many channels and reduce groups end here";
  program.setStreamsAttr(ArrayAttr::get(program.getContext(), streams.getStreams()));
  return success();
}

FailureOr<stream::ProgramOp> dualpipe::convertRank(pipe::RankOp rank, OpBuilder &builder) {
  auto program =
      stream::ProgramOp::create(builder, rank.getLoc(), rank.getRank(), rank.getScheduleAttr(),
                                ArrayRef<Attribute>{}, rank.getSlots(), rank.getModel());
  if (succeeded(RankConverter(rank, program).run()))
    return program;
  program.erase();
  return failure();
}
