//===- PrepareSession.cpp - devices, memory and copies before a run ---------===//

#include "Allocation.h"
#include "SessionState.h"

#include "dualpipe/Runtime/MeasureModel.h"

#include <fmt/format.h>

#include <algorithm>

namespace dualpipe::runtime {

Status Session::State::selectRanks() {
  for (const program::RankProgram &rank : program->ranks)
    if (!options.onlyRank || rank.rank == *options.onlyRank)
      own.push_back(&rank);
  const uint32_t numRanks = program->shared.numRanks;
  if (own.size() != (options.onlyRank ? 1 : numRanks))
    return Status::failure(
        fmt::format("the program file holds {} of {} ranks, expected {}; "
                    "compile it without --only-rank",
                    program->ranks.size(), numRanks,
                    options.onlyRank ? fmt::format("rank {}", *options.onlyRank) : "all of them"));
  numCounted = options.peers && options.peers->collects() ? numRanks : uint32_t(own.size());
  return Status::success();
}

/// For what the run leaves behind.
Status Session::State::makeRoom() {
  const program::SharedInfo &shared = program->shared;
  Result<std::vector<double>> losses =
      createLosses(options.training.numSteps, shared.numMicrobatches);
  if (!losses.ok())
    return losses.getStatus();
  result.losses = std::move(*losses);
  const uint32_t numRecorded = std::min(options.numRecordedSteps, options.training.numSteps);
  for (uint32_t i = 0; i != numRecorded; ++i)
    recordings.push_back({options.training.numSteps - numRecorded + i,
                          std::vector<std::vector<CommandSpan>>(own.size())});
  finishedRanks.resize(options.training.numSteps, 0);
  stepEnds.resize(options.training.numSteps);
  Result<std::vector<StageCopy>> copies =
      createCopies(*model, *optimizer, shared, options.training.seed, options.onlyRank);
  if (!copies.ok())
    return copies.getStatus();
  result.copies = std::move(*copies);
  result.numMicrobatches = shared.numMicrobatches;
  return Status::success();
}

/// Ranks are connected before any of them waits for others, and before anybody may stop them.
Status Session::State::prepare() {
  if (Status status = selectRanks(); !status.ok())
    return status;
  if (options.onlyRank && options.numRecordedSteps != 0)
    return Status::failure("times are taken of all ranks together, expected a session of all of "
                           "them, not of one");
  if (options.emitted && options.numRecordedSteps != 0)
    return Status::failure("times of commands cannot be taken of an emitted step; trace, profile "
                           "and explain runs of the program file");
  if (options.emitted)
    if (Status status = options.emitted->checkProgram(*program); !status.ok())
      return status;
  if (Status status = model->checkProgram(program->shared); !status.ok())
    return status;
  if (Status status = makeRoom(); !status.ok())
    return status;
  ranks.reserve(own.size());
  for (const program::RankProgram *rank : own)
    if (Status status = connect(*rank); !status.ok())
      return status;
  if (options.peers)
    options.peers->listen(this);
  for (const Rank &rank : ranks)
    if (Status status = rank.ends.transport->meet(); !status.ok())
      return status;
  for (Rank &rank : ranks)
    if (Status status = prepareRank(rank); !status.ok())
      return status;
  return checkMemory();
}

Status Session::State::connect(const program::RankProgram &rankProgram) {
  Rank &rank = ranks.emplace_back();
  rank.program = &rankProgram;
  if (options.numRecordedSteps != 0)
    rank.recorder = std::make_unique<RankRecorder>(rankProgram.commands.size());
  Result<Backend::Ends> ends = backend->connect(rankProgram, *model, *this, rank.recorder.get());
  if (!ends.ok())
    return ends.getStatus();
  rank.ends = std::move(*ends);
  if (rank.recorder && rank.ends.graph)
    return Status::failure("times of commands cannot be taken in a captured step; record the run "
                           "without graphs");
  return Status::success();
}

Status Session::State::prepareRank(Rank &rank) {
  const std::span<StageCopy> results = findCopies(rank.program->rank);
  if (Status status = placeCopies(rank, results); !status.ok())
    return status;
  const std::span<StageCopy> copies = hasOwnMemory(rank) ? rank.copies : results;
  Result<std::unique_ptr<Executor>> executor =
      Executor::create({&program->shared, rank.program, model.get(), optimizer.get(),
                        rank.ends.device.get(), rank.ends.transport.get(), this, copies,
                        rank.ends.math.get(), rank.recorder.get(), rank.ends.graph.get(),
                        options.emitted ? options.emitted->findRank(rank.program->rank) : nullptr});
  if (!executor.ok())
    return executor.getStatus();
  rank.executor = std::move(*executor);
  if (!hasOwnMemory(rank))
    return Status::success();
  Status status = rank.executor->initializeCopies(options.training.seed);
  const std::lock_guard lock(mutex);
  return failure ? *failure : status; // what the device has reported says more
}

bool Session::State::hasOwnMemory(const Rank &rank) {
  return rank.ends.device->getPlace().device_type != kDLCPU;
}

/// The likes of the result's copies on a device; their weights come from there.
Status Session::State::placeCopies(Rank &rank, std::span<const StageCopy> results) {
  if (!hasOwnMemory(rank))
    return Status::success();
  rank.copies.reserve(results.size());
  for (const StageCopy &copy : results) {
    Result<StageCopy> placed =
        StageCopy::create(*model, copy.getRank(), copy.getStage(), program->shared.training,
                          optimizer->getStateFactor(), *rank.ends.device);
    if (!placed.ok())
      return placed.getStatus();
    rank.copies.push_back(std::move(*placed));
  }
  return Status::success();
}

/// Copies are in the order of their ranks.
std::span<StageCopy> Session::State::findCopies(uint32_t rank) {
  const auto begin =
      std::partition_point(result.copies.begin(), result.copies.end(),
                           [&](const StageCopy &copy) { return copy.getRank() < rank; });
  const auto end = std::partition_point(
      begin, result.copies.end(), [&](const StageCopy &copy) { return copy.getRank() == rank; });
  return {begin, end};
}

/// What is allocated by now is what the program and the sizes of the model say.
Status Session::State::checkMemory() {
  Result<std::vector<RankMemory>> predicted =
      measureMemory(*program, measureModel(*model, *optimizer));
  if (!predicted.ok())
    return predicted.getStatus();
  for (const Rank &rank : ranks) {
    const size_t index = size_t(rank.program - program->ranks.data());
    memory.push_back((*predicted)[index]);
    if (Status status = checkAllocation(
            measureAllocation(*rank.executor, findCopies(rank.program->rank)), memory.back());
        !status.ok())
      return status;
  }
  return Status::success();
}

} // namespace dualpipe::runtime
