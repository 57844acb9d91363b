//===- OwnedCommunicator.h - a communicator that ends by itself -------------------===//

#ifndef DUALPIPE_RUNTIME_TRANSPORT_NCCL_OWNEDCOMMUNICATOR_H
#define DUALPIPE_RUNTIME_TRANSPORT_NCCL_OWNEDCOMMUNICATOR_H

#include "dualpipe/Runtime/Cuda/NcclTransport.h"

#include <string>
#include <utility>

namespace dualpipe::runtime::cuda {

/// A non-blocking communicator. Move-only.
class OwnedCommunicator {
public:
  /// Begins to create it; `settle` waits for the other ranks. `name` is for messages.
  static Result<OwnedCommunicator> create(const NcclApi &nccl, int numRanks, const UniqueId &id,
                                          int rank, int maxBlocks, std::string name);
  OwnedCommunicator(OwnedCommunicator &&other) noexcept
      : nccl(other.nccl), communicator(std::exchange(other.communicator, nullptr)),
        name(std::move(other.name)) {}
  OwnedCommunicator &operator=(OwnedCommunicator &&) = delete;
  ~OwnedCommunicator() {
    if (communicator)
      (void)nccl->commDestroy(communicator); // nothing can be done about a failure
  }

  Communicator get() const { return communicator; }
  const std::string &getName() const { return name; }
  /// Whether NCCL is still at work on the last call. Fails with an error of the communicator.
  Result<bool> isInProgress() const;
  /// Waits, while `poll` says that the run goes on, until NCCL has taken the last call: only then
  /// is its work on the stream, so that an event may be recorded behind it.
  Status settle(const std::function<bool()> &poll, double timeoutSeconds) const;
  /// Ends what it is at. Every rank of it must.
  void abort() {
    if (communicator)
      (void)nccl->commAbort(std::exchange(communicator, nullptr));
  }

private:
  OwnedCommunicator(const NcclApi &nccl, Communicator communicator, std::string name)
      : nccl(&nccl), communicator(communicator), name(std::move(name)) {}

  const NcclApi *nccl;
  Communicator communicator;
  std::string name;
};

} // namespace dualpipe::runtime::cuda

#endif // DUALPIPE_RUNTIME_TRANSPORT_NCCL_OWNEDCOMMUNICATOR_H
