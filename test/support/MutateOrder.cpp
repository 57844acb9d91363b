//===- MutateOrder.cpp - commands stand in another place --------------------===//

#include "Mutation.h"
#include "Mutator.h"

#include <utility>

namespace dualpipe::test {

using namespace program;

/// How far commands move, in units.
static constexpr size_t kNear = 6, kFar = 1000000;

static bool swapNeighbours(Mutator &m) {
  const uint32_t rank = uint32_t(m.below(m.program.ranks.size()));
  const std::vector<uint32_t> units = m.listUnits(rank);
  if (units.size() < 2)
    return false;
  const size_t first = m.below(units.size() - 1);
  m.description = "after the next: " + m.describe({rank, units[first]});
  m.moveUnit(rank, first, first + 1);
  return true;
}

template <CommandOp op, size_t most> static bool move(Mutator &m) {
  const std::optional<CommandRef> ref = m.pick(op);
  return ref && m.moveAway(*ref, most);
}

static bool communicates(const Command &command) {
  return command.op == CommandOp::Send || command.op == CommandOp::Recv ||
         command.op == CommandOp::Reduce;
}

/// A send, receive or reduction comes after the next one of its rank, on whatever channel.
static bool swapCommunication(Mutator &m) {
  const uint32_t rank = uint32_t(m.below(m.program.ranks.size()));
  const std::vector<uint32_t> units = m.listUnits(rank);
  std::vector<size_t> places;
  for (size_t i = 0; i != units.size(); ++i)
    if (communicates(m.get({rank, units[i]})))
      places.push_back(i);
  if (places.size() < 2)
    return false;
  const size_t first = m.below(places.size() - 1);
  m.description =
      "after the next transfer or reduction: " + m.describe({rank, units[places[first]]});
  m.moveUnit(rank, places[first], places[first + 1]);
  return true;
}

/// A send and a receive of one rank are issued the other way round, with nothing else in between
/// changed: each keeps its stream, slot and waits.
static bool swapDirections(Mutator &m) {
  std::vector<std::pair<CommandRef, CommandRef>> places;
  for (CommandRef send : m.list(CommandOp::Send))
    for (CommandRef receive : m.list(CommandOp::Recv))
      if (send.rank == receive.rank)
        places.emplace_back(send, receive);
  if (places.empty())
    return false;
  const auto [send, receive] = places[m.below(places.size())];
  m.description = m.describe(send) + " and " + m.describe(receive) + " change places";
  std::swap(m.get(send), m.get(receive));
  return true;
}

/// What two commands refer to changes places.
static bool swapArgs(Mutator &m, const std::optional<std::pair<CommandRef, CommandRef>> &two) {
  if (!two)
    return false;
  m.description = m.describe(two->first) + " and " + m.describe(two->second) + " change places";
  std::swap(m.get(two->first).arg, m.get(two->second).arg);
  return true;
}

template <CommandOp op> static bool swapTwo(Mutator &m) { return swapArgs(m, m.pickTwo(op)); }
template <CommandOp op> static bool swapTwoOfStream(Mutator &m) {
  return swapArgs(m, m.pickTwoOfStream(op));
}

/// Both ends agree on the new order.
static bool swapTransfers(Mutator &m) {
  const auto sends = m.pickTwoOfStream(CommandOp::Send);
  if (!sends)
    return false;
  const CommandRef one = *m.findReceive(sends->first), two = *m.findReceive(sends->second);
  swapArgs(m, sends);
  m.description = "at both ends " + m.description;
  std::swap(m.get(one).arg, m.get(two).arg);
  m.seal();
  return true;
}

static bool changeStream(Mutator &m) {
  const uint32_t rank = uint32_t(m.below(m.program.ranks.size()));
  RankProgram &program = m.program.ranks[rank];
  const CommandRef ref{rank, uint32_t(m.below(program.commands.size()))};
  const auto stream = m.other(program.streams.size(), m.get(ref).stream);
  if (!stream)
    return false;
  m.description = "on stream " + std::to_string(*stream) + ": " + m.describe(ref);
  m.get(ref).stream = uint16_t(*stream);
  return true;
}

/// Launches between two points run on a compute stream of their own, as those of pairs may.
static bool addComputeStream(Mutator &m) {
  const auto launch = m.pick(CommandOp::Launch);
  if (!launch)
    return false;
  RankProgram &rank = m.rankOf(*launch);
  const size_t unit = m.findUnit(*launch);
  const uint32_t begin = m.listUnits(launch->rank)[unit];
  m.description = "on a stream of its own: " + m.describe(*launch);
  const uint16_t stream = uint16_t(rank.streams.size());
  rank.streams.push_back({StreamKind::Compute, 0});
  const Command &first = rank.commands[begin];
  const uint32_t size = first.op == CommandOp::Pair ? 1 + first.arg : 1;
  for (uint32_t i = begin; i != begin + size; ++i)
    rank.commands[i].stream = stream;
  return true;
}

std::vector<Mutation> listOrderMutations() {
  return {
      {"swap-neighbours", "two neighbours in a list change places", "P1 P2 D2 D3 D4 D5 P4",
       swapNeighbours},
      {"swap-communication", "a transfer or reduction comes after the next", "P2 D1 D2 D3 P4",
       swapCommunication},
      {"swap-directions", "a send and a receive of a rank change places", "P2 D2 D3 P4",
       swapDirections},
      {"move-launch", "a launch or pair stands elsewhere", "P2 D4 D5 P4",
       move<CommandOp::Launch, kFar>},
      {"move-send", "a send stands elsewhere", "P2 D2 D3 P4", move<CommandOp::Send, kFar>},
      {"move-receive", "a receive stands elsewhere", "P2 D2 D3 P4", move<CommandOp::Recv, kFar>},
      {"move-reduction", "a member's reduction stands elsewhere", "P2 D1 D3 D4",
       move<CommandOp::Reduce, kFar>},
      {"move-step", "an optimizer step stands elsewhere", "P2 D4", move<CommandOp::Step, kFar>},
      {"move-wait", "a wait stands up to six places away", "P1 P2", move<CommandOp::Wait, kNear>},
      {"move-record", "a record stands up to six places away", "P1 P2",
       move<CommandOp::Record, kNear>},
      {"swap-launches", "two launches of a rank change places", "P2 D4 D5 P4",
       swapTwo<CommandOp::Launch>},
      {"swap-sends", "two sends of a channel change places", "P2 D2 P4",
       swapTwoOfStream<CommandOp::Send>},
      {"swap-receives", "two receives of a channel change places", "P2 D2 P4",
       swapTwoOfStream<CommandOp::Recv>},
      {"swap-transfers", "two transfers of a channel change places at both ends", "P2 D3 D5 P4",
       swapTransfers},
      {"swap-waits", "two waits of a rank change places", "P1 P2", swapTwo<CommandOp::Wait>},
      {"swap-records", "two records of a rank change places", "P1 P2", swapTwo<CommandOp::Record>},
      {"change-stream", "a command stands on another stream", "P1 P2 P3", changeStream},
      {"add-compute-stream", "a launch or pair has a compute stream of its own", "P2",
       addComputeStream},
  };
}

} // namespace dualpipe::test
