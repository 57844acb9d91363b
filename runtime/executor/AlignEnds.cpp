//===- AlignEnds.cpp - when the ends of a transfer had all come -------------===//

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Recording.h"

#include <algorithm>

namespace dualpipe::runtime {

using program::Command;
using program::CommandOp;

namespace {

/// The spans of the ends of one transfer or reduction.
using Ends = std::vector<CommandSpan *>;

/// Ends by what they meet at, each in the order of its rank's list: the k-th of one rank meets the
/// k-th of another (D1).
class Meetings {
public:
  explicit Meetings(size_t numPlaces) : places(numPlaces) {}
  void add(size_t place, uint32_t rank, CommandSpan &span) {
    Place &own = places[place];
    if (own.rank != rank) {
      own.rank = rank;
      own.count = 0;
    }
    own.meetings.resize(std::max(own.meetings.size(), own.count + 1));
    own.meetings[own.count++].push_back(&span);
  }
  void align() const;

private:
  struct Place {
    std::vector<Ends> meetings;
    uint32_t rank = program::kNone; ///< whose ends come now
    size_t count = 0;               ///< of its ends so far
  };
  std::vector<Place> places;
};

} // namespace

void Meetings::align() const {
  for (const Place &place : places)
    for (const Ends &ends : place.meetings) {
      int64_t begin = ends.front()->begin;
      for (const CommandSpan *span : ends)
        begin = std::max(begin, span->begin);
      for (CommandSpan *span : ends)
        span->begin = std::min(begin, span->end);
    }
}

void alignEnds(const program::Program &program, StepRecording &recording) {
  Meetings transfers(program.shared.channels.size());
  Meetings reductions(program.shared.reduceGroups.size());
  for (uint32_t rank = 0; rank != program.ranks.size(); ++rank) {
    const program::RankProgram &own = program.ranks[rank];
    for (size_t i = 0; i != own.commands.size(); ++i) {
      const Command &command = own.commands[i];
      CommandSpan &span = recording.ranks[rank][i];
      if (command.op == CommandOp::Send || command.op == CommandOp::Recv)
        transfers.add(own.transfers[command.arg].channel, rank, span);
      else if (command.op == CommandOp::Reduce)
        reductions.add(own.reductions[command.arg].group, rank, span);
    }
  }
  transfers.align();
  reductions.align();
}

} // namespace dualpipe::runtime
