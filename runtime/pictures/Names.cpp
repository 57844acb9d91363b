//===- Names.cpp - commands and streams as the author of a schedule knows them //

#include "Names.h"

#include "dualpipe/Program/Keywords.h"

#include <fmt/format.h>

namespace dualpipe::runtime {

using program::Command;
using program::CommandOp;
using program::RankProgram;
using program::SharedInfo;
using program::SlotKind;
using program::StreamKind;

static const char *getKindName(const program::Channel &channel) {
  return channel.kind == SlotKind::Output ? "act" : "grad";
}

std::string describeStream(const SharedInfo &shared, const program::Stream &stream) {
  switch (stream.kind) {
  case StreamKind::Compute:
    return "compute";
  case StreamKind::Send: {
    const program::Channel &channel = shared.channels[stream.target];
    return fmt::format("send {} to {}", getKindName(channel), channel.destination);
  }
  case StreamKind::Recv: {
    const program::Channel &channel = shared.channels[stream.target];
    return fmt::format("recv {} from {}", getKindName(channel), channel.source);
  }
  case StreamKind::Reduce:
    return fmt::format("reduce [{}]", fmt::join(shared.reduceGroups[stream.target].ranks, ", "));
  }
  return "";
}

static Subject getTransfer(const SharedInfo &shared, const RankProgram &rank,
                           const Command &command) {
  const program::Transfer &transfer = rank.transfers[command.arg];
  return {fmt::format("{} {}", program::getName(command.op),
                      getKindName(shared.channels[transfer.channel])),
          transfer.stage, transfer.microbatch};
}

Subject getSubject(const SharedInfo &shared, const RankProgram &rank, uint32_t index) {
  const Command &command = rank.commands[index];
  switch (command.op) {
  case CommandOp::Launch: {
    const program::Launch &launch = rank.launches[command.arg];
    return {program::getKeyword(launch.function), launch.stage, launch.microbatch};
  }
  case CommandOp::Pair: {
    Subject subject = command.arg == 0 ? Subject() : getSubject(shared, rank, index + 1);
    subject.name = "fused";
    return subject;
  }
  case CommandOp::Send:
  case CommandOp::Recv:
    return getTransfer(shared, rank, command);
  case CommandOp::Reduce:
    return {"reduce", rank.reductions[command.arg].stage};
  case CommandOp::Step:
    return {"step", command.arg};
  case CommandOp::Group:
  case CommandOp::Record:
  case CommandOp::Wait:
    return {program::getName(command.op)};
  }
  return {};
}

} // namespace dualpipe::runtime
