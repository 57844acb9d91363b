//===- PrintProfile.cpp - a profile as text ---------------------------------===//

#include "dualpipe/Runtime/Profile.h"

#include "Names.h"

#include <nlohmann/json.hpp>

namespace dualpipe::runtime {

using nlohmann::ordered_json;

/// Milliseconds.
static double toMilliseconds(Ticks ticks) { return double(ticks) / double(Costs::kTicksPerUnit); }

static ordered_json toJson(const FunctionKey &key) {
  return {{"function", kFunctionNames[size_t(key.function)]},
          {"stage", key.stage},
          {"component", key.component}};
}

static ordered_json toJson(const FunctionProfile &function) {
  ordered_json object = toJson(function.key);
  object["time"] = toMilliseconds(function.time);
  object["cpu"] = toMilliseconds(function.cpu);
  object["samples"] = function.samples;
  return object;
}

static ordered_json toJson(const PairProfile &pair) {
  ordered_json members = ordered_json::array();
  for (const FunctionKey &key : pair.members)
    members.push_back(toJson(key));
  return {{"members", members},
          {"time", toMilliseconds(pair.time)},
          {"cpu", toMilliseconds(pair.cpu)},
          {"samples", pair.samples}};
}

static ordered_json toJson(const TransferProfile &transfer) {
  return {{"bytes", transfer.bytes},
          {"time", toMilliseconds(transfer.time)},
          {"samples", transfer.samples}};
}

static ordered_json toJson(const StageProfile &stage) {
  return {{"stage", stage.stage}, {"time", toMilliseconds(stage.time)}, {"samples", stage.samples}};
}

static ordered_json toJson(const ProfileOrigin &origin) {
  ordered_json params = ordered_json::object();
  for (const auto &[name, value] : origin.params)
    params[name] = value;
  return {{"schedule", origin.schedule},     {"params", params},
          {"ranks", origin.ranks},           {"stages", origin.stages},
          {"components", origin.components}, {"microbatches", origin.microbatches},
          {"model", origin.model},           {"settings", origin.settings},
          {"device", origin.device},         {"cores", origin.cores}};
}

template <typename Item> static ordered_json listJson(const std::vector<Item> &items) {
  ordered_json list = ordered_json::array();
  for (const Item &item : items)
    list.push_back(toJson(item));
  return list;
}

static std::string dump(const ordered_json &value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

/// Lists with an entry a line, so that two profiles can be compared line by line.
static std::string printLines(const ordered_json &object) {
  std::string text;
  for (const auto &[name, value] : object.items()) {
    text += (text.empty() ? "{\n  " : ",\n  ") + dump(name) + ": ";
    if (!value.is_array() || value.empty()) {
      text += dump(value);
      continue;
    }
    const char *separator = "[\n    ";
    for (const ordered_json &entry : value) {
      text += separator + dump(entry);
      separator = ",\n    ";
    }
    text += "\n  ]";
  }
  return text + "\n}\n";
}

std::string printProfile(const Profile &profile) {
  ordered_json object;
  object["format"] = kProfileFormat;
  object["version"] = kProfileVersion;
  object["program"] = toJson(profile.origin);
  object["unit"] = "ms";
  object["steps"] = profile.steps;
  object["step_time"] = toMilliseconds(profile.stepTime);
  object["functions"] = listJson(profile.functions);
  object["pairs"] = listJson(profile.pairs);
  object["transfers"] = listJson(profile.transfers);
  object["latency"] = toMilliseconds(profile.latency);
  object["bandwidth"] =
      profile.bandwidth == 0 ? ordered_json(nullptr) : ordered_json(profile.bandwidth);
  object["reductions"] = listJson(profile.reductions);
  object["stage_steps"] = listJson(profile.stageSteps);
  object["sizes"] = toJson(profile.sizes);
  return printLines(object);
}

} // namespace dualpipe::runtime
