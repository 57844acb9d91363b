//===- VerifyRanges.cpp - P3 of a rank's program ----------------------------===//
//
// Everything that a rank's commands refer to exists and is of the right kind.
// The other checks and the executor index without looking, because this ran.
//
//===----------------------------------------------------------------------===//

#include "Facts.h"

#include <fmt/format.h>

#include <set>

namespace dualpipe::program {

/// Slots of a class beyond what the commands can use at once; every channel that uses a class
/// gives it one, or what the user asks for.
static constexpr uint32_t kMaxSpares = 1024;
/// The same over all classes of a rank.
static constexpr uint64_t kMaxSparesOfRank = 1u << 20;
/// The clocks of P2 grow with the square of it.
static constexpr size_t kMaxStreams = 4096;

Roles getRoles(const SharedInfo &shared, const Launch &launch) {
  const bool first = launch.flags & kFirstStage, last = launch.flags & kLastStage;
  const uint32_t reads = getReads(shared.contract, launch.function, last);
  const uint32_t gradInput = first ? 0 : bit(SlotKind::GradInput);
  switch (launch.function) {
  case Function::LoadInput:
    return {reads, bit(SlotKind::Input)};
  case Function::LoadLabels:
    return {reads, bit(SlotKind::Labels)};
  case Function::Forward:
    return {reads,
            (last ? 0 : bit(SlotKind::Output)) | (shared.training ? bit(SlotKind::Saved) : 0)};
  case Function::Backward:
    return {reads, gradInput};
  case Function::BackwardInput:
    return {reads, gradInput | bit(SlotKind::WeightContext)};
  case Function::BackwardWeight:
    return {reads, 0};
  }
  return {};
}

namespace {

/// Checks one rank's program; every function returns the first finding.
class RangeChecker {
public:
  RangeChecker(const SharedInfo &shared, const RankProgram &rank)
      : shared(shared), rank(rank), slots(rank) {}

  Verdict run();

private:
  Verdict fail(uint32_t command, std::string message) const {
    return violation("P3", rank.rank, command, std::move(message));
  }

  Verdict checkStreams() const;
  Verdict checkStream(size_t index, std::set<std::pair<StreamKind, uint32_t>> &seen) const;
  Verdict checkSlotClasses() const;
  Verdict checkNumSlots() const;
  Verdict checkPhases() const;
  Verdict checkCommands() const;
  Verdict checkCommand(uint32_t index) const;
  Verdict checkBracket(uint32_t index) const;
  Verdict checkStreamKind(uint32_t index, StreamKind kind) const;
  Verdict checkLaunch(uint32_t index) const;
  Verdict checkLaunchPlace(uint32_t index, const Launch &launch) const;
  Verdict checkLaunchSlots(uint32_t index, const Launch &launch) const;
  Verdict checkLaunchSlot(uint32_t index, const Launch &launch, SlotKind role) const;
  Verdict checkTransfer(uint32_t index) const;
  Verdict checkTransferSlot(uint32_t index, const Transfer &transfer, bool sends) const;
  Verdict checkSlot(uint32_t index, uint32_t slot, SlotKind kind, uint32_t stage) const;
  Verdict checkReduce(uint32_t index) const;
  Verdict checkStep(uint32_t index) const;

  const SharedInfo &shared;
  const RankProgram &rank;
  const SlotMap slots;
};

} // namespace

Verdict RangeChecker::run() {
  if (rank.rank >= shared.numRanks)
    return fail(kNone, fmt::format("a program for rank {} of {}", rank.rank, shared.numRanks));
  if (rank.numEvents > rank.commands.size())
    return fail(kNone,
                fmt::format("{} events for {} commands", rank.numEvents, rank.commands.size()));
  if (Verdict verdict = checkStreams())
    return verdict;
  if (Verdict verdict = checkSlotClasses())
    return verdict;
  if (Verdict verdict = checkPhases())
    return verdict;
  return checkCommands();
}

Verdict RangeChecker::checkStreams() const {
  if (rank.streams.size() > kMaxStreams)
    return fail(kNone,
                fmt::format("{} streams, expected at most {}", rank.streams.size(), kMaxStreams));
  std::set<std::pair<StreamKind, uint32_t>> seen;
  for (size_t i = 0; i != rank.streams.size(); ++i)
    if (Verdict verdict = checkStream(i, seen))
      return verdict;
  return {};
}

Verdict RangeChecker::checkStream(size_t index,
                                  std::set<std::pair<StreamKind, uint32_t>> &seen) const {
  const Stream &stream = rank.streams[index];
  switch (stream.kind) {
  case StreamKind::Compute:
    if (stream.target == 0)
      return {};
    return fail(kNone, fmt::format("stream {} computes and has the target {}, expected 0", index,
                                   stream.target));
  case StreamKind::Send:
  case StreamKind::Recv: {
    const bool sends = stream.kind == StreamKind::Send;
    if (stream.target >= shared.channels.size())
      return fail(kNone, fmt::format("stream {} serves channel {} of {}", index, stream.target,
                                     shared.channels.size()));
    const Channel &channel = shared.channels[stream.target];
    if ((sends ? channel.source : channel.destination) != rank.rank)
      return fail(kNone,
                  fmt::format("stream {} is the {} end of channel {}, which leads from rank {} "
                              "to rank {}",
                              index, getName(stream.kind), stream.target, channel.source,
                              channel.destination));
    break;
  }
  case StreamKind::Reduce: {
    if (stream.target >= shared.reduceGroups.size())
      return fail(kNone, fmt::format("stream {} serves reduce group {} of {}", index, stream.target,
                                     shared.reduceGroups.size()));
    const std::vector<uint32_t> &ranks = shared.reduceGroups[stream.target].ranks;
    if (!std::binary_search(ranks.begin(), ranks.end(), rank.rank))
      return fail(kNone, fmt::format("stream {} serves reduce group {}, which the rank is not in",
                                     index, stream.target));
    break;
  }
  default:
    return fail(kNone,
                fmt::format("stream {} has the unknown kind {}", index, unsigned(stream.kind)));
  }
  if (!seen.insert({stream.kind, stream.target}).second)
    return fail(kNone, fmt::format("stream {} is a second {} stream for {}", index,
                                   getName(stream.kind), stream.target));
  return {};
}

Verdict RangeChecker::checkSlotClasses() const {
  std::set<std::pair<SlotKind, uint32_t>> seen;
  const uint64_t uses = rank.launches.size() + rank.transfers.size();
  for (const SlotClass &slotClass : rank.slotClasses) {
    if (unsigned(slotClass.kind) >= kNumSlotKinds)
      return fail(kNone,
                  fmt::format("a slot class of the unknown kind {}", unsigned(slotClass.kind)));
    const std::string name =
        fmt::format("slot class {} of size group {}", getName(slotClass.kind), slotClass.sizeGroup);
    if (slotClass.sizeGroup >= shared.contract.numSizeGroups)
      return fail(
          kNone, fmt::format("{}: expected a group below {}", name, shared.contract.numSizeGroups));
    if (!seen.insert({slotClass.kind, slotClass.sizeGroup}).second)
      return fail(kNone, name + " stands twice");
    if (slotClass.spares > slotClass.count || slotClass.spares > kMaxSpares ||
        slotClass.count - slotClass.spares > uses)
      return fail(kNone, fmt::format("{} has {} slots, {} of them spare, for {} launches and "
                                     "transfers",
                                     name, slotClass.count, slotClass.spares, uses));
  }
  return checkNumSlots();
}

/// A launch names a slot per kind at most, a transfer one: more than these are never in use. The
/// bound keeps slot numbers within 32 bits, and a small file from asking for much memory.
Verdict RangeChecker::checkNumSlots() const {
  uint64_t used = 0, spares = 0;
  for (const SlotClass &slotClass : rank.slotClasses) {
    used += slotClass.count - slotClass.spares;
    spares += slotClass.spares;
  }
  const uint64_t most = kNumSlotKinds * uint64_t(rank.launches.size()) + rank.transfers.size();
  if (used > most || spares > kMaxSparesOfRank || used + spares >= kNone)
    return fail(kNone, fmt::format("{} slots and {} spare ones in all classes together, expected "
                                   "at most {} and {}",
                                   used, spares, most, kMaxSparesOfRank));
  return {};
}

Verdict RangeChecker::checkPhases() const {
  uint32_t previous = 0;
  for (const PhaseMark &phase : rank.phases) {
    if (phase.name >= shared.phaseNames.size())
      return fail(kNone, fmt::format("phase {} of {}", phase.name, shared.phaseNames.size()));
    if (phase.command < previous || phase.command > rank.commands.size())
      return fail(kNone, fmt::format("phase {} begins at command {}, expected {} to {}",
                                     shared.phaseNames[phase.name], phase.command, previous,
                                     rank.commands.size()));
    previous = phase.command;
  }
  return {};
}

Verdict RangeChecker::checkCommands() const {
  uint32_t bracketEnd = 0;
  for (uint32_t i = 0; i != rank.commands.size(); ++i) {
    if (Verdict verdict = checkCommand(i))
      return verdict;
    if (getBracketSize(rank.commands[i]) == 0)
      continue;
    if (i < bracketEnd)
      return fail(i, fmt::format("a {} inside another", getName(rank.commands[i].op)));
    bracketEnd = i + 1 + getBracketSize(rank.commands[i]);
  }
  return {};
}

Verdict RangeChecker::checkCommand(uint32_t index) const {
  const Command &command = rank.commands[index];
  if (command.stream >= rank.streams.size())
    return fail(index, fmt::format("stream {} of {}", command.stream, rank.streams.size()));
  if (command.loc >= shared.locations.size())
    return fail(index, fmt::format("location {} of {}", command.loc, shared.locations.size()));
  switch (command.op) {
  case CommandOp::Launch:
    return checkLaunch(index);
  case CommandOp::Pair:
  case CommandOp::Group:
    return checkBracket(index);
  case CommandOp::Send:
  case CommandOp::Recv:
    return checkTransfer(index);
  case CommandOp::Record:
  case CommandOp::Wait:
    if (command.arg < rank.numEvents)
      return {};
    return fail(index, fmt::format("event {} of {}", command.arg, rank.numEvents));
  case CommandOp::Reduce:
    return checkReduce(index);
  case CommandOp::Step:
    return checkStep(index);
  }
  return fail(index, fmt::format("the unknown operation {}", unsigned(command.op)));
}

Verdict RangeChecker::checkBracket(uint32_t index) const {
  const Command &bracket = rank.commands[index];
  const bool pair = bracket.op == CommandOp::Pair;
  if (bracket.arg == 0 || bracket.arg > rank.commands.size() - index - 1)
    return fail(index, fmt::format("{} of {} commands, {} follow", getName(bracket.op), bracket.arg,
                                   rank.commands.size() - index - 1));
  for (uint32_t i = index + 1; i <= index + bracket.arg; ++i) {
    const Command &member = rank.commands[i];
    const bool fits = pair ? member.op == CommandOp::Launch
                           : member.op == CommandOp::Send || member.op == CommandOp::Recv;
    if (!fits)
      return fail(i, fmt::format("a {} inside a {}", getName(member.op), getName(bracket.op)));
    if (member.stream != bracket.stream)
      return fail(i, fmt::format("a {} on stream {} with a member on stream {}",
                                 getName(bracket.op), bracket.stream, member.stream));
  }
  return checkStreamKind(index, pair ? StreamKind::Compute : rank.streams[bracket.stream].kind);
}

Verdict RangeChecker::checkStreamKind(uint32_t index, StreamKind kind) const {
  const Command &command = rank.commands[index];
  const StreamKind actual = rank.streams[command.stream].kind;
  if (actual == kind)
    return {};
  return fail(index, fmt::format("stands on a {} stream, expected a {} stream", getName(actual),
                                 getName(kind)));
}

Verdict RangeChecker::checkLaunch(uint32_t index) const {
  if (Verdict verdict = checkStreamKind(index, StreamKind::Compute))
    return verdict;
  const uint32_t number = rank.commands[index].arg;
  if (number >= rank.launches.size())
    return fail(index, fmt::format("launch {} of {}", number, rank.launches.size()));
  const Launch &launch = rank.launches[number];
  if (unsigned(launch.function) >= kNumFunctions)
    return fail(index, fmt::format("the unknown function {}", unsigned(launch.function)));
  if (launch.component >= shared.contract.numComponents)
    return fail(index,
                fmt::format("component {} of {}", launch.component, shared.contract.numComponents));
  if (launch.function >= Function::Backward && !shared.training)
    return fail(index, "a backward in a program for forward only");
  if (Verdict verdict = checkLaunchPlace(index, launch))
    return verdict;
  return checkLaunchSlots(index, launch);
}

/// The stage is on this rank, and the flags say where it stands in its pipeline.
Verdict RangeChecker::checkLaunchPlace(uint32_t index, const Launch &launch) const {
  const PipelineInfo *pipeline = findPipeline(shared, launch.microbatch);
  if (!pipeline)
    return fail(index,
                fmt::format("micro-batch {} of {}", launch.microbatch, shared.numMicrobatches));
  if (!holdsStage(*pipeline, launch.stage))
    return fail(index, fmt::format("pipeline {} has no stage {}", pipeline->name, launch.stage));
  if (getRankOf(*pipeline, launch.stage) != rank.rank)
    return fail(index, fmt::format("pipeline {} places stage {} on rank {}", pipeline->name,
                                   launch.stage, getRankOf(*pipeline, launch.stage)));
  if (launch.flags & ~(kAccumulate | kFirstStage | kLastStage))
    return fail(index, fmt::format("unknown flags {:#x}", launch.flags));
  const bool first = launch.stage == pipeline->firstStage;
  const bool last = launch.stage - pipeline->firstStage == pipeline->numStages - 1;
  if (first != bool(launch.flags & kFirstStage) || last != bool(launch.flags & kLastStage))
    return fail(index, fmt::format("the flags do not fit stage {} of pipeline {}, which has stages "
                                   "{} to {}",
                                   launch.stage, pipeline->name, pipeline->firstStage,
                                   pipeline->firstStage + pipeline->numStages - 1));
  if (launch.function == Function::LoadInput && !first)
    return fail(index, "loads the input of a stage that is not its pipeline's first");
  if (launch.function == Function::LoadLabels && !last)
    return fail(index, "loads the labels of a stage that is not its pipeline's last");
  return {};
}

Verdict RangeChecker::checkLaunchSlots(uint32_t index, const Launch &launch) const {
  const Roles roles = getRoles(shared, launch);
  for (unsigned kind = 0; kind != kNumSlotKinds; ++kind) {
    const SlotKind role = SlotKind(kind);
    const bool expected = (roles.reads | roles.writes) & bit(role);
    const bool present = launch.slots[kind] != kNone;
    if (expected && !present)
      return fail(index, fmt::format("has no {} slot", getName(role)));
    if (!expected && present)
      return fail(index, fmt::format("has a {} slot, which {} does not use there", getName(role),
                                     getName(launch.function)));
    if (!present)
      continue;
    if (Verdict verdict = checkLaunchSlot(index, launch, role))
      return verdict;
  }
  return {};
}

/// A slot is of its role's class, or holds what another stage handed over.
Verdict RangeChecker::checkLaunchSlot(uint32_t index, const Launch &launch, SlotKind role) const {
  const uint32_t slot = launch.slots[unsigned(role)];
  const SlotClass *slotClass = slots.find(slot);
  const bool writes = getRoles(shared, launch).writes & bit(role);
  if (slotClass && !writes) {
    if (role == SlotKind::Input && slotClass->kind == SlotKind::Output &&
        !(launch.flags & kFirstStage))
      return checkSlot(index, slot, SlotKind::Output, launch.stage - 1);
    if (role == SlotKind::GradOutput && slotClass->kind == SlotKind::GradInput)
      return checkSlot(index, slot, SlotKind::GradInput, launch.stage + 1);
  }
  return checkSlot(index, slot, role, launch.stage);
}

Verdict RangeChecker::checkSlot(uint32_t index, uint32_t slot, SlotKind kind,
                                uint32_t stage) const {
  const SlotClass *slotClass = slots.find(slot);
  if (!slotClass)
    return fail(index, fmt::format("slot {} of {}", slot, rank.getNumSlots()));
  if (slotClass->kind != kind)
    return fail(index, fmt::format("slot {} is of the class {}, expected {}", slot,
                                   getName(slotClass->kind), getName(kind)));
  if (slotClass->sizeGroup != getSizeGroup(shared, stage))
    return fail(index, fmt::format("slot {} is of size group {}, stage {} is of group {}", slot,
                                   slotClass->sizeGroup, stage, getSizeGroup(shared, stage)));
  return {};
}

Verdict RangeChecker::checkTransfer(uint32_t index) const {
  const Command &command = rank.commands[index];
  const bool sends = command.op == CommandOp::Send;
  if (Verdict verdict = checkStreamKind(index, sends ? StreamKind::Send : StreamKind::Recv))
    return verdict;
  if (command.arg >= rank.transfers.size())
    return fail(index, fmt::format("transfer {} of {}", command.arg, rank.transfers.size()));
  const Transfer &transfer = rank.transfers[command.arg];
  if (transfer.channel != rank.streams[command.stream].target)
    return fail(index, fmt::format("channel {} on the stream of channel {}", transfer.channel,
                                   rank.streams[command.stream].target));

  const Channel &channel = shared.channels[transfer.channel];
  const PipelineInfo *pipeline = findPipeline(shared, transfer.microbatch);
  if (!pipeline)
    return fail(index,
                fmt::format("micro-batch {} of {}", transfer.microbatch, shared.numMicrobatches));
  const bool forward = channel.kind == SlotKind::Output;
  // The producer is the neighbour that the value comes from; wrapping below zero finds none.
  const uint32_t producer = forward ? transfer.stage - 1 : transfer.stage + 1;
  if (getRankOf(*pipeline, producer) != channel.source ||
      getRankOf(*pipeline, transfer.stage) != channel.destination)
    return fail(index,
                fmt::format("stage {} of pipeline {} does not get its {} from rank {} on "
                            "rank {}",
                            transfer.stage, pipeline->name, forward ? "activation" : "gradient",
                            channel.source, channel.destination));
  return checkTransferSlot(index, transfer, sends);
}

Verdict RangeChecker::checkTransferSlot(uint32_t index, const Transfer &transfer,
                                        bool sends) const {
  const SlotKind kind = shared.channels[transfer.channel].kind;
  const bool forward = kind == SlotKind::Output;
  if (sends)
    return checkSlot(index, transfer.slot, kind, forward ? transfer.stage - 1 : transfer.stage + 1);
  return checkSlot(index, transfer.slot, forward ? SlotKind::Input : SlotKind::GradOutput,
                   transfer.stage);
}

Verdict RangeChecker::checkReduce(uint32_t index) const {
  if (Verdict verdict = checkStreamKind(index, StreamKind::Reduce))
    return verdict;
  const Command &command = rank.commands[index];
  if (!shared.training)
    return fail(index, "a reduction in a program for forward only");
  if (command.arg >= rank.reductions.size())
    return fail(index, fmt::format("reduction {} of {}", command.arg, rank.reductions.size()));
  const Reduction &reduction = rank.reductions[command.arg];
  if (reduction.group != rank.streams[command.stream].target)
    return fail(index, fmt::format("reduce group {} on the stream of group {}", reduction.group,
                                   rank.streams[command.stream].target));
  for (uint32_t member : shared.reduceGroups[reduction.group].ranks)
    if (!holdsCopy(shared, member, reduction.stage))
      return fail(index, fmt::format("rank {} holds no copy of stage {}", member, reduction.stage));
  return {};
}

Verdict RangeChecker::checkStep(uint32_t index) const {
  if (Verdict verdict = checkStreamKind(index, StreamKind::Compute))
    return verdict;
  if (!shared.training)
    return fail(index, "an optimizer step in a program for forward only");
  if (!holdsCopy(shared, rank.rank, rank.commands[index].arg))
    return fail(index, "the rank holds no copy of that stage");
  return {};
}

Verdict verifyRanges(const SharedInfo &shared, const RankProgram &rank) {
  return RangeChecker(shared, rank).run();
}

} // namespace dualpipe::program
