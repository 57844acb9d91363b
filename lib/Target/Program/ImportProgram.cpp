//===- ImportProgram.cpp - from plain data to a stream.program --------------===//

#include "dualpipe/Target/Program.h"

#include "mlir/IR/Builders.h"

using namespace dualpipe;
using namespace mlir;
using program::Command;
using program::CommandOp;
using program::StreamKind;

namespace {

class RankImporter {
public:
  RankImporter(const program::RankProgram &rank, const program::SharedInfo &shared,
               OpBuilder &builder)
      : rank(rank), shared(shared), builder(builder), events(rank.numEvents) {}

  stream::ProgramOp run();

private:
  Location getLoc(uint32_t index);
  stream::StreamAttr getStream(const program::Stream &entry);
  /// Imports the command at `index` and what it brackets; returns the next one.
  uint32_t importCommand(uint32_t index);
  void importSingle(const Command &command, Location loc);
  void importLaunch(const Command &command, Location loc);
  void importTransfer(const Command &command, Location loc);
  void importReduce(const Command &command, Location loc);
  void importPhases(uint32_t index);
  template <typename BracketOp> uint32_t importBracket(uint32_t index);

  const program::RankProgram &rank;
  const program::SharedInfo &shared;
  OpBuilder &builder;
  std::vector<Value> events;
  size_t nextPhase = 0;
};

} // namespace

/// Location 0 may name no file: it is then the schedule, by its name.
Location RankImporter::getLoc(uint32_t index) {
  MLIRContext *context = builder.getContext();
  if (index >= shared.locations.size() || shared.locations[index].file >= shared.files.size())
    return FileLineColLoc::get(context, shared.schedule, 0, 0);
  const program::Location &loc = shared.locations[index];
  return FileLineColLoc::get(context, shared.files[loc.file], loc.line, loc.column);
}

stream::StreamAttr RankImporter::getStream(const program::Stream &entry) {
  MLIRContext *context = builder.getContext();
  switch (entry.kind) {
  case StreamKind::Compute:
    return stream::StreamAttr::get(context, StreamKind::Compute);
  case StreamKind::Send:
  case StreamKind::Recv: {
    const program::Channel &channel = shared.channels[entry.target];
    return stream::StreamAttr::get(context, entry.kind, getTransferKind(channel.kind),
                                   entry.kind == StreamKind::Send ? channel.destination
                                                                  : channel.source);
  }
  case StreamKind::Reduce:
    return stream::StreamAttr::get(context, StreamKind::Reduce, TransferKind::Activation, 0,
                                   shared.reduceGroups[entry.target].ranks);
  }
  llvm_unreachable("every kind returns above");
}

void RankImporter::importLaunch(const Command &command, Location loc) {
  const program::Launch &launch = rank.launches[command.arg];
  stream::RoleSlots slots;
  llvm::copy(launch.slots, slots.begin());
  stream::LaunchOp::create(builder, loc, launch.function, command.stream, launch.stage,
                           launch.microbatch, slots, launch.flags & program::kFirstStage,
                           launch.flags & program::kLastStage, launch.flags & program::kAccumulate,
                           launch.component);
}

void RankImporter::importTransfer(const Command &command, Location loc) {
  const program::Transfer &transfer = rank.transfers[command.arg];
  const program::Channel &channel = shared.channels[transfer.channel];
  TransferKind kind = getTransferKind(channel.kind);
  if (command.op == CommandOp::Send)
    stream::SendOp::create(builder, loc, kind, command.stream, transfer.stage, transfer.microbatch,
                           channel.destination, transfer.slot);
  else
    stream::RecvOp::create(builder, loc, kind, command.stream, transfer.stage, transfer.microbatch,
                           channel.source, transfer.slot);
}

void RankImporter::importReduce(const Command &command, Location loc) {
  const program::Reduction &reduction = rank.reductions[command.arg];
  const std::vector<uint32_t> &group = shared.reduceGroups[reduction.group].ranks;
  SmallVector<int32_t> ranks(group.begin(), group.end());
  stream::ReduceOp::create(builder, loc, command.stream, reduction.stage,
                           builder.getDenseI32ArrayAttr(ranks));
}

void RankImporter::importSingle(const Command &command, Location loc) {
  switch (command.op) {
  case CommandOp::Launch:
    return importLaunch(command, loc);
  case CommandOp::Send:
  case CommandOp::Recv:
    return importTransfer(command, loc);
  case CommandOp::Record:
    events[command.arg] = stream::RecordOp::create(builder, loc, command.stream).getEvent();
    return;
  case CommandOp::Wait:
    stream::WaitOp::create(builder, loc, events[command.arg], command.stream);
    return;
  case CommandOp::Reduce:
    return importReduce(command, loc);
  case CommandOp::Step:
    stream::StepOp::create(builder, loc, command.stream, command.arg);
    return;
  case CommandOp::Pair:
  case CommandOp::Group:
    return; // brackets are imported with their members
  }
}

template <typename BracketOp> uint32_t RankImporter::importBracket(uint32_t index) {
  const Command &bracket = rank.commands[index];
  auto op = BracketOp::create(builder, getLoc(bracket.loc), bracket.stream);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(op.getBody());
  for (uint32_t i = index + 1; i <= index + bracket.arg; ++i)
    importSingle(rank.commands[i], getLoc(rank.commands[i].loc));
  return index + 1 + bracket.arg;
}

uint32_t RankImporter::importCommand(uint32_t index) {
  const Command &command = rank.commands[index];
  if (command.op == CommandOp::Pair)
    return importBracket<stream::PairOp>(index);
  if (command.op == CommandOp::Group)
    return importBracket<stream::GroupOp>(index);
  importSingle(command, getLoc(command.loc));
  return index + 1;
}

/// A phase takes the place of its first command, or that of the program at the end.
void RankImporter::importPhases(uint32_t index) {
  for (; nextPhase < rank.phases.size() && rank.phases[nextPhase].command <= index; ++nextPhase) {
    bool atEnd = index >= rank.commands.size();
    stream::PhaseOp::create(builder, getLoc(atEnd ? 0 : rank.commands[index].loc),
                            shared.phaseNames[rank.phases[nextPhase].name]);
  }
}

stream::ProgramOp RankImporter::run() {
  SmallVector<Attribute> streams;
  for (const program::Stream &entry : rank.streams)
    streams.push_back(getStream(entry));
  auto op = stream::ProgramOp::create(builder, getLoc(0), rank.rank,
                                      FlatSymbolRefAttr::get(builder.getContext(), shared.schedule),
                                      streams, SlotClassList{rank.slotClasses}, shared.contract);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(op.getBody());
  const uint32_t numCommands = static_cast<uint32_t>(rank.commands.size());
  for (uint32_t index = 0; index < numCommands;) {
    importPhases(index);
    index = importCommand(index);
  }
  importPhases(numCommands);
  return op;
}

stream::ProgramOp dualpipe::importRank(const program::RankProgram &rank,
                                       const program::SharedInfo &shared, OpBuilder &builder) {
  return RankImporter(rank, shared, builder).run();
}

OwningOpRef<ModuleOp> dualpipe::importProgram(const program::Program &program,
                                              MLIRContext *context) {
  context->loadDialect<stream::StreamDialect>();
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(FileLineColLoc::get(context, program.shared.schedule, 0, 0));
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  for (const program::RankProgram &rank : program.ranks)
    importRank(rank, program.shared, builder);
  return module;
}
