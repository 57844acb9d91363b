//===- Transport.h - one rank's ends of channels and reductions -------------===//

#ifndef DUALPIPE_RUNTIME_TRANSPORT_H
#define DUALPIPE_RUNTIME_TRANSPORT_H

#include "dualpipe/Runtime/Direct.h"
#include "dualpipe/Runtime/Model.h"
#include "dualpipe/Support/Status.h"

#include <cstddef>
#include <cstdint>

namespace dualpipe::runtime {

/// Issues transfers and reductions to streams of the rank's device. None of the
/// calls waits; a failure on the way goes to the device's failure sink.
class Transport {
public:
  virtual ~Transport() = default;
  /// Once all ranks of the process have a transport: waits until this one has met those of other
  /// ranks, where it has to.
  virtual Status meet() { return Status::success(); }

  /// A send may block its stream until the receive is posted.
  virtual Status send(uint32_t stream, uint32_t command, uint32_t channel, const void *data,
                      size_t bytes) = 0;
  virtual Status recv(uint32_t stream, uint32_t command, uint32_t channel, void *data,
                      size_t bytes) = 0;
  /// Replaces the gradients of the copy, and of the copies that the other
  /// members bring, by their sum (see sumGradients).
  virtual Status reduce(uint32_t stream, uint32_t command, uint32_t group, StageCopy &copy) = 0;

  /// The transfers of one stream between the two begin together. Where each runs by itself there is
  /// nothing to do. `endGroup` comes on every path.
  virtual Status startGroup() { return Status::success(); }
  virtual Status endGroup() { return Status::success(); }
  /// For code that calls NCCL itself; null where it is not NCCL that transfers.
  virtual DirectChannels *getDirectChannels() { return nullptr; }
  /// After a failure, from the rank's own thread: ends what is under way.
  virtual void abort() {}
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_TRANSPORT_H
