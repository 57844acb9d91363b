//===- Trace.cpp - a step on a time line ------------------------------------===//

#include "dualpipe/Runtime/Trace.h"
#include "Names.h"
#include "Occupancy.h"

#include "dualpipe/Program/Verify.h"
#include "dualpipe/Support/Quote.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace dualpipe::runtime {

using program::Command;
using program::CommandOp;
using program::Function;
using program::kNone;
using program::RankProgram;

namespace {

/// An event as the format writes it.
struct Event {
  Ticks time;
  std::string text;
};

/// A command that is drawn, and the track of its stream that it is on, from 0.
struct Slice {
  uint32_t command;
  CommandTime time;
  uint32_t lane = 0;
};

/// One end of a transfer.
struct FlowEnd {
  uint32_t rank, track;
  CommandTime time;
};

/// What is open on a track: the last slice, and inside a pair the last member.
struct Lane {
  Ticks end = 0;
  uint32_t pairBegin = kNone, pairEnd = 0; ///< the members are the commands in between
  Ticks memberEnd = 0;
};

class TracePrinter {
public:
  TracePrinter(const program::Program &program, const std::vector<std::vector<CommandTime>> &times,
               const TraceOptions &options)
      : program(program), times(times), options(options), sends(program.shared.channels.size()),
        recvs(program.shared.channels.size()) {}
  std::string print();

private:
  void addRank(size_t index);
  void addStream(const RankProgram &rank, uint32_t stream, std::vector<Slice> slices);
  void addName(const RankProgram &rank, uint32_t track, const char *what, const std::string &value);
  void addSlice(const RankProgram &rank, const Slice &slice, uint32_t track);
  void addFlows();
  void addFlowEnd(const FlowEnd &end, Ticks time, uint64_t id, bool isStart);
  void addCounters(size_t index);
  void addCounter(const RankProgram &rank, const char *name, Ticks time, const std::string &values);
  bool isDrawn(size_t index, uint32_t command) const;
  std::vector<std::vector<Slice>> getSlices(size_t index) const;
  std::string printArgs(const RankProgram &rank, uint32_t command) const;
  std::string printTime(Ticks ticks) const;
  std::string printHead() const;

  const program::Program &program;
  const std::vector<std::vector<CommandTime>> &times;
  const TraceOptions &options;
  std::vector<std::string> names; ///< metadata events
  std::vector<Event> events;
  std::vector<std::vector<FlowEnd>> sends, recvs; ///< by channel, in order
  uint32_t numTracks = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// Microseconds, with as many places as a tick needs, up to six.
std::string TracePrinter::printTime(Ticks ticks) const {
  const Ticks whole = ticks / options.ticksPerMicrosecond;
  const Ticks rest = ticks % options.ticksPerMicrosecond;
  if (rest == 0)
    return fmt::format("{}", whole);
  std::string places =
      fmt::format("{:06}", Ticks(__int128(rest) * 1'000'000 / options.ticksPerMicrosecond));
  places.erase(places.find_last_not_of('0') + 1);
  return places.empty() ? fmt::format("{}", whole) : fmt::format("{}.{}", whole, places);
}

std::string TracePrinter::printHead() const {
  const program::SharedInfo &shared = program.shared;
  std::string text = fmt::format("{{\"displayTimeUnit\": \"ms\",\n\"otherData\": {{\"schedule\": "
                                 "{}, \"ranks\": \"{}\", \"stages\": \"{}\", \"microbatches\": "
                                 "\"{}\", \"producer\": {}",
                                 quoteJson(shared.schedule), shared.numRanks, shared.numStages,
                                 shared.numMicrobatches, quoteJson(shared.producer));
  for (const auto &[name, value] : options.notes)
    text += fmt::format(", {}: {}", quoteJson(name), quoteJson(value));
  return text + "},\n\"traceEvents\": [\n";
}

std::string TracePrinter::printArgs(const RankProgram &rank, uint32_t index) const {
  const Command &command = rank.commands[index];
  const Subject subject = getSubject(program.shared, rank, index);
  std::string text;
  if (subject.stage != kNone && command.op != CommandOp::Pair)
    text += fmt::format("\"stage\": {}, ", subject.stage);
  if (subject.microbatch != kNone && command.op != CommandOp::Pair)
    text += fmt::format("\"microbatch\": {}, ", subject.microbatch);
  return fmt::format("{{{}\"command\": {}, \"place\": {}}}", text, index,
                     quoteJson(program::describeLocation(program.shared, command.loc)));
}

/// "fwd 3", "fwd 3 + bwd 1", "send act 4", "step 2".
static std::string getSliceName(const program::SharedInfo &shared, const RankProgram &rank,
                                uint32_t index) {
  const Command &command = rank.commands[index];
  if (command.op == CommandOp::Pair) {
    std::string name;
    for (uint32_t i = index + 1; i <= index + command.arg; ++i)
      name += (name.empty() ? "" : " + ") + getSliceName(shared, rank, i);
    return name;
  }
  const Subject subject = getSubject(shared, rank, index);
  const uint32_t number = subject.microbatch != kNone ? subject.microbatch : subject.stage;
  return number == kNone ? subject.name : fmt::format("{} {}", subject.name, number);
}

//===----------------------------------------------------------------------===//
// Tracks
//===----------------------------------------------------------------------===//

bool TracePrinter::isDrawn(size_t index, uint32_t i) const {
  const RankProgram &rank = program.ranks[index];
  const Command &command = rank.commands[i];
  const bool takesTime = times[index][i].start != times[index][i].end;
  switch (command.op) {
  case CommandOp::Record:
  case CommandOp::Group: // its transfers are drawn
    return false;
  case CommandOp::Wait:
    return takesTime;
  case CommandOp::Launch: {
    const Function function = rank.launches[command.arg].function;
    return takesTime || (function != Function::LoadInput && function != Function::LoadLabels);
  }
  case CommandOp::Pair:
  case CommandOp::Send:
  case CommandOp::Recv:
  case CommandOp::Reduce:
  case CommandOp::Step:
    return true;
  }
  return true;
}

/// By stream, in order of time.
std::vector<std::vector<Slice>> TracePrinter::getSlices(size_t index) const {
  const RankProgram &rank = program.ranks[index];
  std::vector<std::vector<Slice>> slices(rank.streams.size());
  for (uint32_t i = 0; i != rank.commands.size(); ++i)
    if (isDrawn(index, i))
      slices[rank.commands[i].stream].push_back({i, getUnitTime(rank, times[index], i)});
  for (std::vector<Slice> &ofStream : slices)
    std::stable_sort(ofStream.begin(), ofStream.end(),
                     [](const Slice &a, const Slice &b) { return a.time.start < b.time.start; });
  return slices;
}

/// Whether a slice can stand on a track: behind all of it, or inside the pair it is a member of.
static bool take(Lane &lane, const Slice &slice, const Command &command) {
  const bool isMember = slice.command > lane.pairBegin && slice.command < lane.pairEnd;
  if (lane.end > slice.time.start && !(isMember && lane.memberEnd <= slice.time.start))
    return false;
  if (isMember && lane.end > slice.time.start) {
    lane.memberEnd = slice.time.end;
    return true;
  }
  lane = {slice.time.end, kNone, 0, 0};
  if (command.op == CommandOp::Pair)
    lane = {slice.time.end, slice.command, slice.command + 1 + command.arg, slice.time.start};
  return true;
}

static uint32_t layOut(const RankProgram &rank, std::vector<Slice> &slices) {
  std::vector<Lane> lanes(1);
  for (Slice &slice : slices) {
    const Command &command = rank.commands[slice.command];
    while (!take(lanes[slice.lane], slice, command))
      if (++slice.lane == lanes.size())
        lanes.emplace_back();
  }
  return uint32_t(lanes.size());
}

/// A metadata event: the name of a track or its place.
void TracePrinter::addName(const RankProgram &rank, uint32_t track, const char *what,
                           const std::string &value) {
  names.push_back(fmt::format("{{\"ph\": \"M\", \"name\": \"{}\", \"pid\": {}, \"tid\": {}, "
                              "\"args\": {{{}}}}}",
                              what, rank.rank + 1, track, value));
}

void TracePrinter::addSlice(const RankProgram &rank, const Slice &slice, uint32_t track) {
  const Ticks length = slice.time.end - slice.time.start;
  events.push_back(
      {slice.time.start,
       fmt::format("{{\"ph\": \"X\", \"name\": {}, \"cat\": {}, \"pid\": {}, \"tid\": {}, "
                   "\"ts\": {}, \"dur\": {}, \"args\": {}}}",
                   quoteJson(getSliceName(program.shared, rank, slice.command)),
                   quoteJson(getSubject(program.shared, rank, slice.command).name), rank.rank + 1,
                   track, printTime(slice.time.start), printTime(length),
                   printArgs(rank, slice.command))});
}

void TracePrinter::addStream(const RankProgram &rank, uint32_t stream, std::vector<Slice> slices) {
  const uint32_t first = numTracks;
  numTracks += layOut(rank, slices);
  const std::string name = describeStream(program.shared, rank.streams[stream]);
  for (uint32_t track = first; track != numTracks; ++track) {
    const std::string number = track == first ? "" : fmt::format(" ({})", track - first + 1);
    addName(rank, track, "thread_name", "\"name\": " + quoteJson(name + number));
    addName(rank, track, "thread_sort_index", fmt::format("\"sort_index\": {}", track));
  }
  for (const Slice &slice : slices) {
    const Command &command = rank.commands[slice.command];
    addSlice(rank, slice, first + slice.lane);
    if (command.op != CommandOp::Send && command.op != CommandOp::Recv)
      continue;
    const uint32_t channel = rank.transfers[command.arg].channel;
    (command.op == CommandOp::Send ? sends : recvs)[channel].push_back(
        {rank.rank, first + slice.lane, slice.time});
  }
}

void TracePrinter::addRank(size_t index) {
  const RankProgram &rank = program.ranks[index];
  addName(rank, numTracks, "process_name", fmt::format("\"name\": \"rank {}\"", rank.rank));
  addName(rank, numTracks, "process_sort_index", fmt::format("\"sort_index\": {}", rank.rank));
  std::vector<std::vector<Slice>> slices = getSlices(index);
  for (uint32_t stream = 0; stream != rank.streams.size(); ++stream)
    addStream(rank, stream, std::move(slices[stream]));
  addCounters(index);
}

//===----------------------------------------------------------------------===//
// Flows and counters
//===----------------------------------------------------------------------===//

/// Viewers tie the end of an arrow to the slice that encloses its time ("bp": "e").
void TracePrinter::addFlowEnd(const FlowEnd &end, Ticks time, uint64_t id, bool isStart) {
  events.push_back({time, fmt::format("{{\"ph\": \"{}\", \"name\": \"transfer\", \"cat\": "
                                      "\"transfer\", \"id\": {}, \"pid\": {}, \"tid\": {}, \"ts\": "
                                      "{}{}}}",
                                      isStart ? "s" : "f", id, end.rank + 1, end.track,
                                      printTime(time), isStart ? "" : ", \"bp\": \"e\"")});
}

/// The sends of a channel meet its receives in order. Where an end is on a rank that is not here,
/// there is no arrow.
void TracePrinter::addFlows() {
  uint64_t id = 0;
  for (size_t channel = 0; channel != sends.size(); ++channel) {
    const size_t count = std::min(sends[channel].size(), recvs[channel].size());
    for (size_t i = 0; i != count; ++i, ++id) {
      const FlowEnd &send = sends[channel][i], &recv = recvs[channel][i];
      addFlowEnd(send, send.time.start, id, true);
      addFlowEnd(recv, std::clamp(send.time.start, recv.time.start, recv.time.end), id, false);
    }
  }
}

void TracePrinter::addCounter(const RankProgram &rank, const char *name, Ticks time,
                              const std::string &values) {
  events.push_back({time, fmt::format("{{\"ph\": \"C\", \"name\": \"{}\", \"pid\": {}, \"tid\": 0, "
                                      "\"ts\": {}, \"args\": {{{}}}}}",
                                      name, rank.rank + 1, printTime(time), values)});
}

template <typename Number>
static std::string printByKind(const RankProgram &rank,
                               const std::array<Number, program::kNumSlotKinds> &values) {
  std::array<bool, program::kNumSlotKinds> exists{};
  for (const program::SlotClass &slotClass : rank.slotClasses)
    exists[unsigned(slotClass.kind)] = true;
  std::string text;
  for (unsigned kind = 0; kind != program::kNumSlotKinds; ++kind)
    if (exists[kind])
      text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ",
                          program::getName(program::SlotKind(kind)), values[kind]);
  return text;
}

void TracePrinter::addCounters(size_t index) {
  const RankProgram &rank = program.ranks[index];
  uint32_t activations = 0;
  for (const Occupancy &now :
       measureOccupancy(rank, program.shared, times[index], options.slotSize)) {
    if (now.activations != activations)
      addCounter(rank, "activations", now.time,
                 fmt::format("\"micro-batches\": {}", now.activations));
    activations = now.activations;
    addCounter(rank, "slots in use", now.time, printByKind(rank, now.slots));
    if (options.slotSize)
      addCounter(rank, "bytes in use", now.time, printByKind(rank, now.bytes));
  }
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

std::string TracePrinter::print() {
  for (size_t index = 0; index != program.ranks.size(); ++index)
    addRank(index);
  addFlows();
  std::stable_sort(events.begin(), events.end(),
                   [](const Event &a, const Event &b) { return a.time < b.time; });
  std::string text = printHead();
  const char *separator = "";
  for (const std::string &name : names) {
    text += separator + name;
    separator = ",\n";
  }
  for (const Event &event : events) {
    text += separator + event.text;
    separator = ",\n";
  }
  return text + "\n]}\n";
}

std::string printTrace(const program::Program &program,
                       const std::vector<std::vector<CommandTime>> &times,
                       const TraceOptions &options) {
  assert(times.size() == program.ranks.size() && "a trace needs the times of all ranks");
  return TracePrinter(program, times, options).print();
}

} // namespace dualpipe::runtime
