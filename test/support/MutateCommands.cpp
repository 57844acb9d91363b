//===- MutateCommands.cpp - commands are missing, or there twice ------------===//

#include "Mutation.h"
#include "Mutator.h"

#include <algorithm>

namespace dualpipe::test {

using namespace program;

template <CommandOp op> static bool drop(Mutator &m) {
  const std::optional<CommandRef> ref = m.pick(op);
  if (!ref)
    return false;
  m.description = "without " + m.describe(*ref);
  m.erase(*ref);
  return true;
}

template <CommandOp op> static bool repeat(Mutator &m) {
  const std::optional<CommandRef> ref = m.pick(op);
  if (!ref)
    return false;
  m.description = "twice " + m.describe(*ref);
  const uint32_t unit = m.listUnits(ref->rank)[m.findUnit(*ref)];
  m.insert({ref->rank, unit}, m.get(*ref));
  return true;
}

static bool dropTransfer(Mutator &m) {
  const std::optional<CommandRef> send = m.pick(CommandOp::Send);
  if (!send)
    return false;
  m.description = "at both ends without " + m.describe(*send);
  m.erase(*m.findReceive(*send));
  m.erase(*send);
  m.seal();
  return true;
}

static bool repeatTransfer(Mutator &m) {
  const std::optional<CommandRef> send = m.pick(CommandOp::Send);
  if (!send)
    return false;
  m.description = "at both ends twice " + m.describe(*send);
  for (CommandRef end : {*send, *m.findReceive(*send)})
    m.insert({end.rank, m.listUnits(end.rank)[m.findUnit(end)]}, m.get(end));
  m.seal();
  return true;
}

static bool dropReduction(Mutator &m) {
  const std::optional<CommandRef> member = m.pick(CommandOp::Reduce);
  if (!member)
    return false;
  m.description = "on all members without " + m.describe(*member);
  for (CommandRef ref : m.findMembers(*member)) // a rank has one of them
    m.erase(ref);
  return true;
}

static bool repeatReduction(Mutator &m) {
  const std::optional<CommandRef> member = m.pick(CommandOp::Reduce);
  if (!member)
    return false;
  m.description = "on all members twice " + m.describe(*member);
  for (CommandRef ref : m.findMembers(*member))
    m.insert(ref, m.get(ref));
  return true;
}

/// Launches run on their own that belonged together.
static bool unpair(Mutator &m) {
  const std::optional<CommandRef> pair = m.pick(CommandOp::Pair);
  if (!pair)
    return false;
  m.description = "no pair at " + m.describe(*pair);
  m.rankOf(*pair).commands.erase(m.rankOf(*pair).commands.begin() + pair->command);
  for (PhaseMark &phase : m.rankOf(*pair).phases)
    phase.command -= phase.command > pair->command;
  return true;
}

/// Two launches that follow each other become members of a pair.
static bool pairUp(Mutator &m) {
  std::vector<CommandRef> places;
  for (CommandRef ref : m.list(CommandOp::Launch)) {
    const std::vector<Command> &commands = m.rankOf(ref).commands;
    const std::vector<uint32_t> units = m.listUnits(ref.rank);
    const auto isUnit = [&](uint32_t i) {
      return std::binary_search(units.begin(), units.end(), i);
    };
    const uint32_t next = ref.command + 1;
    if (next < commands.size() && isUnit(ref.command) && isUnit(next) &&
        commands[next].op == CommandOp::Launch && commands[next].stream == m.get(ref).stream)
      places.push_back(ref);
  }
  const std::optional<CommandRef> first = m.pickOf(places);
  if (!first)
    return false;
  m.description = "a pair with the next: " + m.describe(*first);
  Command pair = m.get(*first);
  pair.op = CommandOp::Pair;
  pair.arg = 2;
  m.insert(*first, pair);
  return true;
}

std::vector<Mutation> listCommandMutations() {
  return {
      {"drop-launch", "a launch is missing", "P2 D4 D5", drop<CommandOp::Launch>},
      {"drop-send", "a send is missing", "D1", drop<CommandOp::Send>},
      {"drop-receive", "a receive is missing", "P2 D1", drop<CommandOp::Recv>},
      {"drop-transfer", "a transfer is missing at both ends", "P2 D5", dropTransfer},
      {"drop-reduction-member", "a member's part in a reduction is missing", "P2 D1",
       drop<CommandOp::Reduce>},
      {"drop-reduction", "a reduction is missing on all members", "D4", dropReduction},
      {"drop-step", "an optimizer step is missing", "D4", drop<CommandOp::Step>},
      {"drop-wait", "a wait is missing", "P2", drop<CommandOp::Wait>},
      {"drop-record", "a record is missing", "P1", drop<CommandOp::Record>},
      {"repeat-launch", "a launch runs twice", "P2 D4 D5", repeat<CommandOp::Launch>},
      {"repeat-send", "a send is there twice", "D1", repeat<CommandOp::Send>},
      {"repeat-receive", "a receive is there twice", "D1", repeat<CommandOp::Recv>},
      {"repeat-transfer", "a transfer is there twice at both ends", "P2 D1 D3", repeatTransfer},
      {"repeat-reduction", "a reduction runs twice on all members", "D4", repeatReduction},
      {"repeat-step", "an optimizer step runs twice", "D4", repeat<CommandOp::Step>},
      {"repeat-wait", "a wait is there twice", "", repeat<CommandOp::Wait>},
      {"repeat-record", "an event is recorded twice", "P1", repeat<CommandOp::Record>},
      {"unpair", "the members of a pair run on their own", "", unpair},
      {"pair-up", "two launches become a pair", "P2", pairUp},
  };
}

} // namespace dualpipe::test
