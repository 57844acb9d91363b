//===- NcclTransport.h - channels between GPUs, by NCCL --------------------------===//
//
// A communicator of two ranks for every channel and one for every reduce group, or
// a single one for all (`fold`): each carries its transfers in the order in which
// hosts issue them, and D3 (docs/proofs.md) says that they finish in that order
// even if a rank had one queue. All are created at the start, in one order, and
// never block a host: so they can be aborted. Never run on a GPU so far.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_CUDA_NCCLTRANSPORT_H
#define DUALPIPE_RUNTIME_CUDA_NCCLTRANSPORT_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Cuda/Api.h"
#include "dualpipe/Runtime/Cuda/CudaDevice.h"
#include "dualpipe/Runtime/Model.h"
#include "dualpipe/Runtime/Numerics.h"
#include "dualpipe/Runtime/Transport.h"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace dualpipe::runtime::cuda {

/// Which ranks share a communicator, and what it carries.
struct CommunicatorPlan {
  std::vector<uint32_t> ranks; ///< by rank within the communicator
  std::vector<uint32_t> channels;
  std::vector<uint32_t> reduceGroups;
};

/// The communicators of a program in the order in which all ranks create them: by channel, then by
/// reduce group of two or more. With `fold` the channels share the first, of all ranks.
std::vector<CommunicatorPlan> planCommunicators(const program::SharedInfo &shared, bool fold);

struct NcclOptions {
  bool fold = false;
  /// Thread blocks, and so multiprocessors, that a communicator may hold while a transfer waits.
  int maxBlocks = 4;
  /// How long ranks may take to come to a communicator, and NCCL to take a call.
  double timeoutSeconds = 120;
};

/// What the communicators of a rank take of its GPU.
struct CommunicatorUse {
  uint32_t communicators = 0;
  /// By how much the memory in use grew while they were made: NCCL's buffers, and what else was
  /// allocated on the GPU meanwhile.
  uint64_t bytes = 0;
  uint32_t blocks = 0;          ///< multiprocessors that they hold at most while transfers wait
  uint32_t multiprocessors = 0; ///< that the GPU has
};

/// Puts members[0] = members[0] + members[1] + ... on a stream, added in that order.
using SumMembersFunction = std::function<Status(Stream stream, kernels::Element type,
                                                std::span<void *const> members, int64_t count)>;

class NcclTransport : public Transport {
public:
  /// Begins to create the rank's communicators; `ids` are those of the plan, the same on all ranks.
  /// What is given outlives the transport.
  static Result<std::unique_ptr<NcclTransport>>
  create(const NcclApi &nccl, const program::SharedInfo &shared, const program::RankProgram &rank,
         const Model &model, CudaDevice &device, std::span<const UniqueId> ids,
         SumMembersFunction sum, const NcclOptions &options);
  /// Ends communicators; aborts them where the run has failed.
  ~NcclTransport() override;

  /// Waits until all communicators stand, measures them, and allocates what reductions need.
  Status meet() override;
  /// Known once they have met; may outlive the transport.
  std::shared_ptr<const CommunicatorUse> getUse() const;

  Status send(uint32_t stream, uint32_t command, uint32_t channel, const void *data,
              size_t bytes) override;
  Status recv(uint32_t stream, uint32_t command, uint32_t channel, void *data,
              size_t bytes) override;
  Status reduce(uint32_t stream, uint32_t command, uint32_t group, StageCopy &copy) override;
  Status startGroup() override;
  Status endGroup() override;
  DirectChannels *getDirectChannels() override;
  void abort() override;

private:
  struct State;
  explicit NcclTransport(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

/// An id for each communicator of a plan.
Result<std::vector<UniqueId>> makeUniqueIds(const NcclApi &nccl, size_t count);

} // namespace dualpipe::runtime::cuda

#endif // DUALPIPE_RUNTIME_CUDA_NCCLTRANSPORT_H
