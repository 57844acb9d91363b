//===- ModelLoader.cpp - finding a model by name or in a plug-in ------------===//

#include "runtime/models/Builtin.h"
#include "runtime/models/Settings.h"

#include "dualpipe/Runtime/Model.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string_view>

namespace dualpipe::runtime {
namespace {

bool isPath(const std::string &name) {
  return name.find('/') != std::string::npos || std::string_view(name).ends_with(".so");
}

Result<const dp_model_api *> findBuiltin(const std::string &name) {
  std::vector<std::string> names;
  for (const dp_model_api *api : getBuiltinModels()) {
    if (name == api->name)
      return api;
    names.push_back(api->name);
  }
  return Status::failure(
      fmt::format("unknown model '{}'{}; the models are {}, and a plug-in is named by its path",
                  name, models::didYouMean(name, names), models::joinList(names)));
}

/// What the loader must know before it calls anything in `api`.
Status checkInterface(const std::string &name, const dp_model_api &api) {
  if (api.abi_version != DP_STAGE_ABI_VERSION)
    return Status::failure(fmt::format("{}: built for another version of the stage interface, "
                                       "expected {}, got {}; rebuild it with this stage.h",
                                       name, DP_STAGE_ABI_VERSION, api.abi_version));
  if (api.struct_size < sizeof(dp_model_api))
    return Status::failure(fmt::format("{}: its dp_model_api has {} bytes, expected at least {}; "
                                       "rebuild it with this stage.h",
                                       name, api.struct_size, sizeof(dp_model_api)));
  struct {
    const char *name;
    bool present;
  } required[] = {
      {"name", api.name != nullptr},
      {"create", api.create != nullptr},
      {"destroy", api.destroy != nullptr},
      {"contract", api.contract != nullptr},
      {"tensor", api.tensor != nullptr},
      {"num_params", api.num_params != nullptr},
      {"param", api.param != nullptr},
      {"workspace_size", api.workspace_size != nullptr},
      {"init", api.init != nullptr},
      {"load_input", api.load_input != nullptr},
      {"load_labels", api.load_labels != nullptr},
      {"forward", api.forward != nullptr},
      {"backward", api.backward != nullptr},
      {"backward_input", api.backward_input != nullptr},
      {"backward_weight", api.backward_weight != nullptr},
  };
  for (const auto &entry : required)
    if (!entry.present)
      return Status::failure(
          fmt::format("{}: its dp_model_api lacks '{}', which is not optional", name, entry.name));
  return Status::success();
}

/// A shared object and what its `dp_get_model` returned.
struct Plugin {
  std::shared_ptr<void> library;
  const dp_model_api *api;
};

template <typename Closer> Result<Plugin> loadPlugin(const std::string &path, Closer closer) {
  // dlopen searches the library path for a bare name; the user means a file.
  std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void *handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return Status::failure(fmt::format("cannot load the plug-in '{}': {}", path, dlerror()));
  std::shared_ptr<void> library(handle, closer);
  auto get = reinterpret_cast<dp_get_model_fn>(dlsym(handle, DP_GET_MODEL_SYMBOL));
  if (!get)
    return Status::failure(
        fmt::format("{}: not a plug-in: it does not export '{}'", path, DP_GET_MODEL_SYMBOL));
  const dp_model_api *api = get();
  if (!api)
    return Status::failure(
        fmt::format("{}: its '{}' returned no model", path, DP_GET_MODEL_SYMBOL));
  return Plugin{std::move(library), api};
}

} // namespace

Result<std::pair<std::string, std::string>> parseSetting(const std::string &text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return Status::failure(fmt::format("expected KEY=VALUE, got '{}'", text));
  return std::make_pair(text.substr(0, equals), text.substr(equals + 1));
}

const std::vector<const dp_model_api *> &getBuiltinModels() {
  static const std::vector<const dp_model_api *> builtin = {models::getMlp(), models::getNoop(),
                                                            models::getWait()};
  return builtin;
}

void Model::LibraryCloser::operator()(void *handle) const { dlclose(handle); }

Result<Model> Model::create(const ModelOptions &options) {
  if (!isPath(options.name)) {
    Result<const dp_model_api *> api = findBuiltin(options.name);
    return api ? create(**api, options) : Result<Model>(api.getStatus());
  }
  Result<Plugin> plugin = loadPlugin(options.name, LibraryCloser());
  if (!plugin)
    return plugin.getStatus();
  return create(*plugin->api, options, std::move(plugin->library));
}

Result<Model> Model::create(const dp_model_api &api, const ModelOptions &options) {
  return create(api, options, nullptr);
}

Result<Model> Model::create(const dp_model_api &api, const ModelOptions &options,
                            std::shared_ptr<void> library) {
  if (Status status = checkInterface(options.name, api); !status)
    return status;
  if (options.numStages == 0)
    return Status::failure(fmt::format("model '{}': expected at least one stage, got 0", api.name));
  std::vector<const char *> keys, values;
  for (const auto &[key, value] : options.settings) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  dp_model_config config = {};
  config.struct_size = sizeof config;
  config.num_stages = options.numStages;
  config.num_microbatches = options.numMicrobatches;
  config.num_settings = uint32_t(keys.size());
  config.keys = keys.data();
  config.values = values.data();
  config.device_type = options.device;

  Model made;
  made.library = std::move(library);
  made.api = &api;
  made.name = api.name;
  made.device = options.device;
  made.numMicrobatches = options.numMicrobatches;
  char message[512] = "";
  dp_model *handle = nullptr;
  if (api.create(&config, &handle, message, sizeof message) != DP_OK)
    return Status::failure(fmt::format(
        "model '{}': {}", api.name, message[0] ? message : "cannot be created, no reason given"));
  made.model = {handle, api.destroy};
  if (Status status = made.readStages(options.numStages); !status)
    return status;
  return made;
}

} // namespace dualpipe::runtime
