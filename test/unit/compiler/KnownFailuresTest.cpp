//===- KnownFailuresTest.cpp - failures that others found on clusters -------===//
//
// Ways of communicating that are known to hang, made from compiled programs by
// moving receives and folding streams, and the sizes at which they do. The
// compiler's own lists pass every folding at every size.
//
//===----------------------------------------------------------------------===//

#include "test/support/CompileExample.h"

#include "dualpipe/Program/Queues.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::test;

namespace {

/// Moves every receive to where its value is first waited for, with the commands that stand
/// before and behind it on its stream: what a loop that receives just in time does.
class JustInTime {
public:
  explicit JustInTime(RankProgram &rank) : rank(rank), recordedOn(rank.numEvents) {}

  void run() {
    for (const Command &command : rank.commands) {
      if (command.op == CommandOp::Record)
        recordedOn[command.arg] = command.stream;
      if (rank.streams[command.stream].kind == StreamKind::Recv) {
        pending[command.stream].push_back(command);
        continue;
      }
      if (command.op == CommandOp::Wait)
        flushUpTo(command.arg);
      list.push_back(command);
    }
    for (auto &[stream, commands] : pending)
      list.insert(list.end(), commands.begin(), commands.end());
    rank.commands = std::move(list);
    rank.phases.clear();
  }

private:
  bool isPending(uint16_t stream, uint32_t event) {
    for (const Command &command : pending[stream])
      if (command.op == CommandOp::Record && command.arg == event)
        return true;
    return false;
  }
  /// The event's stream goes on until it is recorded, and whatever that waits for before it.
  void flushUpTo(uint32_t event) {
    const uint16_t stream = recordedOn[event];
    while (isPending(stream, event)) {
      const Command next = pending[stream].front();
      pending[stream].pop_front();
      if (next.op == CommandOp::Wait)
        flushUpTo(next.arg);
      list.push_back(next);
    }
  }

  RankProgram &rank;
  std::vector<uint16_t> recordedOn; ///< by event: the stream
  std::map<uint16_t, std::deque<Command>> pending;
  std::vector<Command> list;
};

Program receiveJustInTime(Program program) {
  for (RankProgram &rank : program.ranks)
    JustInTime(rank).run();
  return program;
}

enum class Folding {
  PerStream,
  PerDirectedEdge, ///< one queue for all that goes to a peer, one for all that comes from it
  PerPeer,         ///< one queue for all that goes to a peer or comes from it
  PerRank,         ///< one queue for all transfers of the rank
};

/// Streams that are folded together use the queue of the first of them.
QueueFolding fold(const SharedInfo &shared, Folding folding) {
  const auto key = [&shared, folding](const Stream &stream) -> std::pair<unsigned, uint32_t> {
    const bool sends = stream.kind == StreamKind::Send;
    if (!sends && stream.kind != StreamKind::Recv)
      return {unsigned(stream.kind), stream.target};
    if (folding == Folding::PerRank)
      return {10, 0};
    const Channel &channel = shared.channels[stream.target];
    const uint32_t peer = sends ? channel.destination : channel.source;
    return {folding == Folding::PerDirectedEdge && sends ? 11 : 10, peer};
  };
  const auto getQueue = [key, folding](const RankProgram &rank, uint32_t stream) {
    if (folding == Folding::PerStream)
      return stream;
    uint32_t first = 0;
    while (key(rank.streams[first]) != key(rank.streams[stream]))
      ++first;
    return first;
  };
  return {getQueue, "on folded queues"};
}

std::vector<const RankProgram *> getRanks(const Program &program) {
  std::vector<const RankProgram *> ranks;
  for (const RankProgram &rank : program.ranks)
    ranks.push_back(&rank);
  return ranks;
}

bool finishes(const Program &program, Folding folding) {
  const Verdict verdict =
      verifyFolding(program.shared, getRanks(program), fold(program.shared, folding));
  if (verdict) {
    EXPECT_STREQ(verdict->id, "D3");
    EXPECT_FALSE(verdict->notes.empty()) << verdict->message;
  }
  return !verdict;
}

Program compile(const char *name, uint32_t ranks, uint32_t microbatches) {
  return CompiledExample(name, ranks, microbatches).program;
}

TEST(KnownFailures, JustInTimeReceivesOfDualPipe) {
  for (auto [ranks, expected] :
       std::vector<std::pair<uint32_t, bool>>{{2, true}, {4, true}, {6, false}, {8, false}}) {
    const Program program = compile("dualpipe", ranks, 2 * ranks + 2);
    EXPECT_EQ(finishes(receiveJustInTime(program), Folding::PerDirectedEdge), expected) << ranks;
    EXPECT_TRUE(finishes(program, Folding::PerDirectedEdge)) << ranks;
  }
}

TEST(KnownFailures, JustInTimeReceivesOfDualPipeV) {
  for (auto [ranks, expected] :
       std::vector<std::pair<uint32_t, bool>>{{2, true}, {3, false}, {4, false}}) {
    const Program program = compile("dualpipev", ranks, 2 * ranks + 2);
    EXPECT_EQ(finishes(receiveJustInTime(program), Folding::PerDirectedEdge), expected) << ranks;
    EXPECT_TRUE(finishes(program, Folding::PerDirectedEdge)) << ranks;
  }
}

TEST(KnownFailures, OneQueuePerPeerWithBothDirectionsInFlight) {
  const Program program = compile("1f1b", 4, 8);
  const Program late = receiveJustInTime(program);
  EXPECT_FALSE(finishes(late, Folding::PerPeer));
  EXPECT_TRUE(finishes(late, Folding::PerDirectedEdge));
  EXPECT_TRUE(finishes(program, Folding::PerPeer));
}

TEST(KnownFailures, InterleavedOrderOnOneQueuePerRank) {
  const Program program = compile("interleaved", 4, 8);
  const Program late = receiveJustInTime(program);
  EXPECT_FALSE(finishes(late, Folding::PerRank));
  EXPECT_TRUE(finishes(program, Folding::PerRank));
}

/// On two ranks of an interleaved schedule the next and the previous rank are one: activations go
/// to it and come from it.
TEST(KnownFailures, PreviousAndNextRankAreTheSame) {
  const Program program = compile("interleaved", 2, 4);
  EXPECT_EQ(program.shared.channels.size(), 4u);
  EXPECT_FALSE(verifyWholeProgram(program));
  for (Folding folding :
       {Folding::PerStream, Folding::PerDirectedEdge, Folding::PerPeer, Folding::PerRank})
    EXPECT_TRUE(finishes(program, folding));
  EXPECT_FALSE(finishes(receiveJustInTime(program), Folding::PerPeer));
}

TEST(KnownFailures, FewerMicrobatchesThanRanks) {
  for (uint32_t microbatches : {1, 2, 3}) {
    const Program program = compile("1f1b", 8, microbatches);
    const Verdict verdict = verifyWholeProgram(program);
    EXPECT_FALSE(verdict) << toStatus(program, verdict).message();
  }
}

} // namespace
