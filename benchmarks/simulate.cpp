//===- simulate.cpp - what a simulated command costs ------------------------===//
//
// DualPipe in virtual time on one core: commands of all ranks a second. Compiling a
// large program takes longer and more memory than simulating it, so run one size at a
// time where memory is the question:
//
//   bench-simulate --benchmark_filter='simulateDualPipe/64/512$'
//
//===----------------------------------------------------------------------===//

#include "test/support/CompileExample.h"

#include "dualpipe/Runtime/Simulation.h"

#include <benchmark/benchmark.h>

#include <sys/resource.h>

using namespace dualpipe;
using namespace dualpipe::test;

static double peakMebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) / 1024;
}

static void simulate(benchmark::State &state, const char *costs, bool keepTimes) {
  uint32_t ranks = uint32_t(state.range(0)), microbatches = uint32_t(state.range(1));
  CompiledExample example("dualpipe", ranks, microbatches);
  double before = peakMebibytes();
  runtime::SimulationCosts times = *runtime::SimulationCosts::parse(costs);
  for (auto _ : state) {
    Result<runtime::Simulation> run = runtime::simulate(example.program, times, keepTimes);
    benchmark::DoNotOptimize(run->makespan);
  }
  size_t commands = 0;
  for (const program::RankProgram &rank : example.program.ranks)
    commands += rank.commands.size();
  state.counters["commands"] = double(commands);
  state.counters["commands_per_second"] =
      benchmark::Counter(double(commands), benchmark::Counter::kIsIterationInvariantRate);
  state.counters["peak_MiB"] = peakMebibytes();
  state.counters["compiled_MiB"] = before;
}

static void simulateDualPipe(benchmark::State &state) { simulate(state, "transfer=0.5", false); }
static void keepTimesOfDualPipe(benchmark::State &state) { simulate(state, "transfer=0.5", true); }
static void shareCoresOfDualPipe(benchmark::State &state) {
  simulate(state, "transfer=0.5,cores=4,node=8", false);
}
static void shareLinksOfDualPipe(benchmark::State &state) {
  simulate(state, "transfer=0.5,occupancy=0.25,links=shared,node=8", false);
}
static void startDualPipeSeparately(benchmark::State &state) {
  simulate(state, "transfer=0.5,start=separate", false);
}

BENCHMARK(simulateDualPipe)
    ->Args({8, 20})
    ->Args({64, 512})
    ->Args({256, 1024})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(keepTimesOfDualPipe)->Args({8, 20})->Args({64, 512})->Unit(benchmark::kMillisecond);
BENCHMARK(startDualPipeSeparately)->Args({64, 512})->Unit(benchmark::kMillisecond);
BENCHMARK(shareCoresOfDualPipe)->Args({64, 512})->Unit(benchmark::kMillisecond);
BENCHMARK(shareLinksOfDualPipe)->Args({64, 512})->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
