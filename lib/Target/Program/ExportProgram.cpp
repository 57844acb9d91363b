//===- ExportProgram.cpp - from a stream.program to plain data --------------===//
//
// One walk over the ops of a rank. Only what cannot be written down is an error
// here: whether the program makes sense is for the checks on programs.
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Target/Program.h"

#include "mlir/IR/Threading.h"
#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace dualpipe;
using namespace mlir;
using program::CommandOp;
using program::StreamKind;

namespace {

class RankExporter {
public:
  RankExporter(stream::ProgramOp op, const SharedTables &tables, std::vector<Operation *> *ops)
      : op(op), tables(tables), ops(ops) {}

  FailureOr<program::RankProgram> run();

private:
  LogicalResult addStream(stream::StreamAttr entry);
  FailureOr<uint32_t> getTarget(stream::StreamAttr entry);
  LogicalResult visit(Operation &command);
  LogicalResult add(CommandOp kind, uint32_t onStream, uint32_t arg, Operation *command);

  LogicalResult addPhase(stream::PhaseOp phase);
  LogicalResult addLaunch(stream::LaunchOp launch);
  template <typename TransferOp> LogicalResult addTransfer(TransferOp transfer);
  template <typename BracketOp> LogicalResult addBracket(BracketOp bracket, CommandOp kind);
  LogicalResult addRecord(stream::RecordOp record);
  LogicalResult addWait(stream::WaitOp wait);
  LogicalResult addReduce(stream::ReduceOp reduce);

  FailureOr<uint32_t> getChannel(Operation *user, bool sends, TransferKind kind, uint32_t peer);

  stream::ProgramOp op;
  const SharedTables &tables;
  std::vector<Operation *> *ops;
  program::RankProgram result;
  llvm::DenseMap<Value, uint32_t> events;
  /// Ops of one place often stand next to each other: the last place looked up.
  std::optional<std::pair<Location, uint32_t>> lastLocation;
};

} // namespace

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

FailureOr<uint32_t> RankExporter::getChannel(Operation *user, bool sends, TransferKind kind,
                                             uint32_t peer) {
  uint32_t source = sends ? op.getRank() : peer, destination = sends ? peer : op.getRank();
  if (std::optional<uint32_t> channel = tables.findChannel(source, destination, kind))
    return *channel;
  return user->emitError() << "rank " << op.getRank() << ": no channel from rank " << source
                           << " to rank " << destination << " carries "
                           << (kind == TransferKind::Activation ? "activations" : "gradients");
}

FailureOr<uint32_t> RankExporter::getTarget(stream::StreamAttr entry) {
  switch (entry.getKind()) {
  case StreamKind::Compute:
    return 0u;
  case StreamKind::Send:
  case StreamKind::Recv:
    return getChannel(op, entry.getKind() == StreamKind::Send, entry.getTransfer(),
                      entry.getPeer());
  case StreamKind::Reduce:
    if (std::optional<uint32_t> group = tables.findReduceGroup(entry.getRanks()))
      return *group;
    return op.emitError() << "rank " << op.getRank() << ": no reduce group has the ranks ["
                          << entry.getRanks() << "]";
  }
  llvm_unreachable("every kind returns above");
}

LogicalResult RankExporter::addStream(stream::StreamAttr entry) {
  FailureOr<uint32_t> target = getTarget(entry);
  if (failed(target))
    return failure();
  result.streams.push_back({entry.getKind(), *target});
  return success();
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

LogicalResult RankExporter::add(CommandOp kind, uint32_t onStream, uint32_t arg,
                                Operation *command) {
  if (onStream >= result.streams.size())
    return command->emitError() << "rank " << op.getRank() << ": " << command->getName()
                                << " stands on stream " << onStream << ", expected one of the "
                                << result.streams.size() << " streams of the rank";
  if (!lastLocation || lastLocation->first != command->getLoc()) {
    std::optional<uint32_t> loc = tables.findLocation(command->getLoc());
    if (!loc)
      return command->emitError() << "rank " << op.getRank()
                                  << ": the location is not in the shared tables";
    lastLocation.emplace(command->getLoc(), *loc);
  }
  result.commands.push_back({kind, static_cast<uint16_t>(onStream), arg, lastLocation->second});
  if (ops)
    ops->push_back(command);
  return success();
}

LogicalResult RankExporter::addPhase(stream::PhaseOp phase) {
  std::optional<uint32_t> name = tables.findPhase(phase.getName());
  if (!name)
    return phase.emitError() << "rank " << op.getRank() << ": the phase \"" << phase.getName()
                             << "\" is not in the shared tables";
  result.phases.push_back({*name, static_cast<uint32_t>(result.commands.size())});
  return success();
}

LogicalResult RankExporter::addLaunch(stream::LaunchOp launch) {
  if (launch.getComponent() > std::numeric_limits<uint16_t>::max())
    return launch.emitError() << "rank " << op.getRank() << ": component " << launch.getComponent()
                              << " is out of range";
  uint32_t index = static_cast<uint32_t>(result.launches.size());
  result.launches.push_back({launch.getFunction(), launch.getFlags(),
                             static_cast<uint16_t>(launch.getComponent()), launch.getStage(),
                             launch.getMicrobatch(), launch.getSlots()});
  return add(CommandOp::Launch, launch.getStream(), index, launch);
}

template <typename TransferOp> LogicalResult RankExporter::addTransfer(TransferOp transfer) {
  constexpr bool sends = std::is_same_v<TransferOp, stream::SendOp>;
  FailureOr<uint32_t> channel = getChannel(transfer, sends, transfer.getKind(), transfer.getPeer());
  if (failed(channel))
    return failure();
  uint32_t index = static_cast<uint32_t>(result.transfers.size());
  result.transfers.push_back(
      {*channel, transfer.getSlot(), transfer.getStage(), transfer.getMicrobatch()});
  return add(sends ? CommandOp::Send : CommandOp::Recv, transfer.getStream(), index, transfer);
}

/// A pair or a group: its members follow it.
template <typename BracketOp>
LogicalResult RankExporter::addBracket(BracketOp bracket, CommandOp kind) {
  auto &members = bracket.getBody()->getOperations();
  if (failed(add(kind, bracket.getStream(), static_cast<uint32_t>(members.size()), bracket)))
    return failure();
  for (Operation &member : members)
    if (failed(visit(member)))
      return failure();
  return success();
}

LogicalResult RankExporter::addRecord(stream::RecordOp record) {
  events.try_emplace(record.getEvent(), result.numEvents);
  return add(CommandOp::Record, record.getStream(), result.numEvents++, record);
}

LogicalResult RankExporter::addWait(stream::WaitOp wait) {
  return add(CommandOp::Wait, wait.getStream(), events.lookup(wait.getEvent()), wait);
}

LogicalResult RankExporter::addReduce(stream::ReduceOp reduce) {
  SmallVector<uint32_t> ranks(reduce.getRanks().begin(), reduce.getRanks().end());
  std::optional<uint32_t> group = tables.findReduceGroup(ranks);
  if (!group)
    return reduce.emitError() << "rank " << op.getRank() << ": no reduce group has the ranks ["
                              << ranks << "]";
  uint32_t index = static_cast<uint32_t>(result.reductions.size());
  result.reductions.push_back({*group, reduce.getStage()});
  return add(CommandOp::Reduce, reduce.getStream(), index, reduce);
}

LogicalResult RankExporter::visit(Operation &command) {
  if (auto launch = dyn_cast<stream::LaunchOp>(command))
    return addLaunch(launch);
  if (auto wait = dyn_cast<stream::WaitOp>(command))
    return addWait(wait);
  if (auto record = dyn_cast<stream::RecordOp>(command))
    return addRecord(record);
  if (auto send = dyn_cast<stream::SendOp>(command))
    return addTransfer(send);
  if (auto recv = dyn_cast<stream::RecvOp>(command))
    return addTransfer(recv);
  if (auto pair = dyn_cast<stream::PairOp>(command))
    return addBracket(pair, CommandOp::Pair);
  if (auto group = dyn_cast<stream::GroupOp>(command))
    return addBracket(group, CommandOp::Group);
  if (auto reduce = dyn_cast<stream::ReduceOp>(command))
    return addReduce(reduce);
  if (auto step = dyn_cast<stream::StepOp>(command))
    return add(CommandOp::Step, step.getStream(), step.getStage(), step);
  if (auto phase = dyn_cast<stream::PhaseOp>(command))
    return addPhase(phase);
  return command.emitError() << "rank " << op.getRank() << ": " << command.getName()
                             << " has no counterpart in the program file";
}

FailureOr<program::RankProgram> RankExporter::run() {
  result.rank = op.getRank();
  result.slotClasses = op.getSlots().classes;
  size_t numStreams = op.getStreams().size();
  if (numStreams > std::numeric_limits<uint16_t>::max())
    return op.emitError() << "rank " << op.getRank() << ": " << numStreams
                          << " streams, expected at most " << std::numeric_limits<uint16_t>::max();
  for (stream::StreamAttr entry : op.getStreams().getAsRange<stream::StreamAttr>())
    if (failed(addStream(entry)))
      return failure();
  for (Operation &command : *op.getBody())
    if (failed(visit(command)))
      return failure();
  return std::move(result);
}

FailureOr<program::RankProgram> dualpipe::exportRank(stream::ProgramOp op,
                                                     const SharedTables &tables,
                                                     std::vector<Operation *> *ops) {
  return RankExporter(op, tables, ops).run();
}

LogicalResult dualpipe::exportRanks(ArrayRef<stream::ProgramOp> ops, const SharedTables &tables,
                                    std::vector<program::RankProgram> &programs,
                                    std::vector<std::vector<Operation *>> *commands) {
  if (ops.empty())
    return success();
  programs.resize(ops.size());
  if (commands)
    commands->resize(ops.size());
  std::vector<char> hasFailed(ops.size(), false);
  parallelFor(ops.front()->getContext(), 0, ops.size(), [&](size_t i) {
    FailureOr<program::RankProgram> rank =
        exportRank(ops[i], tables, commands ? &(*commands)[i] : nullptr);
    hasFailed[i] = failed(rank);
    if (succeeded(rank))
      programs[i] = std::move(*rank);
  });
  return failure(llvm::is_contained(hasFailed, true));
}

FailureOr<program::Program> dualpipe::exportModule(ModuleOp module) {
  FailureOr<SharedTables> tables = SharedTables::scan(module);
  if (failed(tables))
    return failure();
  if (tables->isPartial())
    return module.emitError() << "the programs name ranks or stages that are not in the module: a "
                                 "program file is made of all ranks";
  SmallVector<stream::ProgramOp> programs(module.getOps<stream::ProgramOp>());
  llvm::sort(programs,
             [](stream::ProgramOp a, stream::ProgramOp b) { return a.getRank() < b.getRank(); });
  program::Program result;
  if (failed(exportRanks(programs, *tables, result.ranks)))
    return failure();
  tables->sumChannels(result.ranks);
  result.shared = std::move(*tables).takeInfo();
  return result;
}
