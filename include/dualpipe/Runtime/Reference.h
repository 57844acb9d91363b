//===- Reference.h - the same training, in sequence, to compare with --------===//
//
// What `launcher --check` compares a run with. `replay` makes the stage calls of
// a program one after the other on one thread, without slots, channels, streams
// or events; each copy of a stage accumulates in the order in which its rank's
// program does, so a correct run agrees with it bit for bit. `runPlain` sums over
// the micro-batches in their order, one copy per stage: what the schedule must
// compute, but for rounding.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_REFERENCE_H
#define DUALPIPE_RUNTIME_REFERENCE_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Model.h"
#include "dualpipe/Support/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dualpipe::runtime {

/// How a program is trained.
struct TrainingOptions {
  uint64_t seed = 0;
  uint32_t numSteps = 1;
  double learningRate = 0.01;
};

/// What a run leaves behind. The executor fills one, `replay` another.
struct TrainingResult {
  uint32_t numMicrobatches = 0;
  /// losses[step * numMicrobatches + microbatch], as the last stages wrote them (unscaled).
  std::vector<double> losses;
  /// Every copy of every stage, by rank and then stage: the weights after the last step, the
  /// gradients of the last step after their reduction.
  std::vector<StageCopy> copies;
};

/// Room for a loss per step and micro-batch, zeroed. Fails where that is more than kMaxLosses.
Result<std::vector<double>> createLosses(uint32_t numSteps, uint32_t numMicrobatches);
/// One GiB of losses.
inline constexpr uint64_t kMaxLosses = uint64_t(1) << 27;

/// Allocates the copies of `listCopies` (RankMemory.h) on the host, and initialises them where the
/// model runs there; else they are initialised on the device and read back after a run. Those of
/// one rank where it is given.
Result<std::vector<StageCopy>> createCopies(const Model &model, const Optimizer &optimizer,
                                            const program::SharedInfo &shared, uint64_t seed,
                                            std::optional<uint32_t> onlyRank = {});

/// Where a check computes. By default on the host.
struct CheckPlace {
  Memory *memory = nullptr; ///< null: of the host. Copies wait for the calls before them
  CallPlace calls;
};

/// A replay: its result, and the weights of every copy at the start of the last step, as flat
/// buffers in the order of `result.copies`.
struct Replay {
  TrainingResult result;
  std::vector<std::vector<uint8_t>> startOfLastStep;
};

/// Replays all ranks of a program (all must be there). Fails where a stage function fails, or where
/// the programs cannot go on, saying what each rank waits for. The result is on the host.
Result<Replay> replay(const Model &model, const program::Program &program,
                      const Optimizer &optimizer, const TrainingOptions &options,
                      const CheckPlace &place = {});

/// One step in plain order: for each micro-batch a forward through all stages of its pipeline, then
/// full backwards, accumulated into one gradient per stage. Starts from the weights in
/// `start.startOfLastStep`; losses has one entry per micro-batch; one copy per stage, of rank 0,
/// by stage, whose weights are those of the start.
Result<TrainingResult> runPlain(const Model &model, const program::SharedInfo &shared,
                                const Replay &start, const TrainingOptions &options,
                                const CheckPlace &place = {});

/// What a check found.
struct CheckReport {
  bool passed = false;
  /// How far the gradients are off the plain sum at most, relative to the largest element of their
  /// tensor. Unset where the comparison did not come so far.
  std::optional<double> plainDifference;
  /// One finding per line; the last line begins with "check passed" or "check failed".
  std::vector<std::string> lines;

  std::string getText() const;
};

/// The largest |a - b| over a tensor, divided by the largest |b| (0 where both are zero).
Result<double> getRelativeDifference(const DLTensor &a, const DLTensor &b);

/// Compares a run with its replay, bit for bit, then the copies of each stage with each other, then
/// the gradients with the plain sum. `plain` may be null (programs for forward only).
CheckReport compareRuns(const TrainingResult &run, const TrainingResult &reference,
                        const TrainingResult *plain);

/// All of it: replay, plain sum, comparison.
Result<CheckReport> checkRun(const Model &model, const program::Program &program,
                             const Optimizer &optimizer, const TrainingOptions &options,
                             const TrainingResult &run, const CheckPlace &place = {});

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_REFERENCE_H
