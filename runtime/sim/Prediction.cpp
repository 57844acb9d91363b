//===- Prediction.cpp - what there is to say about a simulated run ----------===//

#include "dualpipe/Runtime/Prediction.h"

#include "dualpipe/Runtime/Measured.h"

#include <algorithm>

namespace dualpipe::runtime {

using program::Command;
using program::CommandOp;
using program::Function;
using program::kNone;
using program::RankProgram;

const char *getName(WaitCause cause) {
  switch (cause) {
  case WaitCause::Peer:
    return "peer";
  case WaitCause::Slot:
    return "slot";
  case WaitCause::Reduction:
    return "reduction";
  }
  return "";
}

const char *getName(PathKind kind) {
  switch (kind) {
  case PathKind::Fwd:
    return "fwd";
  case PathKind::Bwd:
    return "bwd";
  case PathKind::BwdInput:
    return "bwd_input";
  case PathKind::BwdWeight:
    return "bwd_weight";
  case PathKind::Pair:
    return "fused";
  case PathKind::Transfer:
    return "transfer";
  case PathKind::Reduce:
    return "reduce";
  case PathKind::Step:
    return "step";
  }
  return "";
}

Ticks RankBubble::getPeers() const {
  Ticks sum = 0;
  for (const auto &[rank, time] : peers)
    sum += time;
  return sum;
}

Ticks Prediction::getWorstBubble() const {
  Ticks worst = 0;
  for (const RankBubble &bubble : bubbles)
    worst = std::max(worst, bubble.total);
  return worst;
}

uint32_t Prediction::getPeakActivations() const {
  uint32_t peak = 0;
  for (const RankTimes &rank : ranks)
    peak = std::max(peak, rank.peakActivations);
  return peak;
}

uint32_t Prediction::getDeepestWeightQueue() const {
  uint32_t deepest = 0;
  for (const RankTimes &rank : ranks)
    deepest = std::max(deepest, rank.deepestWeightQueue);
  return deepest;
}

uint64_t Prediction::getNumSends() const {
  uint64_t sum = 0;
  for (const RankTimes &rank : ranks)
    sum += rank.sends;
  return sum;
}

double Prediction::getRate() const { return span == 0 ? 0 : double(span - ideal) / double(span); }

namespace {

/// Reads a prediction off the times of all commands.
class Analysis {
public:
  Analysis(const program::Program &program, const Simulation &run, Prediction &prediction)
      : program(program), run(run), prediction(prediction) {}

  void addRank(uint32_t rank);
  void addCriticalPath();
  void keepLongestWaits();

private:
  const Command &getCommand(CommandRef ref) const {
    return program.ranks[ref.rank].commands[ref.command];
  }
  const CommandTime &getTime(CommandRef ref) const { return run.commands[ref.rank][ref.command]; }
  bool isCompute(CommandRef ref) const;
  uint32_t getPeer(CommandRef ref) const;
  RankWait classify(CommandRef waiting, Ticks free) const;
  void addWait(RankBubble &bubble, const RankWait &wait);
  std::optional<CommandRef> findLast() const;

  const program::Program &program;
  const Simulation &run;
  Prediction &prediction;
};

} // namespace

/// A command that keeps its rank busy. Loads and most steps take no time.
bool Analysis::isCompute(CommandRef ref) const {
  const Command &command = getCommand(ref);
  const CommandTime &time = getTime(ref);
  const bool computes = command.op == CommandOp::Launch || command.op == CommandOp::Pair ||
                        command.op == CommandOp::Step;
  return computes && time.end != time.start;
}

/// The rank at the other end of a transfer; kNone for other commands.
uint32_t Analysis::getPeer(CommandRef ref) const {
  const Command &command = getCommand(ref);
  if (command.op != CommandOp::Send && command.op != CommandOp::Recv)
    return kNone;
  const program::Transfer &transfer = program.ranks[ref.rank].transfers[command.arg];
  const program::Channel &channel = program.shared.channels[transfer.channel];
  return command.op == CommandOp::Send ? channel.destination : channel.source;
}

/// Whoever ended last is the cause: of a value that came, the other rank's op or the
/// slot that it came to.
RankWait Analysis::classify(CommandRef waiting, Ticks free) const {
  const CommandTime &time = getTime(waiting);
  RankWait wait{waiting, free, time.start - free, WaitCause::Peer, kNone, {}};
  if (time.after.isNone())
    return wait;
  const CommandOp op = getCommand(time.after).op;
  wait.peer = getPeer(time.after);
  const CommandRef before = getTime(time.after).after;
  if (op == CommandOp::Reduce)
    wait.cause = WaitCause::Reduction;
  else if (op == CommandOp::Send)
    wait.cause = WaitCause::Slot;
  else if (op == CommandOp::Recv && before.rank == waiting.rank && isCompute(before))
    wait.cause = WaitCause::Slot;
  if (!before.isNone() && before.rank != waiting.rank)
    wait.blame = before;
  return wait;
}

void Analysis::addWait(RankBubble &bubble, const RankWait &wait) {
  prediction.waits.push_back(wait);
  if (wait.cause == WaitCause::Slot)
    bubble.slots += wait.length;
  else if (wait.cause == WaitCause::Reduction)
    bubble.reductions += wait.length;
  else if (wait.peer != kNone)
    bubble.peers[wait.peer] += wait.length;
}

void Analysis::addRank(uint32_t rank) {
  const RankTimes &times = run.ranks[rank];
  RankBubble bubble;
  bubble.total = run.makespan - times.busy;
  bubble.warmUp = times.firstStart;
  bubble.drain = run.makespan - times.lastEnd;
  bubble.cores = times.contended;
  Ticks free = times.firstStart;
  const std::vector<Command> &commands = program.ranks[rank].commands;
  for (uint32_t i = 0; i != commands.size(); ++i) {
    if (!isCompute({rank, i}))
      continue;
    if (getTime({rank, i}).start > free)
      addWait(bubble, classify({rank, i}, free));
    free = std::max(free, getTime({rank, i}).end);
    if (commands[i].op == CommandOp::Pair) {
      prediction.hasPairs = true;
      i += commands[i].arg;
    }
  }
  bubble.pairs = bubble.total - bubble.warmUp - bubble.drain - bubble.slots - bubble.reductions -
                 bubble.cores - bubble.getPeers();
  prediction.bubbles.push_back(std::move(bubble));
  keepLongestWaits();
}

/// Among equal ones, those of the first ranks.
void Analysis::keepLongestWaits() {
  std::vector<RankWait> &waits = prediction.waits;
  std::stable_sort(waits.begin(), waits.end(),
                   [](const RankWait &a, const RankWait &b) { return a.length > b.length; });
  waits.resize(std::min(waits.size(), Prediction::kMaxWaits));
}

/// The first rank's first command that ends with the run. Records and waits say only
/// when something else ended.
std::optional<CommandRef> Analysis::findLast() const {
  for (uint32_t rank = 0; rank != run.commands.size(); ++rank)
    for (uint32_t i = 0; i != run.commands[rank].size(); ++i) {
      const CommandOp op = program.ranks[rank].commands[i].op;
      const bool takesTime = op == CommandOp::Launch || op == CommandOp::Pair ||
                             op == CommandOp::Step || op == CommandOp::Reduce;
      if (takesTime && run.commands[rank][i].end == run.makespan)
        return CommandRef{rank, i};
    }
  return std::nullopt;
}

PathKind getPathKind(const program::Program &program, CommandRef ref) {
  const Command &command = program.ranks[ref.rank].commands[ref.command];
  switch (command.op) {
  case CommandOp::Pair:
    return PathKind::Pair;
  case CommandOp::Reduce:
    return PathKind::Reduce;
  case CommandOp::Step:
    return PathKind::Step;
  case CommandOp::Launch:
    break;
  default:
    return PathKind::Transfer;
  }
  switch (program.ranks[ref.rank].launches[command.arg].function) {
  case Function::Backward:
    return PathKind::Bwd;
  case Function::BackwardInput:
    return PathKind::BwdInput;
  case Function::BackwardWeight:
    return PathKind::BwdWeight;
  default:
    return PathKind::Fwd;
  }
}

/// Backwards from the end, each time to what ended last. A step takes the time up to
/// where the path left it, which is before its own end where transfers follow each
/// other closely.
void Analysis::addCriticalPath() {
  std::optional<CommandRef> last = findLast();
  Ticks until = run.makespan;
  for (CommandRef at = last.value_or(CommandRef()); !at.isNone(); at = getTime(at).after) {
    PathShare &share = prediction.criticalPath[size_t(getPathKind(program, at))];
    ++share.commands;
    share.time += until - getTime(at).start;
    until = getTime(at).start;
  }
}

static Ticks getLongestSpan(const std::vector<RankTimes> &ranks) {
  Ticks longest = 0;
  for (const RankTimes &rank : ranks)
    longest = std::max(longest, rank.lastEnd - rank.firstStart);
  return longest;
}

static Ticks getMostWork(const std::vector<RankTimes> &ranks) {
  Ticks most = 0;
  for (const RankTimes &rank : ranks)
    most = std::max(most, rank.busy);
  return most;
}

uint32_t getPartsPerRank(const program::SharedInfo &shared) {
  uint32_t parts = 1;
  for (const program::PipelineInfo &pipeline : shared.pipelines)
    parts = std::max(parts, pipeline.numStages / std::max(shared.numRanks, 1u));
  return parts;
}

static Prediction describe(const program::Program &program, const SimulationCosts &costs) {
  Prediction prediction;
  prediction.schedule = program.shared.schedule;
  prediction.params = program.shared.params;
  prediction.numStages = program.shared.numStages;
  prediction.numMicrobatches = program.shared.numMicrobatches;
  prediction.parts = getPartsPerRank(program.shared);
  for (const RankProgram &rank : program.ranks)
    prediction.numCommands += rank.commands.size();
  prediction.costs = costs;
  prediction.formula = findFormula(program.shared, costs);
  return prediction;
}

Prediction describeRun(const program::Program &program, const SimulationCosts &costs,
                       const Simulation &run) {
  Prediction prediction = describe(program, costs);
  prediction.makespan = run.makespan;
  prediction.ranks = run.ranks;
  prediction.ideal = getMostWork(run.ranks);
  prediction.span = getLongestSpan(run.ranks);
  Analysis analysis(program, run, prediction);
  for (uint32_t rank = 0; rank != run.ranks.size(); ++rank)
    analysis.addRank(rank);
  analysis.addCriticalPath();
  return prediction;
}

Result<Prediction> predict(const program::Program &program, const SimulationCosts &costs,
                           const OnProgress &onProgress) {
  Result<Simulation> run = simulate(program, costs, /*keepTimes=*/true, onProgress);
  if (!run)
    return run.getStatus();
  Prediction prediction = describeRun(program, costs, *run);
  if (!costs.model)
    return prediction;
  Result<std::vector<RankMemory>> memory = measureMemory(program, *costs.model);
  if (!memory)
    return memory.getStatus();
  prediction.memory = std::move(*memory);
  return prediction;
}

} // namespace dualpipe::runtime
