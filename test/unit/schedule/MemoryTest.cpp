//===- MemoryTest.cpp - S5, what the ranks hold --------------------------------===//

#include "dualpipe/Schedule/Memory.h"
#include "RulesBuilder.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

std::string check(const Schedule &schedule) {
  DiagnosticSink sink;
  checkMemory(schedule, sink);
  return print(sink);
}

Schedule makeSplit() {
  Schedule schedule = makeSchedule({makePipeline("v", {0, 0}, 0, 3)},
                                   {"0F0 1F0 1I0 0F1 1W0 0I0 (0F2;0W0) 1F1 1B1 0B1 1F2 1B2 0B2"});
  schedule.memory.activation = {3, 1};
  schedule.memory.context = {2, 1};
  schedule.memory.loc = {0, 8, 2};
  return schedule;
}

TEST(Memory, FollowsActivationsAndContexts) {
  Schedule schedule = makeSplit();
  MemoryPeak peak = findMemoryPeak(schedule, 0);
  EXPECT_EQ(peak.units, 11); // a pair takes before it gives back: 3 * 3 and 2
  EXPECT_EQ(peak.op, 6u);
}

TEST(Memory, CountsMicrobatchesWhereNothingIsSaid) {
  Schedule schedule = makeSplit();
  schedule.memory = {};
  EXPECT_EQ(findMemoryPeak(schedule, 0).units, 3);
  EXPECT_EQ(check(schedule), "");
  schedule.memory.limit = {2};
  EXPECT_NE(check(schedule), "");
  schedule.memory.limit = {3};
  EXPECT_EQ(check(schedule), "");
}

TEST(Memory, ReportsThePeakWithWhatIsHeld) {
  Schedule schedule = makeSplit();
  schedule.memory.limit = {10};
  EXPECT_EQ(check(schedule),
            "1:26: S5: rank 0: expected at most 10 units of memory, got 11 at fwd of stage 0, "
            "micro-batch 2\n"
            "  8:2: held there: 3 activations of stage 0 with 3 each, 1 weight context of stage 0 "
            "with 2 each\n");
  schedule.memory.limit = {11};
  EXPECT_EQ(check(schedule), "");
}

TEST(Memory, HoldsNothingBetweenOpsThatRunForwardOnly) {
  Schedule schedule = makeSchedule({makePipeline("v", {0, 0}, 0, 2)}, {"0F0 (1F0;0F1) 1F1"});
  schedule.training = false;
  EXPECT_EQ(findMemoryPeak(schedule, 0).units, 2);
  schedule.memory.limit = {1};
  EXPECT_EQ(check(schedule),
            "1:6: S5: rank 0: expected at most 1 units of memory, got 2 at fwd of stage 1, "
            "micro-batch 0\n"
            "  0:0: held there: 1 activation of stage 0 with 1 each, 1 activation of stage 1 with "
            "1 each\n");
}

TEST(Memory, BoundsItsFindings) {
  std::vector<uint32_t> placement(24);
  std::iota(placement.begin(), placement.end(), 0);
  Schedule schedule = makeSchedule({makePipeline("main", placement, 0, 1)}, [] {
    std::vector<std::string> lines;
    for (int s = 0; s != 24; ++s)
      lines.push_back(std::to_string(s) + "F0");
    return lines;
  }());
  schedule.memory.limit.assign(24, 0);
  std::string text = check(schedule);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 41);
  EXPECT_NE(text.find("1:1: S5: 4 more ranks hold more than their limit\n"), text.npos) << text;
}

TEST(Memory, AnEmptyOrderHoldsNothing) {
  Schedule schedule = makeLine(2, 1);
  schedule.memory.limit = {0, 0};
  EXPECT_EQ(check(schedule), "");
}

} // namespace
