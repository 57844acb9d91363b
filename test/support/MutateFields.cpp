//===- MutateFields.cpp - commands name something else ----------------------===//

#include "Mutation.h"
#include "Mutator.h"

#include <utility>

namespace dualpipe::test {

using namespace program;

/// Changes a number below `count` to another one.
template <typename Number>
static bool retarget(Mutator &m, CommandRef ref, Number &number, size_t count, const char *what) {
  const std::string where = m.describe(ref);
  const auto other = m.other(count, number);
  if (!other)
    return false;
  m.description = std::string(what) + " " + std::to_string(number) + " becomes " +
                  std::to_string(*other) + " in " + where;
  number = Number(*other);
  return true;
}

template <CommandOp op> static bool changeEvent(Mutator &m) {
  const auto ref = m.pick(op);
  return ref && retarget(m, *ref, m.get(*ref).arg, m.rankOf(*ref).numEvents, "event");
}

/// Another slot of the same class, the way in which a wrong lifetime would go unseen.
static std::optional<uint32_t> pickSlotOfClass(Mutator &m, CommandRef ref, uint32_t slot) {
  uint32_t begin = 0;
  for (const SlotClass &slotClass : m.rankOf(ref).slotClasses) {
    if (slot < begin + slotClass.count) {
      const auto other = m.other(slotClass.count, slot - begin);
      return other ? std::optional(begin + *other) : std::nullopt;
    }
    begin += slotClass.count;
  }
  return std::nullopt;
}

static bool changeSlot(Mutator &m, CommandRef ref, uint32_t &slot) {
  const auto other = pickSlotOfClass(m, ref, slot);
  if (!other)
    return false;
  m.description = "slot " + std::to_string(slot) + " becomes " + std::to_string(*other) + " in " +
                  m.describe(ref);
  slot = *other;
  return true;
}

/// A launch and one of its slots.
static std::optional<std::pair<CommandRef, unsigned>> pickLaunchSlot(Mutator &m) {
  const auto ref = m.pick(CommandOp::Launch);
  if (!ref)
    return std::nullopt;
  std::vector<unsigned> present;
  for (unsigned kind = 0; kind != kNumSlotKinds; ++kind)
    if (m.launchOf(*ref).slots[kind] != kNone)
      present.push_back(kind);
  if (present.empty())
    return std::nullopt;
  return std::pair(*ref, present[m.below(present.size())]);
}

static bool changeLaunchSlot(Mutator &m) {
  const auto picked = pickLaunchSlot(m);
  return picked && changeSlot(m, picked->first, m.launchOf(picked->first).slots[picked->second]);
}

static bool changeLaunchSlotClass(Mutator &m) {
  const auto picked = pickLaunchSlot(m);
  return picked && retarget(m, picked->first, m.launchOf(picked->first).slots[picked->second],
                            m.rankOf(picked->first).getNumSlots(), "slot");
}

static bool changeLaunchStage(Mutator &m) {
  const auto ref = m.pick(CommandOp::Launch);
  return ref && retarget(m, *ref, m.launchOf(*ref).stage, m.program.shared.numStages, "stage");
}

static bool changeLaunchMicrobatch(Mutator &m) {
  const auto ref = m.pick(CommandOp::Launch);
  return ref && retarget(m, *ref, m.launchOf(*ref).microbatch, m.program.shared.numMicrobatches,
                         "micro-batch");
}

static bool changeFunction(Mutator &m) {
  const auto ref = m.pick(CommandOp::Launch);
  if (!ref)
    return false;
  Function &function = m.launchOf(*ref).function;
  const auto other = m.other(kNumFunctions, uint32_t(function));
  m.description = std::string(getName(Function(*other))) + " instead of " + m.describe(*ref);
  function = Function(*other);
  return true;
}

static bool changeAccumulate(Mutator &m) {
  std::vector<CommandRef> backwards;
  for (CommandRef ref : m.list(CommandOp::Launch))
    if (m.launchOf(ref).function == Function::Backward ||
        m.launchOf(ref).function == Function::BackwardWeight)
      backwards.push_back(ref);
  const auto ref = m.pickOf(backwards);
  if (!ref)
    return false;
  m.description = "the accumulate flag is turned over in " + m.describe(*ref);
  m.launchOf(*ref).flags ^= kAccumulate;
  return true;
}

static bool changeFlags(Mutator &m) {
  const auto ref = m.pick(CommandOp::Launch);
  if (!ref)
    return false;
  const uint8_t flag = uint8_t(kFirstStage << m.below(2));
  m.description = "flag " + std::to_string(flag) + " is turned over in " + m.describe(*ref);
  m.launchOf(*ref).flags ^= flag;
  return true;
}

static bool changeComponent(Mutator &m) {
  const auto ref = m.pick(CommandOp::Launch);
  return ref && retarget(m, *ref, m.launchOf(*ref).component,
                         m.program.shared.contract.numComponents + 1u, "component");
}

static std::optional<CommandRef> pickEnd(Mutator &m) {
  return m.pick(m.flip() ? CommandOp::Send : CommandOp::Recv);
}

static bool changeTransferSlot(Mutator &m) {
  const auto ref = pickEnd(m);
  return ref && changeSlot(m, *ref, m.transferOf(*ref).slot);
}

static bool changeChannel(Mutator &m) {
  const auto ref = pickEnd(m);
  return ref &&
         retarget(m, *ref, m.transferOf(*ref).channel, m.program.shared.channels.size(), "channel");
}

static bool changeTransferStage(Mutator &m) {
  const auto ref = pickEnd(m);
  return ref && retarget(m, *ref, m.transferOf(*ref).stage, m.program.shared.numStages, "stage");
}

static bool changeTransferMicrobatch(Mutator &m) {
  const auto ref = pickEnd(m);
  return ref && retarget(m, *ref, m.transferOf(*ref).microbatch, m.program.shared.numMicrobatches,
                         "micro-batch");
}

/// The ends agree with each other, and with nothing else.
static bool changeMicrobatchOfBoth(Mutator &m) {
  const auto send = m.pick(CommandOp::Send);
  if (!send)
    return false;
  const CommandRef receive = *m.findReceive(*send);
  if (!retarget(m, *send, m.transferOf(*send).microbatch, m.program.shared.numMicrobatches,
                "at both ends micro-batch"))
    return false;
  m.transferOf(receive).microbatch = m.transferOf(*send).microbatch;
  m.seal();
  return true;
}

static bool changeReductionStage(Mutator &m) {
  const auto ref = m.pick(CommandOp::Reduce);
  return ref && retarget(m, *ref, m.reductionOf(*ref).stage, m.program.shared.numStages, "stage");
}

static bool changeReductionStageOfAll(Mutator &m) {
  const auto ref = m.pick(CommandOp::Reduce);
  if (!ref)
    return false;
  const std::vector<CommandRef> members = m.findMembers(*ref);
  if (!retarget(m, *ref, m.reductionOf(*ref).stage, m.program.shared.numStages,
                "on all members stage"))
    return false;
  for (CommandRef member : members)
    m.reductionOf(member).stage = m.reductionOf(*ref).stage;
  return true;
}

static bool changeReductionGroup(Mutator &m) {
  const auto ref = m.pick(CommandOp::Reduce);
  return ref && retarget(m, *ref, m.reductionOf(*ref).group, m.program.shared.reduceGroups.size(),
                         "group");
}

static bool changeStep(Mutator &m) {
  const auto ref = m.pick(CommandOp::Step);
  return ref && retarget(m, *ref, m.get(*ref).arg, m.program.shared.numStages, "stage");
}

std::vector<Mutation> listFieldMutations() {
  return {
      {"change-wait", "a wait is for another event", "P1 P2", changeEvent<CommandOp::Wait>},
      {"change-record", "a record is of another event", "P1", changeEvent<CommandOp::Record>},
      {"change-slot", "a launch uses another slot of the class", "P2 D5", changeLaunchSlot},
      {"change-any-slot", "a launch uses any other slot", "P2 P3 D5", changeLaunchSlotClass},
      {"change-stage", "a launch is of another stage", "P2 P3 D4 D5", changeLaunchStage},
      {"change-microbatch", "a launch is of another micro-batch", "P2 P3 D4 D5",
       changeLaunchMicrobatch},
      {"change-function", "a launch calls another function", "P2 P3 D4 D5", changeFunction},
      {"change-accumulate", "a gradient is added that is the first, or not added", "P2 D4",
       changeAccumulate},
      {"change-flags", "a launch has the flags of another stage", "P3", changeFlags},
      {"change-component", "a launch is of a component that is not there", "P3", changeComponent},
      {"change-transfer-slot", "a transfer uses another slot of the class at one end", "P2 D5",
       changeTransferSlot},
      {"change-channel", "a transfer goes through another channel at one end", "P3", changeChannel},
      {"change-transfer-stage", "a transfer is for another stage at one end", "P3 D1 D2",
       changeTransferStage},
      {"change-transfer-microbatch", "a transfer is for another micro-batch at one end", "P3 D1 D2",
       changeTransferMicrobatch},
      {"change-microbatch-of-both", "a transfer is for another micro-batch at both ends",
       "P3 D1 D5", changeMicrobatchOfBoth},
      {"change-reduction-stage", "a member reduces another stage", "P2 P3 D1",
       changeReductionStage},
      {"change-reduction-of-all", "all members reduce another stage", "P2 P3 D1 D4",
       changeReductionStageOfAll},
      {"change-reduction-group", "a member reduces with others", "P3", changeReductionGroup},
      {"change-step", "an optimizer step is of another stage", "P2 P3 D4", changeStep},
  };
}

} // namespace dualpipe::test
