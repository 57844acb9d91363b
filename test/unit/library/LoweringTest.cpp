//===- LoweringTest.cpp - programs of the whole library ---------------------===//
//
// Every schedule is lowered to programs, which runs all their checks, at sizes on both
// sides of what its rules distinguish. A program takes exactly the as-soon-as-possible
// time of its order, whatever a transfer costs.
//
//===----------------------------------------------------------------------===//

#include "Library.h"

#include "test/support/ProgramWalk.h"

#include "dialects/Pipe/Pipe.h"
#include "dialects/Stream/Stream.h"
#include "dualpipe/Pipelines/Compiler.h"
#include "dualpipe/Schedule/Checker.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

class Lowering : public testing::TestWithParam<Entry> {
protected:
  Lowering() { context.loadDialect<pipe::PipeDialect, stream::StreamDialect>(); }

  program::Program compile(const Schedule &schedule) {
    DiagnosticSink sink;
    OpIndex index = checkSchedule(schedule, sink);
    EXPECT_FALSE(sink.hasErrors());
    CompileOptions options;
    options.planCosts = schedule.planCosts;
    Timeline timeline(index, options.planCosts);
    llvm::FailureOr<program::Program> compiled = compileProgram(&context, timeline, options);
    EXPECT_TRUE(succeeded(compiled));
    return succeeded(compiled) ? std::move(*compiled) : program::Program();
  }

  void expectNothingLost(const Schedule &schedule, const program::Program &program, int64_t latency,
                         bool occupies) {
    SCOPED_TRACE(testing::Message() << "latency " << latency << " occupies " << occupies);
    WalkCosts costs;
    costs.latency = latency;
    costs.latencyOccupiesChannel = occupies;
    costs.compute = [&](uint32_t, const program::Launch *first, size_t count) {
      int64_t sum = 0;
      for (size_t i = 0; i != count; ++i)
        sum += times.get(toKind(first[i].function));
      return sum;
    };
    WalkResult walked = ProgramWalk(program, costs).run();
    EXPECT_EQ(walked.stuck, "");
    EXPECT_EQ(walked.makespan, measure(schedule, times, latency, occupies).makespan);
  }

  /// Planned with free transfers, run with transfers of each of `latencies`, one at a time on a
  /// channel.
  void expectNothingLost(const Schedule &schedule, std::initializer_list<int64_t> latencies) {
    program::Program program = compile(schedule);
    for (int64_t latency : latencies)
      expectNothingLost(schedule, program, latency, true);
  }

  OpTimes times{.fwd = 2, .bwdInput = 2, .bwdWeight = 2}; ///< those of the program when it runs
  Example example{GetParam().name};
  mlir::MLIRContext context;
};

constexpr Size kSizes[] = {{1, 2}, {2, 3},  {2, 4}, {3, 2},  {3, 7},
                           {4, 8}, {4, 12}, {5, 6}, {6, 14}, {8, 16}};

TEST_P(Lowering, TakesTheTimeOfTheOrder) {
  const Entry &entry = GetParam();
  for (int64_t value : entry.values)
    for (Size size : kSizes) {
      if (!entry.isLegal(size, value))
        continue;
      SCOPED_TRACE(testing::Message() << size << " with " << value);
      Example::Options options;
      if (entry.param)
        options.value = value;
      expectNothingLost(example.instantiate(size, options), {0, 1, 4});
    }
}

/// Pure latency, shorter than a forward: a channel need not carry several transfers at once.
TEST_P(Lowering, TakesTheTimeOfTheOrderWithAPlannedLatency) {
  for (Size size : {Size{2, 4}, Size{4, 12}, Size{6, 14}, Size{8, 16}}) {
    if (!GetParam().isLegal(size, GetParam().values.front()))
      continue;
    SCOPED_TRACE(testing::Message() << size);
    Schedule schedule = example.instantiate(size, {.planCosts = *Costs::parse("transfer=0.5")});
    expectNothingLost(schedule, compile(schedule), times.fwd / 2, false);
  }
}

TEST_P(Lowering, TakesTheTimeOfTheOrderWhenTimesDifferFromThePlannedOnes) {
  for (Size size : {Size{4, 12}, Size{6, 14}}) {
    if (!GetParam().isLegal(size, GetParam().values.front()))
      continue;
    Schedule schedule = example.instantiate(size);
    program::Program program = compile(schedule);
    for (OpTimes differing : {OpTimes{2, 3, 1}, OpTimes{4, 2, 2}, OpTimes{2, 6, 5}})
      for (int64_t latency : {int64_t(1), 2 * differing.fwd}) {
        SCOPED_TRACE(testing::Message()
                     << size << " " << differing.fwd << differing.bwdInput << differing.bwdWeight);
        times = differing;
        expectNothingLost(schedule, program, latency, true);
      }
  }
}

TEST_P(Lowering, AtTheLargestSize) {
  if (GetParam().isLegal({16, 48}, GetParam().values.front()))
    expectNothingLost(example.instantiate({16, 48}), {0});
}

TEST_P(Lowering, ForwardOnly) {
  for (Size size : {Size{2, 4}, Size{4, 8}, Size{6, 14}})
    if (GetParam().isLegal(size, GetParam().values.front()))
      expectNothingLost(example.instantiate(size, {.forwardOnly = true}), {0, 1});
}

INSTANTIATE_TEST_SUITE_P(Library, Lowering, testing::ValuesIn(getLibrary()), [](const auto &info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

} // namespace
