//===- Model.h - models behind the C interface, and the copies of stages ----===//
//
// The C++ side of stage.h. The executor and the reference run stage functions
// through `Model` and `StageCall` alike, so both make exactly the same calls.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_MODEL_H
#define DUALPIPE_RUNTIME_MODEL_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/AlignedBuffer.h"
#include "dualpipe/Runtime/Memory.h"
#include "dualpipe/Support/Status.h"
#include "dualpipe/stage.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dualpipe::runtime {

class StageCall;

/// "input", "output gradient", ... for messages.
const char *describeKind(program::SlotKind kind);

/// What a model is made from.
struct ModelOptions {
  /// A built-in model ("mlp", "noop") or the path of a plug-in: whatever has a '/' or ends in
  /// ".so".
  std::string name;
  /// KEY=VALUE pairs in the order in which they were given.
  std::vector<std::pair<std::string, std::string>> settings;
  uint32_t numStages = 0;
  uint32_t numMicrobatches = 0;
  DLDeviceType device = kDLCPU;
};

/// Splits "KEY=VALUE". Fails where there is no '=' or no key.
Result<std::pair<std::string, std::string>> parseSetting(const std::string &text);

/// The built-in models, by name in alphabetical order.
const std::vector<const dp_model_api *> &getBuiltinModels();

/// A model that was split into stages, with what it says of itself read once. Can be moved from,
/// never assigned to. Calls may come from several threads, as stage.h allows.
class Model {
public:
  /// Fails with a message for the user: an unknown name, a file that is no plug-in or has another
  /// ABI version, an unknown setting, a bad value, a number of stages it cannot be split into.
  static Result<Model> create(const ModelOptions &options);
  /// The same for functions that are at hand. `api` must outlive the model.
  static Result<Model> create(const dp_model_api &api, const ModelOptions &options);

  Model(Model &&) = default;
  /// Member by member it would close the library before the model that came from it goes.
  Model &operator=(Model &&) = delete;

  const std::string &getName() const { return name; }
  /// What kind of device the model was made for.
  DLDeviceType getDevice() const { return device; }
  uint32_t getNumStages() const { return uint32_t(stages.size()); }
  uint32_t getNumMicrobatches() const { return numMicrobatches; }
  const dp_contract &getContract() const { return contract; }
  /// Whether the model runs several calls as one (`fused`).
  bool hasFused() const { return api->fused != nullptr; }
  /// Whether the model brings its own optimizer step.
  bool hasStep() const { return api->step != nullptr; }

  const dp_tensor_spec &getSpec(uint32_t stage, program::SlotKind kind) const {
    return stages[stage].specs[unsigned(kind)];
  }
  /// Bytes of a tensor of a stage; 0 where the stage has no such tensor.
  size_t getBytes(uint32_t stage, program::SlotKind kind) const {
    return stages[stage].bytes[unsigned(kind)];
  }
  /// Bytes of a slot of a class: the largest tensor of that kind over the stages of the size group.
  size_t getSlotBytes(const program::Contract &programContract, program::SlotKind kind,
                      uint32_t sizeGroup) const;
  uint32_t getNumParams(uint32_t stage) const { return uint32_t(stages[stage].params.size()); }
  const dp_tensor_spec &getParamSpec(uint32_t stage, uint32_t index) const {
    return stages[stage].params[index];
  }
  /// Bytes of scratch that any function of the stage needs.
  size_t getWorkspaceBytes(uint32_t stage) const { return stages[stage].workspace; }
  /// The most over all stages, rounded up to kTensorAlignment: what every call is given.
  size_t getMaxWorkspaceBytes() const;

  /// Whether a program that was compiled for `shared.contract` keeps alive what this model reads,
  /// has the same stages and components, and hands over tensors whose two ends agree in size.
  Status checkProgram(const program::SharedInfo &shared) const;

  /// Runs a stage function. The message of a failure names function, stage and micro-batch.
  Status run(program::Function function, StageCall &call) const;
  /// Runs several independent calls as one. Needs `hasFused()`.
  Status runFused(StageCall *const *calls, const program::Function *functions,
                  uint32_t numCalls) const;
  /// Writes the initial parameters of the copy that the call points to.
  Status runInit(StageCall &call) const;
  /// The model's own optimizer step. Needs `hasStep()`.
  Status runStep(StageCall &call) const;

private:
  struct Stage {
    std::array<dp_tensor_spec, program::kNumSlotKinds> specs;
    std::array<size_t, program::kNumSlotKinds> bytes;
    std::vector<dp_tensor_spec> params;
    size_t workspace = 0;
  };
  using Function = dp_status (*)(dp_model *, dp_call *);
  /// Closes the shared object after the model that came from it is gone.
  struct LibraryCloser {
    void operator()(void *handle) const;
  };

  Model() = default;
  static Result<Model> create(const dp_model_api &api, const ModelOptions &options,
                              std::shared_ptr<void> library);
  Status readStages(uint32_t numStages);
  Status readStage(uint32_t stage);
  Status readParams(uint32_t stage);
  Result<size_t> checkSpec(uint32_t stage, const std::string &what,
                           const dp_tensor_spec &spec) const;
  Function getFunction(program::Function function) const;
  Status finish(dp_status status, const char *function, const StageCall &call) const;
  Status finishStage(dp_status status, const char *function, const StageCall &call) const;
  Status checkContract(const program::Contract &compiled) const;
  Status checkHandOvers(const program::PipelineInfo &pipeline) const;

  // Order matters: the model goes first, then the library.
  std::shared_ptr<void> library;
  const dp_model_api *api = nullptr;
  std::unique_ptr<dp_model, void (*)(dp_model *)> model{nullptr, nullptr};
  std::string name;
  DLDeviceType device = kDLCPU;
  uint32_t numMicrobatches = 0;
  dp_contract contract{};
  std::vector<Stage> stages;
};

/// The parameters, gradients and optimizer state of one copy of a stage on one rank. Each is one
/// flat zeroed buffer; every parameter starts on a boundary of kTensorAlignment. Move-only; the
/// tensors stay where they are when the copy moves.
class StageCopy {
public:
  /// Allocates. `stateFactor` is the optimizer's (see Optimizer); without `training` there are no
  /// gradients. The parameters are zero until `initialize`.
  static Result<StageCopy> create(const Model &model, uint32_t rank, uint32_t stage, bool training,
                                  uint32_t stateFactor = 0);
  /// The same in memory of a device, which outlives the copy.
  static Result<StageCopy> create(const Model &model, uint32_t rank, uint32_t stage, bool training,
                                  uint32_t stateFactor, Memory &memory);
  /// Asks the model for the initial parameters, a function of seed and stage only. For copies on
  /// the host.
  Status initialize(const Model &model, uint64_t seed);
  /// The same for a copy on a device: `call` lends stream, workspace and the seed in its step
  /// state.
  Status initialize(const Model &model, StageCall &call);
  /// Writes the weights of a copy of the same stage on the host into this one, in `memory`.
  Status upload(Memory &memory, const StageCopy &host);
  /// Reads weights and gradients back into such a copy.
  Status download(Memory &memory, StageCopy &host) const;

  uint32_t getRank() const { return rank; }
  uint32_t getStage() const { return stage; }
  uint32_t getNumParams() const { return uint32_t(paramTensors.size()); }
  DLTensor &getParam(uint32_t index) { return paramTensors[index]; }
  const DLTensor &getParam(uint32_t index) const { return paramTensors[index]; }
  bool hasGradients() const { return !gradTensors.empty() || paramTensors.empty(); }
  DLTensor &getGrad(uint32_t index) { return gradTensors[index]; }
  const DLTensor &getGrad(uint32_t index) const { return gradTensors[index]; }
  /// State tensor `part` of parameter `index`; `part` < the optimizer's state factor.
  DLTensor &getState(uint32_t part, uint32_t index) {
    return stateTensors[part * getNumParams() + index];
  }

  /// The flat buffers of a copy on the host, with the gaps that alignment leaves (always zero).
  /// Empty for a copy on a device.
  AlignedBuffer &getParamBuffer() { return params; }
  const AlignedBuffer &getParamBuffer() const { return params; }
  AlignedBuffer &getGradBuffer() { return grads; }
  const AlignedBuffer &getGradBuffer() const { return grads; }
  const AlignedBuffer &getStateBuffer() const { return state; }

  DLTensor *const *getParamPointers() const { return paramPointers.data(); }
  /// Null in forward-only runs.
  DLTensor *const *getGradPointers() const {
    return gradPointers.empty() ? nullptr : gradPointers.data();
  }

private:
  StageCopy() = default;
  StageCopy(const Model &model, uint32_t rank, uint32_t stage);
  void makeTensors(DLDevice place, void *paramData, void *gradData, void *stateData, bool training,
                   uint32_t stateFactor);

  uint32_t rank = 0;
  uint32_t stage = 0;
  size_t flatBytes = 0; ///< of the parameters
  AlignedBuffer params, grads, state;
  std::vector<dp_tensor_spec> specs; // own the shapes that the tensors point to
  std::vector<DLTensor> paramTensors, gradTensors, stateTensors;
  std::vector<DLTensor *> paramPointers, gradPointers;
};

/// Where calls compute, beside their tensors. The default is the host.
struct CallPlace {
  DLDevice device{kDLCPU, 0};
  void *stream = nullptr;  ///< CUstream
  void *runtime = nullptr; ///< kernels::DeviceMath
};

/// One call of a stage function with the tensors it points to. Made once per thread (or per member
/// of a pair) and reused: `begin`, then `bind` what the call reads and writes, then `Model::run`.
/// Does not allocate.
class StageCall {
public:
  /// `stepState` and `workspace` are in memory of the place.
  StageCall(const Model &model, const dp_step_state &stepState, void *workspace,
            size_t workspaceBytes, const CallPlace &place = {});
  StageCall(const StageCall &) = delete;
  StageCall &operator=(const StageCall &) = delete;

  /// Starts a new call on a copy of a stage: no tensors bound, no loss. `launchFlags` are
  /// program::LaunchFlags; `training` is the program's.
  void begin(StageCopy &copy, uint32_t microbatch, uint32_t component, uint8_t launchFlags,
             bool training);
  /// Sets what the launch says: stage copy, micro-batch, component and flags.
  void begin(StageCopy &copy, const program::Launch &launch, bool training) {
    begin(copy, launch.microbatch, launch.component, launch.flags, training);
  }
  /// Gives the call a tensor of its stage in the memory at `data`. A kind that the stage does not
  /// have stays NULL.
  void bind(program::SlotKind kind, void *data);
  /// Where the forward of the last stage writes its loss.
  void setLoss(double *loss) { call.loss = loss; }

  uint32_t getStage() const { return call.stage; }
  uint32_t getMicrobatch() const { return call.microbatch; }
  dp_call &get() { return call; }
  const dp_call &get() const { return call; }
  const char *getMessage() const { return message; }

private:
  const Model *model;
  dp_call call{};
  std::array<DLTensor, program::kNumSlotKinds> tensors{};
  char message[512];
};

/// Updates the parameters of a copy from its gradients. The order of the arithmetic is fixed: equal
/// copies stay equal bit for bit.
class Optimizer {
public:
  virtual ~Optimizer() = default;
  /// How many state tensors each parameter needs.
  virtual uint32_t getStateFactor() const = 0;
  /// `call` says where the copy is, and lends its step state.
  virtual Status step(StageCopy &copy, const dp_call &call) const = 0;
};

/// "sgd". Fails with the list of optimizers for any other name.
Result<std::unique_ptr<Optimizer>> createOptimizer(const std::string &name);

/// One optimizer step of a copy: the model's own where it brings one, else the optimizer's.
/// `call` lends its workspace and step state.
Status takeStep(const Model &model, const Optimizer &optimizer, StageCopy &copy, StageCall &call);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_MODEL_H
