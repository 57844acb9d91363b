//===- VerifyShared.cpp - P3 of the shared section --------------------------===//

#include "Facts.h"

#include <fmt/format.h>

namespace dualpipe::program {

/// Bounds that no schedule reaches, so that a damaged file cannot ask for the
/// memory of one that did.
static constexpr uint32_t kMaxRanks = 1u << 20;
static constexpr uint32_t kMaxStages = 1u << 24;
static constexpr uint32_t kMaxMicrobatches = 1u << 24;

static Verdict fail(std::string message) {
  return violation("P3", kNone, kNone, std::move(message));
}

static Verdict verifyCounts(const SharedInfo &shared) {
  if (shared.numRanks == 0 || shared.numRanks > kMaxRanks)
    return fail(fmt::format("{} ranks, expected 1 to {}", shared.numRanks, kMaxRanks));
  if (shared.numStages == 0 || shared.numStages > kMaxStages)
    return fail(fmt::format("{} stages, expected 1 to {}", shared.numStages, kMaxStages));
  if (shared.numMicrobatches == 0 || shared.numMicrobatches > kMaxMicrobatches)
    return fail(fmt::format("{} micro-batches, expected 1 to {}", shared.numMicrobatches,
                            kMaxMicrobatches));
  return {};
}

static Verdict verifyPipeline(const SharedInfo &shared, const PipelineInfo &pipeline) {
  if (pipeline.numStages == 0 ||
      uint64_t(pipeline.firstStage) + pipeline.numStages > shared.numStages)
    return fail(fmt::format(
        "pipeline {} has stages {} to {}, the schedule has {}", pipeline.name, pipeline.firstStage,
        uint64_t(pipeline.firstStage) + pipeline.numStages - 1, shared.numStages));
  if (pipeline.placement.size() != pipeline.numStages)
    return fail(fmt::format("pipeline {} places {} stages, expected {}", pipeline.name,
                            pipeline.placement.size(), pipeline.numStages));
  for (uint32_t rank : pipeline.placement)
    if (rank >= shared.numRanks)
      return fail(fmt::format("pipeline {} places a stage on rank {} of {}", pipeline.name, rank,
                              shared.numRanks));
  return {};
}

static Verdict verifyPipelines(const SharedInfo &shared) {
  uint64_t next = 0;
  for (const PipelineInfo &pipeline : shared.pipelines) {
    if (Verdict verdict = verifyPipeline(shared, pipeline))
      return verdict;
    if (pipeline.firstMicrobatch != next)
      return fail(fmt::format("pipeline {} begins with micro-batch {}, expected {}", pipeline.name,
                              pipeline.firstMicrobatch, next));
    next += pipeline.numMicrobatches;
  }
  if (next != shared.numMicrobatches)
    return fail(fmt::format("the pipelines have {} micro-batches, expected {}", next,
                            shared.numMicrobatches));
  return {};
}

/// A model is asked about every stage: one that nobody runs could make that endless.
static Verdict verifyStages(const SharedInfo &shared) {
  std::vector<std::pair<uint32_t, uint32_t>> ranges; // first stage, number of stages
  for (const PipelineInfo &pipeline : shared.pipelines)
    ranges.emplace_back(pipeline.firstStage, pipeline.numStages);
  std::sort(ranges.begin(), ranges.end());
  uint32_t next = 0;
  for (const auto &[first, count] : ranges) {
    if (first > next)
      break;
    next = std::max(next, first + count);
  }
  if (next != shared.numStages)
    return fail(fmt::format("no pipeline has stage {} of {}", next, shared.numStages));
  return {};
}

static Verdict verifyChannels(const SharedInfo &shared) {
  for (size_t i = 0; i != shared.channels.size(); ++i) {
    const Channel &channel = shared.channels[i];
    if (channel.source >= shared.numRanks || channel.destination >= shared.numRanks ||
        channel.source == channel.destination)
      return fail(fmt::format("channel {} leads from rank {} to rank {}, expected two of {} ranks",
                              i, channel.source, channel.destination, shared.numRanks));
    if (channel.kind != SlotKind::Output && channel.kind != SlotKind::GradInput)
      return fail(fmt::format("channel {} carries {}, expected output or grad_input", i,
                              getName(channel.kind)));
  }
  return {};
}

static Verdict verifyReduceGroups(const SharedInfo &shared) {
  for (size_t i = 0; i != shared.reduceGroups.size(); ++i) {
    const std::vector<uint32_t> &ranks = shared.reduceGroups[i].ranks;
    if (ranks.size() < 2 || ranks.back() >= shared.numRanks ||
        std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) != ranks.end())
      return fail(fmt::format("reduce group {} has ranks [{}], expected two or more, ascending, "
                              "below {}",
                              i, fmt::join(ranks, ", "), shared.numRanks));
  }
  return {};
}

static Verdict verifyContract(const SharedInfo &shared) {
  const Contract &contract = shared.contract;
  constexpr uint32_t readable = bit(SlotKind::Input) | bit(SlotKind::Output) |
                                bit(SlotKind::GradOutput) | bit(SlotKind::Saved) |
                                bit(SlotKind::Labels);
  if (contract.numComponents == 0 || contract.numSizeGroups == 0 ||
      contract.numSizeGroups > shared.numStages)
    return fail(fmt::format("the contract has {} components and {} size groups, expected at least "
                            "one of each and at most one group per stage",
                            contract.numComponents, contract.numSizeGroups));
  if ((contract.backwardReads | contract.backwardInputReads) & ~readable ||
      contract.backwardWeightReads & ~(readable | bit(SlotKind::WeightContext)))
    return fail("the contract lets a backward read what no backward can");
  if (!contract.sizeGroup.empty() && contract.sizeGroup.size() != shared.numStages)
    return fail(fmt::format("the contract names the size group of {} stages, expected {}",
                            contract.sizeGroup.size(), shared.numStages));
  for (uint32_t group : contract.sizeGroup)
    if (group >= contract.numSizeGroups)
      return fail(fmt::format("size group {} of {}", group, contract.numSizeGroups));
  return {};
}

static Verdict verifyLocations(const SharedInfo &shared) {
  for (size_t i = 0; i != shared.locations.size(); ++i)
    if (shared.locations[i].line != 0 && shared.locations[i].file >= shared.files.size())
      return fail(fmt::format("location {} is in file {} of {}", i, shared.locations[i].file,
                              shared.files.size()));
  return {};
}

Verdict verifyShared(const SharedInfo &shared) {
  for (auto *check : {verifyCounts, verifyPipelines, verifyStages, verifyChannels,
                      verifyReduceGroups, verifyContract, verifyLocations})
    if (Verdict verdict = check(shared))
      return verdict;
  return {};
}

} // namespace dualpipe::program
