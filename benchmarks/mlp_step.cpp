//===- mlp_step.cpp - a training step against its own matrix products -------===//
//
// DualPipe with the `mlp` at hidden 512, sequence 256, batch 3 in float32: the
// process's CPU time of a step, and its wall time on all cores, divided by the
// time of the step's matrix products alone (six per stage and micro-batch),
// measured before and after in the same run.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/Products.h"
#include "benchmarks/Training.h"

#include <benchmark/benchmark.h>

#include <numeric>
#include <thread>

using namespace dualpipe;
using benchmarks::getCpuSeconds;
using benchmarks::Products;

namespace {

constexpr int64_t kHidden = 512, kTokens = 3 * 256;
constexpr uint32_t kSteps = 3;

/// CPU seconds of the six products of one stage and micro-batch, with all of `cores` at it as in
/// the step itself: cores share caches, memory and sometimes more.
double measureProducts(unsigned cores, std::string &problem) {
  constexpr int kRuns = 10;
  std::vector<double> seconds(cores);
  std::vector<std::string> problems(cores);
  auto measure = [&](unsigned core) {
    Products products(models::Real::F32, kTokens, kHidden);
    problems[core] = products.run();
    double begin = getCpuSeconds();
    for (int i = 0; i != kRuns; ++i)
      problems[core] += products.run();
    seconds[core] = (getCpuSeconds() - begin) / kRuns;
  };
  std::vector<std::thread> threads;
  for (unsigned core = 0; core != cores; ++core)
    threads.emplace_back(measure, core);
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &text : problems)
    problem += text;
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) / cores;
}

void mlpStep(benchmark::State &state) {
  uint32_t ranks = uint32_t(state.range(0)), microbatches = uint32_t(state.range(1));
  Result<benchmarks::Training> training = benchmarks::Training::create("mlp", ranks, microbatches);
  if (!training)
    return state.SkipWithError(training.message().c_str());

  unsigned cores = std::min(ranks, std::max(1u, std::thread::hardware_concurrency()));
  std::string problem;
  double cpu = 0, wall = 0, alone = 0;
  for (auto _ : state) {
    double before = measureProducts(cores, problem);
    Result<std::unique_ptr<runtime::Session>> session = training->start(kSteps);
    if (!session)
      return state.SkipWithError(session.message().c_str());
    Result<runtime::RunReport> report = (*session)->run();
    if (!report)
      return state.SkipWithError(report.message().c_str());
    double after = measureProducts(cores, problem);
    cpu += report->cpuSeconds / kSteps;
    wall += report->wallSeconds / kSteps;
    alone += (before + after) / 2 * training->getNumStages() * microbatches;
    state.SetIterationTime(report->wallSeconds);
  }
  if (!problem.empty())
    return state.SkipWithError(problem.c_str());
  state.counters["cpu_over_products"] = cpu / alone;
  state.counters["wall_over_products"] = wall * cores / alone;
}

BENCHMARK(mlpStep)->Args({4, 8})->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
