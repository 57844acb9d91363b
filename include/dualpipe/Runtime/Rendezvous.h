//===- Rendezvous.h - how processes of a run find each other ----------------------===//
//
// Rank 0 listens at MASTER_ADDR:MASTER_PORT, the others come and say which rank they
// are. RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT are set as PyTorch's
// launcher and the usual wrappers of Slurm do. The connections stay: Processes.h.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_RENDEZVOUS_H
#define DUALPIPE_RUNTIME_RENDEZVOUS_H

#include "dualpipe/Runtime/Socket.h"
#include "dualpipe/Support/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dualpipe::runtime {

/// Which process of a run this is.
struct ProcessPlace {
  uint32_t rank = 0;
  uint32_t worldSize = 1;
  uint32_t localRank = 0; ///< on its machine: the GPU that it takes
  std::string address;
  uint16_t port = 0;
};

/// From the environment. Nothing for a run of one process: neither RANK nor WORLD_SIZE is set, or
/// there is one rank. Fails where a variable is missing or makes no sense, and says which.
/// DUALPIPE_PORT goes before MASTER_PORT, where something else listens (PyTorch's launcher itself
/// does).
Result<std::optional<ProcessPlace>> readProcessPlace(const char *(*getVariable)(const char *name));

struct MeetingOptions {
  /// How long ranks may take to come.
  double timeoutSeconds = 120;
  /// How long rank 0 tells those who come too late why there is no run.
  double lingerSeconds = 5;
};

/// Rank 0 gets a connection to each other rank, by rank (its own is closed); the others get one, to
/// rank 0. Fails after the timeout, naming who is missing, and where ranks do not fit; those who
/// came are told the same.
Result<std::vector<Socket>> meetAtMaster(const ProcessPlace &place, const MeetingOptions &options);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_RENDEZVOUS_H
