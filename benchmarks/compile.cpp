//===- compile.cpp - from `.pipe` text to `.dpx` bytes ----------------------===//
//
// The whole compilation with all checks on: parse, interpret, S1 to S4, timeline,
// lowering of every rank, P1 to P4, D1 to D5, serialisation; and the checks alone,
// one after the other on one core. Besides the time it
// counts the ops and the process's peak memory so far, so run one size at a time
// where memory is the question:
//
//   bench-compile --benchmark_filter='64/512$'
//
//===----------------------------------------------------------------------===//

#include "test/support/CompileExample.h"

#include "dualpipe/Program/Verify.h"
#include "dualpipe/Program/Writer.h"

#include <benchmark/benchmark.h>

#include <sys/resource.h>

using namespace dualpipe;
using namespace dualpipe::test;

static double peakMebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) / 1024;
}

static void compileDualPipe(benchmark::State &state) {
  uint32_t ranks = uint32_t(state.range(0)), microbatches = uint32_t(state.range(1));
  size_t ops = 0, bytes = 0;
  for (auto _ : state) {
    CompiledExample example("dualpipe", ranks, microbatches);
    std::vector<program::RankSection> sections;
    for (const program::RankProgram &rank : example.program.ranks)
      sections.push_back({rank.rank, program::serializeRank(rank)});
    std::vector<uint8_t> file = program::serializeProgram(example.program.shared, sections);
    benchmark::DoNotOptimize(file.data());
    ops = example.schedule.getNumOps();
    bytes = file.size();
  }
  state.counters["ops"] = double(ops);
  state.counters["ns_per_op"] =
      benchmark::Counter(double(ops) * 1e-9, benchmark::Counter::kIsIterationInvariantRate |
                                                 benchmark::Counter::kInvert);
  state.counters["file_MiB"] = double(bytes) / (1 << 20);
  state.counters["peak_MiB"] = peakMebibytes();
}

static void checkDualPipe(benchmark::State &state) {
  CompiledExample example("dualpipe", uint32_t(state.range(0)), uint32_t(state.range(1)));
  for (auto _ : state) {
    DiagnosticSink sink;
    checkSchedule(example.schedule, sink);
    program::Verdict verdict = program::verifyWholeProgram(example.program);
    if (verdict || sink.hasErrors())
      return state.SkipWithError("a check fails");
  }
  state.counters["ns_per_op"] = benchmark::Counter(double(example.schedule.getNumOps()) * 1e-9,
                                                   benchmark::Counter::kIsIterationInvariantRate |
                                                       benchmark::Counter::kInvert);
}

static void useSizes(benchmark::internal::Benchmark *entry) {
  for (std::pair<int64_t, int64_t> size :
       {std::pair(8, 64), {16, 128}, {32, 256}, {64, 512}, {128, 1024}})
    entry->Args({size.first, size.second});
  entry->Unit(benchmark::kMillisecond)->UseRealTime();
}

BENCHMARK(compileDualPipe)->Apply(useSizes);
BENCHMARK(checkDualPipe)->Apply(useSizes);

BENCHMARK_MAIN();
