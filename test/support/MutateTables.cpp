//===- MutateTables.cpp - slot classes and what all ranks share -------------===//

#include "Mutation.h"
#include "Mutator.h"

#include <algorithm>

namespace dualpipe::test {

using namespace program;

static std::optional<std::pair<uint32_t, size_t>> pickClass(Mutator &m) {
  const uint32_t rank = uint32_t(m.below(m.program.ranks.size()));
  const size_t count = m.program.ranks[rank].slotClasses.size();
  if (count == 0)
    return std::nullopt;
  return std::pair(rank, m.below(count));
}

static std::string describeClass(const Mutator &m, uint32_t rank, size_t index) {
  const SlotClass &slotClass = m.program.ranks[rank].slotClasses[index];
  return std::string(getName(slotClass.kind)) + " slots of rank " + std::to_string(rank);
}

/// Later classes move, so their commands get what is beside what they mean.
static bool changeCount(Mutator &m) {
  const auto picked = pickClass(m);
  if (!picked)
    return false;
  const auto [rank, index] = *picked;
  m.description = "another number of " + describeClass(m, rank, index);
  m.program.ranks[rank].slotClasses[index].count += m.flip() ? 1 : ~0u;
  return true;
}

/// Adds to every slot number from `first` on.
static void renumber(RankProgram &rank, uint32_t first) {
  for (Launch &launch : rank.launches)
    for (uint32_t &slot : launch.slots)
      slot += slot != kNone && slot >= first;
  for (Transfer &transfer : rank.transfers)
    transfer.slot += transfer.slot >= first;
}

/// One slot more than there is a use for, all numbers in order.
static bool growClass(Mutator &m) {
  const auto picked = pickClass(m);
  if (!picked)
    return false;
  const auto [rank, index] = *picked;
  RankProgram &program = m.program.ranks[rank];
  m.description = "an unused slot more in the " + describeClass(m, rank, index);
  uint32_t end = 0;
  for (size_t i = 0; i <= index; ++i)
    end += program.slotClasses[i].count;
  renumber(program, end);
  ++program.slotClasses[index].count;
  return true;
}

static bool changeSpares(Mutator &m) {
  const auto picked = pickClass(m);
  if (!picked)
    return false;
  const auto [rank, index] = *picked;
  m.description = "another number of spares among the " + describeClass(m, rank, index);
  m.program.ranks[rank].slotClasses[index].spares += m.flip() ? 1 : ~0u;
  return true;
}

static bool changeKind(Mutator &m) {
  const auto picked = pickClass(m);
  if (!picked)
    return false;
  const auto [rank, index] = *picked;
  SlotKind &kind = m.program.ranks[rank].slotClasses[index].kind;
  m.description = "another kind of " + describeClass(m, rank, index);
  kind = SlotKind(*m.other(kNumSlotKinds, uint32_t(kind)));
  return true;
}

static Channel *pickChannel(Mutator &m) {
  std::vector<Channel> &channels = m.program.shared.channels;
  if (channels.empty())
    return nullptr;
  const size_t index = m.below(channels.size());
  m.description = "channel " + std::to_string(index);
  return &channels[index];
}

static bool changeDigest(Mutator &m) {
  Channel *channel = pickChannel(m);
  if (!channel)
    return false;
  m.description += " has another digest";
  channel->digest ^= 1ull << m.below(64);
  return true;
}

static bool changeNumTransfers(Mutator &m) {
  Channel *channel = pickChannel(m);
  if (!channel)
    return false;
  m.description += " has another number of transfers";
  channel->numTransfers += m.flip() ? 1 : ~uint64_t(0);
  return true;
}

static bool turnChannel(Mutator &m) {
  Channel *channel = pickChannel(m);
  if (!channel)
    return false;
  m.description += " leads the other way";
  std::swap(channel->source, channel->destination);
  return true;
}

static bool changeChannelKind(Mutator &m) {
  Channel *channel = pickChannel(m);
  if (!channel)
    return false;
  m.description += " carries the other kind";
  channel->kind = channel->kind == SlotKind::Output ? SlotKind::GradInput : SlotKind::Output;
  return true;
}

static bool changePlacement(Mutator &m) {
  std::vector<PipelineInfo> &pipelines = m.program.shared.pipelines;
  PipelineInfo &pipeline = pipelines[m.below(pipelines.size())];
  uint32_t &rank = pipeline.placement[m.below(pipeline.placement.size())];
  const auto other = m.other(m.program.shared.numRanks, rank);
  if (!other)
    return false;
  m.description = "a stage of pipeline " + pipeline.name + " is placed on rank " +
                  std::to_string(*other) + " instead of " + std::to_string(rank);
  rank = *other;
  return true;
}

/// The shared section forgets a member of a reduce group.
static bool forgetMember(Mutator &m) {
  std::vector<ReduceGroup> &groups = m.program.shared.reduceGroups;
  if (groups.empty())
    return false;
  const uint32_t group = uint32_t(m.below(groups.size()));
  std::vector<uint32_t> &ranks = groups[group].ranks;
  const size_t member = m.below(ranks.size());
  m.description =
      "group " + std::to_string(group) + " without rank " + std::to_string(ranks[member]);
  ranks.erase(ranks.begin() + ptrdiff_t(member));
  return true;
}

std::vector<Mutation> listTableMutations() {
  return {
      {"change-count", "a slot class has one slot more or fewer", "P2 P3 P4", changeCount},
      {"grow-class", "a slot class has a slot that nothing uses", "P4", growClass},
      {"change-spares", "a slot class says one spare more or fewer", "P3 P4", changeSpares},
      {"change-kind", "a slot class is of another kind", "P3", changeKind},
      {"change-digest", "a channel has another digest", "D2", changeDigest},
      {"change-transfers", "a channel has one transfer more or fewer", "D1", changeNumTransfers},
      {"turn-channel", "a channel leads the other way", "P3", turnChannel},
      {"change-channel-kind", "a channel carries the other kind", "P3", changeChannelKind},
      {"change-placement", "a stage is placed on another rank", "P3", changePlacement},
      {"forget-member", "a reduce group lacks a member", "P3 D1 D4", forgetMember},
  };
}

} // namespace dualpipe::test
