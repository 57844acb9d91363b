//===- MutateNames.cpp - numbers that everything uses change places ---------===//
//
// From some command on, or in the whole program. A change of names alone makes no
// difference, and no check may see one: that is what the last few kinds are for.
//
//===----------------------------------------------------------------------===//

#include "Mutation.h"
#include "Mutator.h"

#include <algorithm>

namespace dualpipe::test {

using namespace program;

namespace {
/// Two slots of one class.
struct TwoSlots {
  uint32_t rank;
  uint32_t one, two;
};
} // namespace

static std::optional<TwoSlots> pickTwoSlots(Mutator &m) {
  std::vector<TwoSlots> pairs;
  for (const RankProgram &rank : m.program.ranks) {
    uint32_t begin = 0;
    for (const SlotClass &slotClass : rank.slotClasses) {
      for (uint32_t one = begin; one != begin + slotClass.count; ++one)
        for (uint32_t two = one + 1; two != begin + slotClass.count; ++two)
          pairs.push_back({rank.rank, one, two});
      begin += slotClass.count;
    }
  }
  if (pairs.empty())
    return std::nullopt;
  return pairs[m.below(pairs.size())];
}

/// One number becomes the other, and the other way round.
static void exchange(uint32_t &number, uint32_t one, uint32_t two) {
  if (number == one || number == two)
    number = number == one ? two : one;
}

/// In the commands of a rank from a place on. No two commands share a launch or a transfer.
static void exchangeFrom(RankProgram &rank, size_t from, const TwoSlots &slots) {
  for (size_t i = from; i != rank.commands.size(); ++i) {
    const Command &command = rank.commands[i];
    if (command.op == CommandOp::Launch)
      for (uint32_t &slot : rank.launches[command.arg].slots)
        exchange(slot, slots.one, slots.two);
    if (command.op == CommandOp::Send || command.op == CommandOp::Recv)
      exchange(rank.transfers[command.arg].slot, slots.one, slots.two);
  }
}

static bool exchangeSlots(Mutator &m) {
  const auto slots = pickTwoSlots(m);
  if (!slots)
    return false;
  RankProgram &rank = m.program.ranks[slots->rank];
  const size_t from = 1 + m.below(rank.commands.size() - 1);
  m.description = "slots " + std::to_string(slots->one) + " and " + std::to_string(slots->two) +
                  " change places from here on: " + m.describe({slots->rank, uint32_t(from)});
  exchangeFrom(rank, from, *slots);
  return true;
}

static bool permuteSlots(Mutator &m) {
  const auto slots = pickTwoSlots(m);
  if (!slots)
    return false;
  m.description = "slots " + std::to_string(slots->one) + " and " + std::to_string(slots->two) +
                  " of rank " + std::to_string(slots->rank) + " change places";
  exchangeFrom(m.program.ranks[slots->rank], 0, *slots);
  return true;
}

/// Two slots of a class become one: their values meet in it if they ever live at once.
static bool mergeSlots(Mutator &m) {
  const auto slots = pickTwoSlots(m);
  if (!slots)
    return false;
  RankProgram &rank = m.program.ranks[slots->rank];
  m.description = "slot " + std::to_string(slots->one) + " serves for slot " +
                  std::to_string(slots->two) + " on rank " + std::to_string(slots->rank);
  for (Launch &launch : rank.launches)
    std::replace(launch.slots.begin(), launch.slots.end(), slots->two, slots->one);
  for (Transfer &transfer : rank.transfers)
    transfer.slot = transfer.slot == slots->two ? slots->one : transfer.slot;
  return true;
}

static bool permuteEvents(Mutator &m) {
  const uint32_t number = uint32_t(m.below(m.program.ranks.size()));
  RankProgram &rank = m.program.ranks[number];
  if (rank.numEvents < 2)
    return false;
  const uint32_t one = uint32_t(m.below(rank.numEvents)), two = *m.other(rank.numEvents, one);
  m.description = "events " + std::to_string(one) + " and " + std::to_string(two) + " of rank " +
                  std::to_string(number) + " change places";
  for (Command &command : rank.commands)
    if (command.op == CommandOp::Record || command.op == CommandOp::Wait)
      exchange(command.arg, one, two);
  return true;
}

/// Two micro-batches of one pipeline.
static std::optional<std::pair<uint32_t, uint32_t>> pickTwoMicrobatches(Mutator &m) {
  const std::vector<PipelineInfo> &pipelines = m.program.shared.pipelines;
  const PipelineInfo &pipeline = pipelines[m.below(pipelines.size())];
  if (pipeline.numMicrobatches < 2)
    return std::nullopt;
  const uint32_t one = uint32_t(m.below(pipeline.numMicrobatches));
  return std::pair(pipeline.firstMicrobatch + one,
                   pipeline.firstMicrobatch + *m.other(pipeline.numMicrobatches, one));
}

static void exchangeMicrobatches(RankProgram &rank, uint32_t one, uint32_t two) {
  for (Launch &launch : rank.launches)
    exchange(launch.microbatch, one, two);
  for (Transfer &transfer : rank.transfers)
    exchange(transfer.microbatch, one, two);
}

static bool exchangeOnRank(Mutator &m) {
  const auto two = pickTwoMicrobatches(m);
  if (!two)
    return false;
  const size_t rank = m.below(m.program.ranks.size());
  m.description = "micro-batches " + std::to_string(two->first) + " and " +
                  std::to_string(two->second) + " change places on rank " + std::to_string(rank);
  exchangeMicrobatches(m.program.ranks[rank], two->first, two->second);
  return true;
}

/// The launches of a rank alone: what they work on stays.
static bool exchangeInLaunches(Mutator &m) {
  const auto two = pickTwoMicrobatches(m);
  if (!two)
    return false;
  const size_t rank = m.below(m.program.ranks.size());
  m.description = "micro-batches " + std::to_string(two->first) + " and " +
                  std::to_string(two->second) + " change places in the launches of rank " +
                  std::to_string(rank);
  for (Launch &launch : m.program.ranks[rank].launches)
    exchange(launch.microbatch, two->first, two->second);
  return true;
}

static bool permuteMicrobatches(Mutator &m) {
  const auto two = pickTwoMicrobatches(m);
  if (!two)
    return false;
  m.description = "micro-batches " + std::to_string(two->first) + " and " +
                  std::to_string(two->second) + " change places on all ranks";
  for (RankProgram &rank : m.program.ranks)
    exchangeMicrobatches(rank, two->first, two->second);
  m.seal();
  return true;
}

std::vector<Mutation> listNameMutations() {
  return {
      {"exchange-slots", "two slots of a class change places from some command on", "P2 D5 P4",
       exchangeSlots},
      {"merge-slots", "a slot serves for two", "P2 D5 P4", mergeSlots},
      {"exchange-microbatches", "two micro-batches change places on one rank", "D1 D2 D5",
       exchangeOnRank},
      {"exchange-in-launches", "two micro-batches change places in the launches of a rank",
       "D1 D2 D5", exchangeInLaunches},
      {"permute-slots", "two slots of a class change places everywhere", "", permuteSlots},
      {"permute-events", "two events change places everywhere", "", permuteEvents},
      {"permute-microbatches", "two micro-batches change places on all ranks", "",
       permuteMicrobatches},
  };
}

} // namespace dualpipe::test
