//===- Names.cpp - what the parts of a rank are called in emitted code ------===//

#include "Names.h"

#include "dualpipe/Support/Quote.h"

#include <fmt/format.h>

#include <algorithm>

namespace dualpipe::runtime::emit {

using program::Command;
using program::CommandOp;
using program::kNone;
using program::StreamKind;

/// Groups of more ranks have a number.
static constexpr size_t kMaxNamedRanks = 4;
/// Commands of a function: compilers take long over very long ones.
static constexpr uint32_t kMaxCommands = 200;

static bool isLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::string toIdentifier(std::string_view text) {
  std::string name;
  for (const char c : text)
    name += isLetterOrDigit(c) ? c : '_';
  return name.empty() ? "unnamed" : name;
}

/// No line ends in it, and no '\' at its end, which would take in the next line.
std::string toComment(std::string_view text) {
  std::string comment = toUtf8(text);
  for (char &c : comment)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = ' ';
  if (comment.ends_with('\\'))
    comment += ' ';
  return comment;
}

std::string UniqueNames::add(const std::string &wanted) {
  uint32_t &count = counts[wanted];
  if (++count == 1)
    return wanted;
  return add(fmt::format("{}_{}", wanted, count));
}

Names::Names(const program::SharedInfo &shared, const program::RankProgram &rank)
    : shared(shared), rank(rank) {
  nameStreams();
  nameClasses();
  nameEvents();
  listParts();
}

//===--- Streams and slots --------------------------------------------------===//

std::string Names::describeStream(const program::Stream &stream) const {
  const auto getData = [&] {
    return shared.channels[stream.target].kind == program::SlotKind::Output ? "act" : "grad";
  };
  switch (stream.kind) {
  case StreamKind::Compute:
    return "compute";
  case StreamKind::Send:
    return fmt::format("{}_to_{}", getData(), shared.channels[stream.target].destination);
  case StreamKind::Recv:
    return fmt::format("{}_from_{}", getData(), shared.channels[stream.target].source);
  case StreamKind::Reduce: {
    const std::vector<uint32_t> &ranks = shared.reduceGroups[stream.target].ranks;
    return ranks.size() > kMaxNamedRanks ? fmt::format("sum_group_{}", stream.target)
                                         : fmt::format("sum_{}", fmt::join(ranks, "_"));
  }
  }
  return "stream";
}

void Names::nameStreams() {
  for (const program::Stream &stream : rank.streams)
    streams.push_back(unique.add(describeStream(stream)));
}

void Names::nameClasses() {
  uint32_t next = 0;
  for (const program::SlotClass &slotClass : rank.slotClasses) {
    std::string name = program::getName(slotClass.kind);
    if (shared.contract.numSizeGroups > 1)
      name += fmt::format("_g{}", slotClass.sizeGroup);
    classes.push_back(unique.add(name));
    firstSlots.push_back(next);
    next += slotClass.count;
  }
}

std::string Names::describeSlot(uint32_t slot) const {
  const auto after = std::upper_bound(firstSlots.begin(), firstSlots.end(), slot);
  const size_t index = size_t(after - firstSlots.begin()) - 1;
  return fmt::format("{}[{}]", classes[index], slot - firstSlots[index]);
}

//===--- Events -------------------------------------------------------------===//

std::string Names::describeLaunch(const program::Launch &launch) const {
  std::string name =
      fmt::format("{}_s{}_m{}", program::getName(launch.function), launch.stage, launch.microbatch);
  if (shared.contract.numComponents > 1)
    name += fmt::format("_c{}", launch.component);
  return name;
}

std::string Names::describePair(uint32_t first, uint32_t count) const {
  std::string name;
  for (uint32_t i = 0; i != count; ++i) {
    if (!name.empty())
      name += '_';
    name += describeLaunch(rank.launches[rank.commands[first + i].arg]);
  }
  return name;
}

/// What an event behind a command says.
std::string Names::describeResult(uint32_t index) const {
  const Command &command = rank.commands[index];
  switch (command.op) {
  case CommandOp::Launch:
    return describeLaunch(rank.launches[command.arg]) + "_done";
  case CommandOp::Pair:
    return describePair(index + 1, command.arg) + "_done";
  case CommandOp::Send:
  case CommandOp::Recv: {
    const program::Transfer &transfer = rank.transfers[command.arg];
    const bool isActivation = shared.channels[transfer.channel].kind == program::SlotKind::Output;
    return fmt::format("{}_s{}_m{}_{}", isActivation ? "act" : "grad", transfer.stage,
                       transfer.microbatch, command.op == CommandOp::Send ? "sent" : "here");
  }
  case CommandOp::Reduce:
    return fmt::format("sum_s{}_done", rank.reductions[command.arg].stage);
  case CommandOp::Step:
    return fmt::format("step_s{}_done", command.arg);
  case CommandOp::Group:
  case CommandOp::Record:
  case CommandOp::Wait:
    break;
  }
  return "begun";
}

/// After what comes last before their record on its stream.
void Names::nameEvents() {
  events.resize(rank.numEvents);
  std::vector<uint32_t> latest(rank.streams.size(), kNone); ///< by stream
  for (uint32_t i = 0; i != rank.commands.size(); ++i) {
    const Command &command = rank.commands[i];
    switch (command.op) {
    case CommandOp::Record: {
      const uint32_t behind = latest[command.stream];
      events[command.arg] =
          unique.add(behind == kNone ? streams[command.stream] + "_begun" : describeResult(behind));
      break;
    }
    case CommandOp::Pair:
      latest[command.stream] = i;
      i += command.arg;
      break;
    case CommandOp::Group:
      i += command.arg;
      latest[command.stream] = i;
      break;
    case CommandOp::Wait:
      break;
    default:
      latest[command.stream] = i;
    }
  }
}

//===--- Functions ----------------------------------------------------------===//

/// From `begin` to `end`, or to the end of a group or pair there, which is returned.
uint32_t Names::splitPhase(const std::string &phase, uint32_t begin, uint32_t end) {
  const std::string name = phase.empty() ? "commands" : "phase_" + toIdentifier(phase);
  uint32_t start = begin, next = begin;
  while (next < end) {
    const Command &command = rank.commands[next];
    const bool isBracket = command.op == CommandOp::Pair || command.op == CommandOp::Group;
    next += 1 + (isBracket ? command.arg : 0);
    if (next < end && next - start < kMaxCommands)
      continue;
    parts.push_back({unique.add(name), phase, start, next});
    start = next;
  }
  return next;
}

void Names::listParts() {
  std::string phase;
  uint32_t begin = 0;
  for (const program::PhaseMark &mark : rank.phases) {
    begin = splitPhase(phase, begin, mark.command);
    phase = shared.phaseNames[mark.name];
  }
  splitPhase(phase, begin, uint32_t(rank.commands.size()));
}

} // namespace dualpipe::runtime::emit
