//===- KnownFailuresTest.cpp - failures that others found on clusters -------===//
//
// Ways of communicating that are known to hang, made from compiled programs by
// moving receives and folding streams, and the sizes at which they do. The
// compiler's own lists pass every folding at every size.
//
//===----------------------------------------------------------------------===//

#include "test/support/CompileExample.h"

#include "dualpipe/Program/Queues.h"
#include "dualpipe/Target/Program.h"
#include "dualpipe/Transforms/Passes.h"
#include "test/support/Subject.h"
#include "test/unit/runtime/TestPrograms.h"

#include "mlir/IR/Verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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

/// Two ranks, forward only: rank 0 sends all its activations in one group, rank 1 receives them in
/// one.
Program buildOneGroup(uint32_t count) {
  Program program;
  program.shared = makeShared(2, count);
  program.shared.training = false;
  const uint32_t channel = addChannel(program.shared, 0, 1, SlotKind::Output);

  RankBuilder first(program.shared, 0);
  const uint32_t input = first.addSlot(SlotKind::Input);
  std::vector<uint32_t> outputs;
  for (uint32_t i = 0; i != count; ++i) {
    outputs.push_back(first.addSlot(SlotKind::Output));
    first.launch(Function::LoadInput, 0, i, {{SlotKind::Input, input}});
    first.launch(Function::Forward, 0, i,
                 {{SlotKind::Input, input}, {SlotKind::Output, outputs[i]}});
  }
  const uint32_t computed = first.addEvent();
  first.record(first.getStream(StreamKind::Compute), computed);
  first.wait(first.getStream(StreamKind::Send, channel), computed);
  for (uint32_t i = 0; i != count; ++i)
    first.send(channel, outputs[i], 1, i);

  RankBuilder second(program.shared, 1);
  const uint32_t labels = second.addSlot(SlotKind::Labels);
  std::vector<uint32_t> inputs;
  for (uint32_t i = 0; i != count; ++i) {
    inputs.push_back(second.addSlot(SlotKind::Input));
    second.recv(channel, inputs[i], 1, i);
  }
  const uint32_t received = second.addEvent();
  second.record(second.getStream(StreamKind::Recv, channel), received);
  second.wait(second.getStream(StreamKind::Compute), received);
  for (uint32_t i = 0; i != count; ++i) {
    second.launch(Function::LoadLabels, 1, i, {{SlotKind::Labels, labels}});
    second.launch(Function::Forward, 1, i,
                  {{SlotKind::Input, inputs[i]}, {SlotKind::Labels, labels}});
  }

  program.ranks = {first.finish(), second.finish()};
  sealChannels(program);
  for (RankProgram &rank : program.ranks) {
    const uint32_t at = std::min(find(rank, CommandOp::Send), find(rank, CommandOp::Recv));
    const Command bracket{CommandOp::Group, rank.commands[at].stream, count, 0};
    rank.commands.insert(rank.commands.begin() + at, bracket);
  }
  return program;
}

/// By rank, the sizes of its groups.
std::vector<std::vector<uint32_t>> listGroups(const Program &program) {
  std::vector<std::vector<uint32_t>> sizes(program.ranks.size());
  for (const RankProgram &rank : program.ranks)
    for (const Command &command : rank.commands)
      if (command.op == CommandOp::Group)
        sizes[rank.rank].push_back(command.arg);
  return sizes;
}

/// The way of a program through the stream dialect, where its groups are split.
Program splitGroupsOf(const Program &program, const std::vector<unsigned> &limitByRank) {
  mlir::MLIRContext context;
  context.loadDialect<stream::StreamDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> module = importProgram(program, &context);
  for (auto op : module->getOps<stream::ProgramOp>())
    splitGroups(op, limitByRank[op.getRank()]);
  EXPECT_TRUE(succeeded(mlir::verify(*module)));
  llvm::FailureOr<Program> split = exportModule(*module);
  EXPECT_TRUE(succeeded(split));
  return std::move(*split);
}

std::string findViolation(const Program &program) {
  const Status status = toStatus(program, verifyWholeProgram(program));
  return status.ok() ? "fine" : status.message();
}

TEST(KnownFailures, GroupOverTheLimitIsReportedAndSplit) {
  const Program program = buildOneGroup(600);
  EXPECT_THAT(
      findViolation(program),
      testing::HasSubstr("P5: rank 0, command 1202: group of 600 transfers (test.pipe:1:1): "
                         "600 transfers in one group, expected at most 256: more may hang a "
                         "device; compile with --group-limit=256, which splits them"));

  const Program split = splitGroupsOf(program, {256, 256});
  const std::vector<uint32_t> sizes = {256, 256, 88};
  EXPECT_EQ(listGroups(split), (std::vector<std::vector<uint32_t>>{sizes, sizes}));
  EXPECT_EQ(findViolation(split), "fine");
  const Subject subject("one group", split);
  for (uint64_t seed = 0; seed != 20; ++seed)
    EXPECT_EQ(subject.run(split, seed), "");
}

/// Parts need not meet parts: what matters is the order within the channel.
TEST(KnownFailures, GroupsAreSplitOnEachRankAsItLikes) {
  const Program program = buildOneGroup(40);
  for (const std::vector<unsigned> &limits :
       std::vector<std::vector<unsigned>>{{1, 40}, {40, 1}, {7, 16}, {16, 7}, {39, 2}, {1, 1}}) {
    const Program split = splitGroupsOf(program, limits);
    EXPECT_EQ(findViolation(split), "fine");
    EXPECT_EQ(listGroups(split)[0].size(), (40 + limits[0] - 1) / limits[0]);
    EXPECT_EQ(listGroups(split)[1].size(), (40 + limits[1] - 1) / limits[1]);
    const Subject subject("one group", split);
    for (uint64_t seed = 0; seed != 5; ++seed)
      EXPECT_EQ(subject.run(split, seed), "");
  }
}

} // namespace
