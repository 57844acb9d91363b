//===- CheckPlaceTest.cpp - a check in memory that is not the host's own ----===//
//
// With a memory of its own a check keeps copies there, uploads what changes from
// step to step and reads back results. Here that memory is the host's under
// another name, so the bits are those of the usual check.
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include <set>

using namespace dualpipe;
using namespace dualpipe::runtime;
using namespace dualpipe::runtime::test;
using dualpipe::program::Function;

namespace {

/// Counts what is asked of it, and fails at one of them.
class CountingMemory : public HostMemory {
public:
  explicit CountingMemory(uint32_t failAt = 0) : failAt(failAt) {}

  Result<void *> allocate(size_t bytes) override {
    if (++count == failAt)
      return Status::failure("no room");
    return HostMemory::allocate(bytes);
  }
  Status upload(void *to, const void *from, size_t bytes) override {
    return ++count == failAt ? Status::failure("no way in") : HostMemory::upload(to, from, bytes);
  }
  Status download(void *to, const void *from, size_t bytes) override {
    return ++count == failAt ? Status::failure("no way out")
                             : HostMemory::download(to, from, bytes);
  }

  uint32_t count = 0;

private:
  uint32_t failAt;
};

constexpr TrainingOptions kOptions = {3, 2, 0.1};

program::Program makeProgram() {
  ProgramBuilder builder(2, 2, 2);
  builder.pipeline(0, 1, {0, 1}).pipeline(1, 1, {1, 0});
  for (uint32_t microbatch : {0u, 1u}) {
    builder.op(microbatch, {Function::Forward, 0, microbatch});
    builder.op(1 - microbatch, {Function::Forward, 1, microbatch});
    builder.op(1 - microbatch, {Function::Backward, 1, microbatch});
    builder.op(microbatch, {Function::BackwardInput, 0, microbatch});
    builder.op(microbatch, {Function::BackwardWeight, 0, microbatch});
  }
  builder.reduce(0, {0, 1}).reduce(1, {0, 1});
  for (uint32_t rank : {0u, 1u})
    builder.step(rank, 0).step(rank, 1);
  return builder.take();
}

struct Fixture {
  const program::Program program = makeProgram();
  const Model model = makeModel("mlp", {{"hidden", "8"}, {"seq", "2"}, {"batch", "2"}}, 2, 2);
  const std::unique_ptr<Optimizer> optimizer = std::move(*createOptimizer("sgd"));

  Result<Replay> runReplay(const CheckPlace &place = {}) const {
    return replay(model, program, *optimizer, kOptions, place);
  }
  Result<CheckReport> check(const TrainingResult &run, const CheckPlace &place) const {
    return checkRun(model, program, *optimizer, kOptions, run, place);
  }
};

TEST(CheckPlace, AnotherMemoryGivesTheSameBits) {
  const Fixture fixture;
  Result<Replay> usual = fixture.runReplay();
  ASSERT_TRUE(usual) << usual.message();
  CountingMemory memory;
  Result<Replay> placed = fixture.runReplay({&memory, {}});
  ASSERT_TRUE(placed) << placed.message();
  EXPECT_GT(memory.count, 0u);
  EXPECT_EQ(usual->result.losses, placed->result.losses);
  EXPECT_EQ(usual->startOfLastStep, placed->startOfLastStep);
  for (size_t i = 0; i < usual->result.copies.size(); ++i) {
    const StageCopy &a = usual->result.copies[i], &b = placed->result.copies[i];
    EXPECT_TRUE(sameBytes(a.getParamBuffer(), b.getParamBuffer()));
    EXPECT_TRUE(sameBytes(a.getGradBuffer(), b.getGradBuffer()));
  }
  CountingMemory another;
  Result<CheckReport> report = fixture.check(usual->result, {&another, {}});
  ASSERT_TRUE(report) << report.message();
  EXPECT_TRUE(report->passed) << report->getText();
}

/// Every allocation and every copy of a check fails once.
TEST(CheckPlace, EveryFailureEndsTheCheckAndSaysWhere) {
  const Fixture fixture;
  Result<Replay> usual = fixture.runReplay();
  ASSERT_TRUE(usual);
  CountingMemory all;
  ASSERT_TRUE(fixture.check(usual->result, {&all, {}}));
  std::set<std::string> messages;
  for (uint32_t failAt = 1; failAt <= all.count; ++failAt) {
    CountingMemory memory(failAt);
    Result<CheckReport> report = fixture.check(usual->result, {&memory, {}});
    ASSERT_FALSE(report) << "call " << failAt << " of " << all.count;
    messages.insert(report.message());
  }
  for (const char *wanted :
       {"no room", "no way in", "no way out", "a workspace of the check: no room",
        "the saved context of stage 1, micro-batch 0 of the check: no room",
        "one micro-batch in all stages of the check: no room"})
    EXPECT_EQ(messages.count(wanted), 1u) << wanted;
}

TEST(CheckPlace, HostMemorySaysWhenItIsFull) {
  HostMemory memory;
  EXPECT_EQ(memory.allocate(size_t(1) << 60).message(),
            "not enough memory for 1152921504606846976 bytes");
  Result<void *> none = memory.allocate(0);
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, nullptr);
  EXPECT_EQ(memory.getPlace().device_type, kDLCPU);
}

} // namespace
