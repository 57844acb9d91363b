//===- Writer.cpp - writing `.dpx` files ------------------------------------===//

#include "dualpipe/Program/Writer.h"
#include "Container.h"

#include "program_generated.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace dualpipe::program {

using Builder = flatbuffers::FlatBufferBuilder;
template <typename T> using Offset = flatbuffers::Offset<T>;

/// A vector of structs, each made by `convert` from one element. Structs are
/// built field by field, so that padding is zero and the bytes are the same
/// every time.
template <typename To, typename From, typename Convert>
static Offset<flatbuffers::Vector<const To *>>
writeStructs(Builder &builder, const std::vector<From> &from, Convert convert) {
  std::vector<To> to;
  to.reserve(from.size());
  for (const From &element : from)
    to.push_back(convert(element));
  return builder.CreateVectorOfStructs(to);
}

static fb::Launch convertLaunch(const Launch &launch) {
  return fb::Launch(
      uint8_t(launch.function), launch.flags, launch.component, launch.stage, launch.microbatch,
      flatbuffers::span<const uint32_t, kNumSlotKinds>(launch.slots.data(), kNumSlotKinds));
}

static std::vector<uint8_t> finish(Builder &builder) {
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

std::vector<uint8_t> serializeRank(const RankProgram &rank) {
  Builder builder(1024 + rank.commands.size() * sizeof(fb::Command) +
                  rank.launches.size() * sizeof(fb::Launch));
  auto streams = writeStructs<fb::Stream>(
      builder, rank.streams, [](const Stream &s) { return fb::Stream(uint8_t(s.kind), s.target); });
  auto classes = writeStructs<fb::SlotClass>(builder, rank.slotClasses, [](const SlotClass &c) {
    return fb::SlotClass(uint8_t(c.kind), c.sizeGroup, c.count, c.spares);
  });
  auto commands = writeStructs<fb::Command>(builder, rank.commands, [](const Command &c) {
    return fb::Command(uint8_t(c.op), c.stream, c.arg, c.loc);
  });
  auto launches = writeStructs<fb::Launch>(builder, rank.launches, convertLaunch);
  auto transfers = writeStructs<fb::Transfer>(builder, rank.transfers, [](const Transfer &t) {
    return fb::Transfer(t.channel, t.slot, t.stage, t.microbatch);
  });
  auto reductions = writeStructs<fb::Reduction>(
      builder, rank.reductions, [](const Reduction &r) { return fb::Reduction(r.group, r.stage); });
  auto phases = writeStructs<fb::PhaseMark>(
      builder, rank.phases, [](const PhaseMark &p) { return fb::PhaseMark(p.name, p.command); });
  builder.Finish(fb::CreateRankSection(builder, rank.rank, rank.numEvents, streams, classes,
                                       commands, launches, transfers, reductions, phases));
  return finish(builder);
}

static Offset<fb::Pipeline> writePipeline(Builder &builder, const PipelineInfo &pipeline) {
  auto name = builder.CreateString(pipeline.name);
  auto placement = builder.CreateVector(pipeline.placement);
  return fb::CreatePipeline(builder, name, pipeline.firstStage, pipeline.numStages,
                            pipeline.firstMicrobatch, pipeline.numMicrobatches, placement);
}

static Offset<fb::Contract> writeContract(Builder &builder, const Contract &contract) {
  auto sizeGroup = builder.CreateVector(contract.sizeGroup);
  return fb::CreateContract(builder, contract.numComponents, contract.numSizeGroups,
                            contract.backwardReads, contract.backwardInputReads,
                            contract.backwardWeightReads, sizeGroup);
}

static std::vector<uint8_t> serializeShared(const SharedInfo &shared) {
  Builder builder(4096 + shared.locations.size() * sizeof(fb::Location));
  std::vector<Offset<fb::Param>> params;
  for (const auto &[name, value] : shared.params)
    params.push_back(fb::CreateParam(builder, builder.CreateString(name), value));
  std::vector<Offset<fb::PlanCost>> costs;
  for (const auto &[name, value] : shared.planCosts) {
    auto nameOffset = builder.CreateString(name);
    auto valueOffset = builder.CreateString(value);
    costs.push_back(fb::CreatePlanCost(builder, nameOffset, valueOffset));
  }
  std::vector<Offset<fb::Pipeline>> pipelines;
  for (const PipelineInfo &pipeline : shared.pipelines)
    pipelines.push_back(writePipeline(builder, pipeline));
  std::vector<Offset<fb::ReduceGroup>> groups;
  for (const ReduceGroup &group : shared.reduceGroups)
    groups.push_back(fb::CreateReduceGroup(builder, builder.CreateVector(group.ranks)));

  auto schedule = builder.CreateString(shared.schedule);
  auto producer = builder.CreateString(shared.producer);
  auto paramsOffset = builder.CreateVector(params);
  auto costsOffset = builder.CreateVector(costs);
  auto pipelinesOffset = builder.CreateVector(pipelines);
  auto channels = writeStructs<fb::Channel>(builder, shared.channels, [](const Channel &c) {
    return fb::Channel(c.source, c.destination, uint8_t(c.kind), c.numTransfers, c.digest);
  });
  auto groupsOffset = builder.CreateVector(groups);
  auto contract = writeContract(builder, shared.contract);
  auto phaseNames = builder.CreateVectorOfStrings(shared.phaseNames);
  auto files = builder.CreateVectorOfStrings(shared.files);
  auto locations = writeStructs<fb::Location>(builder, shared.locations, [](const Location &l) {
    return fb::Location(l.file, l.line, l.column);
  });
  builder.Finish(fb::CreateSharedSection(builder, schedule, producer, shared.numRanks,
                                         shared.numMicrobatches, shared.numStages, shared.training,
                                         paramsOffset, costsOffset, pipelinesOffset, channels,
                                         groupsOffset, contract, phaseNames, files, locations));
  return finish(builder);
}

std::vector<uint8_t> serializeProgram(const SharedInfo &shared,
                                      const std::vector<RankSection> &ranks) {
  const std::vector<uint8_t> sharedBytes = serializeShared(shared);
  std::vector<SectionBytes> sections = {{SectionKind::Shared, 0, &sharedBytes}};
  for (const RankSection &rank : ranks)
    sections.push_back({SectionKind::Rank, rank.rank, &rank.bytes});
  return packContainer(sections);
}

static Status failWriting(const std::string &path, int error) {
  return Status::failure(fmt::format("cannot write '{}': {}", path, std::strerror(error)));
}

/// Writes everything and closes the file; 0 or the error number.
static int writeAndClose(std::FILE *file, const std::vector<uint8_t> &bytes) {
  int error = 0;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size() || std::fflush(file) != 0)
    error = errno;
  if (std::fclose(file) != 0 && error == 0)
    error = errno;
  return error;
}

Status writeProgramFile(const std::string &path, const SharedInfo &shared,
                        const std::vector<RankSection> &ranks) {
  const std::vector<uint8_t> bytes = serializeProgram(shared, ranks);
  struct stat existing;
  if (stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode))
    return Status::failure(fmt::format("cannot write '{}': not a regular file", path));
  const std::string beside = fmt::format("{}.{}.tmp", path, getpid());
  std::FILE *file = std::fopen(beside.c_str(), "wb");
  if (!file)
    return failWriting(path, errno);
  int error = writeAndClose(file, bytes);
  if (error == 0 && std::rename(beside.c_str(), path.c_str()) != 0)
    error = errno;
  if (error == 0)
    return Status::success();
  std::remove(beside.c_str());
  return failWriting(path, error);
}

} // namespace dualpipe::program
