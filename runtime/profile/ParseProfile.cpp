//===- ParseProfile.cpp - reading a profile ---------------------------------===//
//
// nlohmann-json throws where it is asked for what is not there; every access here is
// one that was looked at before. The first mistake is told, with its place.
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Runtime/Profile.h"

#include "JsonSyntax.h"
#include "Names.h"

#include "dualpipe/Support/DescribeJson.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

namespace dualpipe::runtime {

using nlohmann::json;

namespace {

/// Reads values of one object and remembers the first mistake. Names that nobody has
/// asked for are one.
class Reader {
public:
  Reader(const json &object, std::string place, Status &status)
      : object(object), place(std::move(place)), status(status) {
    if (!object.is_object())
      fail("", "an object");
  }
  ~Reader() { checkNames(); }
  Reader(const Reader &) = delete;
  Reader &operator=(const Reader &) = delete;

  template <typename Number>
  void whole(const char *name, Number &to, uint64_t least, uint64_t most) {
    const json *value = get(name);
    if (value && value->is_number_unsigned() && value->get<uint64_t>() >= least &&
        value->get<uint64_t>() <= most)
      to = Number(value->get<uint64_t>());
    else
      fail(name, fmt::format("a whole number from {} to {}", least, most));
  }
  /// Milliseconds become ticks.
  void time(const char *name, Ticks &to) {
    const json *value = get(name);
    if (value && value->is_number() && value->get<double>() >= 0 && value->get<double>() < 1e9)
      to = Ticks(std::llround(value->get<double>() * double(Costs::kTicksPerUnit)));
    else
      fail(name, "a number of milliseconds from 0 to 1e9");
  }
  void text(const char *name, std::string &to) {
    const json *value = get(name);
    if (value && value->is_string())
      to = value->get<std::string>();
    else
      fail(name, "a text");
  }
  void texts(const char *name, std::vector<std::string> &to) {
    for (const json *entry : list(name))
      if (entry->is_string())
        to.push_back(entry->get<std::string>());
      else
        fail(name, "a list of texts");
  }
  /// The entries of a list; none after a mistake.
  std::vector<const json *> list(const char *name) {
    const json *value = get(name);
    std::vector<const json *> entries;
    if (!value || !value->is_array())
      fail(name, "a list");
    else
      for (const json &entry : *value)
        entries.push_back(&entry);
    return entries;
  }
  const json *get(const char *name) {
    known.push_back(name);
    const auto found = object.is_object() ? object.find(name) : object.end();
    return found == object.end() ? nullptr : &*found;
  }
  void fail(std::string_view name, std::string_view expected) {
    if (!status.ok())
      return;
    const bool has = !name.empty() && object.is_object() && object.contains(std::string(name));
    const std::string path = place.empty() || name.empty() ? place + std::string(name)
                                                           : fmt::format("{}.{}", place, name);
    const std::string value = name.empty() ? describeJson(object)
                              : has        ? describeJson(object.find(std::string(name)).value())
                                           : "missing";
    status = Status::failure(
        fmt::format("{} is {}, expected {}", path.empty() ? "it" : path, value, expected));
  }
  const std::string &getPlace() const { return place; }

private:
  void checkNames() {
    if (!status.ok() || !object.is_object())
      return;
    for (const auto &[name, value] : object.items())
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        status = Status::failure(fmt::format("unknown name '{}'{}, expected {}", name,
                                             place.empty() ? "" : " in " + place,
                                             fmt::join(known, ", ")));
        return;
      }
  }

  const json &object;
  const std::string place;
  Status &status;
  std::vector<std::string> known;
};

} // namespace

static constexpr uint64_t kMaxCount = UINT32_MAX - 1;

static std::string getPlace(const char *name, size_t index) {
  return fmt::format("{}[{}]", name, index);
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

static void readKey(Reader &reader, const ProfileOrigin &origin, FunctionKey &key) {
  std::string name;
  reader.text("function", name);
  const auto *found = std::find(std::begin(kFunctionNames), std::end(kFunctionNames), name);
  if (found == std::end(kFunctionNames))
    reader.fail("function", fmt::format("one of {}", fmt::join(kFunctionNames, ", ")));
  else
    key.function = program::Function(found - std::begin(kFunctionNames));
  reader.whole("stage", key.stage, 0, origin.stages - 1);
  reader.whole("component", key.component, 0, origin.components - 1);
}

/// Nobody works for longer than it takes.
static void readTimes(Reader &reader, Ticks &time, Ticks &cpu, uint64_t &samples) {
  reader.time("time", time);
  reader.time("cpu", cpu);
  if (cpu > time)
    reader.fail("cpu", fmt::format("at most time, which is {}", Costs::printTicks(time)));
  reader.whole("samples", samples, 1, kMaxCount);
}

/// An entry for what another entry is for; one of the two would be ignored without a word.
static void failTwice(const Reader &reader, std::string_view subject, Status &status) {
  if (status.ok())
    status = Status::failure(
        fmt::format("{} is of the same {} as another entry", reader.getPlace(), subject));
}

static void readFunctions(Reader &whole, Profile &profile, Status &status) {
  for (const json *entry : whole.list("functions")) {
    FunctionProfile function;
    Reader reader(*entry, getPlace("functions", profile.functions.size()), status);
    readKey(reader, profile.origin, function.key);
    readTimes(reader, function.time, function.cpu, function.samples);
    for (const FunctionProfile &other : profile.functions)
      if (other.key == function.key)
        failTwice(reader, "function, stage and component", status);
    profile.functions.push_back(function);
  }
  if (status.ok() && profile.functions.empty())
    status = Status::failure("functions is empty, expected the times of every stage: nothing was "
                             "measured");
}

static void readPairs(Reader &whole, Profile &profile, Status &status) {
  std::set<std::vector<FunctionKey>> seen;
  for (const json *entry : whole.list("pairs")) {
    PairProfile pair;
    Reader reader(*entry, getPlace("pairs", profile.pairs.size()), status);
    for (const json *member : reader.list("members")) {
      Reader one(*member, fmt::format("{}.members[{}]", reader.getPlace(), pair.members.size()),
                 status);
      readKey(one, profile.origin, pair.members.emplace_back());
    }
    if (pair.members.size() < 2)
      reader.fail("members", "two or more functions");
    std::sort(pair.members.begin(), pair.members.end());
    readTimes(reader, pair.time, pair.cpu, pair.samples);
    if (!seen.insert(pair.members).second)
      failTwice(reader, "members", status);
    profile.pairs.push_back(std::move(pair));
  }
}

static void readTransfers(Reader &whole, Profile &profile, Status &status) {
  std::set<uint64_t> seen;
  for (const json *entry : whole.list("transfers")) {
    TransferProfile transfer;
    Reader reader(*entry, getPlace("transfers", profile.transfers.size()), status);
    reader.whole("bytes", transfer.bytes, 0, ModelSizes::kMaxBytes);
    reader.time("time", transfer.time);
    reader.whole("samples", transfer.samples, 1, kMaxCount);
    if (!seen.insert(transfer.bytes).second)
      failTwice(reader, "bytes", status);
    profile.transfers.push_back(transfer);
  }
  whole.time("latency", profile.latency);
  const json *bandwidth = whole.get("bandwidth");
  if (bandwidth && bandwidth->is_null())
    return;
  if (!bandwidth || !bandwidth->is_number() || !(bandwidth->get<double>() > 0))
    whole.fail("bandwidth", "more than 0 bytes in a millisecond, or null");
  else
    profile.bandwidth = bandwidth->get<double>();
}

static void readStages(Reader &whole, const char *name, uint32_t numStages,
                       std::vector<StageProfile> &stages, Status &status) {
  std::set<uint32_t> seen;
  for (const json *entry : whole.list(name)) {
    StageProfile stage;
    Reader reader(*entry, getPlace(name, stages.size()), status);
    reader.whole("stage", stage.stage, 0, numStages - 1);
    reader.time("time", stage.time);
    reader.whole("samples", stage.samples, 1, kMaxCount);
    if (!seen.insert(stage.stage).second)
      failTwice(reader, "stage", status);
    stages.push_back(stage);
  }
}

static void readOrigin(const json &object, ProfileOrigin &origin, Status &status) {
  Reader reader(object, "program", status);
  reader.text("schedule", origin.schedule);
  const json *params = reader.get("params");
  if (!params || !params->is_object())
    reader.fail("params", "an object");
  else
    for (const auto &[name, value] : params->items())
      if (value.is_number_integer())
        origin.params.emplace_back(name, value.get<int64_t>());
      else
        reader.fail("params", "whole numbers by name");
  reader.whole("ranks", origin.ranks, 1, kMaxCount);
  reader.whole("stages", origin.stages, 1, kMaxCount);
  reader.whole("components", origin.components, 1, UINT16_MAX);
  reader.whole("microbatches", origin.microbatches, 1, kMaxCount);
  reader.text("model", origin.model);
  reader.texts("settings", origin.settings);
  reader.text("device", origin.device);
  reader.whole("cores", origin.cores, 1, kMaxCount);
}

static void readSizes(Reader &whole, Profile &profile, Status &status) {
  const json *object = whole.get("sizes");
  if (!object)
    return whole.fail("sizes", "the sizes of the model");
  Result<ModelSizes> sizes = readModelSizes(*object);
  if (!status.ok())
    return;
  if (!sizes)
    status = Status::failure("sizes: " + sizes.message());
  else if (sizes->stages.size() != profile.origin.stages)
    status = Status::failure(fmt::format("sizes has {} stages, expected {} as the program has",
                                         sizes->stages.size(), profile.origin.stages));
  else
    profile.sizes = std::move(*sizes);
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

/// What the file is comes first: a file of something else has no further mistakes.
static bool readHead(Reader &reader, Status &status) {
  std::string format, unit;
  reader.text("format", format);
  if (status.ok() && format != kProfileFormat)
    reader.fail("format",
                fmt::format("'{}': a profile as launcher --profile writes it", kProfileFormat));
  uint32_t version = 0;
  reader.whole("version", version, kProfileVersion, kProfileVersion);
  reader.text("unit", unit);
  if (status.ok() && unit != "ms")
    reader.fail("unit", "'ms'");
  return status.ok();
}

static void readAll(const json &object, Profile &profile, Status &status) {
  Reader reader(object, "", status);
  if (!status.ok() || !readHead(reader, status))
    return;
  const json *origin = reader.get("program");
  if (origin)
    readOrigin(*origin, profile.origin, status);
  else
    reader.fail("program", "an object");
  if (!status.ok())
    return;
  reader.whole("steps", profile.steps, 1, kMaxCount);
  reader.time("step_time", profile.stepTime);
  readFunctions(reader, profile, status);
  readPairs(reader, profile, status);
  readTransfers(reader, profile, status);
  readStages(reader, "reductions", profile.origin.stages, profile.reductions, status);
  readStages(reader, "stage_steps", profile.origin.stages, profile.stageSteps, status);
  readSizes(reader, profile, status);
}

Result<Profile> parseProfile(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == text.npos)
    return Status::failure("it is empty, expected a profile as launcher --profile writes it");
  if (Status syntax = checkJsonSyntax(text); !syntax.ok())
    return syntax;
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  Profile profile;
  Status status = Status::success();
  readAll(object, profile, status);
  if (!status.ok())
    return status;
  return profile;
}

Result<Profile> readProfileFile(const std::string &path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return Status::failure(fmt::format("the profile '{}' is a directory, expected a file as "
                                       "launcher --profile writes it",
                                       path));
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (file)
    text << file.rdbuf();
  if (!file)
    return Status::failure(fmt::format("cannot read the profile '{}'", path));
  Result<Profile> profile = parseProfile(text.str());
  if (!profile)
    return Status::failure(fmt::format("profile '{}': {}", path, profile.message()));
  return profile;
}

} // namespace dualpipe::runtime
