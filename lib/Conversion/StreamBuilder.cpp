//===- StreamBuilder.cpp - commands with the events they need ---------------===//

#include "StreamBuilder.h"

#include "llvm/ADT/STLExtras.h"

using namespace dualpipe;
using namespace mlir;
using program::StreamKind;

StreamBuilder::StreamBuilder(stream::ProgramOp program, uint32_t numSlots)
    : builder(program.getContext()), body(program.getBody()), resources(numSlots) {
  streams.push_back(stream::StreamAttr::get(program.getContext(), StreamKind::Compute));
  builder.setInsertionPointToEnd(body);
}

uint32_t StreamBuilder::getChannelStream(StreamKind end, TransferKind kind, uint32_t peer) {
  uint64_t key = (static_cast<uint64_t>(peer) << 2) | (static_cast<uint64_t>(kind) << 1) |
                 (end == StreamKind::Send ? 1 : 0);
  auto [entry, isNew] = channelStreams.try_emplace(key, static_cast<uint32_t>(streams.size()));
  if (isNew)
    streams.push_back(stream::StreamAttr::get(builder.getContext(), end, kind, peer));
  return entry->second;
}

uint32_t StreamBuilder::getReduceStream(DenseI32ArrayAttr ranks) {
  auto [entry, isNew] = reduceStreams.try_emplace(ranks, static_cast<uint32_t>(streams.size()));
  if (isNew) {
    SmallVector<uint32_t> members(ranks.asArrayRef().begin(), ranks.asArrayRef().end());
    streams.push_back(stream::StreamAttr::get(builder.getContext(), StreamKind::Reduce,
                                              TransferKind::Activation, 0, members));
  }
  return entry->second;
}

uint32_t StreamBuilder::getGradients(uint32_t stage) {
  auto [entry, isNew] = gradients.try_emplace(stage, static_cast<uint32_t>(resources.size()));
  if (isNew)
    resources.emplace_back();
  return entry->second;
}

/// The order of its own stream needs no event.
void StreamBuilder::dependOn(uint32_t command) {
  if (commands[command].stream != stream)
    dependences.push_back(command);
}

void StreamBuilder::dependOnUses(const LastUses &uses) {
  if (uses.writer != program::kNone)
    dependOn(uses.writer);
  for (uint32_t reader : uses.readers)
    dependOn(reader);
}

/// A record stands right after its command: later it would hold waiters up.
Value StreamBuilder::getEvent(uint32_t number) {
  Command &command = commands[number];
  if (!command.event) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(command.op);
    command.event =
        stream::RecordOp::create(builder, command.op->getLoc(), command.stream).getEvent();
  }
  return command.event;
}

/// Of the commands of one stream, the last one speaks for all.
void StreamBuilder::keepLatestOfStreams() {
  llvm::sort(dependences, std::greater<>());
  auto *end = dependences.begin();
  for (uint32_t dependence : dependences) {
    auto isSameStream = [&](uint32_t later) {
      return commands[later].stream == commands[dependence].stream;
    };
    if (std::none_of(dependences.begin(), end, isSameStream))
      *end++ = dependence;
  }
  dependences.erase(end, dependences.end());
  std::reverse(dependences.begin(), dependences.end());
}

void StreamBuilder::begin(Location loc, uint32_t onStream) {
  stream = onStream;
  for (uint32_t resource : reads)
    if (resources[resource].writer != program::kNone)
      dependOn(resources[resource].writer);
  for (uint32_t resource : writes)
    dependOnUses(resources[resource]);
  keepLatestOfStreams();
  for (uint32_t dependence : dependences)
    stream::WaitOp::create(builder, loc, getEvent(dependence), stream);
  dependences.clear();
}

/// Of the readers on one stream, the last one speaks for all.
void StreamBuilder::addReader(LastUses &uses, uint32_t command) {
  for (uint32_t &reader : uses.readers)
    if (commands[reader].stream == commands[command].stream) {
      reader = command;
      return;
    }
  uses.readers.push_back(command);
}

void StreamBuilder::finish(Operation *op) {
  uint32_t command = static_cast<uint32_t>(commands.size());
  commands.push_back({op, stream, Value()});
  for (uint32_t resource : reads)
    addReader(resources[resource], command);
  for (uint32_t resource : writes) {
    resources[resource].writer = command;
    resources[resource].readers.clear();
  }
  reads.clear();
  writes.clear();
}
