//===- DiffTest.cpp - how two schedules differ ------------------------------===//

#include "dualpipe/Schedule/Diff.h"
#include "test/support/ReadCsv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::test;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

std::vector<std::string> diff(const std::string &a, const std::string &b) {
  TorchReadOptions ofA, ofB;
  ofA.file = "a.csv";
  ofB.file = "b.csv";
  ReadSchedule first(a, ofA), second(b, ofB);
  EXPECT_EQ(first.getErrors(), "");
  EXPECT_EQ(second.getErrors(), "");
  return diffSchedules(first.schedule, second.schedule);
}

TEST(Diff, NoDifference) {
  EXPECT_THAT(diff("0F0,0F1,0B0,0B1\n", " 0F0,,0F1,0B0,0B1\n"), IsEmpty());
}

TEST(Diff, SizesAndWork) {
  EXPECT_THAT(diff("0F0,0F1,0B0,0B1\n", "0F0\n"),
              ElementsAre("sizes: 2 micro-batches in a, 1 in b", "sizes: b runs forward only",
                          "work: stage 0, micro-batch 0: fwd, bwd in a, fwd in b",
                          "work: stage 0, micro-batch 1: fwd, bwd in a, nothing in b",
                          "order: rank 0 differs from place 2 on: fwd of stage 0, micro-batch 1 "
                          "(a.csv:1:5) in a, nothing in b"));
  EXPECT_THAT(diff("0F0,0B0\n", "0F0,0B0\n1F0,1B0\n"),
              ElementsAre("sizes: 1 ranks in a, 2 in b", "sizes: 1 stages in a, 2 in b",
                          "work: stage 1, micro-batch 0: nothing in a, fwd, bwd in b"));
}

TEST(Diff, SplitAndFusedBackwards) {
  EXPECT_THAT(diff("0F0,0F1,0B0,0B1\n", "0F0,(0F1;0B0)OVERLAP_F_B,0I1,0W1\n"),
              ElementsAre("work: stage 0, micro-batch 0: fwd, bwd in a, fwd, fused bwd in b",
                          "work: stage 0, micro-batch 1: fwd, bwd in a, fused fwd, bwd_input, "
                          "bwd_weight in b",
                          "order: rank 0 differs from place 2 on: fwd of stage 0, micro-batch 1 "
                          "(a.csv:1:5) in a, fused fwd of stage 0, micro-batch 1 with bwd of stage "
                          "0, micro-batch 0 (b.csv:1:6) in b"));
}

TEST(Diff, Placement) {
  EXPECT_THAT(
      diff("0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n", "0F0,0B0,1F1,1B1\n1F0,1B0,0F1,0B1\n"),
      Contains("placement: stage 0 is on rank 0 in a, on rank 1 in b for micro-batches 1 to "
               "1"));
}

TEST(Diff, EqualDifferencesInWorkAreOneLine) {
  EXPECT_THAT(diff("0F0,0B0,0F1,0B1,0F2,0B2\n", "0F0,0I0,0W0,0F1,0B1,0F2,0I2,0W2\n"),
              Contains("work: stage 0, micro-batch 0 (and 1 more): fwd, bwd in a, fwd, bwd_input, "
                       "bwd_weight in b"));
}

TEST(Diff, ManyDifferencesAreCounted) {
  std::string a, b;
  for (int rank = 0; rank != 30; ++rank) {
    std::string n = std::to_string(rank);
    a += n + "F0," + n + "F1," + n + "B0," + n + "B1\n";
    b += n + "F0," + n + "F1," + n + "B1," + n + "B0\n";
  }
  EXPECT_THAT(diff(a, b), Contains("order: 20 more differences"));
}

TEST(Diff, TransfersWhereBothPlaceThem) {
  std::string second = "1RECV_F0,1F0,1RECV_F1,1F1\n";
  EXPECT_THAT(diff("0F0,0SEND_F0,0F1,0SEND_F1\n" + second, "0F0,0F1,0SEND_F0,0SEND_F1\n" + second),
              ElementsAre("transfers: rank 0 differs from transfer 1 on: send fwd of stage 0, "
                          "micro-batch 0 before op 2 (a.csv:1:5) in a, send fwd of stage 0, "
                          "micro-batch 0 before op 3 (b.csv:1:9) in b"));
  EXPECT_THAT(diff("0F0,0SEND_F0,0F1,0SEND_F1\n" + second, "0F0,0F1\n1F0,1F1\n"), IsEmpty());
}

} // namespace
