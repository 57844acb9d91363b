//===- BuildSharedInfo.cpp - what all ranks of a program share --------------===//

#include "dualpipe/Pipelines/BuildSharedInfo.h"

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

/// One channel per source, destination and kind, in that order. A channel's
/// transfers stand in the order of the ops that make them.
static std::vector<program::Channel> findChannels(const OpIndex &index) {
  const Schedule &schedule = index.getSchedule();
  std::vector<program::Channel> channels;
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    std::map<std::pair<uint32_t, program::SlotKind>, program::Channel> ofRank;
    const RankOrder &order = schedule.ranks[rank];
    for (size_t op = 0; op != order.size(); ++op) {
      OpRef consumer = index.getConsumer(rank, op);
      if (!consumer.isValid() || consumer.rank == rank)
        continue;
      program::SlotKind kind = order.kind[op] == OpKind::Forward ? program::SlotKind::Output
                                                                 : program::SlotKind::GradInput;
      auto [it, isNew] =
          ofRank.try_emplace({consumer.rank, kind},
                             program::Channel{rank, consumer.rank, kind, 0, program::kDigestSeed});
      program::Channel &channel = it->second;
      ++channel.numTransfers;
      channel.digest = program::extendDigest(
          channel.digest, schedule.ranks[consumer.rank].stage[consumer.op], order.microbatch[op]);
    }
    for (const auto &[key, channel] : ofRank)
      channels.push_back(channel);
  }
  return channels;
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
  shared.phaseNames = schedule.phaseNames;
  shared.files = schedule.files;
  for (const SourceLoc &loc : schedule.locations)
    shared.locations.push_back({loc.file, loc.line, loc.column});
  return shared;
}
