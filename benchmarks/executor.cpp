//===- executor.cpp - what the runtime costs per command --------------------===//
//
// DualPipe with stages that do nothing: the process's CPU time of a step divided
// by the commands that all ranks run in it.
//
//===----------------------------------------------------------------------===//

#include "test/support/CompileExample.h"

#include "dualpipe/Runtime/Session.h"

#include <benchmark/benchmark.h>

using namespace dualpipe;
using namespace dualpipe::test;

static void runNoop(benchmark::State &state) {
  uint32_t ranks = uint32_t(state.range(0)), microbatches = uint32_t(state.range(1));
  CompiledExample example("dualpipe", ranks, microbatches);
  auto program = std::make_shared<const program::Program>(std::move(example.program));

  runtime::ModelOptions modelOptions;
  modelOptions.name = "noop";
  modelOptions.numStages = program->shared.numStages;
  modelOptions.numMicrobatches = microbatches;
  Result<runtime::Model> model = runtime::Model::create(modelOptions);
  if (!model)
    return state.SkipWithError(model.message().c_str());
  auto shared = std::make_shared<const runtime::Model>(std::move(*model));
  Result<std::unique_ptr<runtime::Optimizer>> created = runtime::createOptimizer("sgd");
  if (!created)
    return state.SkipWithError(created.message().c_str());
  std::shared_ptr<const runtime::Optimizer> optimizer = std::move(*created);

  constexpr uint32_t kSteps = 200;
  uint64_t commands = 0;
  double cpuSeconds = 0;
  for (auto _ : state) {
    runtime::SessionOptions options;
    options.training.numSteps = kSteps;
    auto session = runtime::Session::create(program, shared, optimizer, options);
    if (!session)
      return state.SkipWithError(session.message().c_str());
    Result<runtime::RunReport> report = (*session)->run();
    if (!report)
      return state.SkipWithError(report.message().c_str());
    commands += (*session)->getNumCommands() * kSteps;
    cpuSeconds += report->cpuSeconds;
    state.SetIterationTime(report->wallSeconds);
  }
  state.counters["commands"] = double(commands) / double(state.iterations() * kSteps);
  state.counters["cpu_ns_per_command"] = cpuSeconds * 1e9 / double(commands);
}

BENCHMARK(runNoop)->Args({8, 20})->Args({16, 64})->UseManualTime()->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
