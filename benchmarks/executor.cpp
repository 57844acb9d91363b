//===- executor.cpp - what the runtime costs per command --------------------===//
//
// DualPipe with stages that do nothing: the process's CPU time of a step divided
// by the commands that all ranks run in it.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/Training.h"

#include <benchmark/benchmark.h>

using namespace dualpipe;

static void runNoop(benchmark::State &state) {
  uint32_t ranks = uint32_t(state.range(0)), microbatches = uint32_t(state.range(1));
  Result<benchmarks::Training> training = benchmarks::Training::create("noop", ranks, microbatches);
  if (!training)
    return state.SkipWithError(training.message().c_str());

  constexpr uint32_t kSteps = 200;
  uint64_t commands = 0;
  double cpuSeconds = 0;
  for (auto _ : state) {
    Result<std::unique_ptr<runtime::Session>> session = training->start(kSteps);
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
