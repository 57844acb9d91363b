//===- mlp_step.cpp - a training step against its own matrix products -------===//
//
// DualPipe with the `mlp` at hidden 512, sequence 256, batch 3 in float32: the
// process's CPU time of a step, and its wall time on all cores, divided by the
// time of the step's matrix products alone (six per stage and micro-batch),
// measured before and after in the same run.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/Products.h"
#include "test/support/CompileExample.h"

#include "dualpipe/Runtime/Session.h"

#include <benchmark/benchmark.h>

#include <thread>

using namespace dualpipe;
using namespace dualpipe::test;
using benchmarks::getCpuSeconds;
using benchmarks::Products;

namespace {

constexpr int64_t kHidden = 512, kTokens = 3 * 256;
constexpr uint32_t kSteps = 2;

/// CPU seconds of the six products of one stage and micro-batch.
double measureProducts(Products &products, std::string &problem) {
  constexpr int kRuns = 10;
  problem += products.run();
  double begin = getCpuSeconds();
  for (int i = 0; i != kRuns; ++i)
    problem += products.run();
  return (getCpuSeconds() - begin) / kRuns;
}

void mlpStep(benchmark::State &state) {
  uint32_t ranks = uint32_t(state.range(0)), microbatches = uint32_t(state.range(1));
  CompiledExample example("dualpipe", ranks, microbatches);
  auto program = std::make_shared<const program::Program>(std::move(example.program));
  runtime::ModelOptions modelOptions;
  modelOptions.name = "mlp";
  modelOptions.numStages = program->shared.numStages;
  modelOptions.numMicrobatches = microbatches;
  Result<runtime::Model> model = runtime::Model::create(modelOptions);
  if (!model)
    return state.SkipWithError(model.message().c_str());
  auto shared = std::make_shared<const runtime::Model>(std::move(*model));
  Result<std::unique_ptr<runtime::Optimizer>> optimizer = runtime::createOptimizer("sgd");
  if (!optimizer)
    return state.SkipWithError(optimizer.message().c_str());
  std::shared_ptr<const runtime::Optimizer> sgd = std::move(*optimizer);

  Products products(models::Real::F32, kTokens, kHidden);
  std::string problem;
  double cpu = 0, wall = 0, alone = 0;
  for (auto _ : state) {
    double before = measureProducts(products, problem);
    runtime::SessionOptions options;
    options.training.numSteps = kSteps;
    auto session = runtime::Session::create(program, shared, sgd, options);
    if (!session)
      return state.SkipWithError(session.message().c_str());
    Result<runtime::RunReport> report = (*session)->run();
    if (!report)
      return state.SkipWithError(report.message().c_str());
    double after = measureProducts(products, problem);
    cpu += report->cpuSeconds / kSteps;
    wall += report->wallSeconds / kSteps;
    alone += (before + after) / 2 * program->shared.numStages * microbatches;
    state.SetIterationTime(report->wallSeconds);
  }
  if (!problem.empty())
    return state.SkipWithError(problem.c_str());
  unsigned cores = std::min(ranks, std::max(1u, std::thread::hardware_concurrency()));
  state.counters["cpu_over_products"] = cpu / alone;
  state.counters["wall_over_products"] = wall * cores / alone;
}

BENCHMARK(mlpStep)->Args({4, 8})->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
