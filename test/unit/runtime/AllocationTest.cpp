//===- AllocationTest.cpp - P4: what is allocated is what was predicted -----===//

#include "TestModel.h"
#include "TestPrograms.h"

#include "dualpipe/Runtime/MeasureModel.h"
#include "dualpipe/Runtime/Session.h"
#include "runtime/executor/Allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::runtime;
using namespace dualpipe::test;

namespace {

std::shared_ptr<const Model> makeModel(const Program &program) {
  ModelOptions options;
  options.numStages = program.shared.numStages;
  options.numMicrobatches = program.shared.numMicrobatches;
  Result<Model> model = Model::create(getTestModel(false), options);
  EXPECT_TRUE(model.ok()) << model.message();
  return std::make_shared<const Model>(std::move(*model));
}

/// Says every time that it needs one tensor more.
class GrowingOptimizer : public Optimizer {
public:
  uint32_t getStateFactor() const override { return next++; }
  Status step(StageCopy &, const dp_call &) const override { return Status::success(); }

private:
  mutable uint32_t next = 0;
};

SessionOptions makeOptions() {
  SessionOptions options;
  options.training = {7, 1, 0.05};
  return options;
}

TEST(AllocationTest, TheSessionComparesBoth) {
  getHooks().reset();
  auto program = std::make_shared<const Program>(buildPipelines({.numRanks = 1}));
  Result<std::unique_ptr<Session>> session = Session::create(
      program, makeModel(*program), std::make_shared<GrowingOptimizer>(), makeOptions());
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.message(),
            "P4: rank 0: the state of the optimizer takes 0 bytes, predicted were 64: what the "
            "model or the optimizer says of its sizes has changed, or this is a fault of the "
            "runtime");
}

/// A rank with two slot classes, and what it should allocate.
struct Case {
  RankMemory predicted;
  Allocation allocated;
};

Case makeCase() {
  Case both;
  both.predicted.rank = 3;
  both.predicted.weights = both.allocated.weights = 10;
  both.predicted.gradients = both.allocated.gradients = 20;
  both.predicted.optimizerState = both.allocated.optimizerState = 30;
  both.predicted.workspace = both.allocated.workspace = 40;
  both.predicted.slots.arenaBytes = both.allocated.arena = 300;
  both.predicted.slots.classes = {{.slotClass = {SlotKind::Input, 0, 1, 0}, .allocatedBytes = 100},
                                  {.slotClass = {SlotKind::Saved, 2, 2, 0}, .allocatedBytes = 200}};
  both.allocated.classes = {100, 200};
  return both;
}

/// The beginning of the complaint after `change`.
template <typename Change> std::string complainAfter(Change change) {
  Case both = makeCase();
  change(both.allocated);
  const Status status = checkAllocation(both.allocated, both.predicted);
  return status.ok() ? "fine" : status.message().substr(0, status.message().find(": what the"));
}

TEST(AllocationTest, EveryPartIsCompared) {
  EXPECT_EQ(complainAfter([](Allocation &) {}), "fine");
  EXPECT_EQ(complainAfter([](Allocation &is) { ++is.weights; }),
            "P4: rank 3: the memory of the weights takes 11 bytes, predicted were 10");
  EXPECT_EQ(complainAfter([](Allocation &is) { --is.gradients; }),
            "P4: rank 3: the memory of the gradients takes 19 bytes, predicted were 20");
  EXPECT_EQ(complainAfter([](Allocation &is) { ++is.optimizerState; }),
            "P4: rank 3: the state of the optimizer takes 31 bytes, predicted were 30");
  EXPECT_EQ(complainAfter([](Allocation &is) { ++is.workspace; }),
            "P4: rank 3: the workspace takes 41 bytes, predicted were 40");
  EXPECT_EQ(complainAfter([](Allocation &is) { ++is.arena; }),
            "P4: rank 3: the arena of the slots takes 301 bytes, predicted were 300");
}

TEST(AllocationTest, EveryClassIsCompared) {
  // The sum is the same.
  EXPECT_EQ(complainAfter([](Allocation &is) { is.classes = {101, 199}; }),
            "P4: rank 3: the slot class input of size group 0 takes 101 bytes, predicted were 100");
  EXPECT_EQ(complainAfter([](Allocation &is) { is.classes = {100, 201}; }),
            "P4: rank 3: the slot class saved of size group 2 takes 201 bytes, predicted were 200");
  EXPECT_EQ(complainAfter([](Allocation &is) { is.classes.pop_back(); }),
            "P4: rank 3: the arena has 1 slot classes, expected 2");
}

} // namespace
