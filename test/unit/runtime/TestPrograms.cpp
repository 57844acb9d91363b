//===- TestPrograms.cpp - small programs, built by hand ---------------------===//

#include "TestPrograms.h"

#include <optional>

namespace dualpipe::test {

using namespace program;

/// Slots carry their kind in the high bits until `finish`.
static constexpr uint32_t kKindShift = 24;

RankBuilder::RankBuilder(SharedInfo &shared, uint32_t number) : shared(shared) {
  rank.rank = number;
  getStream(StreamKind::Compute);
  rank.phases.push_back({0, 0});
}

uint16_t RankBuilder::getStream(StreamKind kind, uint32_t target) {
  const auto [entry, isNew] = streams.try_emplace({kind, target}, uint16_t(rank.streams.size()));
  if (isNew)
    rank.streams.push_back({kind, target});
  return entry->second;
}

uint32_t RankBuilder::addSlot(SlotKind kind) {
  return (uint32_t(kind) << kKindShift) | counts[kind]++;
}

/// Every command has a source line of its own.
void RankBuilder::push(CommandOp op, uint16_t stream, uint32_t arg) {
  rank.commands.push_back({op, stream, arg, uint32_t(shared.locations.size())});
  shared.locations.push_back({0, uint32_t(shared.locations.size()) + 1, 3});
}

void RankBuilder::record(uint16_t stream, uint32_t event) {
  push(CommandOp::Record, stream, event);
}
void RankBuilder::wait(uint16_t stream, uint32_t event) { push(CommandOp::Wait, stream, event); }

static const PipelineInfo &getPipeline(const SharedInfo &shared, uint32_t microbatch) {
  for (const PipelineInfo &pipeline : shared.pipelines)
    if (microbatch - pipeline.firstMicrobatch < pipeline.numMicrobatches)
      return pipeline;
  return shared.pipelines.front();
}

void RankBuilder::launch(Function function, uint32_t stage, uint32_t microbatch,
                         const std::map<SlotKind, uint32_t> &slots, bool accumulate) {
  const PipelineInfo &pipeline = getPipeline(shared, microbatch);
  Launch launch{function, 0, 0, stage, microbatch, {}};
  launch.slots.fill(kNone);
  for (const auto &[kind, slot] : slots)
    launch.slots[unsigned(kind)] = slot;
  launch.flags =
      uint8_t((accumulate ? kAccumulate : 0) | (stage == pipeline.firstStage ? kFirstStage : 0) |
              (stage == pipeline.firstStage + pipeline.numStages - 1 ? kLastStage : 0));
  rank.launches.push_back(launch);
  push(CommandOp::Launch, 0, uint32_t(rank.launches.size()) - 1);
}

void RankBuilder::pair(uint32_t count) { push(CommandOp::Pair, 0, count); }

void RankBuilder::send(uint32_t channel, uint32_t slot, uint32_t stage, uint32_t microbatch) {
  rank.transfers.push_back({channel, slot, stage, microbatch});
  push(CommandOp::Send, getStream(StreamKind::Send, channel), uint32_t(rank.transfers.size()) - 1);
}

void RankBuilder::recv(uint32_t channel, uint32_t slot, uint32_t stage, uint32_t microbatch) {
  rank.transfers.push_back({channel, slot, stage, microbatch});
  push(CommandOp::Recv, getStream(StreamKind::Recv, channel), uint32_t(rank.transfers.size()) - 1);
}

void RankBuilder::reduce(uint32_t group, uint32_t stage) {
  rank.reductions.push_back({group, stage});
  push(CommandOp::Reduce, getStream(StreamKind::Reduce, group),
       uint32_t(rank.reductions.size()) - 1);
}

void RankBuilder::step(uint32_t stage) { push(CommandOp::Step, 0, stage); }

RankProgram RankBuilder::finish() {
  std::map<SlotKind, uint32_t> first;
  uint32_t next = 0;
  for (const auto &[kind, count] : counts) {
    first[kind] = next;
    next += count;
    rank.slotClasses.push_back({kind, 0, count, 0});
  }
  const auto number = [&](uint32_t slot) {
    return slot == kNone ? kNone
                         : first[SlotKind(slot >> kKindShift)] + (slot & ((1u << kKindShift) - 1));
  };
  for (Launch &launch : rank.launches)
    for (uint32_t &slot : launch.slots)
      slot = number(slot);
  for (Transfer &transfer : rank.transfers)
    transfer.slot = number(transfer.slot);
  return std::move(rank);
}

SharedInfo makeShared(uint32_t numRanks, uint32_t numMicrobatches) {
  SharedInfo shared;
  shared.schedule = "test";
  shared.producer = "unit test";
  shared.numRanks = numRanks;
  shared.numMicrobatches = numMicrobatches;
  shared.numStages = numRanks;
  shared.params = {{"P", numRanks}, {"M", numMicrobatches}};
  shared.planCosts = {{"fwd", "1"}, {"bwd", "2"}};
  shared.phaseNames = {"whole"};
  shared.files = {"test.pipe"};
  shared.locations = {{0, 1, 1}};
  PipelineInfo pipeline{"main", 0, numRanks, 0, numMicrobatches, {}};
  for (uint32_t stage = 0; stage != numRanks; ++stage)
    pipeline.placement.push_back(stage);
  shared.pipelines.push_back(pipeline);
  return shared;
}

uint32_t addChannel(SharedInfo &shared, uint32_t source, uint32_t destination, SlotKind kind) {
  for (uint32_t i = 0; i != shared.channels.size(); ++i)
    if (shared.channels[i].source == source && shared.channels[i].destination == destination &&
        shared.channels[i].kind == kind)
      return i;
  shared.channels.push_back({source, destination, kind, 0, kDigestSeed});
  return uint32_t(shared.channels.size()) - 1;
}

void sealChannels(Program &program) {
  for (Channel &channel : program.shared.channels) {
    channel.numTransfers = 0;
    channel.digest = kDigestSeed;
  }
  for (const RankProgram &rank : program.ranks)
    for (const Command &command : rank.commands) {
      if (command.op != CommandOp::Send)
        continue;
      const Transfer &transfer = rank.transfers[command.arg];
      Channel &channel = program.shared.channels[transfer.channel];
      ++channel.numTransfers;
      channel.digest = extendDigest(channel.digest, transfer.stage, transfer.microbatch);
    }
}

namespace {

/// A value on a rank: its slot, and the event after which it may be read (none
/// where the compute stream made it).
struct Value {
  uint32_t slot;
  std::optional<uint32_t> ready;
};

/// Builds all ranks side by side, in one global order of the compute ops.
class PipelinesBuilder {
public:
  explicit PipelinesBuilder(const PipelineOptions &options) : options(options) {
    makePipelines();
    for (uint32_t rank = 0; rank != options.numRanks; ++rank)
      ranks.emplace_back(program.shared, rank);
  }
  Program build();

private:
  using Key = std::pair<uint32_t, uint32_t>; ///< stage, micro-batch

  void makePipelines();
  void forward(const PipelineInfo &pipeline, uint32_t stage, uint32_t microbatch);
  void backward(const PipelineInfo &pipeline, uint32_t stage, uint32_t microbatch);
  void finishCopies();
  uint32_t use(RankBuilder &rank, const Value &value);
  Value hand(const PipelineInfo &pipeline, uint32_t from, uint32_t to, uint32_t microbatch,
             SlotKind kind, uint32_t slot);
  bool wasWritten(uint32_t rank, uint32_t stage) {
    return !written.insert({{rank, stage}, 0}).second;
  }

  const PipelineOptions options;
  Program program;
  std::vector<RankBuilder> ranks;
  std::map<Key, Value> inputs, gradOutputs;
  std::map<Key, uint32_t> saved;
  std::map<Key, int> written;
};

} // namespace

void PipelinesBuilder::makePipelines() {
  SharedInfo &shared = program.shared;
  shared = makeShared(options.numRanks, options.numMicrobatches);
  shared.training = options.training;
  PipelineInfo &main = shared.pipelines.front();
  if (options.vShaped) {
    shared.numStages = main.numStages = 2 * options.numRanks;
    for (uint32_t stage = options.numRanks; stage != main.numStages; ++stage)
      main.placement.push_back(main.numStages - 1 - stage);
  }
  if (options.mirrored) {
    PipelineInfo up = main;
    up.name = "up";
    main.numMicrobatches = options.numMicrobatches / 2;
    up.firstMicrobatch = main.numMicrobatches;
    up.numMicrobatches = options.numMicrobatches - main.numMicrobatches;
    for (uint32_t &rank : up.placement)
      rank = options.numRanks - 1 - rank;
    shared.pipelines.push_back(up);
  }
}

/// Waits on the compute stream until the value is there.
uint32_t PipelinesBuilder::use(RankBuilder &rank, const Value &value) {
  if (value.ready)
    rank.wait(0, *value.ready);
  return value.slot;
}

/// Brings a value to the rank of another stage, by transfer or hand-over.
Value PipelinesBuilder::hand(const PipelineInfo &pipeline, uint32_t from, uint32_t to,
                             uint32_t microbatch, SlotKind kind, uint32_t slot) {
  const uint32_t source = pipeline.placement[from], destination = pipeline.placement[to];
  if (source == destination)
    return {slot, {}};
  const uint32_t channel = addChannel(program.shared, source, destination, kind);
  RankBuilder &sender = ranks[source], &receiver = ranks[destination];
  const uint32_t produced = sender.addEvent();
  sender.record(0, produced);
  sender.wait(sender.getStream(StreamKind::Send, channel), produced);
  sender.send(channel, slot, to, microbatch);
  const uint32_t target =
      receiver.addSlot(kind == SlotKind::Output ? SlotKind::Input : SlotKind::GradOutput);
  receiver.recv(channel, target, to, microbatch);
  const uint32_t arrived = receiver.addEvent();
  receiver.record(receiver.getStream(StreamKind::Recv, channel), arrived);
  return {target, arrived};
}

void PipelinesBuilder::forward(const PipelineInfo &pipeline, uint32_t stage, uint32_t microbatch) {
  RankBuilder &rank = ranks[pipeline.placement[stage]];
  const bool last = stage + 1 == pipeline.numStages;
  std::map<SlotKind, uint32_t> slots;
  if (stage == 0) {
    inputs[{stage, microbatch}] = {rank.addSlot(SlotKind::Input), {}};
    rank.launch(Function::LoadInput, stage, microbatch,
                {{SlotKind::Input, inputs[{stage, microbatch}].slot}});
  }
  slots[SlotKind::Input] = use(rank, inputs.at({stage, microbatch}));
  if (options.training)
    slots[SlotKind::Saved] = saved[{stage, microbatch}] = rank.addSlot(SlotKind::Saved);
  if (last) {
    slots[SlotKind::Labels] = rank.addSlot(SlotKind::Labels);
    rank.launch(Function::LoadLabels, stage, microbatch,
                {{SlotKind::Labels, slots[SlotKind::Labels]}});
  } else {
    slots[SlotKind::Output] = rank.addSlot(SlotKind::Output);
  }
  rank.launch(Function::Forward, stage, microbatch, slots);
  if (!last)
    inputs[{stage + 1, microbatch}] =
        hand(pipeline, stage, stage + 1, microbatch, SlotKind::Output, slots[SlotKind::Output]);
}

void PipelinesBuilder::backward(const PipelineInfo &pipeline, uint32_t stage, uint32_t microbatch) {
  const uint32_t number = pipeline.placement[stage];
  RankBuilder &rank = ranks[number];
  std::map<SlotKind, uint32_t> slots = {{SlotKind::Saved, saved.at({stage, microbatch})}};
  if (stage + 1 != pipeline.numStages)
    slots[SlotKind::GradOutput] = use(rank, gradOutputs.at({stage, microbatch}));
  std::map<SlotKind, uint32_t> weightSlots = {{SlotKind::Saved, slots[SlotKind::Saved]}};
  if (stage != 0)
    slots[SlotKind::GradInput] = rank.addSlot(SlotKind::GradInput);
  const bool accumulate = wasWritten(number, stage);
  if (options.splitBackward) {
    slots[SlotKind::WeightContext] = weightSlots[SlotKind::WeightContext] =
        rank.addSlot(SlotKind::WeightContext);
    rank.launch(Function::BackwardInput, stage, microbatch, slots);
    rank.launch(Function::BackwardWeight, stage, microbatch, weightSlots, accumulate);
  } else {
    rank.launch(Function::Backward, stage, microbatch, slots, accumulate);
  }
  if (stage != 0)
    gradOutputs[{stage - 1, microbatch}] = hand(pipeline, stage, stage - 1, microbatch,
                                                SlotKind::GradInput, slots[SlotKind::GradInput]);
}

/// Sums the copies of each stage where there are two, then steps.
void PipelinesBuilder::finishCopies() {
  SharedInfo &shared = program.shared;
  for (uint32_t stage = 0; stage != shared.numStages; ++stage) {
    const uint32_t here = shared.pipelines.front().placement[stage];
    const uint32_t there = shared.pipelines.back().placement[stage];
    if (here == there) {
      ranks[here].step(stage);
      continue;
    }
    const uint32_t group = uint32_t(shared.reduceGroups.size());
    shared.reduceGroups.push_back({{std::min(here, there), std::max(here, there)}});
    for (uint32_t number : {here, there}) {
      RankBuilder &rank = ranks[number];
      const uint32_t ready = rank.addEvent(), summed = rank.addEvent();
      const uint16_t stream = rank.getStream(StreamKind::Reduce, group);
      rank.record(0, ready);
      rank.wait(stream, ready);
      rank.reduce(group, stage);
      rank.record(stream, summed);
      rank.wait(0, summed);
      rank.step(stage);
    }
  }
}

/// Alternates between the pipelines; a micro-batch goes backward two after its forward.
Program PipelinesBuilder::build() {
  const std::vector<PipelineInfo> &pipelines = program.shared.pipelines;
  const uint32_t most = pipelines.back().numMicrobatches;
  for (uint32_t i = 0; i != most + 2; ++i)
    for (size_t p = 0; p != pipelines.size(); ++p) {
      const PipelineInfo pipeline = pipelines[p];
      for (uint32_t stage = 0; i < pipeline.numMicrobatches && stage != pipeline.numStages; ++stage)
        forward(pipeline, stage, pipeline.firstMicrobatch + i);
      if (!options.training || i < 2 || i - 2 >= pipeline.numMicrobatches)
        continue;
      for (uint32_t stage = pipeline.numStages; stage-- != 0;)
        backward(pipeline, stage, pipeline.firstMicrobatch + i - 2);
    }
  if (options.training)
    finishCopies();
  for (RankBuilder &rank : ranks)
    program.ranks.push_back(rank.finish());
  sealChannels(program);
  return std::move(program);
}

Program buildPipelines(const PipelineOptions &options) { return PipelinesBuilder(options).build(); }

uint32_t find(const RankProgram &rank, CommandOp op, uint32_t from) {
  for (uint32_t i = from; i != rank.commands.size(); ++i)
    if (rank.commands[i].op == op)
      return i;
  return kNone;
}

uint32_t findLaunch(const RankProgram &rank, Function function, uint32_t microbatch) {
  for (uint32_t i = 0; i != rank.commands.size(); ++i)
    if (rank.commands[i].op == CommandOp::Launch &&
        rank.launches[rank.commands[i].arg].function == function &&
        rank.launches[rank.commands[i].arg].microbatch == microbatch)
      return i;
  return kNone;
}

Launch &getLaunch(RankProgram &rank, Function function, uint32_t microbatch) {
  return rank.launches[rank.commands[findLaunch(rank, function, microbatch)].arg];
}

void erase(RankProgram &rank, uint32_t command) {
  rank.commands.erase(rank.commands.begin() + command);
}

} // namespace dualpipe::test
