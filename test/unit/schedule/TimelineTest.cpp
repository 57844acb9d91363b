//===- TimelineTest.cpp - where transfers and reductions stand --------------===//

#include "dualpipe/Schedule/Timeline.h"
#include "dualpipe/Schedule/Checker.h"
#include "test/support/OrderText.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

/// The list of a rank, a word an entry: "0F1" "send:F1>1" "recv:B0<1" "reduce:0" "step:0".
std::string project(const Schedule &schedule, uint32_t rank, const Costs &costs = {}) {
  DiagnosticSink sink;
  OpIndex index = checkSchedule(schedule, sink);
  EXPECT_FALSE(sink.hasErrors());
  Timeline timeline(index, costs);
  std::string text;
  for (const TimelineEntry &entry : timeline.project(rank)) {
    std::string what = (entry.isGrad ? "B" : "F") + std::to_string(entry.microbatch);
    switch (entry.kind) {
    case TimelineEntry::Kind::Compute: {
      const RankOrder &order = schedule.ranks[rank];
      for (size_t op = entry.op; op != order.groupEnd(entry.op); ++op)
        text += (op == entry.op ? "" : "+") + std::to_string(order.stage[op]) +
                getLetter(order.kind[op]) + std::to_string(order.microbatch[op]);
      break;
    }
    case TimelineEntry::Kind::Send:
      text += "send:" + what + ">" + std::to_string(entry.peer);
      break;
    case TimelineEntry::Kind::Recv:
      text += "recv:" + what + "<" + std::to_string(entry.peer);
      break;
    case TimelineEntry::Kind::Reduce:
      text += "reduce:" + std::to_string(entry.stage);
      break;
    case TimelineEntry::Kind::Step:
      text += "step:" + std::to_string(entry.stage);
      break;
    }
    text += ' ';
  }
  return text;
}

Schedule oneFOneB() {
  return makeSchedule({makePipeline("main", {0, 1}, 0, 3)},
                      {"0F0 0F1 0B0 0F2 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"});
}

TEST(Timeline, TransfersStandAtTheEndOfTheirProducer) {
  Schedule schedule = oneFOneB();
  EXPECT_EQ(project(schedule, 0), "0F0 send:F0>1 0F1 send:F1>1 recv:B0<1 0B0 0F2 send:F2>1 "
                                  "recv:B1<1 0B1 recv:B2<1 0B2 step:0 ");
  EXPECT_EQ(project(schedule, 1), "recv:F0<0 1F0 recv:F1<0 1B0 send:B0>0 1F1 1B1 recv:F2<0 "
                                  "send:B1>0 1F2 1B2 send:B2>0 step:1 ");
}

TEST(Timeline, StartsAsSoonAsPossible) {
  Schedule schedule = oneFOneB();
  DiagnosticSink sink;
  OpIndex index = checkSchedule(schedule, sink);
  Result<Costs> costs = Costs::parse("fwd=1,bwd=2,transfer=0.5");
  ASSERT_TRUE(costs);
  Timeline timeline(index, *costs);
  constexpr Ticks half = Costs::kTicksPerUnit / 2;
  EXPECT_EQ(timeline.getStart(1, 0), 3 * half); // first forward, one hop
  EXPECT_EQ(timeline.getStart(0, 2), 10 * half);
  EXPECT_EQ(timeline.getMakespan(), 28 * half);
}

TEST(Timeline, ReductionsStandAtTheirLastProducer) {
  Schedule schedule =
      makeSchedule({makePipeline("down", {0, 1}, 0, 1), makePipeline("up", {1, 0}, 1, 1)},
                   {"0F0 1F1 1B1 0B0", "0F1 1F0 1B0 0B1"});
  EXPECT_EQ(project(schedule, 0),
            "0F0 send:F0>1 recv:F1<1 1F1 1B1 send:B1>1 recv:B0<1 reduce:1 0B0 "
            "reduce:0 step:1 step:0 ");
  EXPECT_EQ(project(schedule, 1),
            "0F1 recv:F0<0 send:F1>0 1F0 1B0 recv:B1<0 send:B0>0 reduce:1 0B1 "
            "reduce:0 step:1 step:0 ");
}

TEST(Timeline, HandsOverWithinARankWithoutATransfer) {
  Schedule schedule =
      makeSchedule({makePipeline("v", {0, 1, 1, 0}, 0, 1)}, {"0F0 3F0 3B0 0B0", "1F0 2F0 2B0 1B0"});
  EXPECT_EQ(project(schedule, 1),
            "recv:F0<0 1F0 2F0 send:F0>0 recv:B0<0 2B0 1B0 send:B0>0 step:2 step:1 ");
}

TEST(Timeline, FusedGroupReleasesBothResultsAtItsEnd) {
  Schedule schedule =
      makeSchedule({makePipeline("main", {0, 1}, 0, 2)}, {"0F0 0F1 0B0 0B1", "1F0 (1F1;1B0) 1B1"});
  EXPECT_EQ(project(schedule, 1),
            "recv:F0<0 1F0 recv:F1<0 1F1+1B0 send:B0>0 1B1 send:B1>0 step:1 ");
}

} // namespace
