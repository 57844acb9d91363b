//===- ParseProfile.cpp - reading a profile ---------------------------------===//
//
// nlohmann-json throws where it is asked for what is not there; every access here is
// one that was looked at before. The first mistake is told, with its place.
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Runtime/Profile.h"

#include "Names.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <sstream>

namespace dualpipe::runtime {

using nlohmann::json;

namespace {

/// Finds where a text stops being JSON; takes everything else as it comes.
class SyntaxCheck : public nlohmann::json_sax<json> {
public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool string(string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_object(size_t) override { return true; }
  bool key(string_t &) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t at, const std::string &token, const json::exception &) override {
    position = at;
    lastToken = token;
    return false;
  }

  size_t position = 0;
  std::string lastToken;
};

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
    const std::string value = name.empty() ? describe(object)
                              : has        ? describe(object.find(std::string(name)).value())
                                           : "missing";
    status = Status::failure(
        fmt::format("{} is {}, expected {}", path.empty() ? "it" : path, value, expected));
  }
  const std::string &getPlace() const { return place; }

private:
  static std::string describe(const json &value) {
    const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
    return text.size() <= 40 ? text : text.substr(0, 40) + "...";
  }
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

static void readFunctions(Reader &whole, Profile &profile, Status &status) {
  std::vector<FunctionKey> seen;
  for (const json *entry : whole.list("functions")) {
    FunctionProfile function;
    Reader reader(*entry, getPlace("functions", profile.functions.size()), status);
    readKey(reader, profile.origin, function.key);
    reader.time("time", function.time);
    reader.time("cpu", function.cpu);
    reader.whole("samples", function.samples, 1, kMaxCount);
    for (const FunctionProfile &other : profile.functions)
      if (status.ok() && other.key == function.key)
        status = Status::failure(fmt::format("{} is of the same function, stage and component as "
                                             "another entry",
                                             reader.getPlace()));
    profile.functions.push_back(function);
  }
  if (status.ok() && profile.functions.empty())
    status = Status::failure("functions is empty, expected the times of every stage: nothing was "
                             "measured");
}

static void readPairs(Reader &whole, Profile &profile, Status &status) {
  for (const json *entry : whole.list("pairs")) {
    PairProfile pair;
    Reader reader(*entry, getPlace("pairs", profile.pairs.size()), status);
    for (const json *member : reader.list("members")) {
      Reader one(*member, fmt::format("{}.members[{}]", reader.getPlace(), pair.members.size()),
                 status);
      readKey(one, profile.origin, pair.members.emplace_back());
    }
    std::sort(pair.members.begin(), pair.members.end());
    reader.time("time", pair.time);
    reader.time("cpu", pair.cpu);
    reader.whole("samples", pair.samples, 1, kMaxCount);
    profile.pairs.push_back(std::move(pair));
  }
}

static void readTransfers(Reader &whole, Profile &profile, Status &status) {
  for (const json *entry : whole.list("transfers")) {
    TransferProfile transfer;
    Reader reader(*entry, getPlace("transfers", profile.transfers.size()), status);
    reader.whole("bytes", transfer.bytes, 0, ModelSizes::kMaxBytes);
    reader.time("time", transfer.time);
    reader.whole("samples", transfer.samples, 1, kMaxCount);
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
  for (const json *entry : whole.list(name)) {
    StageProfile stage;
    Reader reader(*entry, getPlace(name, stages.size()), status);
    reader.whole("stage", stage.stage, 0, numStages - 1);
    reader.time("time", stage.time);
    reader.whole("samples", stage.samples, 1, kMaxCount);
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

static Status describeSyntax(std::string_view text, const SyntaxCheck &check) {
  const size_t at = std::min(check.position == 0 ? 0 : check.position - 1, text.size());
  const std::string_view before = text.substr(0, at);
  const size_t line = size_t(std::count(before.begin(), before.end(), '\n')) + 1;
  const size_t column = at - (before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1) + 1;
  return Status::failure(fmt::format("line {}, column {}: no JSON, at '{}'", line, column,
                                     check.lastToken.substr(0, 40)));
}

Result<Profile> parseProfile(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == text.npos)
    return Status::failure("it is empty, expected a profile as launcher --profile writes it");
  SyntaxCheck check;
  if (!json::sax_parse(text, &check))
    return describeSyntax(text, check);
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  Profile profile;
  Status status = Status::success();
  readAll(object, profile, status);
  if (!status.ok())
    return status;
  return profile;
}

Result<Profile> readProfileFile(const std::string &path) {
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
