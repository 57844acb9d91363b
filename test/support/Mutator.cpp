//===- Mutator.cpp - a program under the knife ------------------------------===//

#include "Mutator.h"

#include <algorithm>

namespace dualpipe::test {

using namespace program;

size_t Mutator::below(size_t count) {
  return models::mixBits(state += models::kGoldenGamma) % count;
}

std::optional<uint32_t> Mutator::other(size_t count, uint32_t old) {
  if (old >= count || count < 2)
    return std::nullopt;
  return uint32_t((old + 1 + below(count - 1)) % count);
}

std::vector<CommandRef> Mutator::list(CommandOp op) const {
  std::vector<CommandRef> refs;
  for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
    for (uint32_t i = 0; i != program.ranks[rank].commands.size(); ++i)
      if (program.ranks[rank].commands[i].op == op)
        refs.push_back({rank, i});
  return refs;
}

std::optional<CommandRef> Mutator::pickOf(const std::vector<CommandRef> &refs) {
  if (refs.empty())
    return std::nullopt;
  return refs[below(refs.size())];
}

std::optional<std::pair<CommandRef, CommandRef>> Mutator::pickTwo(CommandOp op, bool ofStream) {
  const std::optional<CommandRef> one = pick(op);
  if (!one)
    return std::nullopt;
  std::vector<CommandRef> others;
  for (CommandRef ref : list(op))
    if (ref.rank == one->rank && ref.command != one->command &&
        (!ofStream || get(ref).stream == get(*one).stream))
      others.push_back(ref);
  const std::optional<CommandRef> two = pickOf(others);
  if (!two)
    return std::nullopt;
  return one->command < two->command ? std::pair(*one, *two) : std::pair(*two, *one);
}

std::optional<std::pair<CommandRef, CommandRef>> Mutator::pickTwo(CommandOp op) {
  return pickTwo(op, false);
}
std::optional<std::pair<CommandRef, CommandRef>> Mutator::pickTwoOfStream(CommandOp op) {
  return pickTwo(op, true);
}

std::optional<CommandRef> Mutator::findReceive(CommandRef send) {
  const Transfer sent = transferOf(send);
  for (CommandRef ref : list(CommandOp::Recv)) {
    const Transfer &received = transferOf(ref);
    if (received.channel == sent.channel && received.stage == sent.stage &&
        received.microbatch == sent.microbatch)
      return ref;
  }
  return std::nullopt;
}

std::vector<CommandRef> Mutator::findMembers(CommandRef reduction) {
  const Reduction what = reductionOf(reduction);
  std::vector<CommandRef> members;
  for (CommandRef ref : list(CommandOp::Reduce))
    if (reductionOf(ref).group == what.group && reductionOf(ref).stage == what.stage)
      members.push_back(ref);
  return members;
}

static uint32_t getUnitSize(const Command &command) {
  return command.op == CommandOp::Pair || command.op == CommandOp::Group ? 1 + command.arg : 1;
}

std::vector<uint32_t> Mutator::listUnits(uint32_t rank) const {
  const std::vector<Command> &commands = program.ranks[rank].commands;
  std::vector<uint32_t> units;
  for (uint32_t i = 0; i < commands.size(); i += getUnitSize(commands[i]))
    units.push_back(i);
  return units;
}

size_t Mutator::findUnit(CommandRef ref) const {
  const std::vector<uint32_t> units = listUnits(ref.rank);
  return size_t(std::upper_bound(units.begin(), units.end(), ref.command) - units.begin()) - 1;
}

/// Phases that begin behind `command` move with their commands.
static void shiftPhases(RankProgram &rank, uint32_t command, int32_t by) {
  for (PhaseMark &phase : rank.phases)
    if (phase.command > command)
      phase.command += uint32_t(by);
}

void Mutator::erase(CommandRef ref) {
  RankProgram &rank = rankOf(ref);
  const uint32_t unit = listUnits(ref.rank)[findUnit(ref)];
  rank.commands.erase(rank.commands.begin() + ref.command);
  shiftPhases(rank, ref.command, -1);
  if (unit != ref.command && --rank.commands[unit].arg == 0)
    erase({ref.rank, unit});
}

void Mutator::insert(CommandRef ref, const Command &command) {
  RankProgram &rank = rankOf(ref);
  rank.commands.insert(rank.commands.begin() + ref.command, command);
  shiftPhases(rank, ref.command, 1);
}

/// Phases keep their places in the list: they are for people.
void Mutator::moveUnit(uint32_t rank, size_t from, size_t to) {
  std::vector<Command> &commands = program.ranks[rank].commands;
  const std::vector<uint32_t> units = listUnits(rank);
  const uint32_t begin = units[from], size = getUnitSize(commands[begin]);
  const auto endOf = [&](size_t unit) { return units[unit] + getUnitSize(commands[units[unit]]); };
  if (to < from)
    std::rotate(commands.begin() + units[to], commands.begin() + begin,
                commands.begin() + begin + size);
  else if (to > from)
    std::rotate(commands.begin() + begin, commands.begin() + begin + size,
                commands.begin() + endOf(to));
}

bool Mutator::moveAway(CommandRef ref, size_t most) {
  const size_t from = findUnit(ref), count = listUnits(ref.rank).size();
  const size_t first = from > most ? from - most : 0, last = std::min(from + most, count - 1);
  const std::optional<uint32_t> to = other(last - first + 1, uint32_t(from - first));
  if (!to)
    return false;
  description += describe(ref) + " moves from place " + std::to_string(from) + " to " +
                 std::to_string(first + *to);
  moveUnit(ref.rank, from, first + *to);
  return true;
}

void Mutator::seal() {
  for (Channel &channel : program.shared.channels) {
    channel.numTransfers = 0;
    channel.digest = kDigestSeed;
  }
  for (CommandRef ref : list(CommandOp::Send)) {
    const Transfer &transfer = transferOf(ref);
    Channel &channel = program.shared.channels[transfer.channel];
    ++channel.numTransfers;
    channel.digest = extendDigest(channel.digest, transfer.stage, transfer.microbatch);
  }
}

std::string Mutator::describe(CommandRef ref) const {
  return describeCommand(program.shared, program.ranks[ref.rank], ref.command);
}

} // namespace dualpipe::test
