//===- ProgramTest.cpp - what compiled programs look like -------------------===//

#include "test/support/CompileExample.h"

#include "dualpipe/Program/Verify.h"
#include "dualpipe/Program/Writer.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

TEST(Program, OneChannelPerDirectionAndKind) {
  CompiledExample example("dualpipe", 4, 8);
  std::set<std::tuple<uint32_t, uint32_t, program::SlotKind>> seen;
  for (const program::Channel &channel : example.program.shared.channels) {
    EXPECT_TRUE(seen.insert({channel.source, channel.destination, channel.kind}).second);
    EXPECT_EQ(channel.numTransfers, 4u);
  }
  // Three pairs of neighbours, two directions, activations and gradients.
  EXPECT_EQ(seen.size(), 12u);
}

TEST(Program, EveryChannelEndHasAStreamOfItsOwn) {
  CompiledExample example("dualpipe", 6, 12);
  for (const program::RankProgram &rank : example.program.ranks) {
    std::set<std::pair<program::StreamKind, uint32_t>> streams;
    for (const program::Stream &stream : rank.streams)
      EXPECT_TRUE(streams.insert({stream.kind, stream.target}).second);
    for (const program::Command &command : rank.commands)
      if (command.op == program::CommandOp::Send || command.op == program::CommandOp::Recv) {
        const program::Stream &stream = rank.streams[command.stream];
        EXPECT_EQ(stream.target, rank.transfers[command.arg].channel);
      }
  }
}

/// The class that a channel's end on `rank` uses, or nothing where it has none.
std::optional<program::SlotKind> classOfEnd(const program::Channel &channel, uint32_t rank) {
  if (channel.source == rank)
    return channel.kind;
  if (channel.destination != rank)
    return std::nullopt;
  return channel.kind == program::SlotKind::Output ? program::SlotKind::Input
                                                   : program::SlotKind::GradOutput;
}

TEST(Program, EveryChannelHasOneSpareSlotAtBothEnds) {
  CompiledExample example("dualpipev", 4, 10);
  for (const program::RankProgram &rank : example.program.ranks) {
    std::map<program::SlotKind, uint32_t> channels;
    for (const program::Channel &channel : example.program.shared.channels)
      if (auto kind = classOfEnd(channel, rank.rank))
        ++channels[*kind];
    for (const program::SlotClass &slots : rank.slotClasses)
      EXPECT_EQ(slots.spares, channels[slots.kind]) << program::getName(slots.kind);
  }
}

/// The place of every compute op of a rank, by function, stage and micro-batch.
using Places = std::map<std::tuple<program::Function, uint32_t, uint32_t>, uint32_t>;
Places getPlaces(const RankOrder &order) {
  Places places;
  for (size_t op = 0; op != order.size(); ++op) {
    auto function =
        program::Function(unsigned(program::Function::Forward) + unsigned(order.kind[op]));
    places[{function, order.stage[op], order.microbatch[op]}] = order.loc[op];
  }
  return places;
}

TEST(Program, CommandsCarryTheLineOfTheirOp) {
  CompiledExample example("dualpipe", 4, 8);
  const program::SharedInfo &shared = example.program.shared;
  ASSERT_EQ(shared.locations.size(), example.schedule.locations.size());
  for (const program::RankProgram &rank : example.program.ranks) {
    Places places = getPlaces(example.schedule.ranks[rank.rank]);
    for (uint32_t i = 0; i != rank.commands.size(); ++i) {
      const program::Command &command = rank.commands[i];
      EXPECT_NE(command.loc, 0u) << "lost by " << program::describeCommand(shared, rank, i);
      if (command.op != program::CommandOp::Launch)
        continue;
      const program::Launch &launch = rank.launches[command.arg];
      auto place = places.find({launch.function, launch.stage, launch.microbatch});
      if (place != places.end())
        EXPECT_EQ(command.loc, place->second) << program::describeCommand(shared, rank, i);
      else
        EXPECT_LT(launch.function, program::Function::Forward);
    }
  }
}

TEST(Program, EveryCheckHolds) {
  for (auto [name, ranks, microbatches] :
       std::vector<std::tuple<const char *, uint32_t, uint32_t>>{{"dualpipe", 2, 4},
                                                                 {"dualpipe", 10, 26},
                                                                 {"dualpipev", 1, 2},
                                                                 {"dualpipev", 6, 12},
                                                                 {"1f1b", 1, 1},
                                                                 {"1f1b", 8, 3}}) {
    CompiledExample example(name, ranks, microbatches);
    program::Verdict verdict = program::verifyWholeProgram(example.program);
    EXPECT_FALSE(verdict) << program::toStatus(example.program, verdict).message();
  }
}

TEST(Program, CompilesOneRankAsItCompilesAll) {
  CompiledExample all("dualpipe", 8, 20);
  CompileOptions options;
  options.onlyRank = 5;
  CompiledExample one("dualpipe", 8, 20, options);
  ASSERT_EQ(one.program.ranks.size(), 1u);
  EXPECT_EQ(one.program.ranks[0].rank, 5u);
  EXPECT_EQ(program::serializeRank(one.program.ranks[0]),
            program::serializeRank(all.program.ranks[5]));
}

} // namespace
