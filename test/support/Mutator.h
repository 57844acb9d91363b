//===- Mutator.h - a program under the knife --------------------------------===//

#ifndef DUALPIPE_TEST_SUPPORT_MUTATOR_H
#define DUALPIPE_TEST_SUPPORT_MUTATOR_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Program/Verify.h"

#include "runtime/models/CounterRandom.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace dualpipe::test {

using program::CommandRef;

/// A program, the dice, and the edits that keep the rest of it in shape: phases stay where they
/// are, a pair or group loses a member with the command. Ranks must be complete and in order.
class Mutator {
public:
  Mutator(const program::Program &original, uint64_t seed) : program(original), state(seed) {}

  program::Program program;
  std::string description; ///< what was done, for people

  /// A number below `count`, which is not 0.
  size_t below(size_t count);
  bool flip() { return below(2) == 0; }
  /// A number below `count` that is not `old`; nothing where there is no other.
  std::optional<uint32_t> other(size_t count, uint32_t old);

  program::RankProgram &rankOf(CommandRef ref) { return program.ranks[ref.rank]; }
  program::Command &get(CommandRef ref) { return rankOf(ref).commands[ref.command]; }
  program::Launch &launchOf(CommandRef ref) { return rankOf(ref).launches[get(ref).arg]; }
  program::Transfer &transferOf(CommandRef ref) { return rankOf(ref).transfers[get(ref).arg]; }
  program::Reduction &reductionOf(CommandRef ref) { return rankOf(ref).reductions[get(ref).arg]; }

  /// All commands of an operation, rank by rank.
  std::vector<CommandRef> list(program::CommandOp op) const;
  std::optional<CommandRef> pick(program::CommandOp op) { return pickOf(list(op)); }
  std::optional<CommandRef> pickOf(const std::vector<CommandRef> &refs);
  /// Two different commands of one operation on one rank, in their order.
  std::optional<std::pair<CommandRef, CommandRef>> pickTwo(program::CommandOp op);
  /// The same on one stream.
  std::optional<std::pair<CommandRef, CommandRef>> pickTwoOfStream(program::CommandOp op);
  /// The receive that a send meets, by channel, stage and micro-batch.
  std::optional<CommandRef> findReceive(CommandRef send);
  /// The reductions of a stage by a group, one per member.
  std::vector<CommandRef> findMembers(CommandRef reduction);
  /// First commands of what runs as one: brackets with their members, or commands alone.
  std::vector<uint32_t> listUnits(uint32_t rank) const;
  /// The place of a unit or of the member of one in `listUnits`.
  size_t findUnit(CommandRef ref) const;

  void erase(CommandRef ref);
  /// Puts a command before the unit that starts at `ref`, or at the end.
  void insert(CommandRef ref, const program::Command &command);
  /// Moves a whole unit before the unit of another number, counted without it.
  void moveUnit(uint32_t rank, size_t from, size_t to);
  /// Moves the unit that holds `ref` to another place up to `most` units away.
  bool moveAway(CommandRef ref, size_t most);
  /// Brings numbers and digests of the channels in line with the sends.
  void seal();

  std::string describe(CommandRef ref) const;

private:
  std::optional<std::pair<CommandRef, CommandRef>> pickTwo(program::CommandOp op, bool ofStream);

  uint64_t state;
};

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_SUPPORT_MUTATOR_H
