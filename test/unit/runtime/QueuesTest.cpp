//===- QueuesTest.cpp - D3 for streams folded into queues -------------------===//

#include "TestPrograms.h"

#include "dualpipe/Program/Verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

std::vector<const RankProgram *> getRanks(const Program &program) {
  std::vector<const RankProgram *> ranks;
  for (const RankProgram &rank : program.ranks)
    ranks.push_back(&rank);
  return ranks;
}

std::string check(const Program &program, uint32_t numQueues) {
  const Status status =
      toStatus(program, verifyQueues(program.shared, getRanks(program), numQueues));
  return status.ok() ? "fine" : status.message();
}

/// A rank of two that send to each other at once: nothing comes before the send, or the receive.
RankProgram buildExchange(SharedInfo &shared, uint32_t number) {
  const uint32_t other = 1 - number;
  RankBuilder rank(shared, number);
  const uint32_t input = rank.addSlot(SlotKind::Input), received = rank.addSlot(SlotKind::Input);
  const uint32_t output = rank.addSlot(SlotKind::Output), labels = rank.addSlot(SlotKind::Labels);
  const uint32_t ready = rank.addEvent(), arrived = rank.addEvent();
  rank.launch(Function::LoadInput, 0, number, {{SlotKind::Input, input}});
  rank.launch(Function::Forward, 0, number, {{SlotKind::Input, input}, {SlotKind::Output, output}});
  rank.record(0, ready);
  rank.wait(rank.getStream(StreamKind::Send, number), ready);
  rank.send(number, output, 1, number);
  rank.recv(other, received, 1, other);
  rank.record(rank.getStream(StreamKind::Recv, other), arrived);
  rank.launch(Function::LoadLabels, 1, other, {{SlotKind::Labels, labels}});
  rank.wait(0, arrived);
  rank.launch(Function::Forward, 1, other,
              {{SlotKind::Input, received}, {SlotKind::Labels, labels}});
  return rank.finish();
}

/// Two ranks with a pipeline each way, one micro-batch in each.
Program buildBothSendFirst() {
  Program program;
  SharedInfo &shared = program.shared = makeShared(2, 2);
  shared.training = false;
  shared.pipelines = {{"down", 0, 2, 0, 1, {0, 1}}, {"up", 0, 2, 1, 1, {1, 0}}};
  addChannel(shared, 0, 1, SlotKind::Output);
  addChannel(shared, 1, 0, SlotKind::Output);
  for (uint32_t rank : {0, 1})
    program.ranks.push_back(buildExchange(shared, rank));
  sealChannels(program);
  return program;
}

TEST(QueuesTest, TwoRanksThatBothSendFirst) {
  const Program program = buildBothSendFirst();
  EXPECT_THAT(toStatus(program, verifyProgram(program)).message(), HasSubstr("D3: "));
  // Streams: 0 computes, 1 sends, 2 receives. A queue for each lets both go on, as do two: the
  // receive shares that of the computes. On one it is the one-queue rule.
  EXPECT_EQ(check(program, 0), "fine");
  EXPECT_EQ(check(program, 3), "fine");
  EXPECT_EQ(check(program, 2), "fine");
  const std::string stuck = check(program, 1);
  EXPECT_THAT(stuck,
              AllOf(HasSubstr("D3: rank 0, command 4: send of the activation for stage 1, "
                              "micro-batch 0 to rank 1 (test.pipe:"),
                    HasSubstr("the program cannot finish with 1 hardware queues per rank: 2 "
                              "commands wait for each other in a circle"),
                    HasSubstr("waits for command 5 of rank 1, which stands behind command 4 in "
                              "queue 0"),
                    HasSubstr("note: rank 1, command 4: send")));
}

TEST(QueuesTest, WholeProgramTakesTheWeakerRule) {
  const Program program = buildBothSendFirst();
  const Verdict weaker = verifyWholeProgram(program, {.numQueues = 0});
  EXPECT_FALSE(weaker && std::string(weaker->id) == "D3");
  const Verdict strict = verifyWholeProgram(program);
  ASSERT_TRUE(strict);
  EXPECT_STREQ(strict->id, "D3");
}

/// A queue that waits for an event of another, which waits for the first.
TEST(QueuesTest, FoldingPutsAWaitInTheWay) {
  Program program;
  SharedInfo &shared = program.shared = makeShared(2, 1);
  shared.training = false;
  const uint32_t down = addChannel(shared, 0, 1, SlotKind::Output);
  const uint32_t up = addChannel(shared, 1, 0, SlotKind::GradInput);
  // Rank 0 waits for the gradient before it sends; rank 1 sends it behind the activation. Streams
  // in the order of their making: compute, send down, receive up.
  RankBuilder first(shared, 0), second(shared, 1);
  const uint32_t output = first.addSlot(SlotKind::Output);
  const uint32_t gradient = first.addSlot(SlotKind::GradOutput), arrived = first.addEvent();
  first.getStream(StreamKind::Send, down);
  first.recv(up, gradient, 0, 0);
  first.record(first.getStream(StreamKind::Recv, up), arrived);
  first.wait(first.getStream(StreamKind::Send, down), arrived);
  first.send(down, output, 1, 0);
  const uint32_t input = second.addSlot(SlotKind::Input);
  const uint32_t made = second.addSlot(SlotKind::GradInput);
  second.recv(down, input, 1, 0);
  second.send(up, made, 0, 0);
  program.ranks = {first.finish(), second.finish()};
  // Rank 1's streams 1 and 2 share a queue of two only where 2 mod 2 is 0: with one, all do.
  EXPECT_EQ(check(program, 0), "fine");
  EXPECT_EQ(check(program, 2), "fine");
  EXPECT_THAT(check(program, 1), HasSubstr("2 commands wait for each other in a circle"));
}

TEST(QueuesTest, AWaitIsPartOfTheCircle) {
  Program program = buildBothSendFirst();
  // Rank 0 sends only what it has received, and so does rank 1.
  for (RankProgram &rank : program.ranks) {
    const Command wait = rank.commands[8];
    const Command recv = rank.commands[5], record = rank.commands[6];
    ASSERT_EQ(wait.op, CommandOp::Wait);
    rank.commands[3] = recv;
    rank.commands[4] = record;
    rank.commands[5] = {CommandOp::Wait, 1, wait.arg, wait.loc};
    rank.commands[6] = {CommandOp::Send, 1, 0, wait.loc};
  }
  const std::string stuck = check(program, 0);
  EXPECT_THAT(stuck, AllOf(HasSubstr("with a queue for every stream: 4 commands"),
                           HasSubstr("command 5: wait of event 1"),
                           HasSubstr("waits for command 4 of rank 0, which stands behind command 3 "
                                     "in queue 2"),
                           HasSubstr("waits for command 6 of rank 1, which stands behind command 5 "
                                     "in queue 1")));
}

TEST(QueuesTest, ReductionsMeetAllMembers) {
  Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 8, .mirrored = true});
  for (uint32_t numQueues : {0, 1, 2, 3, 4, 5})
    EXPECT_EQ(check(program, numQueues), "fine");
}

/// Exchanges two neighbours in the list of a rank at random places, so that some lists get stuck.
void shuffle(RankProgram &rank, std::mt19937 &random) {
  for (int times = 0; times != 5; ++times) {
    const size_t i = random() % (rank.commands.size() - 1);
    std::swap(rank.commands[i], rank.commands[i + 1]);
  }
}

/// Every channel and event still in order: what the rules of D3 rely on.
bool isOrdered(const Program &program) {
  for (const RankProgram &rank : program.ranks)
    if (verifyEvents(program.shared, rank))
      return false;
  return !verifyMatching(program.shared, getRanks(program));
}

TEST(QueuesTest, OneQueueIsTheOneQueueRule) {
  std::mt19937 random(1);
  uint32_t compared = 0, stuck = 0, loosened = 0;
  for (int i = 0; i != 3000; ++i) {
    Program program = buildPipelines(
        {.numRanks = 2, .numMicrobatches = 4, .mirrored = i % 2 == 0, .vShaped = i % 3 == 0});
    for (RankProgram &rank : program.ranks)
      shuffle(rank, random);
    if (!isOrdered(program))
      continue;
    ++compared;
    const bool rule = !verifyProgress(program.shared, getRanks(program));
    EXPECT_EQ(check(program, 1) == "fine", rule);
    // What passes on one queue passes on every number of them.
    for (uint32_t numQueues : {0, 2, 3, 5})
      EXPECT_TRUE(!rule || check(program, numQueues) == "fine");
    stuck += !rule;
    loosened += !rule && check(program, 0) == "fine";
  }
  EXPECT_GT(compared, 100u);
  EXPECT_GT(stuck, 20u);
  EXPECT_GT(loosened, 0u);
}

} // namespace
