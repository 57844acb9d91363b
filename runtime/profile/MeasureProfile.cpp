//===- MeasureProfile.cpp - medians of what was recorded --------------------===//

#include "dualpipe/Runtime/Measured.h"
#include "dualpipe/Runtime/Profile.h"

#include "Median.h"

#include <algorithm>

namespace dualpipe::runtime {

using program::Command;
using program::CommandOp;
using program::kNone;
using program::RankProgram;

namespace {

/// Times of a compute, sample by sample.
struct Samples {
  std::vector<Ticks> time, cpu;
  void add(const CommandSpan &span) {
    time.push_back(span.own);
    cpu.push_back(std::min(span.cpu, span.own));
  }
};

/// Transfers of one size: the times until whoever needed the value went on, and those
/// of the transfers alone.
struct TransferSamples {
  std::vector<Ticks> seen, alone;
};

class Measuring {
public:
  Measuring(const program::Program &program, const ModelSizes &sizes)
      : program(program), sizes(sizes) {}
  Status add(const StepRecording &recording);
  void finish(Profile &profile) const;

private:
  void addCommand(uint32_t rank, uint32_t index);
  void addPair(uint32_t rank, uint32_t pair, uint32_t numMembers);
  void addTransfer(uint32_t rank, uint32_t index);
  void listConsumers();
  const CommandSpan &getSpan(uint32_t rank, uint32_t index) const {
    return recording->ranks[rank][index];
  }
  FunctionKey getKey(uint32_t rank, uint32_t index) const;
  uint64_t getBytes(const program::Transfer &transfer) const;

  const program::Program &program;
  const ModelSizes &sizes;
  const StepRecording *recording = nullptr;
  Simulation run;
  /// By rank and transfer: the compute that waited for it last of all, or none.
  std::vector<std::vector<uint32_t>> consumers;

  std::map<FunctionKey, Samples> functions;
  std::map<std::vector<FunctionKey>, Samples> pairs;
  std::map<uint64_t, TransferSamples> transfers;
  std::map<uint32_t, std::vector<Ticks>> reductions, stageSteps;
  std::vector<Ticks> makespans;
};

} // namespace

FunctionKey Measuring::getKey(uint32_t rank, uint32_t index) const {
  const RankProgram &own = program.ranks[rank];
  const program::Launch &launch = own.launches[own.commands[index].arg];
  return {launch.function, launch.stage, launch.component};
}

uint64_t Measuring::getBytes(const program::Transfer &transfer) const {
  const bool isActivation =
      program.shared.channels[transfer.channel].kind == program::SlotKind::Output;
  const auto kind = isActivation ? program::SlotKind::Input : program::SlotKind::GradOutput;
  return transfer.stage < sizes.stages.size() ? sizes.stages[transfer.stage].tensors[size_t(kind)]
                                              : 0;
}

static bool isCompute(CommandOp op) {
  return op == CommandOp::Launch || op == CommandOp::Pair || op == CommandOp::Step;
}

void Measuring::listConsumers() {
  consumers.assign(program.ranks.size(), {});
  for (uint32_t rank = 0; rank != program.ranks.size(); ++rank) {
    const RankProgram &own = program.ranks[rank];
    consumers[rank].assign(own.commands.size(), kNone);
    for (uint32_t i = 0; i != own.commands.size(); ++i) {
      const CommandRef after = run.commands[rank][i].after;
      if (isCompute(own.commands[i].op) && after.rank == rank &&
          own.commands[after.command].op == CommandOp::Recv)
        consumers[rank][after.command] = i;
      if (own.commands[i].op == CommandOp::Pair)
        i += own.commands[i].arg;
    }
  }
}

/// From the moment when both ends are there until the thread that waited for the value
/// is at work, without the time in which it had no core: waking it is part of the
/// latency. Where nobody waited, until the value is there.
void Measuring::addTransfer(uint32_t rank, uint32_t index) {
  const RankProgram &own = program.ranks[rank];
  const CommandSpan &span = getSpan(rank, index);
  TransferSamples &samples = transfers[getBytes(own.transfers[own.commands[index].arg])];
  samples.alone.push_back(span.end - span.begin);
  const uint32_t consumer = consumers[rank][index];
  if (consumer == kNone)
    return;
  const CommandSpan &compute = getSpan(rank, consumer);
  samples.seen.push_back(std::max(span.end, compute.begin - compute.queued) - span.begin);
}

/// The members of a pair that run one after the other have times of their own.
void Measuring::addPair(uint32_t rank, uint32_t pair, uint32_t numMembers) {
  if (getSpan(rank, pair + 1).end != 0) {
    for (uint32_t i = pair + 1; i <= pair + numMembers; ++i)
      functions[getKey(rank, i)].add(getSpan(rank, i));
    return;
  }
  std::vector<FunctionKey> members;
  for (uint32_t i = pair + 1; i <= pair + numMembers; ++i)
    members.push_back(getKey(rank, i));
  std::sort(members.begin(), members.end());
  pairs[members].add(getSpan(rank, pair));
}

void Measuring::addCommand(uint32_t rank, uint32_t index) {
  const RankProgram &own = program.ranks[rank];
  const Command &command = own.commands[index];
  const CommandSpan &span = getSpan(rank, index);
  switch (command.op) {
  case CommandOp::Launch:
    return functions[getKey(rank, index)].add(span);
  case CommandOp::Pair:
    return addPair(rank, index, command.arg);
  case CommandOp::Recv:
    return addTransfer(rank, index);
  case CommandOp::Reduce:
    return reductions[own.reductions[command.arg].stage].push_back(span.end - span.begin);
  case CommandOp::Step:
    return stageSteps[command.arg].push_back(span.own);
  case CommandOp::Send: // the other end of a receive
  case CommandOp::Group:
  case CommandOp::Record:
  case CommandOp::Wait:
    return;
  }
}

Status Measuring::add(const StepRecording &step) {
  Result<Simulation> read = readRecording(program, step);
  if (!read)
    return read.getStatus();
  recording = &step;
  run = std::move(*read);
  makespans.push_back(run.makespan);
  listConsumers();
  for (uint32_t rank = 0; rank != program.ranks.size(); ++rank) {
    const std::vector<Command> &commands = program.ranks[rank].commands;
    for (uint32_t i = 0; i != commands.size(); ++i) {
      addCommand(rank, i);
      if (commands[i].op == CommandOp::Pair)
        i += commands[i].arg;
    }
  }
  return Status::success();
}

static std::vector<StageProfile> listStages(const std::map<uint32_t, std::vector<Ticks>> &samples) {
  std::vector<StageProfile> stages;
  for (const auto &[stage, times] : samples)
    stages.push_back({stage, getMedian(times), times.size()});
  return stages;
}

void Measuring::finish(Profile &profile) const {
  profile.steps = uint32_t(makespans.size());
  profile.stepTime = getMedian(makespans);
  for (const auto &[key, samples] : functions)
    profile.functions.push_back(
        {key, getMedian(samples.time), getMedian(samples.cpu), samples.time.size()});
  for (const auto &[members, samples] : pairs)
    profile.pairs.push_back(
        {members, getMedian(samples.time), getMedian(samples.cpu), samples.time.size()});
  for (const auto &[bytes, samples] : transfers) {
    const std::vector<Ticks> &times = samples.seen.empty() ? samples.alone : samples.seen;
    profile.transfers.push_back({bytes, getMedian(times), times.size()});
  }
  profile.reductions = listStages(reductions);
  profile.stageSteps = listStages(stageSteps);
  fitTransfers(profile);
}

Result<Profile> measureProfile(const program::Program &program,
                               const std::vector<StepRecording> &recordings, ProfileOrigin origin,
                               ModelSizes sizes) {
  Profile profile;
  profile.origin = std::move(origin);
  profile.sizes = std::move(sizes);
  Measuring measuring(program, profile.sizes);
  bool any = false;
  for (const StepRecording &recording : recordings) {
    if (recording.step == 0)
      continue;
    any = true;
    if (Status status = measuring.add(recording); !status)
      return status;
  }
  if (!any)
    return Status::failure("nothing was recorded after the first step, which is left out of a "
                           "profile: run at least two steps");
  measuring.finish(profile);
  return profile;
}

} // namespace dualpipe::runtime
