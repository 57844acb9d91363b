//===- Replay.cpp - the stage calls of a program, one after the other --------===//
//
// Walks the launches, reductions and steps of all ranks in their issue order,
// rank by rank in turns: a rank goes on until something that it needs does not
// exist yet. So every copy of a stage accumulates in the order of its program.
//
//===----------------------------------------------------------------------===//

#include "runtime/reference/Copies.h"
#include "runtime/reference/ReplayValues.h"
#include "runtime/reference/Workbench.h"

#include "dualpipe/Runtime/Numerics.h"
#include "dualpipe/Runtime/Reference.h"

#include <fmt/format.h>

#include <memory>

namespace dualpipe::runtime {

using program::CommandOp;
using program::Launch;
using program::Program;
using program::RankProgram;

namespace {

/// What a rank does next: launches (several where a pair is run as one), a reduction or a step.
struct Action {
  CommandOp op;
  std::vector<uint32_t> args; ///< launches; or one reduction; or one stage
};

struct RankState {
  const RankProgram *program = nullptr;
  std::vector<Action> actions;
  size_t next = 0;

  bool isDone() const { return next == actions.size(); }
};

/// The actions of a rank in issue order. Pairs stay together where the model runs them as one.
std::vector<Action> listActions(const RankProgram &rank, bool keepPairs) {
  std::vector<Action> actions;
  size_t pair = 0;      // index of the action that collects the members of a pair
  uint32_t members = 0; // how many are still to come
  for (const program::Command &command : rank.commands) {
    switch (command.op) {
    case CommandOp::Launch:
      if (members == 0) {
        actions.push_back({CommandOp::Launch, {command.arg}});
      } else {
        actions[pair].args.push_back(command.arg);
        --members;
      }
      break;
    case CommandOp::Pair:
      if (!keepPairs || command.arg == 0)
        break;
      pair = actions.size();
      members = command.arg;
      actions.push_back({CommandOp::Launch, {}});
      break;
    case CommandOp::Reduce:
    case CommandOp::Step:
      actions.push_back({command.op, {command.arg}});
      break;
    case CommandOp::Send:
    case CommandOp::Recv:
    case CommandOp::Group:
    case CommandOp::Record:
    case CommandOp::Wait:
      break; // order that the replay has anyway, or does not need
    }
  }
  return actions;
}

class Replayer {
public:
  Replayer(const Model &model, const Program &program, const Optimizer &optimizer,
           const TrainingOptions &options, const CheckPlace &place)
      : model(model), program(program), optimizer(optimizer), options(options), bench(model, place),
        values(model, bench.getMemory()) {}

  Result<Replay> run();

private:
  Status prepare();
  Status prepareCopies();
  Status readCopies();
  Status keepWeights();
  Status runStep();
  /// Runs the next action of a rank if it can; `advanced` says whether.
  Status advance(uint32_t rank, bool &advanced);
  Status runLaunches(uint32_t rank, const Action &action);
  Status runReduction(const RankState &state, const Action &action, bool &advanced);
  bool isReady(const RankState &state, const Action &action, std::string *missing = nullptr) const;
  /// Whether a member of a group stands at the reduction of this stage.
  bool standsAtReduction(uint32_t rank, uint32_t group, uint32_t stage) const;
  Status describeStall() const;
  Result<StageCopy *> getCopy(uint32_t rank, uint32_t stage);
  Result<StageCall *> getCall(size_t member);

  const Model &model;
  const Program &program;
  const Optimizer &optimizer;
  const TrainingOptions &options;
  Workbench bench;
  ReplayValues values;
  std::vector<RankState> ranks;
  std::vector<std::unique_ptr<StageCall>> calls;
  std::vector<StageCopy> placed; ///< on a device, the copies there: in the order of the result's
  Replay replay;
};

Status Replayer::prepare() {
  const program::SharedInfo &shared = program.shared;
  if (program.ranks.size() != shared.numRanks)
    return Status::failure(
        fmt::format("the check needs the programs of all ranks, expected {}, got {}",
                    shared.numRanks, program.ranks.size()));
  if (Status status = model.checkProgram(shared); !status)
    return status;
  for (const RankProgram &rank : program.ranks)
    ranks.push_back({&rank, listActions(rank, model.hasFused()), 0});
  replay.result.numMicrobatches = shared.numMicrobatches;
  Result<std::vector<double>> losses = createLosses(options.numSteps, shared.numMicrobatches);
  if (!losses)
    return losses.getStatus();
  replay.result.losses = std::move(*losses);
  if (Status status = bench.prepare(shared.numMicrobatches); !status)
    return status;
  return prepareCopies();
}

/// Those of the host hold the result; on a device the calls work on copies there.
Status Replayer::prepareCopies() {
  Result<std::vector<StageCopy>> copies =
      createCopies(model, optimizer, program.shared, options.seed);
  if (!copies)
    return copies.getStatus();
  replay.result.copies = std::move(*copies);
  if (bench.isOnHost())
    return Status::success();
  if (Status status = bench.beginStep({0, options.seed, options.learningRate}); !status)
    return status;
  Result<StageCall *> call = getCall(0);
  if (!call)
    return call.getStatus();
  for (const StageCopy &copy : replay.result.copies) {
    Result<StageCopy> made =
        StageCopy::create(model, copy.getRank(), copy.getStage(), program.shared.training,
                          optimizer.getStateFactor(), bench.getMemory());
    if (!made)
      return made.getStatus();
    if (Status status = made->initialize(model, **call); !status)
      return status;
    placed.push_back(std::move(*made));
  }
  return Status::success();
}

Status Replayer::readCopies() {
  for (size_t i = 0; i < placed.size(); ++i)
    if (Status status = placed[i].download(bench.getMemory(), replay.result.copies[i]); !status)
      return status;
  return Status::success();
}

Status Replayer::keepWeights() {
  if (Status status = readCopies(); !status)
    return status;
  for (const StageCopy &copy : replay.result.copies) {
    const AlignedBuffer &params = copy.getParamBuffer();
    const auto *bytes = static_cast<const uint8_t *>(params.data());
    replay.startOfLastStep.emplace_back(bytes, bytes + params.size());
  }
  return Status::success();
}

Result<Replay> Replayer::run() {
  if (Status status = prepare(); !status)
    return status;
  for (uint32_t step = 0; step < options.numSteps; ++step) {
    if (Status status = bench.beginStep({step, options.seed, options.learningRate}); !status)
      return status;
    if (step + 1 == options.numSteps)
      if (Status status = keepWeights(); !status)
        return status;
    if (Status status = runStep(); !status)
      return status;
    double *losses = replay.result.losses.data() + size_t(step) * program.shared.numMicrobatches;
    if (Status status = bench.readLosses(losses); !status)
      return status;
  }
  if (Status status = readCopies(); !status)
    return status;
  return std::move(replay);
}

Status Replayer::runStep() {
  for (RankState &state : ranks) {
    state.next = 0;
    for (const Action &action : state.actions)
      if (action.op == CommandOp::Launch)
        for (uint32_t index : action.args)
          values.expect(state.program->launches[index]);
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t rank = 0; rank < ranks.size(); ++rank)
      for (bool advanced = true; advanced;) {
        if (Status status = advance(rank, advanced); !status)
          return status;
        moved |= advanced;
      }
  }
  for (const RankState &state : ranks)
    if (!state.isDone())
      return describeStall();
  return Status::success();
}

Status Replayer::advance(uint32_t rank, bool &advanced) {
  RankState &state = ranks[rank];
  advanced = false;
  if (state.isDone())
    return Status::success();
  const Action &action = state.actions[state.next];
  if (action.op == CommandOp::Reduce)
    return runReduction(state, action, advanced);
  if (!isReady(state, action))
    return Status::success();
  advanced = true;
  ++state.next;
  if (action.op == CommandOp::Launch)
    return runLaunches(rank, action);
  Result<StageCopy *> copy = getCopy(rank, action.args[0]);
  if (!copy)
    return copy.getStatus();
  Result<StageCall *> call = getCall(0);
  return call ? takeStep(model, optimizer, **copy, **call) : call.getStatus();
}

bool Replayer::isReady(const RankState &state, const Action &action, std::string *missing) const {
  if (action.op != CommandOp::Launch)
    return true;
  for (uint32_t index : action.args)
    if (!values.isReady(state.program->launches[index], missing))
      return false;
  return true;
}

Status Replayer::runLaunches(uint32_t rank, const Action &action) {
  std::vector<StageCall *> members;
  std::vector<program::Function> functions;
  for (uint32_t index : action.args) {
    const Launch &launch = ranks[rank].program->launches[index];
    Result<StageCopy *> copy = getCopy(rank, launch.stage);
    if (!copy)
      return copy.getStatus();
    Result<StageCall *> call = getCall(members.size());
    if (!call)
      return call.getStatus();
    (*call)->begin(**copy, launch, program.shared.training);
    if (launch.function == program::Function::Forward && launch.flags & program::kLastStage)
      (*call)->setLoss(bench.getLoss(launch.microbatch));
    if (Status status = values.bind(launch, **call); !status)
      return status;
    members.push_back(*call);
    functions.push_back(launch.function);
  }
  Status status = members.size() == 1
                      ? model.run(functions[0], *members[0])
                      : model.runFused(members.data(), functions.data(), uint32_t(members.size()));
  for (uint32_t index : action.args)
    values.release(ranks[rank].program->launches[index]);
  return status;
}

bool Replayer::standsAtReduction(uint32_t rank, uint32_t group, uint32_t stage) const {
  const RankState &state = ranks[rank];
  if (state.isDone() || state.actions[state.next].op != CommandOp::Reduce)
    return false;
  const program::Reduction &at = state.program->reductions[state.actions[state.next].args[0]];
  return at.group == group && at.stage == stage;
}

/// Sums once all members stand there, in ascending order of rank.
Status Replayer::runReduction(const RankState &state, const Action &action, bool &advanced) {
  const program::Reduction &reduction = state.program->reductions[action.args[0]];
  const auto &members = program.shared.reduceGroups[reduction.group].ranks;
  for (uint32_t member : members)
    if (!standsAtReduction(member, reduction.group, reduction.stage))
      return Status::success();
  std::vector<StageCopy *> copies;
  for (uint32_t member : members) {
    Result<StageCopy *> copy = getCopy(member, reduction.stage);
    if (!copy)
      return copy.getStatus();
    copies.push_back(*copy);
  }
  for (uint32_t member : members)
    ++ranks[member].next;
  advanced = true;
  Result<StageCall *> call = getCall(0);
  return call ? sumGradients(copies, (*call)->get()) : call.getStatus();
}

Status Replayer::describeStall() const {
  constexpr int kMostRanks = 4;
  std::string text = "the replay cannot go on:";
  int told = 0;
  for (uint32_t rank = 0; rank < ranks.size() && told < kMostRanks; ++rank) {
    const RankState &state = ranks[rank];
    if (state.isDone())
      continue;
    const Action &action = state.actions[state.next];
    std::string missing;
    if (action.op == CommandOp::Reduce)
      missing = fmt::format("the other members of the reduction of stage {}",
                            state.program->reductions[action.args[0]].stage);
    else
      isReady(state, action, &missing);
    text += fmt::format("{} rank {} waits for {}", told ? "," : "", rank, missing);
    ++told;
  }
  return Status::failure(std::move(text));
}

Result<StageCopy *> Replayer::getCopy(uint32_t rank, uint32_t stage) {
  uint32_t index = findCopy(replay.result.copies, rank, stage);
  if (index == program::kNone)
    return Status::failure(fmt::format(
        "the program of rank {} uses stage {}, which no pipeline places there", rank, stage));
  return bench.isOnHost() ? &replay.result.copies[index] : &placed[index];
}

Result<StageCall *> Replayer::getCall(size_t member) {
  while (calls.size() <= member) {
    Result<std::unique_ptr<StageCall>> made = bench.makeCall();
    if (!made)
      return made.getStatus();
    calls.push_back(std::move(*made));
  }
  return calls[member].get();
}

} // namespace

Result<Replay> replay(const Model &model, const Program &program, const Optimizer &optimizer,
                      const TrainingOptions &options, const CheckPlace &place) {
  return Replayer(model, program, optimizer, options, place).run();
}

} // namespace dualpipe::runtime
