//===- VerifyGradients.cpp - D4: every gradient once, then one step ---------===//
//
// Runs a rank's commands in issue order and keeps, for each stage's copy, what its
// gradients hold: how many micro-batches have contributed, whether the sum over
// all copies has been taken, whether the step has come. P2 holds gradients to the
// same rule as slots, so every run adds, sums and steps in the order of the list.
//
//        contributions          reduction          step
//   ───┬────┬────┬─── … ───┬───────┬────────────────┬───▶   one copy
//   overwrite add  add    all of them  if the stage has copies elsewhere
//
// Scaling is no command: the last stage scales the gradient of its loss when it
// seeds its backward (stage.h). So a gradient is scaled once if the micro-batch's
// backward through the last stage runs once, which is checked here.
//
//===----------------------------------------------------------------------===//

#include "Work.h"

#include <fmt/format.h>

namespace dualpipe::program {

namespace {

/// A stage's weights on the rank, and how far their gradients are.
struct Copy {
  uint32_t stage;
  std::vector<PlacedStage> placed; ///< by micro-batch
  std::vector<uint32_t> holders;   ///< ranks with a copy that micro-batches come by, ascending
  uint64_t expected = 0;           ///< contributions
  uint64_t contributed = 0;
  uint32_t firstContribution = kNone;
  uint32_t reduction = kNone;
  uint32_t step = kNone;

  bool isComplete() const { return contributed == expected; }
  bool isShared() const { return holders.size() > 1; }
};

class GradientChecker {
public:
  GradientChecker(const SharedInfo &shared, const RankProgram &rank);
  Verdict run();

private:
  Verdict fail(uint32_t command, std::string message) const {
    return violation("D4", rank.rank, command, std::move(message));
  }
  Verdict fail(uint32_t command, std::string message, uint32_t other, const char *note) const;
  std::vector<uint32_t> getHolders(uint32_t stage) const;
  Copy *findCopy(uint32_t stage);
  std::string describeMissing(const Copy &copy) const;

  Verdict runLaunch(uint32_t command, const Launch &launch);
  Verdict runInputHalf(uint32_t command, const Launch &launch);
  Verdict requireForward(uint32_t command, const Launch &launch) const;
  Verdict contribute(uint32_t command, const Launch &launch);
  Verdict checkFlag(uint32_t command, const Launch &launch, const Copy &copy) const;
  Verdict reduce(uint32_t command, const Reduction &reduction);
  Verdict step(uint32_t command, uint32_t stage);
  Verdict runCommand(uint32_t command);
  Verdict requireAll() const;

  const SharedInfo &shared;
  const RankProgram &rank;
  std::vector<Copy> copies; ///< by stage
  OnceTable forwards, inputHalves, contributions;
};

} // namespace

GradientChecker::GradientChecker(const SharedInfo &shared, const RankProgram &rank)
    : shared(shared), rank(rank) {
  for (const PlacedStage &placed : getPlacedStages(shared, rank.rank)) {
    if (copies.empty() || copies.back().stage != placed.stage) {
      copies.emplace_back().stage = placed.stage;
      copies.back().holders = getHolders(placed.stage);
    }
    copies.back().placed.push_back(placed);
    copies.back().expected += placed.numMicrobatches;
  }
}

Verdict GradientChecker::fail(uint32_t command, std::string message, uint32_t other,
                              const char *note) const {
  Verdict found = fail(command, std::move(message));
  found->notes.push_back({{rank.rank, other}, note});
  return found;
}

/// Pipelines without micro-batches run nothing: no gradient arises from them.
std::vector<uint32_t> GradientChecker::getHolders(uint32_t stage) const {
  std::vector<uint32_t> holders;
  for (const PipelineInfo &pipeline : shared.pipelines)
    if (pipeline.numMicrobatches != 0 && holdsStage(pipeline, stage))
      holders.push_back(getRankOf(pipeline, stage));
  std::sort(holders.begin(), holders.end());
  holders.erase(std::unique(holders.begin(), holders.end()), holders.end());
  return holders;
}

Copy *GradientChecker::findCopy(uint32_t stage) {
  const auto found =
      std::lower_bound(copies.begin(), copies.end(), stage,
                       [](const Copy &copy, uint32_t wanted) { return copy.stage < wanted; });
  return found == copies.end() || found->stage != stage ? nullptr : &*found;
}

/// "3 of 4 micro-batches, without micro-batch 5"
std::string GradientChecker::describeMissing(const Copy &copy) const {
  std::string text = fmt::format("{} of {} micro-batches", copy.contributed, copy.expected);
  for (const PlacedStage &placed : copy.placed)
    if (const uint32_t missing = contributions.findMissing(placed); missing != kNone)
      return text + fmt::format(", without micro-batch {}", missing);
  return text;
}

Verdict GradientChecker::requireForward(uint32_t command, const Launch &launch) const {
  if (forwards.find(launch.stage, launch.microbatch) != kNone)
    return {};
  return fail(command,
              "stands before the forward of its stage and micro-batch, expected behind it");
}

Verdict GradientChecker::runInputHalf(uint32_t command, const Launch &launch) {
  if (Verdict verdict = requireForward(command, launch))
    return verdict;
  const uint32_t full = contributions.find(launch.stage, launch.microbatch);
  if (full != kNone)
    return fail(command, "an input half behind the backward of its stage and micro-batch", full,
                "the backward is here");
  const uint32_t first = inputHalves.insert(launch.stage, launch.microbatch, command);
  if (first != kNone)
    return fail(command, "a second input half of its stage and micro-batch, expected one", first,
                "the first is here");
  return {};
}

/// The first contribution of a step overwrites what the step before left behind.
Verdict GradientChecker::checkFlag(uint32_t command, const Launch &launch, const Copy &copy) const {
  const bool accumulates = launch.flags & kAccumulate;
  if (copy.contributed == 0 && accumulates)
    return fail(command, fmt::format("adds to the gradients of stage {} of the step before, "
                                     "expected the first micro-batch to overwrite them",
                                     copy.stage));
  if (copy.contributed != 0 && !accumulates)
    return fail(command,
                fmt::format("overwrites the gradients of stage {} that {} micro-batches have "
                            "contributed to, expected it to accumulate",
                            copy.stage, copy.contributed),
                copy.firstContribution, "the first contribution is here");
  return {};
}

/// A full backward or a weight half. P3 lets it stand only where its stage is placed.
Verdict GradientChecker::contribute(uint32_t command, const Launch &launch) {
  if (Verdict verdict = requireForward(command, launch))
    return verdict;
  const uint32_t before = contributions.insert(launch.stage, launch.microbatch, command);
  if (before != kNone)
    return fail(command,
                fmt::format("adds to the gradients of stage {} from micro-batch {} a second time, "
                            "expected once",
                            launch.stage, launch.microbatch),
                before, "the first time is here");
  const uint32_t half = inputHalves.find(launch.stage, launch.microbatch);
  const bool isHalf = launch.function == Function::BackwardWeight;
  if (isHalf && half == kNone)
    return fail(command, "a weight half before the input half of its stage and micro-batch");
  if (!isHalf && half != kNone)
    return fail(command,
                "a full backward behind the input half of its stage and micro-batch, "
                "expected the weight half",
                half, "the input half is here");
  Copy *copy = findCopy(launch.stage);
  if (!copy)
    return fail(command, "no pipeline places its stage here");
  if (Verdict verdict = checkFlag(command, launch, *copy))
    return verdict;
  if (copy->contributed++ == 0)
    copy->firstContribution = command;
  return {};
}

Verdict GradientChecker::runLaunch(uint32_t command, const Launch &launch) {
  switch (launch.function) {
  case Function::LoadInput:
  case Function::LoadLabels:
    return {};
  case Function::Forward:
    forwards.insert(launch.stage, launch.microbatch, command);
    return {};
  case Function::BackwardInput:
    return runInputHalf(command, launch);
  case Function::Backward:
  case Function::BackwardWeight:
    return contribute(command, launch);
  }
  return {};
}

Verdict GradientChecker::reduce(uint32_t command, const Reduction &reduction) {
  Copy *copy = findCopy(reduction.stage);
  const std::vector<uint32_t> &ranks = shared.reduceGroups[reduction.group].ranks;
  if (!copy || !copy->isShared())
    return fail(command, fmt::format("sums the gradients of stage {} over ranks {}, expected no "
                                     "sum: the stage has gradients on one rank only",
                                     reduction.stage, fmt::join(ranks, ", ")));
  if (ranks != copy->holders)
    return fail(command, fmt::format("sums the gradients of stage {} over ranks {}, expected all "
                                     "that hold a copy: {}",
                                     reduction.stage, fmt::join(ranks, ", "),
                                     fmt::join(copy->holders, ", ")));
  if (copy->reduction != kNone)
    return fail(
        command,
        fmt::format("sums the gradients of stage {} a second time, expected once", copy->stage),
        copy->reduction, "the first time is here");
  if (!copy->isComplete())
    return fail(command, fmt::format("sums the gradients of stage {} after {}, expected all",
                                     copy->stage, describeMissing(*copy)));
  copy->reduction = command;
  return {};
}

Verdict GradientChecker::step(uint32_t command, uint32_t stage) {
  Copy *copy = findCopy(stage);
  if (!copy)
    return fail(command, "no micro-batch contributes to the stage's gradients here");
  if (copy->step != kNone)
    return fail(command, fmt::format("a second step of stage {}, expected one", stage), copy->step,
                "the first is here");
  if (!copy->isComplete())
    return fail(command, fmt::format("takes the step of stage {} after {}, expected all", stage,
                                     describeMissing(*copy)));
  if (copy->isShared() && copy->reduction == kNone)
    return fail(command, fmt::format("takes the step of stage {} before its gradients are summed "
                                     "over ranks {}",
                                     stage, fmt::join(copy->holders, ", ")));
  copy->step = command;
  return {};
}

Verdict GradientChecker::runCommand(uint32_t command) {
  const Command &what = rank.commands[command];
  if (what.op == CommandOp::Launch)
    return runLaunch(command, rank.launches[what.arg]);
  if (what.op == CommandOp::Reduce)
    return reduce(command, rank.reductions[what.arg]);
  return what.op == CommandOp::Step ? step(command, what.arg) : Verdict{};
}

/// A reduction or a step came, so what must be before it did: the step is what can be missing.
Verdict GradientChecker::requireAll() const {
  for (const Copy &copy : copies) {
    if (!copy.isComplete())
      return fail(kNone, fmt::format("the gradients of stage {} hold {}, expected all", copy.stage,
                                     describeMissing(copy)));
    if (copy.isShared() && copy.reduction == kNone)
      return fail(kNone, fmt::format("the gradients of stage {} are not summed over ranks {}, "
                                     "which hold a copy each, expected a reduction",
                                     copy.stage, fmt::join(copy.holders, ", ")));
    if (copy.step == kNone)
      return fail(kNone, fmt::format("no optimizer step of stage {}, expected one", copy.stage));
  }
  return {};
}

Verdict GradientChecker::run() {
  for (uint32_t i = 0; i != rank.commands.size(); ++i)
    if (Verdict verdict = runCommand(i))
      return verdict;
  return requireAll();
}

Verdict verifyGradients(const SharedInfo &shared, const RankProgram &rank) {
  if (!shared.training)
    return {};
  return GradientChecker(shared, rank).run();
}

} // namespace dualpipe::program
