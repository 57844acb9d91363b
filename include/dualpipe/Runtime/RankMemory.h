//===- RankMemory.h - the memory that a program takes with a model ----------===//
//
// P4 in bytes: what the runtime allocates on each rank, by what it is for, computed
// from the program and the sizes of a model alone. The runtime compares it with what
// it has allocated (Session.h).
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_RANKMEMORY_H
#define DUALPIPE_RUNTIME_RANKMEMORY_H

#include "dualpipe/Program/Memory.h"
#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/ModelSizes.h"
#include "dualpipe/Support/Status.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dualpipe::runtime {

/// What one rank allocates, in bytes. All of it stands from the beginning to the end of a run.
struct RankMemory {
  uint32_t rank = 0;
  /// Of all copies of stages on the rank. Two pipelines that share a stage there have one copy.
  uint64_t weights = 0;
  uint64_t gradients = 0;
  uint64_t optimizerState = 0;
  uint64_t workspace = 0;
  /// The slots by class, and how much of them holds values at once.
  program::SlotUse slots;

  uint64_t getTotal() const {
    return weights + gradients + optimizerState + workspace + slots.arenaBytes;
  }
};

/// By rank of `program.ranks`. The program must satisfy P2 and P3. Fails where the sizes are those
/// of another number of stages, or where a rank needs more than memory can be.
Result<std::vector<RankMemory>> measureMemory(const program::Program &program,
                                              const ModelSizes &sizes);

/// Copies of stages in ascending order of (rank, stage), as the pipelines place them.
std::vector<std::pair<uint32_t, uint32_t>> listCopies(const program::SharedInfo &shared);

/// The memory of every rank as a list of objects (docs/reports.md).
nlohmann::ordered_json toJson(const std::vector<RankMemory> &memory,
                              const program::Program &program);
/// A table: the names of the columns, then a row per rank. The last column is text.
std::vector<std::vector<std::string>> tabulateMemory(const std::vector<RankMemory> &memory,
                                                     const program::Program &program);
/// "1.5 MiB: weights ..."
std::string summarizeRank(const RankMemory &memory);
/// One line for ranks next to each other of which the same is said, by rank:
/// "  memory of ranks 0 to 3: 1.5 MiB: weights ...".
std::string joinRanks(const std::string &what,
                      const std::vector<std::pair<uint32_t, std::string>> &ranks);
/// "1.5 MiB"
std::string describeBytes(uint64_t bytes);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_RANKMEMORY_H
