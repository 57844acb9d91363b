//===- Describe.cpp - programs in words, for messages -----------------------===//

#include "dualpipe/Program/Verify.h"

#include <fmt/format.h>

namespace dualpipe::program {

std::string describeLocation(const SharedInfo &shared, uint32_t loc) {
  if (loc >= shared.locations.size() || shared.locations[loc].line == 0)
    return "no place known";
  const Location &where = shared.locations[loc];
  if (where.file >= shared.files.size())
    return fmt::format("line {}:{}", where.line, where.column);
  return fmt::format("{}:{}:{}", shared.files[where.file], where.line, where.column);
}

static std::string describeLaunch(const RankProgram &rank, uint32_t index) {
  if (index >= rank.launches.size())
    return fmt::format("launch {}", index);
  const Launch &launch = rank.launches[index];
  return fmt::format("{} of stage {}, micro-batch {}", getName(launch.function), launch.stage,
                     launch.microbatch);
}

static std::string describeTransfer(const SharedInfo &shared, const RankProgram &rank,
                                    const Command &command) {
  const bool sends = command.op == CommandOp::Send;
  if (command.arg >= rank.transfers.size())
    return fmt::format("{} {}", getName(command.op), command.arg);
  const Transfer &transfer = rank.transfers[command.arg];
  if (transfer.channel >= shared.channels.size())
    return fmt::format("{} on channel {}", getName(command.op), transfer.channel);
  const Channel &channel = shared.channels[transfer.channel];
  return fmt::format("{} of the {} for stage {}, micro-batch {} {} rank {}", getName(command.op),
                     channel.kind == SlotKind::Output ? "activation" : "gradient", transfer.stage,
                     transfer.microbatch, sends ? "to" : "from",
                     sends ? channel.destination : channel.source);
}

static std::string describeReduction(const SharedInfo &shared, const RankProgram &rank,
                                     uint32_t index) {
  if (index >= rank.reductions.size() || rank.reductions[index].group >= shared.reduceGroups.size())
    return fmt::format("reduce {}", index);
  const Reduction &reduction = rank.reductions[index];
  return fmt::format("reduce of the gradients of stage {} over ranks {}", reduction.stage,
                     fmt::join(shared.reduceGroups[reduction.group].ranks, ", "));
}

static std::string describeOp(const SharedInfo &shared, const RankProgram &rank,
                              const Command &command) {
  switch (command.op) {
  case CommandOp::Launch:
    return describeLaunch(rank, command.arg);
  case CommandOp::Send:
  case CommandOp::Recv:
    return describeTransfer(shared, rank, command);
  case CommandOp::Reduce:
    return describeReduction(shared, rank, command.arg);
  case CommandOp::Pair:
    return fmt::format("pair of {} launches", command.arg);
  case CommandOp::Group:
    return fmt::format("group of {} transfers", command.arg);
  case CommandOp::Record:
  case CommandOp::Wait:
    return fmt::format("{} of event {}", getName(command.op), command.arg);
  case CommandOp::Step:
    return fmt::format("optimizer step of stage {}", command.arg);
  }
  return "unknown command";
}

std::string describeCommand(const SharedInfo &shared, const RankProgram &rank, uint32_t command) {
  const std::string where = fmt::format("rank {}, command {}", rank.rank, command);
  if (command >= rank.commands.size())
    return where;
  const Command &what = rank.commands[command];
  return fmt::format("{}: {} ({})", where, describeOp(shared, rank, what),
                     describeLocation(shared, what.loc));
}

static const RankProgram *findRank(const Program &program, uint32_t rank) {
  for (const RankProgram &candidate : program.ranks)
    if (candidate.rank == rank)
      return &candidate;
  return nullptr;
}

static std::string describePlace(const Program &program, const CommandRef &where) {
  if (where.rank == kNone)
    return "shared section";
  const RankProgram *rank = findRank(program, where.rank);
  if (!rank || where.command == kNone)
    return fmt::format("rank {}", where.rank);
  return describeCommand(program.shared, *rank, where.command);
}

Status toStatus(const Program &program, const Verdict &verdict) {
  if (!verdict)
    return Status::success();
  std::string text = fmt::format("{}: {}: {}", verdict->id, describePlace(program, verdict->where),
                                 verdict->message);
  for (const Violation::Note &note : verdict->notes)
    text += fmt::format("\n  note: {}: {}", describePlace(program, note.where), note.message);
  return Status::failure(std::move(text));
}

} // namespace dualpipe::program
