//===- mlp_stage.cpp - a stage of the mlp against its own matrix products ---===//
//
// A forward and a backward of one block are six matrix products and two passes
// of GELU. `stage_over_products` says how much longer the stage takes than its
// products alone, run on tensors of their own: both are timed in turns inside one
// benchmark, in CPU time, so that the state of the machine is the same for both. The middle
// stage copies its input and gradient; the last one also compares with labels.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/Products.h"

#include "dualpipe/Runtime/Model.h"
#include "dualpipe/Runtime/Numerics.h"

#include <benchmark/benchmark.h>

#include <string>

using namespace dualpipe;
using benchmarks::getCpuSeconds;
using benchmarks::Products;
using program::Function;
using program::SlotKind;
using runtime::AlignedBuffer;

namespace {

/// One stage of the model with tensors for one micro-batch.
class Stage {
public:
  Stage(const runtime::Model &model, runtime::StageCopy &copy, bool last)
      : model(model), copy(copy), last(last), workspace(model.getMaxWorkspaceBytes()),
        call(model, state, workspace.data(), workspace.size()) {
    for (unsigned kind = 0; kind < program::kNumSlotKinds; ++kind)
      tensors[kind] = AlignedBuffer(model.getBytes(0, SlotKind(kind)));
  }

  std::string load() {
    std::string problem = run(Function::LoadInput, {SlotKind::Input});
    return problem.empty() ? run(Function::LoadLabels, {SlotKind::Labels}) : problem;
  }
  std::string train() {
    std::string problem =
        last ? run(Function::Forward, {SlotKind::Input, SlotKind::Labels, SlotKind::Saved})
             : run(Function::Forward, {SlotKind::Input, SlotKind::Output, SlotKind::Saved});
    return problem.empty() ? run(Function::Backward,
                                 {SlotKind::Saved, SlotKind::GradOutput, SlotKind::GradInput})
                           : problem;
  }

private:
  std::string run(Function function, std::initializer_list<SlotKind> kinds) {
    call.begin(copy, 0, 0, uint8_t(program::kAccumulate | (last ? program::kLastStage : 0)), true);
    for (SlotKind kind : kinds)
      call.bind(kind, tensors[unsigned(kind)].data());
    call.setLoss(&loss);
    Status status = model.run(function, call);
    return status ? "" : status.message();
  }

  const runtime::Model &model;
  runtime::StageCopy &copy;
  bool last;
  dp_step_state state = {0, 1, 0.0};
  AlignedBuffer workspace;
  runtime::StageCall call;
  std::array<AlignedBuffer, program::kNumSlotKinds> tensors;
  double loss = 0;
};

/// Arguments: hidden, tokens, type (32 or 64), last stage.
void mlpStage(benchmark::State &state) {
  int64_t hidden = state.range(0), tokens = state.range(1);
  bool single = state.range(2) == 32;
  runtime::ModelOptions options;
  options.name = "mlp";
  options.settings = {{"hidden", std::to_string(hidden)},
                      {"seq", std::to_string(tokens)},
                      {"batch", "1"},
                      {"dtype", single ? "f32" : "f64"}};
  options.numStages = 1;
  options.numMicrobatches = 1;
  Result<runtime::Model> model = runtime::Model::create(options);
  if (!model)
    return state.SkipWithError(model.message().c_str());
  Result<runtime::StageCopy> copy = runtime::StageCopy::create(*model, 0, 0, true);
  if (!copy)
    return state.SkipWithError(copy.message().c_str());
  if (Status status = copy->initialize(*model, 1); !status)
    return state.SkipWithError(status.message().c_str());
  Stage stage(*model, *copy, state.range(3) != 0);
  Products products(single ? models::Real::F32 : models::Real::F64, tokens, hidden);
  std::string problem = stage.load();

  double stageSeconds = 0, productSeconds = 0;
  for (auto _ : state) {
    double begin = getCpuSeconds();
    std::string failed = stage.train();
    double between = getCpuSeconds();
    failed += products.run();
    productSeconds += getCpuSeconds() - between;
    double seconds = between - begin;
    stageSeconds += seconds;
    state.SetIterationTime(seconds);
    problem += failed;
  }
  if (!problem.empty())
    return state.SkipWithError(problem.c_str());
  double runs = double(state.iterations());
  state.counters["products_ms"] = 1e3 * productSeconds / runs;
  state.counters["stage_over_products"] = stageSeconds / productSeconds;
  state.counters["GFLOPS"] = 6 * 8e-9 * double(tokens * hidden * hidden) * runs / stageSeconds;
}

BENCHMARK(mlpStage)
    ->ArgNames({"hidden", "tokens", "bits", "last"})
    ->Args({512, 768, 32, 0})
    ->Args({512, 768, 32, 1})
    ->Args({512, 768, 64, 0})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
