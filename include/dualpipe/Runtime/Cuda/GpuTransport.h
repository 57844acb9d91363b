//===- GpuTransport.h - channels between ranks on one GPU ---------------------===//
//
// Without NCCL: a transfer is a copy on the device, ordered by events. CUDA wants
// an event recorded before another stream waits for it, so the host threads of the
// two ranks meet when they issue the transfer: whoever comes second puts the copy
// on its own stream, the first one waits for it. Host threads can wait for each
// other in no circle: D3 (docs/proofs.md) says that all issue lists finish with
// matched ends as one event, as if each rank had one queue, and a thread is that
// queue. Never run on a GPU so far.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_CUDA_GPUTRANSPORT_H
#define DUALPIPE_RUNTIME_CUDA_GPUTRANSPORT_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Cuda/CudaDevice.h"
#include "dualpipe/Runtime/Transport.h"

#include <functional>
#include <memory>
#include <span>

namespace dualpipe::runtime::cuda {

/// Puts the sum of the gradients of copies, in ascending order of rank, on a stream (see
/// sumGradients in Numerics.h). Called on the thread of one of the ranks.
using SumFunction = std::function<Status(Stream stream, std::span<StageCopy *const> copies)>;

/// What the ranks on a GPU share. Outlives the transports that it gives out.
class GpuHub {
public:
  explicit GpuHub(const program::SharedInfo &shared);
  ~GpuHub();

  /// The ends of one rank. Fails where the rank's sequence on a channel is not that of the other
  /// end, if that is connected already, and where the rank is on another GPU than the others.
  /// Device and program outlive the transport.
  Result<std::unique_ptr<Transport>> connect(const program::RankProgram &rank, CudaDevice &device,
                                             SumFunction sum);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace dualpipe::runtime::cuda

#endif // DUALPIPE_RUNTIME_CUDA_GPUTRANSPORT_H
