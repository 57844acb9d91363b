//===- compile.cpp - from `.pipe` text to `.dpx` bytes ----------------------===//
//
// The whole compilation with all checks on: parse, interpret, S1 to S4, timeline,
// lowering of every rank, P1 to P5, D1 to D5, serialisation; the checks alone,
// one after the other on one core; and the CPU time of the checks against that of
// all the rest of the compilation. Besides the time it
// counts the ops and the process's peak memory so far, so run one size at a time
// where memory is the question:
//
//   bench-compile --benchmark_filter='compileDualPipe/64/512'
//
//===----------------------------------------------------------------------===//

#include "test/support/CompileExample.h"

#include "dualpipe/Program/Verify.h"
#include "dualpipe/Program/Writer.h"

#include <benchmark/benchmark.h>

#include <sys/resource.h>

#include <ctime>

using namespace dualpipe;
using namespace dualpipe::test;

static double peakMebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) / 1024;
}

/// The file of a program, in memory.
static std::vector<uint8_t> serialize(const program::Program &program) {
  std::vector<program::RankSection> sections;
  for (const program::RankProgram &rank : program.ranks)
    sections.push_back({rank.rank, program::serializeRank(rank)});
  return program::serializeProgram(program.shared, sections);
}

static void compileDualPipe(benchmark::State &state) {
  uint32_t ranks = uint32_t(state.range(0)), microbatches = uint32_t(state.range(1));
  size_t ops = 0, bytes = 0;
  for (auto _ : state) {
    CompiledExample example("dualpipe", ranks, microbatches);
    std::vector<uint8_t> file = serialize(example.program);
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

/// Every check of a compilation: S1 to S4, P1 to P5, D1 to D5.
static bool passes(const CompiledExample &example) {
  DiagnosticSink sink;
  checkSchedule(example.schedule, sink);
  return !program::verifyWholeProgram(example.program) && !sink.hasErrors();
}

static void checkDualPipe(benchmark::State &state) {
  CompiledExample example("dualpipe", uint32_t(state.range(0)), uint32_t(state.range(1)));
  for (auto _ : state)
    if (!passes(example))
      return state.SkipWithError("a check fails");
  state.counters["ns_per_op"] = benchmark::Counter(double(example.schedule.getNumOps()) * 1e-9,
                                                   benchmark::Counter::kIsIterationInvariantRate |
                                                       benchmark::Counter::kInvert);
}

/// Of all threads of the process, in seconds.
static double getCpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

/// The checks of a compilation against all the rest of it, by turns: CPU time, since ranks are
/// lowered and checked on all cores.
static void compareChecks(benchmark::State &state) {
  double whole = 0, checks = 0;
  size_t ops = 0;
  for (auto _ : state) {
    const double start = getCpuSeconds();
    CompiledExample example("dualpipe", uint32_t(state.range(0)), uint32_t(state.range(1)));
    benchmark::DoNotOptimize(serialize(example.program).data());
    const double compiled = getCpuSeconds();
    if (!passes(example))
      return state.SkipWithError("a check fails");
    whole += compiled - start;
    checks += getCpuSeconds() - compiled;
    ops += example.schedule.getNumOps();
  }
  state.counters["checks_to_rest"] = checks / (whole - checks);
  state.counters["checks_ns_per_op"] = checks * 1e9 / double(ops);
  state.counters["rest_ns_per_op"] = (whole - checks) * 1e9 / double(ops);
}

static void useSizes(benchmark::internal::Benchmark *entry) {
  for (std::pair<int64_t, int64_t> size :
       {std::pair(8, 64), {16, 128}, {32, 256}, {64, 512}, {128, 1024}})
    entry->Args({size.first, size.second});
  entry->Unit(benchmark::kMillisecond)->UseRealTime();
}

BENCHMARK(compileDualPipe)->Apply(useSizes);
BENCHMARK(checkDualPipe)->Apply(useSizes);
BENCHMARK(compareChecks)->Apply(useSizes);

BENCHMARK_MAIN();
