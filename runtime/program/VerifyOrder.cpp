//===- VerifyOrder.cpp - P1 and P2: events and slots of one rank ------------===//
//
// P2 by vector clocks: every stream carries, for every stream of the rank, how
// many of its commands are known to have finished. A record copies the clock of
// its stream, a wait merges it. A slot keeps its last writer and, per stream,
// its last reader since; a new access is ordered if the clock covers them. The
// gradients of a copy of a stage are held to the same rule: backwards write
// them, a reduction reads and writes them, a step reads them. So are its
// weights, which are there from the beginning: stage functions read them, a step
// writes them.
//
//===----------------------------------------------------------------------===//

#include "Facts.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

namespace dualpipe::program {

Verdict verifyEvents(const SharedInfo &, const RankProgram &rank) {
  std::vector<uint32_t> recordedAt(rank.numEvents, kNone);
  for (uint32_t i = 0; i != rank.commands.size(); ++i) {
    const Command &command = rank.commands[i];
    if (command.op == CommandOp::Record) {
      uint32_t &recorded = recordedAt[command.arg];
      if (recorded != kNone) {
        Violation found = violation("P1", rank.rank, i, "the event is recorded a second time");
        found.notes.push_back({{rank.rank, recorded}, "recorded first here"});
        return found;
      }
      recorded = i;
    }
    if (command.op == CommandOp::Wait && recordedAt[command.arg] == kNone)
      return violation("P1", rank.rank, i, "waits for an event that nothing before it records");
  }
  return {};
}

namespace {

/// Walks one rank's commands with a vector clock per stream.
class SlotChecker {
public:
  SlotChecker(const SharedInfo &shared, const RankProgram &rank)
      : shared(shared), rank(rank), numStreams(uint32_t(rank.streams.size())),
        numSlots(rank.getNumSlots()), clocks(size_t(numStreams) * numStreams, 0),
        eventClocks(size_t(rank.numEvents)), slots(numSlots) {}

  Verdict run();

private:
  /// One access. `time` counts the commands of the stream, from 1; 0 is none.
  struct Access {
    uint32_t time = 0;
    uint32_t command = kNone;
  };
  struct Reader {
    uint32_t stream;
    Access last;
  };
  struct Slot {
    uint32_t writerStream = 0;
    Access writer;
    std::vector<Reader> readers; ///< since the writer, one per stream
  };

  /// What a copy of a stage has besides slots: its gradients and its weights.
  using CopyPart = std::pair<uint32_t, std::string_view>;

  uint32_t *clockOf(uint32_t stream) { return &clocks[size_t(stream) * numStreams]; }
  bool happenedBefore(uint32_t stream, uint32_t otherStream, const Access &other) {
    return other.time <= clockOf(stream)[otherStream];
  }

  Verdict unordered(uint32_t command, uint32_t slot, const char *what, const Access &other,
                    const char *otherWhat) const;
  Verdict read(uint32_t command, uint32_t slot);
  void addReader(uint32_t command, Slot &state);
  Verdict write(uint32_t command, uint32_t slot);
  Verdict access(uint32_t command);
  Verdict accessLaunch(uint32_t command, const Launch &launch);
  Verdict accumulate(uint32_t command, const Launch &launch);
  Verdict reduce(uint32_t command, uint32_t stage);
  Verdict step(uint32_t command, uint32_t stage);
  uint32_t gradientsOf(uint32_t stage) { return numberOf({stage, "gradients"}); }
  uint32_t weightsOf(uint32_t stage) { return numberOf({stage, "weights"}); }
  uint32_t numberOf(const CopyPart &part);
  std::string describe(uint32_t slot) const;
  void record(const Command &command);
  void wait(const Command &command);

  const SharedInfo &shared;
  const RankProgram &rank;
  const uint32_t numStreams;
  const uint32_t numSlots;
  std::map<CopyPart, uint32_t> copyParts; ///< numbers after those of the slots
  std::vector<uint32_t> clocks;
  std::vector<std::vector<uint32_t>> eventClocks;
  std::vector<Slot> slots; ///< by number, then the parts of copies
};

} // namespace

uint32_t SlotChecker::numberOf(const CopyPart &part) {
  const auto [entry, isNew] = copyParts.try_emplace(part, uint32_t(slots.size()));
  if (isNew)
    slots.emplace_back();
  return entry->second;
}

std::string SlotChecker::describe(uint32_t slot) const {
  for (const auto &[part, number] : copyParts)
    if (number == slot)
      return fmt::format("the {} of stage {}", part.second, part.first);
  return fmt::format("slot {}", slot);
}

Verdict SlotChecker::unordered(uint32_t command, uint32_t slot, const char *what,
                               const Access &other, const char *otherWhat) const {
  Violation found = violation("P2", rank.rank, command,
                              fmt::format("{} {} with no order after a command that {} it", what,
                                          describe(slot), otherWhat));
  found.notes.push_back({{rank.rank, other.command}, fmt::format("{} it here", otherWhat)});
  return found;
}

Verdict SlotChecker::read(uint32_t command, uint32_t slot) {
  const uint32_t stream = rank.commands[command].stream;
  Slot &state = slots[slot];
  if (state.writer.time == 0)
    return violation("P2", rank.rank, command,
                     fmt::format("reads {} before anything is written to it", describe(slot)));
  if (!happenedBefore(stream, state.writerStream, state.writer))
    return unordered(command, slot, "reads", state.writer, "writes");
  addReader(command, state);
  return {};
}

void SlotChecker::addReader(uint32_t command, Slot &state) {
  const uint32_t stream = rank.commands[command].stream;
  const Access now{clockOf(stream)[stream] + 1, command};
  for (Reader &reader : state.readers)
    if (reader.stream == stream) {
      reader.last = now;
      return;
    }
  state.readers.push_back({stream, now});
}

Verdict SlotChecker::write(uint32_t command, uint32_t slot) {
  const uint32_t stream = rank.commands[command].stream;
  Slot &state = slots[slot];
  if (!happenedBefore(stream, state.writerStream, state.writer))
    return unordered(command, slot, "writes", state.writer, "writes");
  for (const Reader &reader : state.readers)
    if (!happenedBefore(stream, reader.stream, reader.last))
      return unordered(command, slot, "writes", reader.last, "reads");
  state.readers.clear();
  state.writerStream = stream;
  state.writer = {clockOf(stream)[stream] + 1, command};
  return {};
}

/// Reads before writes, so that a launch that reads and writes one slot is found: its own write
/// is not ordered after its own read.
Verdict SlotChecker::accessLaunch(uint32_t command, const Launch &launch) {
  if (launch.function >= Function::Forward)
    addReader(command, slots[weightsOf(launch.stage)]);
  const Roles roles = getRoles(shared, launch);
  for (unsigned kind = 0; kind != kNumSlotKinds; ++kind)
    if (roles.reads & (1u << kind))
      if (Verdict verdict = read(command, launch.slots[kind]))
        return verdict;
  for (unsigned kind = 0; kind != kNumSlotKinds; ++kind)
    if (roles.writes & (1u << kind))
      if (Verdict verdict = write(command, launch.slots[kind]))
        return verdict;
  return accumulate(command, launch);
}

/// Adding to gradients that nothing wrote in this step would read those of the step before.
Verdict SlotChecker::accumulate(uint32_t command, const Launch &launch) {
  if (launch.function != Function::Backward && launch.function != Function::BackwardWeight)
    return {};
  const uint32_t slot = gradientsOf(launch.stage);
  if ((launch.flags & kAccumulate) && slots[slot].writer.time == 0)
    return violation("P2", rank.rank, command,
                     fmt::format("adds to {} before anything is written to it", describe(slot)));
  return write(command, slot);
}

Verdict SlotChecker::reduce(uint32_t command, uint32_t stage) {
  const uint32_t slot = gradientsOf(stage);
  if (slots[slot].writer.time == 0)
    return read(command, slot);
  return write(command, slot);
}

Verdict SlotChecker::step(uint32_t command, uint32_t stage) {
  if (Verdict verdict = read(command, gradientsOf(stage)))
    return verdict;
  return write(command, weightsOf(stage));
}

Verdict SlotChecker::access(uint32_t command) {
  const Command &what = rank.commands[command];
  switch (what.op) {
  case CommandOp::Launch:
    return accessLaunch(command, rank.launches[what.arg]);
  case CommandOp::Send:
    return read(command, rank.transfers[what.arg].slot);
  case CommandOp::Recv:
    return write(command, rank.transfers[what.arg].slot);
  case CommandOp::Record:
    record(what);
    return {};
  case CommandOp::Wait:
    wait(what);
    return {};
  case CommandOp::Reduce:
    return reduce(command, rank.reductions[what.arg].stage);
  case CommandOp::Step:
    return step(command, what.arg);
  case CommandOp::Pair:
  case CommandOp::Group:
    return {};
  }
  return {};
}

void SlotChecker::record(const Command &command) {
  const uint32_t *clock = clockOf(command.stream);
  eventClocks[command.arg].assign(clock, clock + numStreams);
}

void SlotChecker::wait(const Command &command) {
  uint32_t *clock = clockOf(command.stream);
  const std::vector<uint32_t> &event = eventClocks[command.arg];
  for (uint32_t stream = 0; stream != numStreams; ++stream)
    clock[stream] = std::max(clock[stream], event[stream]);
}

/// Members of a pair or group share one time: none is ordered after another.
Verdict SlotChecker::run() {
  for (uint32_t i = 0; i != rank.commands.size();) {
    const uint32_t stream = rank.commands[i].stream;
    const uint32_t end = i + 1 + getBracketSize(rank.commands[i]);
    for (; i != end; ++i)
      if (Verdict verdict = access(i))
        return verdict;
    ++clockOf(stream)[stream];
  }
  return {};
}

Verdict verifySlots(const SharedInfo &shared, const RankProgram &rank) {
  return SlotChecker(shared, rank).run();
}

} // namespace dualpipe::program
