//===- ShuffledDevice.h - all ranks on one thread, in a random legal order --===//
//
// For tests: what the CPU device leaves to the threads of the machine is drawn
// from a seed here. Whatever may run now, of any stream of any rank, is equally
// legal as the next; one of it is picked, run, and so on. So every order that
// streams, events and channels allow can come up, a missing one shows as a wrong
// result, and a program that cannot finish is known to be stuck at once, without
// a timeout. The same seed gives the same order on every machine.
//
// As weak as the semantics allow:
//   - A send completes as soon as its data has been read, which may be before the
//     receive is posted (eager) or not before it (rendezvous); the seed says which,
//     send by send. The data may arrive at any later time.
//   - An event stands for its last record before the wait in issue order. A wait
//     for an event without one orders nothing, as on CUDA.
//   - Every compute stream runs on its own, and the members of a pair run one by
//     one in any order.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_SHUFFLEDDEVICE_H
#define DUALPIPE_RUNTIME_SHUFFLEDDEVICE_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Device.h"
#include "dualpipe/Runtime/Transport.h"

#include <cstdint>
#include <memory>

namespace dualpipe::runtime {

/// What the ranks share: their streams, their channels, and the dice. Outlives
/// the devices and transports that it gives out. One thread only.
class ShuffledHub {
public:
  /// All that is given outlives the hub.
  ShuffledHub(const program::SharedInfo &shared, FailureSink &failures, uint64_t seed);
  ~ShuffledHub();

  struct Rank {
    std::unique_ptr<Device> device;
    std::unique_ptr<Transport> transport;
  };
  /// The device and transport of a rank, each rank once. The program must have passed
  /// `verifyRanges` (Verify.h); nothing else is taken for granted. Begin and issue a step on
  /// every rank before the first `synchronize`: that one runs the step of all ranks, the others
  /// find it done. It returns false after a failure, and where nothing can go on (`isStuck`).
  Rank connect(const program::RankProgram &rank);

  /// Whether the last `synchronize` left commands that can never run.
  bool isStuck() const;

private:
  friend class ShuffledDevice;
  friend class ShuffledTransport;
  struct State;
  std::unique_ptr<State> state;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_SHUFFLEDDEVICE_H
