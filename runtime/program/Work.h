//===- Work.h - what the pipelines place on a rank --------------------------===//

#ifndef DUALPIPE_RUNTIME_PROGRAM_WORK_H
#define DUALPIPE_RUNTIME_PROGRAM_WORK_H

#include "Facts.h"

#include <string>
#include <unordered_map>

namespace dualpipe::program {

/// A stage that a pipeline runs on a rank, with the micro-batches that come by.
struct PlacedStage {
  uint32_t stage;
  uint32_t firstMicrobatch;
  uint32_t numMicrobatches; ///< never 0
};

/// All of a rank, by stage and then by micro-batch. A stage may stand there several times.
std::vector<PlacedStage> getPlacedStages(const SharedInfo &shared, uint32_t rank);

/// Launches that may happen once per stage and micro-batch, by the command of the first.
class OnceTable {
public:
  /// The command that did it before, or kNone: then `command` is the one from now on.
  uint32_t insert(uint32_t stage, uint32_t microbatch, uint32_t command) {
    const auto [entry, isNew] = commands.try_emplace(getKey(stage, microbatch), command);
    return isNew ? kNone : entry->second;
  }
  /// The command that did it, or kNone.
  uint32_t find(uint32_t stage, uint32_t microbatch) const {
    const auto entry = commands.find(getKey(stage, microbatch));
    return entry == commands.end() ? kNone : entry->second;
  }
  size_t size() const { return commands.size(); }

  /// The first micro-batch of `placed` that is missing, or kNone. Takes as many steps as the
  /// table has entries, at most, however many micro-batches a file claims.
  uint32_t findMissing(const PlacedStage &placed) const {
    for (uint32_t i = 0; i != placed.numMicrobatches; ++i)
      if (find(placed.stage, placed.firstMicrobatch + i) == kNone)
        return placed.firstMicrobatch + i;
    return kNone;
  }

private:
  static uint64_t getKey(uint32_t stage, uint32_t microbatch) {
    return (uint64_t(stage) << 32) | microbatch;
  }
  std::unordered_map<uint64_t, uint32_t> commands; ///< never iterated: its order is not ours
};

/// "stage 2, micro-batch 5"
std::string describeTask(uint32_t stage, uint32_t microbatch);

} // namespace dualpipe::program

#endif // DUALPIPE_RUNTIME_PROGRAM_WORK_H
