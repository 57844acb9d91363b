//===- ReadOrders.cpp - from a program back to order tables -----------------===//

#include "dualpipe/Target/ProgramOrders.h"

#include <fmt/format.h>
#include <optional>

using namespace dualpipe;
using program::Command;
using program::CommandOp;
using program::Function;

namespace {

class RankReader {
public:
  RankReader(const program::RankProgram &rank, const program::SharedInfo &shared)
      : rank(rank), shared(shared) {}

  RankOrder run();

private:
  void readCommand(uint32_t index);
  void readLaunch(const Command &command, uint32_t group);
  void readTransfer(const Command &command);
  /// Places beyond the table are the schedule itself.
  uint32_t getLoc(const Command &command) const {
    return command.loc < shared.locations.size() ? command.loc : 0;
  }

  const program::RankProgram &rank;
  const program::SharedInfo &shared;
  RankOrder order;
  uint32_t group = RankOrder::kAlone, nextGroup = 0, groupEnd = 0;
  size_t nextPhase = 0;
};

} // namespace

static std::optional<OpKind> getOpKind(Function function) {
  switch (function) {
  case Function::LoadInput:
  case Function::LoadLabels:
    return std::nullopt;
  case Function::Forward:
    return OpKind::Forward;
  case Function::Backward:
    return OpKind::Backward;
  case Function::BackwardInput:
    return OpKind::BackwardInput;
  case Function::BackwardWeight:
    return OpKind::BackwardWeight;
  }
  return std::nullopt;
}

void RankReader::readLaunch(const Command &command, uint32_t group) {
  const program::Launch &launch = rank.launches[command.arg];
  // Further components of a stage belong to the op of the first.
  std::optional<OpKind> kind = getOpKind(launch.function);
  if (kind && launch.component == 0)
    order.push(*kind, launch.stage, launch.microbatch, group, getLoc(command));
}

/// A program names the consumer's stage at both ends; the tables name the stage on the rank.
void RankReader::readTransfer(const Command &command) {
  const program::Transfer &transfer = rank.transfers[command.arg];
  bool isSend = command.op == CommandOp::Send;
  bool isGrad = shared.channels[transfer.channel].kind == program::SlotKind::GradInput;
  uint32_t stage = transfer.stage;
  if (isSend)
    stage = isGrad ? stage + 1 : stage - 1;
  order.pushTransfer(isSend, isGrad, stage, transfer.microbatch, getLoc(command));
}

void RankReader::readCommand(uint32_t index) {
  const Command &command = rank.commands[index];
  if (index == groupEnd)
    group = RankOrder::kAlone;
  switch (command.op) {
  case CommandOp::Launch:
    return readLaunch(command, group);
  case CommandOp::Pair:
    group = nextGroup++;
    groupEnd = index + 1 + command.arg;
    return;
  case CommandOp::Send:
  case CommandOp::Recv:
    return readTransfer(command);
  case CommandOp::Group:
  case CommandOp::Record:
  case CommandOp::Wait:
  case CommandOp::Reduce:
  case CommandOp::Step:
    return; // derived again from the order
  }
}

RankOrder RankReader::run() {
  for (uint32_t index = 0; index != rank.commands.size(); ++index) {
    for (; nextPhase != rank.phases.size() && rank.phases[nextPhase].command <= index; ++nextPhase)
      order.phases.push_back({rank.phases[nextPhase].name, uint32_t(order.size())});
    readCommand(index);
  }
  return std::move(order);
}

static void readShared(const program::SharedInfo &shared, Schedule &schedule) {
  schedule.name = shared.schedule;
  schedule.numRanks = shared.numRanks;
  schedule.numMicrobatches = shared.numMicrobatches;
  schedule.numStages = shared.numStages;
  schedule.training = shared.training;
  schedule.params = shared.params;
  schedule.model = shared.contract;
  schedule.phaseNames = shared.phaseNames;
  schedule.files = shared.files;
  for (const program::Location &loc : shared.locations)
    schedule.locations.push_back({loc.file, loc.line, loc.column});
  if (schedule.locations.empty())
    schedule.locations.push_back({});
  schedule.loc = schedule.locations[0];
  for (const program::PipelineInfo &info : shared.pipelines) {
    Pipeline &pipeline = schedule.pipelines.emplace_back();
    pipeline.name = info.name;
    pipeline.firstStage = info.firstStage;
    pipeline.numStages = info.numStages;
    pipeline.firstMicrobatch = info.firstMicrobatch;
    pipeline.numMicrobatches = info.numMicrobatches;
    pipeline.placement = info.placement;
    pipeline.loc = schedule.loc;
  }
}

/// The planning costs as the program states them.
static Status readCosts(const program::SharedInfo &shared, Costs &costs) {
  std::string text;
  for (const auto &[name, value] : shared.planCosts)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  Result<Costs> parsed = Costs::parse(text);
  if (!parsed)
    return Status::failure("the program's planning costs: " + parsed.message());
  costs = *parsed;
  return Status::success();
}

Result<Schedule> dualpipe::readOrders(const program::Program &program) {
  if (program.ranks.size() != program.shared.numRanks)
    return Status::failure(fmt::format("the program has {} of {} ranks, expected all of them",
                                       program.ranks.size(), program.shared.numRanks));
  Schedule schedule;
  readShared(program.shared, schedule);
  if (Status status = readCosts(program.shared, schedule.planCosts); !status)
    return status;
  for (const program::RankProgram &rank : program.ranks) {
    schedule.ranks.push_back(RankReader(rank, program.shared).run());
    schedule.ownsTransfers |= !schedule.ranks.back().transfers.empty();
  }
  return schedule;
}
