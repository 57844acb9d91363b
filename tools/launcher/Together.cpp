//===- Together.cpp - a run with one process per rank --------------------------===//

#include "Together.h"

#include "Measure.h"

#include "dualpipe/Program/Reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <cstring>
#include <map>

namespace dualpipe::launcher {

using nlohmann::ordered_json;
using runtime::Bytes;
using runtime::Processes;

//===--- Meeting ----------------------------------------------------------------===//

static constexpr const char *kUnset = "unset RANK and WORLD_SIZE, and all ranks run in one process";

static const char *getVariable(const char *name) { return std::getenv(name); }

/// What goes with one process alone.
static Status checkOptions(const Options &options) {
  if (options.backend == "cpu" || options.jitterSeed || options.shuffleSeed)
    return Status::failure(fmt::format("RANK and WORLD_SIZE are set: a run of several processes "
                                       "needs a GPU for each, and does not run on the CPU; {}",
                                       kUnset));
  if (getNumRecordedSteps(options) != 0)
    return Status::failure(fmt::format("RANK and WORLD_SIZE are set: --trace, --profile and "
                                       "--explain record runs of one process; {}",
                                       kUnset));
  return Status::success();
}

Result<std::unique_ptr<Processes>> meetProcesses(const Options &options) {
  Result<std::optional<runtime::ProcessPlace>> place = runtime::readProcessPlace(getVariable);
  if (!place.ok())
    return place.getStatus();
  if (!*place)
    return std::unique_ptr<Processes>();
  if (Status status = checkOptions(options); !status.ok())
    return status;
  runtime::MeetingOptions meeting;
  meeting.timeoutSeconds = options.timeoutSeconds;
  return Processes::meet(**place, meeting);
}

//===--- The program ------------------------------------------------------------===//

static Bytes toBytes(const ordered_json &json) {
  const std::string text = json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  return Bytes(text.begin(), text.end());
}

static ordered_json fromBytes(const Bytes &bytes) {
  return ordered_json::parse(bytes.begin(), bytes.end(), nullptr, false);
}

/// A field of what another process has sent, which need not be JSON at all; null where it has none
/// of this type.
template <typename T> static const T *find(const ordered_json &json, const char *name) {
  const auto field = json.is_object() ? json.find(name) : json.end();
  return field == json.end() ? nullptr : field->get_ptr<const T *>();
}

using Object = ordered_json::object_t;
using Text = ordered_json::string_t;

static Status describeNonsense(size_t rank, const char *what) {
  return Status::failure(fmt::format("rank {} has sent something else than {}; do both run the "
                                     "same launcher?",
                                     rank, what));
}

/// What changes the result, as somebody would type it.
static std::string listOptions(const Options &options) {
  std::string text = fmt::format("--model={}", options.model);
  for (const std::string &setting : options.settings)
    text += " --set " + setting;
  return text + fmt::format(" --steps={} --seed={} --optimizer={} --lr={}{}{}", options.steps,
                            options.seed, options.optimizer, options.learningRate,
                            options.foldChannels ? " --fold-channels" : "",
                            options.graph.empty() ? "" : " --graph=" + options.graph);
}

namespace {

/// What a process runs.
struct OwnRun {
  uint64_t digest = 0;
  std::string options;
  std::map<std::string, uint64_t> reductions; ///< by group
};

} // namespace

static Result<OwnRun> readOwnRun(size_t rank, const Bytes &bytes) {
  const ordered_json json = fromBytes(bytes);
  const auto *digest = find<uint64_t>(json, "digest");
  const auto *options = find<Text>(json, "options");
  const auto *reductions = find<Object>(json, "reductions");
  if (!digest || !options || !reductions)
    return describeNonsense(rank, "what it runs");
  OwnRun run{*digest, *options, {}};
  for (const auto &[group, value] : *reductions) {
    if (!value.is_number_unsigned())
      return describeNonsense(rank, "what it runs");
    run.reductions[group] = value.get<uint64_t>();
  }
  return run;
}

/// Where ranks sum gradients in different orders, they would add those of different stages.
static Status compareReductions(const std::vector<OwnRun> &all) {
  std::map<std::string, std::pair<size_t, uint64_t>> known; // by group: who came first
  for (size_t rank = 0; rank != all.size(); ++rank)
    for (const auto &[group, digest] : all[rank].reductions) {
      const auto [first, isNew] = known.try_emplace(group, rank, digest);
      if (!isNew && first->second.second != digest)
        return Status::failure(fmt::format("ranks {} and {} sum their gradients in different "
                                           "orders; give all ranks the same file",
                                           first->second.first, rank));
    }
  return Status::success();
}

/// At rank 0: whether all have what it has.
static Status compareAll(const std::vector<Bytes> &gathered) {
  std::vector<OwnRun> all;
  for (const Bytes &bytes : gathered) {
    Result<OwnRun> own = readOwnRun(all.size(), bytes);
    if (!own.ok())
      return own.getStatus();
    all.push_back(std::move(*own));
  }
  for (size_t rank = 1; rank != all.size(); ++rank) {
    if (all[rank].digest != all[0].digest)
      return Status::failure(fmt::format(
          "rank {} runs another program than rank 0; give all ranks the same file", rank));
    if (all[rank].options != all[0].options)
      return Status::failure(fmt::format("rank {} was started with other options than rank 0: it "
                                         "has {}, rank 0 has {}",
                                         rank, all[rank].options, all[0].options));
  }
  return compareReductions(all);
}

static ordered_json describeOwn(const Options &options, const program::Program &program,
                                uint32_t rank) {
  ordered_json reductions = ordered_json::object();
  for (const program::RankProgram &own : program.ranks)
    if (own.rank == rank)
      for (const auto &[group, digest] : runtime::digestReductions(own))
        reductions[fmt::format("{}", group)] = digest;
  return {{"digest", runtime::digestShared(program.shared)},
          {"options", listOptions(options)},
          {"reductions", std::move(reductions)}};
}

/// Rank 0 replays all ranks, and needs them for it.
static Result<program::Program> readOwn(const Options &options,
                                        const runtime::ProcessPlace &place) {
  Result<program::SharedInfo> shared = program::readSharedFile(options.program);
  if (!shared.ok())
    return shared.getStatus();
  if (shared->numRanks != place.worldSize)
    return Status::failure(fmt::format("WORLD_SIZE is {}, and {} is a program of {} ranks; start "
                                       "{} processes, or compile it with --ranks={}",
                                       place.worldSize, options.program, shared->numRanks,
                                       shared->numRanks, place.worldSize));
  if (place.rank != 0 || !options.check)
    return program::readProgramFile(options.program, place.rank);
  Result<program::Program> program = program::readProgramFile(options.program);
  if (program.ok() && program->ranks.size() != program->shared.numRanks)
    return Status::failure(fmt::format("--check replays all ranks at rank 0, and {} holds {} of "
                                       "{}; compile it without --only-rank",
                                       options.program, program->ranks.size(),
                                       program->shared.numRanks));
  return program;
}

Result<program::Program> readTogether(const Options &options, Processes &processes) {
  const runtime::ProcessPlace &place = processes.getPlace();
  Result<program::Program> program = readOwn(options, place);
  if (!program.ok())
    return program;
  Result<std::vector<Bytes>> all =
      processes.gather(toBytes(describeOwn(options, *program, place.rank)));
  if (!all.ok())
    return all.getStatus();
  Status status = processes.collects() ? compareAll(*all) : Status::success();
  return status.ok() ? std::move(program) : status;
}

//===--- The GPU ----------------------------------------------------------------===//

using namespace runtime::cuda;

/// Of rank 0, for all.
static Result<std::vector<UniqueId>> shareIds(const Options &options,
                                              const program::SharedInfo &shared,
                                              const CudaApis &apis, Processes &processes) {
  const size_t count = planCommunicators(shared, options.foldChannels).size();
  std::vector<UniqueId> ids(count);
  if (processes.collects() && count != 0) {
    if (!apis.nccl.ok())
      return Status::failure("NCCL between processes cannot be used: " + apis.nccl.message());
    Result<std::vector<UniqueId>> made = makeUniqueIds(*apis.nccl, count);
    if (!made.ok())
      return made.getStatus();
    ids = std::move(*made);
  }
  const auto *first = reinterpret_cast<const uint8_t *>(ids.data());
  Result<Bytes> bytes = processes.share(Bytes(first, first + count * sizeof(UniqueId)));
  if (!bytes.ok())
    return bytes.getStatus();
  if (bytes->size() != count * sizeof(UniqueId))
    return Status::failure(fmt::format("rank 0 has {} bytes of ids for communicators, expected {}",
                                       bytes->size(), count * sizeof(UniqueId)));
  if (count != 0)
    std::memcpy(ids.data(), bytes->data(), bytes->size());
  return ids;
}

/// Steps are captured in all processes or in none: what was wrong in the first where something was.
static Result<std::string> agreeOnGraphs(Processes &processes, const std::string &failure) {
  Result<std::vector<Bytes>> all = processes.gather(Bytes(failure.begin(), failure.end()));
  if (!all.ok())
    return all.getStatus();
  Bytes first;
  for (const Bytes &its : *all)
    if (first.empty())
      first = its;
  Result<Bytes> agreed = processes.share(first);
  if (!agreed.ok())
    return agreed.getStatus();
  return std::string(agreed->begin(), agreed->end());
}

static Status checkGpu(const DriverApi &driver, const runtime::ProcessPlace &place) {
  Result<std::vector<Gpu>> gpus = listGpus(driver);
  if (!gpus.ok())
    return gpus.getStatus();
  if (place.localRank < gpus->size())
    return Status::success();
  return Status::failure(fmt::format("LOCAL_RANK is {}, and the driver finds {} GPUs for this "
                                     "process; start as many processes on a machine as it has "
                                     "GPUs, or set LOCAL_RANK=0 where each process is given one "
                                     "of its own",
                                     place.localRank, gpus->size()));
}

Result<SelectedBackend> selectTogether(const Options &options, const program::SharedInfo &shared,
                                       Processes &processes) {
  Result<CudaApis> apis = loadCudaApis();
  if (!apis.ok())
    return Status::failure(fmt::format("a run of several processes needs a GPU for each: {}; or {}",
                                       apis.message(), kUnset));
  if (Status status = checkGpu(apis->driver, processes.getPlace()); !status.ok())
    return status;
  SelectedBackend selected;
  selected.apis = std::make_shared<const CudaApis>(*apis);
  Result<std::vector<UniqueId>> ids = shareIds(options, shared, *apis, processes);
  if (!ids.ok())
    return ids.getStatus();
  CudaBackendOptions backendOptions = makeCudaOptions(options);
  backendOptions.gpu = int(processes.getPlace().localRank);
  backendOptions.part = ProcessPart{std::move(*ids)};
  backendOptions.graph.agree = [&processes](const std::string &failure) {
    return agreeOnGraphs(processes, failure);
  };
  Result<std::unique_ptr<CudaBackend>> backend =
      CudaBackend::create(*selected.apis, shared, backendOptions);
  if (!backend.ok())
    return backend.getStatus();
  selected.cuda = std::move(*backend);
  return selected;
}

//===--- Reports ----------------------------------------------------------------===//

/// Adds the reports of a process to `reports`.
static Status readReports(size_t process, const Bytes &bytes, std::vector<RankReport> &reports) {
  const ordered_json list = fromBytes(bytes);
  if (!list.is_array())
    return describeNonsense(process, "its memory");
  for (const ordered_json &report : list) {
    const auto *rank = find<uint64_t>(report, "rank");
    const auto *commands = find<uint64_t>(report, "commands");
    const auto *memory = find<Text>(report, "memory");
    const auto *communicators = find<Text>(report, "communicators");
    const auto *json = find<Object>(report, "json");
    if (!rank || *rank != process || !commands || !memory || !communicators || !json)
      return describeNonsense(process, "its memory");
    reports.push_back({uint32_t(*rank), *commands, *memory, *communicators, *json});
  }
  return Status::success();
}

Result<std::vector<RankReport>> gatherReports(Processes &processes,
                                              const std::vector<RankReport> &own) {
  ordered_json bytes = ordered_json::array();
  for (const RankReport &report : own)
    bytes.push_back({{"rank", report.rank},
                     {"commands", report.numCommands},
                     {"memory", report.memory},
                     {"communicators", report.communicators},
                     {"json", report.json}});
  Result<std::vector<Bytes>> all = processes.gather(toBytes(bytes));
  if (!all.ok())
    return all.getStatus();
  // Nobody runs a step before rank 0 listens for its end.
  if (Result<Bytes> begins = processes.share({}); !begins.ok())
    return begins.getStatus();
  std::vector<RankReport> reports;
  for (size_t process = 0; process != all->size(); ++process)
    if (Status status = readReports(process, (*all)[process], reports); !status.ok())
      return status;
  return reports;
}

} // namespace dualpipe::launcher
