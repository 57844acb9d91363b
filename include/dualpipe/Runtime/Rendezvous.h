//===- Rendezvous.h - how processes of a run find each other ----------------------===//
//
// NCCL's communicators begin with ids that rank 0 makes and every other process
// needs. They travel over TCP: rank 0 listens at MASTER_ADDR:MASTER_PORT, the others
// come, show that they run the same program, and get what rank 0 has to say. RANK,
// WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT are set as PyTorch's launcher
// and the usual wrappers of Slurm do.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_RENDEZVOUS_H
#define DUALPIPE_RUNTIME_RENDEZVOUS_H

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

/// From the environment. Nothing where neither RANK nor WORLD_SIZE is set: a run of one process.
/// Fails where one is missing or makes no sense, and says which. DUALPIPE_PORT goes before
/// MASTER_PORT, where something else listens (PyTorch's launcher itself does).
Result<std::optional<ProcessPlace>> readProcessPlace(const char *(*getVariable)(const char *name));

/// Gives `payload` of rank 0 to all ranks; that of others is not looked at. `digest` is one of what
/// all must agree on (the program). Fails after `timeoutSeconds`, naming who is missing.
Result<std::vector<uint8_t>> meetAtMaster(const ProcessPlace &place, uint64_t digest,
                                          const std::vector<uint8_t> &payload,
                                          double timeoutSeconds);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_RENDEZVOUS_H
