//===- Proof.cpp - what has been shown of a program, in words ---------------===//

#include "dualpipe/Program/Proof.h"

#include "Work.h"
#include "dualpipe/Program/Memory.h"

#include <fmt/format.h>

#include <bit>
#include <iterator>

namespace dualpipe::program {

namespace {

/// How many things of each kind the invariants speak of.
struct Counts {
  uint64_t commands = 0, streams = 0, events = 0, waits = 0;
  uint64_t slots = 0, peak = 0, spares = 0;
  uint64_t accesses = 0, reads = 0;
  uint64_t sends = 0, reductions = 0, groups = 0;
  uint64_t forwards = 0, contributions = 0, copies = 0;
};

} // namespace

static void countLaunch(const SharedInfo &shared, const Launch &launch, Counts &counts) {
  const Roles roles = getRoles(shared, launch);
  counts.accesses += std::popcount(roles.reads) + std::popcount(roles.writes);
  counts.reads += std::popcount(roles.reads);
  counts.forwards += launch.function == Function::Forward;
  counts.contributions +=
      launch.function == Function::Backward || launch.function == Function::BackwardWeight;
}

static void countCommand(const SharedInfo &shared, const RankProgram &rank, const Command &command,
                         Counts &counts) {
  ++counts.commands;
  switch (command.op) {
  case CommandOp::Launch:
    return countLaunch(shared, rank.launches[command.arg], counts);
  case CommandOp::Send:
    ++counts.sends;
    ++counts.reads;
    ++counts.accesses;
    return;
  case CommandOp::Recv:
    ++counts.accesses;
    return;
  case CommandOp::Wait:
    ++counts.waits;
    return;
  case CommandOp::Record:
    ++counts.events;
    return;
  case CommandOp::Step:
    ++counts.copies;
    return;
  case CommandOp::Reduce:
    ++counts.reductions;
    return;
  case CommandOp::Group:
    ++counts.groups;
    return;
  case CommandOp::Pair:
    return;
  }
}

static Counts count(const Program &program) {
  Counts counts;
  for (const RankProgram &rank : program.ranks) {
    counts.streams += rank.streams.size();
    for (const ClassUse &use : measureSlots(rank, program.shared).classes) {
      counts.slots += use.slotClass.count;
      counts.spares += use.slotClass.spares;
      counts.peak += use.peak;
    }
    for (const Command &command : rank.commands)
      countCommand(program.shared, rank, command, counts);
  }
  return counts;
}

static std::string describeQueues(const WholeOptions &options) {
  if (!options.numQueues)
    return "as if each rank had one queue";
  if (*options.numQueues == 0)
    return "with a queue for every stream (weaker than the one-queue rule)";
  return fmt::format("with {} hardware queues per rank (weaker than the one-queue rule)",
                     *options.numQueues);
}

std::string describeProof(const Program &program, const WholeOptions &options) {
  const Counts counts = count(program);
  const SharedInfo &shared = program.shared;
  std::string text;
  const auto line = [&](const char *id, std::string what) {
    fmt::format_to(std::back_inserter(text), "{}  {}\n", id, what);
  };
  line("P1", fmt::format("{} waits come after the records of their {} events", counts.waits,
                         counts.events));
  line("P2", fmt::format("{} accesses to {} slots are ordered, nothing is read before it is "
                         "written",
                         counts.accesses, counts.slots));
  line("P3", fmt::format("{} commands on {} streams name what exists and fits", counts.commands,
                         counts.streams));
  line("P4", fmt::format("{} slots: {} hold values at once, {} spare", counts.slots, counts.peak,
                         counts.spares));
  line("P5",
       fmt::format("{} groups have at most {} transfers each", counts.groups, options.groupLimit));
  line("D1", fmt::format("{} transfers and {} reductions have all their ends", counts.sends,
                         counts.reductions));
  line("D2", fmt::format("{} channels are received from in the order of the sends",
                         shared.channels.size()));
  line("D3", fmt::format("{} ranks finish, {}", program.ranks.size(), describeQueues(options)));
  if (shared.training)
    line("D4", fmt::format("{} gradients reach the step of {} stage copies exactly once",
                           counts.contributions, counts.copies));
  line("D5", fmt::format("{} reads find the value they name, {} forwards run exactly once",
                         counts.reads, counts.forwards));
  return text;
}

} // namespace dualpipe::program
