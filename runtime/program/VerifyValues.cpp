//===- VerifyValues.cpp - D5: every slot holds what its reader names --------===//
//
// Runs a rank's commands in issue order on symbols: a slot holds the name of the
// value that was written to it last. P2 orders every pair of accesses of which one
// writes as the list does, so what a read finds here it finds in every run.
//
// A value is named for the stage that consumes it: the output of stage 2 is the
// activation for stage 3, on the rank that makes it and on the one that gets it.
//
//===----------------------------------------------------------------------===//

#include "Work.h"

#include <fmt/format.h>

namespace dualpipe::program {

std::vector<PlacedStage> getPlacedStages(const SharedInfo &shared, uint32_t rank) {
  std::vector<PlacedStage> placed;
  for (const PipelineInfo &pipeline : shared.pipelines)
    for (uint32_t i = 0; pipeline.numMicrobatches != 0 && i != pipeline.numStages; ++i)
      if (pipeline.placement[i] == rank)
        placed.push_back(
            {pipeline.firstStage + i, pipeline.firstMicrobatch, pipeline.numMicrobatches});
  std::sort(placed.begin(), placed.end(), [](const PlacedStage &a, const PlacedStage &b) {
    return std::pair(a.stage, a.firstMicrobatch) < std::pair(b.stage, b.firstMicrobatch);
  });
  return placed;
}

std::string describeTask(uint32_t stage, uint32_t microbatch) {
  return fmt::format("stage {}, micro-batch {}", stage, microbatch);
}

namespace {

/// What a slot holds. `kind` is what the value is for its consumer.
struct Value {
  SlotKind kind;
  uint32_t stage;
  uint32_t microbatch;

  bool operator==(const Value &) const = default;
};

/// Walks the commands and keeps the value of every slot.
class ValueChecker {
public:
  ValueChecker(const SharedInfo &shared, const RankProgram &rank)
      : shared(shared), rank(rank), slots(rank.getNumSlots()) {}

  Verdict run();

private:
  struct Slot {
    std::optional<Value> value;
    uint32_t writer = kNone;
  };

  Verdict read(uint32_t command, uint32_t slot, const Value &wanted) const;
  void write(uint32_t command, uint32_t slot, const Value &value) {
    slots[slot] = {value, command};
  }
  Verdict runLaunch(uint32_t command, const Launch &launch);
  Verdict runCommand(uint32_t command);
  Verdict countForward(uint32_t command, const Launch &launch);
  Verdict requireForwards() const;

  const SharedInfo &shared;
  const RankProgram &rank;
  std::vector<Slot> slots;
  OnceTable forwards;
};

} // namespace

static const char *describeKind(SlotKind kind) {
  switch (kind) {
  case SlotKind::Input:
  case SlotKind::Output:
    return "the activation for";
  case SlotKind::GradOutput:
  case SlotKind::GradInput:
    return "the gradient for";
  case SlotKind::Saved:
    return "what the forward saved of";
  case SlotKind::WeightContext:
    return "the weight context of";
  case SlotKind::Labels:
    return "the labels of";
  }
  return "a value of";
}

static std::string describe(const Value &value) {
  return fmt::format("{} {}", describeKind(value.kind),
                     describeTask(value.stage, value.microbatch));
}

/// The value that a launch reads or writes in a role.
static Value getValue(const Launch &launch, SlotKind role) {
  if (role == SlotKind::Output)
    return {SlotKind::Input, launch.stage + 1, launch.microbatch};
  if (role == SlotKind::GradInput)
    return {SlotKind::GradOutput, launch.stage - 1, launch.microbatch};
  return {role, launch.stage, launch.microbatch};
}

static Value getValue(const SharedInfo &shared, const Transfer &transfer) {
  const bool forward = shared.channels[transfer.channel].kind == SlotKind::Output;
  return {forward ? SlotKind::Input : SlotKind::GradOutput, transfer.stage, transfer.microbatch};
}

Verdict ValueChecker::read(uint32_t command, uint32_t slot, const Value &wanted) const {
  const Slot &state = slots[slot];
  if (state.value == wanted)
    return {};
  Violation found =
      violation("D5", rank.rank, command,
                fmt::format("reads slot {} for {}, expected that value, got {}", slot,
                            describe(wanted), state.value ? describe(*state.value) : "nothing"));
  if (state.value)
    found.notes.push_back({{rank.rank, state.writer}, "written here"});
  return found;
}

Verdict ValueChecker::countForward(uint32_t command, const Launch &launch) {
  const uint32_t first = forwards.insert(launch.stage, launch.microbatch, command);
  if (first == kNone)
    return {};
  Violation found = violation("D5", rank.rank, command,
                              "a second forward of its stage and micro-batch, expected one");
  found.notes.push_back({{rank.rank, first}, "the first is here"});
  return found;
}

/// Reads before writes: a launch that reads a slot it writes is one of P2's findings.
Verdict ValueChecker::runLaunch(uint32_t command, const Launch &launch) {
  const Roles roles = getRoles(shared, launch);
  for (unsigned kind = 0; kind != kNumSlotKinds; ++kind)
    if (roles.reads & (1u << kind))
      if (Verdict verdict = read(command, launch.slots[kind], getValue(launch, SlotKind(kind))))
        return verdict;
  for (unsigned kind = 0; kind != kNumSlotKinds; ++kind)
    if (roles.writes & (1u << kind))
      write(command, launch.slots[kind], getValue(launch, SlotKind(kind)));
  return launch.function == Function::Forward ? countForward(command, launch) : Verdict{};
}

Verdict ValueChecker::runCommand(uint32_t command) {
  const Command &what = rank.commands[command];
  if (what.op == CommandOp::Launch)
    return runLaunch(command, rank.launches[what.arg]);
  if (what.op != CommandOp::Send && what.op != CommandOp::Recv)
    return {};
  const Transfer &transfer = rank.transfers[what.arg];
  if (what.op == CommandOp::Send)
    return read(command, transfer.slot, getValue(shared, transfer));
  write(command, transfer.slot, getValue(shared, transfer));
  return {};
}

/// P3 lets a forward stand only where a pipeline places it, so none is missing if none is twice
/// and the numbers agree.
Verdict ValueChecker::requireForwards() const {
  uint64_t expected = 0;
  const std::vector<PlacedStage> all = getPlacedStages(shared, rank.rank);
  for (const PlacedStage &placed : all)
    expected += placed.numMicrobatches;
  if (forwards.size() == expected)
    return {};
  for (const PlacedStage &placed : all)
    if (const uint32_t microbatch = forwards.findMissing(placed); microbatch != kNone)
      return violation("D5", rank.rank, kNone,
                       fmt::format("no forward of {}, expected one: its pipeline places the stage "
                                   "here",
                                   describeTask(placed.stage, microbatch)));
  return {};
}

Verdict ValueChecker::run() {
  for (uint32_t i = 0; i != rank.commands.size(); ++i)
    if (Verdict verdict = runCommand(i))
      return verdict;
  return requireForwards();
}

Verdict verifyValues(const SharedInfo &shared, const RankProgram &rank) {
  return ValueChecker(shared, rank).run();
}

} // namespace dualpipe::program
