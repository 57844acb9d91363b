//===- ModelSizesJson.cpp - the sizes of a model in JSON --------------------===//
//
// nlohmann-json throws where it is asked for what is not there; every access here is
// one that was looked at before.
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Runtime/ModelSizes.h"

#include "dualpipe/Support/DescribeJson.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace dualpipe::runtime {

using nlohmann::json;
using nlohmann::ordered_json;
using program::SlotKind;

/// Calls `visit(name, size)` for every size of a stage, in the order of the file. `Stage` is
/// StageSizes or const StageSizes.
template <typename Stage, typename Visit> static void forSizes(Stage &stage, Visit visit) {
  for (unsigned kind = 0; kind != program::kNumSlotKinds; ++kind)
    visit(program::getName(SlotKind(kind)), stage.tensors[kind]);
  visit("weights", stage.weights);
  visit("gradients", stage.gradients);
  visit("optimizer_state", stage.optimizerState);
  visit("workspace", stage.workspace);
}

ordered_json toJson(const ModelSizes &sizes) {
  ordered_json stages = ordered_json::array();
  for (const StageSizes &stage : sizes.stages) {
    ordered_json object = ordered_json::object();
    forSizes(stage, [&](const char *name, uint64_t bytes) { object[name] = bytes; });
    stages.push_back(std::move(object));
  }
  return {{"fused", sizes.fused}, {"stages", std::move(stages)}};
}

/// Every name of `object` must be one of `known`.
static Status checkNames(const json &object, const std::vector<std::string> &known,
                         const std::string &place) {
  for (const auto &[name, value] : object.items())
    if (std::find(known.begin(), known.end(), name) == known.end())
      return Status::failure(
          fmt::format("{}: unknown name '{}', expected {}", place, name, fmt::join(known, ", ")));
  return Status::success();
}

/// Whole numbers are unsigned where they were read, signed where a program made them.
static bool isSize(const json &value) {
  if (value.is_number_unsigned())
    return value.get<uint64_t>() <= ModelSizes::kMaxBytes;
  return value.is_number_integer() && value.get<int64_t>() >= 0 &&
         uint64_t(value.get<int64_t>()) <= ModelSizes::kMaxBytes;
}

static Status readSize(const json &object, const char *name, const std::string &place,
                       uint64_t &bytes) {
  const auto found = object.find(name);
  if (found == object.end())
    return Status::failure(
        fmt::format("{}.{} is missing, expected a number of bytes", place, name));
  if (!isSize(*found))
    return Status::failure(fmt::format("{}.{} is {}, expected a whole number of bytes from 0 to {}",
                                       place, name, describeJson(*found), ModelSizes::kMaxBytes));
  bytes = found->get<uint64_t>();
  return Status::success();
}

static Result<StageSizes> readStage(const json &object, size_t index) {
  const std::string place = fmt::format("stages[{}]", index);
  if (!object.is_object())
    return Status::failure(fmt::format("{} is {}, expected an object with the sizes of a stage",
                                       place, describeJson(object)));
  StageSizes stage;
  Status status = Status::success();
  std::vector<std::string> names;
  forSizes(stage, [&](const char *name, uint64_t &bytes) {
    names.push_back(name);
    if (status.ok())
      status = readSize(object, name, place, bytes);
  });
  if (status.ok())
    status = checkNames(object, names, place);
  return status.ok() ? Result<StageSizes>(stage) : status;
}

Result<ModelSizes> readModelSizes(const json &object) {
  if (!object.is_object())
    return Status::failure(fmt::format("the sizes of a model are {}, expected an object with "
                                       "'fused' and 'stages'",
                                       describeJson(object)));
  const auto fused = object.find("fused"), stages = object.find("stages");
  if (fused == object.end() || !fused->is_boolean())
    return Status::failure("fused of the sizes of a model is missing or no truth value, expected "
                           "true or false");
  if (stages == object.end() || !stages->is_array() || stages->empty())
    return Status::failure("stages of the sizes of a model is missing, empty or no list, expected "
                           "an object for every stage");
  if (Status status = checkNames(object, {"fused", "stages"}, "sizes of a model"); !status.ok())
    return status;
  ModelSizes sizes;
  sizes.fused = fused->get<bool>();
  for (size_t i = 0; i != stages->size(); ++i) {
    Result<StageSizes> stage = readStage((*stages)[i], i);
    if (!stage.ok())
      return stage.getStatus();
    sizes.stages.push_back(*stage);
  }
  return sizes;
}

std::string printModelSizes(const ModelSizes &sizes) { return toJson(sizes).dump(2) + "\n"; }

Result<ModelSizes> parseModelSizes(std::string_view text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded())
    return Status::failure("the sizes of a model are no JSON");
  return readModelSizes(object);
}

} // namespace dualpipe::runtime
