//===- Queues.h - streams folded onto queues in any way ---------------------===//

#ifndef DUALPIPE_PROGRAM_QUEUES_H
#define DUALPIPE_PROGRAM_QUEUES_H

#include "dualpipe/Program/Verify.h"

#include <functional>
#include <string>

namespace dualpipe::program {

/// How a device folds the streams of a rank onto queues.
struct QueueFolding {
  /// The queue of a stream, below the number of the rank's streams.
  std::function<uint32_t(const RankProgram &rank, uint32_t stream)> getQueue;
  /// "with 4 hardware queues per rank", for messages.
  std::string name;
};

/// D3 of verifyQueues for any folding.
Verdict verifyFolding(const SharedInfo &shared, const std::vector<const RankProgram *> &ranks,
                      const QueueFolding &folding);

} // namespace dualpipe::program

#endif // DUALPIPE_PROGRAM_QUEUES_H
