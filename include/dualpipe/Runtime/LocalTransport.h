//===- LocalTransport.h - channels between ranks of one process -------------===//
//
// Every channel is a rendezvous: the receiver's slot is the only buffer, and
// whichever end comes second copies. A reduction is done by whichever member
// comes last.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_LOCALTRANSPORT_H
#define DUALPIPE_RUNTIME_LOCALTRANSPORT_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/CpuDevice.h"
#include "dualpipe/Runtime/Transport.h"

#include <memory>

namespace dualpipe::runtime {

/// What the ranks of a process share. Outlives the transports that it gives out.
class LocalHub {
public:
  explicit LocalHub(const program::SharedInfo &shared);
  ~LocalHub();

  /// The ends of one rank. Fails where the rank's sequence on a channel is not
  /// that of the other end, if that is connected already. Device and program
  /// outlive the transport.
  Result<std::unique_ptr<Transport>> connect(const program::RankProgram &rank, CpuDevice &device);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_LOCALTRANSPORT_H
