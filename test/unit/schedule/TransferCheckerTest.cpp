//===- TransferCheckerTest.cpp - D1 to D3 on hand-placed transfers ----------===//

#include "dualpipe/Schedule/Timeline.h"
#include "dualpipe/Target/TorchCsv.h"
#include "test/support/ReadCsv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::test;
using testing::HasSubstr;

namespace {

std::string errors(const std::string &text) { return ReadSchedule(text).getErrors(); }

/// One micro-batch through two stages.
constexpr const char *kFirst = "0F0,0SEND_F0,0RECV_B0,0B0\n";
constexpr const char *kSecond = "1RECV_F0,1F0,1B0,1SEND_B0\n";

TEST(TransferChecker, AcceptsAnOrderWithEveryTransfer) {
  ReadSchedule read(std::string(kFirst) + kSecond);
  EXPECT_EQ(read.getErrors(), "");
  EXPECT_TRUE(read.schedule.ownsTransfers);
  ASSERT_EQ(read.schedule.ranks[0].transfers.size(), 2u);
  EXPECT_EQ(read.schedule.ranks[0].transfers[1].before, 1u);
}

TEST(TransferChecker, D1SendMissing) {
  ReadSchedule read(std::string("0F0,0RECV_B0,0B0\n") + kSecond);
  EXPECT_EQ(read.getErrors(), "D1: rank 0: send fwd of stage 0, micro-batch 0 is missing: rank 1 "
                              "needs the value\n");
  EXPECT_EQ(read.getNotes(), "fwd of stage 1, micro-batch 0 is here\n");
}

TEST(TransferChecker, D1ReceiveMissing) {
  EXPECT_EQ(errors(std::string(kFirst) + "1F0,1B0,1SEND_B0\n"),
            "D1: rank 1: recv fwd of stage 1, micro-batch 0 is missing: rank 0 makes the value\n");
}

TEST(TransferChecker, D1TwiceIsFoundWhoeverMakesTheTable) {
  ReadSchedule read(std::string(kFirst) + kSecond);
  RankOrder &order = read.schedule.ranks[0];
  order.transfers.insert(order.transfers.begin(), order.transfers.front());
  DiagnosticSink sink;
  checkSchedule(read.schedule, sink);
  ASSERT_EQ(sink.diagnostics().size(), 1u);
  EXPECT_EQ(sink.diagnostics()[0].message,
            "D1: rank 0: send fwd of stage 0, micro-batch 0 stands a second time");
  EXPECT_EQ(sink.diagnostics()[0].notes.at(0).message, "it stands here already");
}

TEST(TransferChecker, D1SendBeforeTheOpThatMakesTheValue) {
  ReadSchedule read(std::string("0SEND_F0,0F0,0RECV_B0,0B0\n") + kSecond);
  EXPECT_EQ(read.getErrors(), "D1: rank 0: send fwd of stage 0, micro-batch 0 stands before the op "
                              "that makes the value\n");
}

TEST(TransferChecker, D1ReceiveAfterTheOpThatNeedsTheValue) {
  EXPECT_EQ(errors(std::string(kFirst) + "1F0,1RECV_F0,1B0,1SEND_B0\n"),
            "D1: rank 1: recv fwd of stage 1, micro-batch 0 stands after the op that needs the "
            "value\n");
}

TEST(TransferChecker, D1OnAnotherRank) {
  EXPECT_THAT(
      errors("0F0,0SEND_F0,0RECV_B0,0B0,1SEND_B0\n1RECV_F0,1F0,1B0\n"),
      HasSubstr("D1: rank 0: send bwd of stage 1, micro-batch 0 has nothing to transfer: it "
                "belongs on rank 1, where that stage is\n"));
}

TEST(TransferChecker, D1AtTheEndsOfThePipeline) {
  EXPECT_EQ(
      errors(std::string(kFirst) + "1RECV_F0,1F0,1SEND_F0,1B0,1SEND_B0\n"),
      "D1: rank 1: send fwd of stage 1, micro-batch 0 has nothing to transfer: stage 1 is the "
      "last of its pipeline\n");
  EXPECT_EQ(
      errors(std::string(kFirst) + "1RECV_F0,1F0,1RECV_B0,1B0,1SEND_B0\n"),
      "D1: rank 1: recv bwd of stage 1, micro-batch 0 has nothing to transfer: stage 1 is the "
      "last of its pipeline\n");
  EXPECT_EQ(
      errors(std::string("0RECV_F0,0F0,0SEND_F0,0RECV_B0,0B0,0SEND_B0\n") + kSecond),
      "D1: rank 0: recv fwd of stage 0, micro-batch 0 has nothing to transfer: stage 0 is the "
      "first of its pipeline\n"
      "D1: rank 0: send bwd of stage 0, micro-batch 0 has nothing to transfer: stage 0 is the "
      "first of its pipeline\n");
}

TEST(TransferChecker, D1InsideARank) {
  EXPECT_THAT(
      errors("0F0,0SEND_F0,1RECV_F0,1F0,1B0,0B0\n"),
      HasSubstr("D1: rank 0: send fwd of stage 0, micro-batch 0 has nothing to transfer: the "
                "other stage is on this rank too, and the value is handed over without a "
                "transfer\n"));
}

TEST(TransferChecker, D1UnknownMicrobatchOrBackwardThatIsNotThere) {
  EXPECT_EQ(errors(std::string("0F0,0SEND_F0,0SEND_F7,0RECV_B0,0B0\n") + kSecond),
            "D1: rank 0: send fwd of stage 0, micro-batch 7 has nothing to transfer: the schedule "
            "has no such forward\n");
  EXPECT_EQ(errors("0F0,0SEND_F0,0RECV_B0\n1RECV_F0,1F0\n"),
            "D1: rank 0: recv bwd of stage 0, micro-batch 0 has nothing to transfer: the schedule "
            "has no such backward\n");
}

TEST(TransferChecker, D1InsideAFusedGroup) {
  ReadSchedule read("0F0,0SEND_F0,0RECV_B0,(0F1;0B0)OVERLAP_F_B,0SEND_F1,0RECV_B1,0B1\n"
                    "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
  EXPECT_EQ(read.getErrors(), "");
  read.schedule.ranks[0].transfers[2].before = 2;
  DiagnosticSink sink;
  checkSchedule(read.schedule, sink);
  ASSERT_EQ(sink.diagnostics().size(), 1u);
  EXPECT_EQ(sink.diagnostics()[0].message, "D1: rank 0: send fwd of stage 0, micro-batch 1 stands "
                                           "between the members of a fused group");
}

TEST(TransferChecker, D2ReceivesInAnotherOrder) {
  ReadSchedule read("0F0,0F1,0SEND_F0,0SEND_F1\n1RECV_F1,1RECV_F0,1F0,1F1\n");
  EXPECT_EQ(read.getErrors(),
            "D2: rank 1: recv fwd of stage 1, micro-batch 1 comes before recv fwd of stage 1, "
            "micro-batch 0, but rank 0 sends the other way round; one kind of value from one rank "
            "to another arrives in the order of the sends\n");
  EXPECT_EQ(read.getNotes(), "rank 0: send fwd of stage 0, micro-batch 0 is here, before send fwd "
                             "of stage 0, micro-batch 1\n");
}

/// Both ranks send before they receive: that works only where a send does not wait.
TEST(TransferChecker, D3BothSendFirst) {
  ReadSchedule read("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                    "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
  EXPECT_EQ(read.getErrors(), "D3: the transfers cannot finish: 2 ranks wait for each other in a "
                              "circle; a send may block until its receive is reached\n");
  EXPECT_EQ(read.getNotes(),
            "rank 0: send fwd of stage 0, micro-batch 1 waits for recv fwd of stage 1, micro-batch "
            "1 on rank 1\n"
            "rank 1: recv fwd of stage 1, micro-batch 1 stands after send bwd of stage 1, "
            "micro-batch 0\n"
            "rank 1: send bwd of stage 1, micro-batch 0 waits for recv bwd of stage 0, micro-batch "
            "0 on rank 0\n"
            "rank 0: recv bwd of stage 0, micro-batch 0 stands after send fwd of stage 0, "
            "micro-batch 1\n");
}

TEST(TransferChecker, CountsWhatItDoesNotShow) {
  std::string first, second;
  for (int mb = 0; mb != 30; ++mb) {
    first += "0F" + std::to_string(mb) + ",";
    second += "1F" + std::to_string(mb) + ",";
  }
  EXPECT_THAT(errors(first + "0SEND_F0\n1RECV_F0," + second + "\n"),
              HasSubstr("38 more findings are not shown\n"));
}

//===----------------------------------------------------------------------===//
// The projection
//===----------------------------------------------------------------------===//

TEST(OwnTransfers, TheProjectionKeepsTheOrderThatIsWritten) {
  // The receive of the gradient stands long before it is needed.
  std::string text = "0F0,0SEND_F0,0RECV_B0,0F1,0SEND_F1,0B0,0RECV_B1,0B1,0REDUCE_GRAD\n"
                     "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1REDUCE_GRAD,1SEND_B1\n";
  ReadSchedule read(text);
  ASSERT_EQ(read.getErrors(), "");
  DiagnosticSink sink;
  OpIndex index = checkSchedule(read.schedule, sink);
  EXPECT_EQ(printTorchCsvComms(Timeline(index, {})), text);
}

TEST(OwnTransfers, ReductionsComeAfterTheLastProducerAndStepsAtTheEnd) {
  ReadSchedule read("0F0,0SEND_F0,1RECV_F1,1F1,1B1,1SEND_B1,0RECV_B0,0B0\n"
                    "0F1,1RECV_F0,0SEND_F1,1F0,0RECV_B1,0B1,1B0,1SEND_B0\n");
  ASSERT_EQ(read.getErrors(), "");
  DiagnosticSink sink;
  OpIndex index = checkSchedule(read.schedule, sink);
  Timeline timeline(index, {});
  using Kind = TimelineEntry::Kind;
  for (uint32_t rank = 0; rank != 2; ++rank) {
    std::vector<Kind> kinds;
    for (const TimelineEntry &entry : timeline.project(rank))
      if (entry.kind != Kind::Send && entry.kind != Kind::Recv)
        kinds.push_back(entry.kind);
    ASSERT_EQ(kinds.size(), 8u);
    EXPECT_EQ(std::count(kinds.begin(), kinds.end(), Kind::Reduce), 2);
    EXPECT_EQ(kinds[6], Kind::Step);
    EXPECT_EQ(kinds[7], Kind::Step);
  }
}

TEST(OwnTransfers, DropBackwardKeepsTheForwardTransfers) {
  ReadSchedule read(std::string(kFirst) + kSecond);
  dropBackward(read.schedule);
  EXPECT_FALSE(read.schedule.training);
  DiagnosticSink sink;
  OpIndex index = checkSchedule(read.schedule, sink);
  EXPECT_TRUE(sink.diagnostics().empty());
  EXPECT_EQ(printTorchCsvComms(Timeline(index, {})), "0F0,0SEND_F0\n1RECV_F0,1F0\n");
}

} // namespace
