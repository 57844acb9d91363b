//===- Reader.cpp - reading `.dpx` files ------------------------------------===//
//
// In this order, so that nothing looks at bytes that were not checked: header,
// checksum of header and directory, checksum of a section, the FlatBuffers
// verifier, our own checks (Verify.h).
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Program/Reader.h"
#include "Container.h"
#include "dualpipe/Program/Verify.h"

#include "program_generated.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>

namespace dualpipe::program {

/// More tables than a section of any program has: names and pipelines only.
static constexpr unsigned kMaxTables = 1u << 30;
static constexpr unsigned kMaxDepth = 8;

template <typename To, typename From, typename Convert>
static void readStructs(const flatbuffers::Vector<const From *> *from, std::vector<To> &to,
                        Convert convert) {
  to.reserve(from->size());
  for (const From *element : *from)
    to.push_back(convert(*element));
}

static Launch convertLaunch(const fb::Launch &from) {
  Launch launch{};
  launch.function = Function(from.function());
  launch.flags = from.flags();
  launch.component = from.component();
  launch.stage = from.stage();
  launch.microbatch = from.microbatch();
  for (unsigned kind = 0; kind != kNumSlotKinds; ++kind)
    launch.slots[kind] = from.slots()->Get(kind);
  return launch;
}

static RankProgram convertRank(const fb::RankSection &from) {
  RankProgram rank;
  rank.rank = from.rank();
  rank.numEvents = from.num_events();
  readStructs(from.streams(), rank.streams,
              [](const fb::Stream &s) { return Stream{StreamKind(s.kind()), s.target()}; });
  readStructs(from.slot_classes(), rank.slotClasses, [](const fb::SlotClass &c) {
    return SlotClass{SlotKind(c.kind()), c.size_group(), c.count(), c.spares()};
  });
  readStructs(from.commands(), rank.commands, [](const fb::Command &c) {
    return Command{CommandOp(c.op()), c.stream(), c.arg(), c.loc()};
  });
  readStructs(from.launches(), rank.launches, convertLaunch);
  readStructs(from.transfers(), rank.transfers, [](const fb::Transfer &t) {
    return Transfer{t.channel(), t.slot(), t.stage(), t.microbatch()};
  });
  readStructs(from.reductions(), rank.reductions,
              [](const fb::Reduction &r) { return Reduction{r.group(), r.stage()}; });
  readStructs(from.phases(), rank.phases,
              [](const fb::PhaseMark &p) { return PhaseMark{p.name(), p.command()}; });
  return rank;
}

static PipelineInfo convertPipeline(const fb::Pipeline &from) {
  return {from.name()->str(),      from.first_stage(),
          from.num_stages(),       from.first_microbatch(),
          from.num_microbatches(), {from.placement()->begin(), from.placement()->end()}};
}

static Contract convertContract(const fb::Contract &from) {
  Contract contract;
  contract.numComponents = from.num_components();
  contract.numSizeGroups = from.num_size_groups();
  contract.backwardReads = from.backward_reads();
  contract.backwardInputReads = from.backward_input_reads();
  contract.backwardWeightReads = from.backward_weight_reads();
  contract.sizeGroup.assign(from.size_group()->begin(), from.size_group()->end());
  return contract;
}

static SharedInfo convertShared(const fb::SharedSection &from) {
  SharedInfo shared;
  shared.schedule = from.schedule()->str();
  shared.producer = from.producer()->str();
  shared.numRanks = from.num_ranks();
  shared.numMicrobatches = from.num_microbatches();
  shared.numStages = from.num_stages();
  shared.training = from.training();
  for (const fb::Param *param : *from.params())
    shared.params.emplace_back(param->name()->str(), param->value());
  for (const fb::PlanCost *cost : *from.plan_costs())
    shared.planCosts.emplace_back(cost->name()->str(), cost->value()->str());
  for (const fb::Pipeline *pipeline : *from.pipelines())
    shared.pipelines.push_back(convertPipeline(*pipeline));
  readStructs(from.channels(), shared.channels, [](const fb::Channel &c) {
    return Channel{c.source(), c.destination(), SlotKind(c.kind()), c.num_transfers(), c.digest()};
  });
  for (const fb::ReduceGroup *group : *from.reduce_groups())
    shared.reduceGroups.push_back({{group->ranks()->begin(), group->ranks()->end()}});
  shared.contract = convertContract(*from.contract());
  for (const flatbuffers::String *name : *from.phase_names())
    shared.phaseNames.push_back(name->str());
  for (const flatbuffers::String *file : *from.files())
    shared.files.push_back(file->str());
  readStructs(from.locations(), shared.locations,
              [](const fb::Location &l) { return Location{l.file(), l.line(), l.column()}; });
  return shared;
}

/// Fills a buffer with the bytes of the file from an offset on.
using Fetch = std::function<Status(uint64_t offset, std::vector<uint8_t> &bytes)>;

/// The root table of a section whose checksum and structure hold.
template <typename Root>
static Result<const Root *> openSection(const SectionEntry &entry, size_t index, const Fetch &fetch,
                                        std::vector<uint8_t> &bytes) {
  bytes.resize(entry.size);
  if (Status status = fetch(entry.offset, bytes); !status.ok())
    return status;
  if (Status status = checkSection(entry, index, bytes.data()); !status.ok())
    return status;
  if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE) // the verifier asserts it
    return Status::failure(fmt::format("section {} is malformed", index));
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), kMaxDepth, kMaxTables);
  if (!verifier.VerifyBuffer<Root>(nullptr))
    return Status::failure(fmt::format("section {} is malformed", index));
  return flatbuffers::GetRoot<Root>(bytes.data());
}

static Result<std::vector<SectionEntry>> readDirectory(uint64_t fileSize, const Fetch &fetch) {
  std::vector<uint8_t> front(fileSize < kHeaderSize ? size_t(fileSize) : kHeaderSize);
  if (Status status = fetch(0, front); !status.ok())
    return status;
  Result<Header> header = parseHeader(front.data(), front.size(), fileSize);
  if (!header.ok())
    return header.getStatus();
  front.resize(header->getDirectoryEnd());
  if (Status status = fetch(0, front); !status.ok())
    return status;
  return parseDirectory(*header, front.data());
}

static Status readRank(const SectionEntry &entry, size_t index, const Fetch &fetch,
                       Program &program) {
  std::vector<uint8_t> bytes;
  Result<const fb::RankSection *> root = openSection<fb::RankSection>(entry, index, fetch, bytes);
  if (!root.ok())
    return root.getStatus();
  if ((*root)->rank() != entry.rank)
    return Status::failure(fmt::format("section {} holds rank {}, expected rank {}", index,
                                       (*root)->rank(), entry.rank));
  program.ranks.push_back(convertRank(**root));
  return Status::success();
}

/// `onlyRank` is kNone for what ranks share alone.
static Result<Program> readSections(uint64_t fileSize, const Fetch &fetch,
                                    std::optional<uint32_t> onlyRank) {
  Result<std::vector<SectionEntry>> entries = readDirectory(fileSize, fetch);
  if (!entries.ok())
    return entries.getStatus();

  Program program;
  {
    std::vector<uint8_t> bytes;
    Result<const fb::SharedSection *> root =
        openSection<fb::SharedSection>(entries->front(), 0, fetch, bytes);
    if (!root.ok())
      return root.getStatus();
    program.shared = convertShared(**root);
  }
  if (onlyRank == kNone)
    return program;
  for (size_t i = 1; i != entries->size(); ++i) {
    const SectionEntry &entry = (*entries)[i];
    if (onlyRank && entry.rank != *onlyRank)
      continue;
    if (Status status = readRank(entry, i, fetch, program); !status.ok())
      return status;
  }
  if (onlyRank && program.ranks.empty())
    return Status::failure(fmt::format("the file has no section for rank {}; compile it with "
                                       "--only-rank={}, or without for all ranks",
                                       *onlyRank, *onlyRank));
  return program;
}

static Result<Program> verify(Result<Program> program) {
  if (!program.ok())
    return program;
  if (Status status = toStatus(*program, verifyProgram(*program)); !status.ok())
    return status;
  return program;
}

static Result<Program> nameFile(const std::string &name, Result<Program> program) {
  if (program.ok())
    return program;
  return Status::failure(fmt::format("{}: {}", name, program.message()));
}

/// Bytes of a file that is in memory.
static Fetch fetchFrom(const uint8_t *bytes, size_t size) {
  return [=](uint64_t offset, std::vector<uint8_t> &to) {
    if (offset > size || to.size() > size - offset)
      return Status::failure("truncated");
    if (!to.empty())
      std::memcpy(to.data(), bytes + offset, to.size());
    return Status::success();
  };
}

Result<Program> readProgram(const std::string &name, const uint8_t *bytes, size_t size,
                            std::optional<uint32_t> onlyRank) {
  return nameFile(name, verify(readSections(size, fetchFrom(bytes, size), onlyRank)));
}

Result<Program> readUnverifiedProgram(const std::string &name, const uint8_t *bytes, size_t size) {
  return nameFile(name, readSections(size, fetchFrom(bytes, size), std::nullopt));
}

namespace {
struct FileCloser {
  void operator()(std::FILE *file) const { std::fclose(file); }
};
} // namespace

static Result<Program> readOpenFile(std::FILE *file, std::optional<uint32_t> onlyRank) {
  if (std::fseek(file, 0, SEEK_END) != 0)
    return Status::failure(fmt::format("cannot read: {}", std::strerror(errno)));
  const long size = std::ftell(file);
  if (size < 0 || size == __LONG_MAX__)
    return Status::failure("cannot read: not a regular file");
  const Fetch fetch = [&](uint64_t offset, std::vector<uint8_t> &to) {
    if (std::fseek(file, long(offset), SEEK_SET) != 0 ||
        std::fread(to.data(), 1, to.size(), file) != to.size())
      return Status::failure(std::ferror(file)
                                 ? fmt::format("cannot read: {}", std::strerror(errno))
                                 : std::string("truncated while reading"));
    return Status::success();
  };
  return readSections(uint64_t(size), fetch, onlyRank);
}

Result<Program> readProgramFile(const std::string &path, std::optional<uint32_t> onlyRank) {
  const std::unique_ptr<std::FILE, FileCloser> file(std::fopen(path.c_str(), "rb"));
  if (!file)
    return Status::failure(fmt::format("cannot open '{}': {}", path, std::strerror(errno)));
  return nameFile(path, verify(readOpenFile(file.get(), onlyRank)));
}

Result<SharedInfo> readSharedFile(const std::string &path) {
  Result<Program> program = readProgramFile(path, kNone);
  if (!program.ok())
    return program.getStatus();
  return std::move(program->shared);
}

} // namespace dualpipe::program
