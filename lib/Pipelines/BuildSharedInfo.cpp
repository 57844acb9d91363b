//===- BuildSharedInfo.cpp - what all ranks of a program share --------------===//

#include "dualpipe/Pipelines/BuildSharedInfo.h"
#include "dualpipe/Schedule/Transfers.h"

#include <algorithm>
#include <map>
#include <tuple>

using namespace dualpipe;

static std::vector<program::PipelineInfo> describePipelines(const Schedule &schedule) {
  std::vector<program::PipelineInfo> result;
  for (const Pipeline &pipeline : schedule.pipelines)
    result.push_back({pipeline.name, pipeline.firstStage, pipeline.numStages,
                      pipeline.firstMicrobatch, pipeline.numMicrobatches, pipeline.placement});
  return result;
}

namespace {
/// The channels from one rank, by destination and kind.
class ChannelsFrom {
public:
  explicit ChannelsFrom(uint32_t rank) : rank(rank) {}

  void add(uint32_t to, bool isGrad, uint32_t stage, uint32_t microbatch) {
    program::SlotKind kind = isGrad ? program::SlotKind::GradInput : program::SlotKind::Output;
    auto [it, isNew] =
        channels.try_emplace({to, kind}, program::Channel{rank, to, kind, 0, program::kDigestSeed});
    ++it->second.numTransfers;
    it->second.digest = program::extendDigest(it->second.digest, stage, microbatch);
  }

  void appendTo(std::vector<program::Channel> &all) const {
    for (const auto &[key, channel] : channels)
      all.push_back(channel);
  }

private:
  uint32_t rank;
  std::map<std::pair<uint32_t, program::SlotKind>, program::Channel> channels;
};
} // namespace

/// What a rank sends, in the order of the ops that make it.
static void addDerived(const OpIndex &index, uint32_t rank, ChannelsFrom &channels) {
  const Schedule &schedule = index.getSchedule();
  const RankOrder &order = schedule.ranks[rank];
  for (size_t op = 0; op != order.size(); ++op) {
    OpRef consumer = index.getConsumer(rank, op);
    if (consumer.isValid() && consumer.rank != rank)
      channels.add(consumer.rank, order.kind[op] != OpKind::Forward,
                   schedule.ranks[consumer.rank].stage[consumer.op], order.microbatch[op]);
  }
}

/// What a rank sends, in the order that the schedule states.
static void addOwn(const OpIndex &index, uint32_t rank, ChannelsFrom &channels) {
  const Schedule &schedule = index.getSchedule();
  for (const RankOrder::Transfer &end : schedule.ranks[rank].transfers) {
    if (!end.isSend)
      continue;
    OpRef consumer = findOps(index, end).consumer;
    channels.add(consumer.rank, end.isGrad, schedule.ranks[consumer.rank].stage[consumer.op],
                 end.microbatch);
  }
}

/// One channel per source, destination and kind, in that order.
static std::vector<program::Channel> findChannels(const OpIndex &index) {
  const Schedule &schedule = index.getSchedule();
  std::vector<program::Channel> all;
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    ChannelsFrom channels(rank);
    (schedule.ownsTransfers ? addOwn : addDerived)(index, rank, channels);
    channels.appendTo(all);
  }
  return all;
}

static std::vector<program::ReduceGroup> findReduceGroups(const StageCopies &copies) {
  std::vector<program::ReduceGroup> groups;
  for (const std::vector<uint32_t> &ranks : copies) {
    bool isKnown =
        std::any_of(groups.begin(), groups.end(),
                    [&](const program::ReduceGroup &group) { return group.ranks == ranks; });
    if (ranks.size() > 1 && !isKnown)
      groups.push_back({ranks});
  }
  return groups;
}

program::SharedInfo dualpipe::buildSharedInfo(const Timeline &timeline, const Costs &planCosts) {
  const Schedule &schedule = timeline.getIndex().getSchedule();
  program::SharedInfo shared;
  shared.schedule = schedule.name;
  shared.producer = "dualpipe-opt " DUALPIPE_VERSION;
  shared.numRanks = schedule.numRanks;
  shared.numMicrobatches = schedule.numMicrobatches;
  shared.numStages = schedule.numStages;
  shared.training = schedule.training;
  shared.params = schedule.params;
  shared.planCosts = planCosts.print();
  shared.pipelines = describePipelines(schedule);
  shared.channels = findChannels(timeline.getIndex());
  if (schedule.training)
    shared.reduceGroups = findReduceGroups(timeline.getCopies());
  shared.contract = schedule.model;
  shared.phaseNames = schedule.phaseNames;
  shared.files = schedule.files;
  for (const SourceLoc &loc : schedule.locations)
    shared.locations.push_back({loc.file, loc.line, loc.column});
  return shared;
}
