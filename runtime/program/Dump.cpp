//===- Dump.cpp - programs as text for people -------------------------------===//
//
// One line per command:
//
//   index  stream        command and its operands                          place
//      12  0 compute     forward  stage 2 mb 5  input=3 output=7 saved=11  x.pipe:14:9
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Program/Dump.h"
#include "dualpipe/Program/Memory.h"
#include "dualpipe/Program/Verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace dualpipe::program {

namespace {

/// Writes one program; `to` appends a formatted line part.
class Dumper {
public:
  explicit Dumper(const Program &program) : program(program), shared(program.shared) {}
  std::string run();

private:
  template <typename... Args> void to(fmt::format_string<Args...> format, Args &&...args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
  }

  void dumpShared();
  void dumpContract();
  void dumpChannels();
  void dumpRank(const RankProgram &rank);
  void dumpStreams(const RankProgram &rank);
  void dumpSlots(const RankProgram &rank);
  void dumpCommands(const RankProgram &rank);
  void dumpPhases(const RankProgram &rank, size_t command, size_t &next);
  std::string describeTarget(const Stream &stream) const;
  std::string describe(const RankProgram &rank, const Command &command) const;
  std::string describeLaunch(const Launch &launch) const;
  std::string describeTransfer(const RankProgram &rank, const Command &command) const;

  const Program &program;
  const SharedInfo &shared;
  std::string text;
};

} // namespace

/// "saved, grad_output" for bits 1 << SlotKind.
static std::string describeKinds(uint32_t bits) {
  std::string names;
  for (unsigned kind = 0; kind != kNumSlotKinds; ++kind)
    if (bits & (1u << kind))
      names += fmt::format("{}{}", names.empty() ? "" : ", ", getName(SlotKind(kind)));
  return names.empty() ? "nothing" : names;
}

std::string Dumper::run() {
  dumpShared();
  dumpContract();
  dumpChannels();
  for (const RankProgram &rank : program.ranks)
    dumpRank(rank);
  return std::move(text);
}

void Dumper::dumpShared() {
  to("schedule {} ({}), {}\n", shared.schedule, shared.producer,
     shared.training ? "training" : "forward only");
  to("  {} ranks, {} stages, {} micro-batches\n", shared.numRanks, shared.numStages,
     shared.numMicrobatches);
  for (const auto &[name, value] : shared.params)
    to("  parameter {} = {}\n", name, value);
  for (const auto &[name, value] : shared.planCosts)
    to("  planned cost {} = {}\n", name, value);
  for (const PipelineInfo &pipeline : shared.pipelines) {
    to("  pipeline {}: stages {} to {}", pipeline.name, pipeline.firstStage,
       pipeline.firstStage + pipeline.numStages - 1);
    if (pipeline.numMicrobatches == 0)
      to(", no micro-batches");
    else
      to(", micro-batches {} to {}", pipeline.firstMicrobatch,
         pipeline.firstMicrobatch + pipeline.numMicrobatches - 1);
    to(", on ranks {}\n", fmt::join(pipeline.placement, " "));
  }
}

void Dumper::dumpContract() {
  const Contract &contract = shared.contract;
  to("  contract: {} components, {} size groups\n", contract.numComponents, contract.numSizeGroups);
  to("    backward reads {}\n", describeKinds(contract.backwardReads));
  to("    backward_input reads {}\n", describeKinds(contract.backwardInputReads));
  to("    backward_weight reads {}\n", describeKinds(contract.backwardWeightReads));
}

void Dumper::dumpChannels() {
  for (size_t i = 0; i != shared.channels.size(); ++i) {
    const Channel &channel = shared.channels[i];
    to("  channel {:<3} rank {} -> rank {}, {}, {} transfers, digest {:016x}\n", i, channel.source,
       channel.destination, getName(channel.kind), channel.numTransfers, channel.digest);
  }
  for (size_t i = 0; i != shared.reduceGroups.size(); ++i)
    to("  reduce group {:<3} ranks {}\n", i, fmt::join(shared.reduceGroups[i].ranks, " "));
}

void Dumper::dumpRank(const RankProgram &rank) {
  to("\nrank {}: {} commands, {} events, {} slots\n", rank.rank, rank.commands.size(),
     rank.numEvents, rank.getNumSlots());
  dumpStreams(rank);
  dumpSlots(rank);
  dumpCommands(rank);
}

std::string Dumper::describeTarget(const Stream &stream) const {
  switch (stream.kind) {
  case StreamKind::Compute:
    return "";
  case StreamKind::Send:
    return fmt::format("channel {} to rank {}, {}", stream.target,
                       shared.channels[stream.target].destination,
                       getName(shared.channels[stream.target].kind));
  case StreamKind::Recv:
    return fmt::format("channel {} from rank {}, {}", stream.target,
                       shared.channels[stream.target].source,
                       getName(shared.channels[stream.target].kind));
  case StreamKind::Reduce:
    return fmt::format("group {} of ranks {}", stream.target,
                       fmt::join(shared.reduceGroups[stream.target].ranks, " "));
  }
  return "";
}

void Dumper::dumpStreams(const RankProgram &rank) {
  for (size_t i = 0; i != rank.streams.size(); ++i) {
    const std::string target = describeTarget(rank.streams[i]);
    to("  stream {:<3} {}{}{}\n", i, getName(rank.streams[i].kind), target.empty() ? "" : "  ",
       target);
  }
}

void Dumper::dumpSlots(const RankProgram &rank) {
  uint32_t first = 0;
  for (const ClassUse &use : measureSlots(rank, shared).classes) {
    const SlotClass &slotClass = use.slotClass;
    to("  slots {:<14} size group {}: {}", getName(slotClass.kind), slotClass.sizeGroup,
       slotClass.count);
    if (slotClass.count != 0)
      to(", numbers {} to {}", first, first + slotClass.count - 1);
    to(", {} spare, at most {} in use", slotClass.spares, use.peak);
    if (use.peak != 0)
      to(", first at command {}", use.peakCommand);
    to("\n");
    first += slotClass.count;
  }
}

std::string Dumper::describeLaunch(const Launch &launch) const {
  std::string line = fmt::format("{:<15} stage {} mb {}", getName(launch.function), launch.stage,
                                 launch.microbatch);
  if (shared.contract.numComponents > 1)
    line += fmt::format(" component {}", launch.component);
  for (unsigned kind = 0; kind != kNumSlotKinds; ++kind)
    if (launch.slots[kind] != kNone)
      line += fmt::format(" {}={}", getName(SlotKind(kind)), launch.slots[kind]);
  if (launch.flags & kAccumulate)
    line += " accumulate";
  if (launch.flags & kFirstStage)
    line += " first";
  if (launch.flags & kLastStage)
    line += " last";
  return line;
}

std::string Dumper::describeTransfer(const RankProgram &rank, const Command &command) const {
  const Transfer &transfer = rank.transfers[command.arg];
  const Channel &channel = shared.channels[transfer.channel];
  const bool sends = command.op == CommandOp::Send;
  return fmt::format("{:<15} stage {} mb {} slot={} {} rank {}", getName(command.op),
                     transfer.stage, transfer.microbatch, transfer.slot, sends ? "to" : "from",
                     sends ? channel.destination : channel.source);
}

std::string Dumper::describe(const RankProgram &rank, const Command &command) const {
  switch (command.op) {
  case CommandOp::Launch:
    return describeLaunch(rank.launches[command.arg]);
  case CommandOp::Send:
  case CommandOp::Recv:
    return describeTransfer(rank, command);
  case CommandOp::Reduce:
    return fmt::format("{:<15} stage {} group {}", getName(command.op),
                       rank.reductions[command.arg].stage, rank.reductions[command.arg].group);
  case CommandOp::Step:
    return fmt::format("{:<15} stage {}", getName(command.op), command.arg);
  case CommandOp::Record:
  case CommandOp::Wait:
    return fmt::format("{:<15} event {}", getName(command.op), command.arg);
  case CommandOp::Pair:
  case CommandOp::Group:
    return fmt::format("{:<15} of the next {}", getName(command.op), command.arg);
  }
  return "";
}

/// The phases from `next` on that begin at a command, or behind the last one.
void Dumper::dumpPhases(const RankProgram &rank, size_t command, size_t &next) {
  for (; next != rank.phases.size() && rank.phases[next].command == command; ++next)
    to("  phase \"{}\"\n", shared.phaseNames[rank.phases[next].name]);
}

void Dumper::dumpCommands(const RankProgram &rank) {
  size_t width = 0;
  std::vector<std::string> lines;
  uint32_t bracketEnd = 0;
  for (uint32_t i = 0; i != rank.commands.size(); ++i) {
    const Command &command = rank.commands[i];
    lines.push_back((i < bracketEnd ? "  " : "") + describe(rank, command));
    width = std::max(width, lines.back().size());
    if (command.op == CommandOp::Pair || command.op == CommandOp::Group)
      bracketEnd = i + 1 + command.arg;
  }
  size_t phase = 0;
  for (uint32_t i = 0; i != rank.commands.size(); ++i) {
    dumpPhases(rank, i, phase);
    const Command &command = rank.commands[i];
    to("  {:>6}  {:>2} {:<7}  {:<{}}  {}\n", i, command.stream,
       getName(rank.streams[command.stream].kind), lines[i], width,
       describeLocation(shared, command.loc));
  }
  dumpPhases(rank, rank.commands.size(), phase);
}

std::string dumpProgram(const Program &program) { return Dumper(program).run(); }

} // namespace dualpipe::program
