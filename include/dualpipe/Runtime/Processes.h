//===- Processes.h - a run with one process per rank --------------------------------===//
//
// Every process keeps its connection to rank 0, which is the hub: over it goes what
// ranks have to agree on before the run, what they have to show after it, and word of
// every failure. The first failure that reaches rank 0 is that of the run: rank 0 tells
// it to all, and all end with the same words. A process that dies is missed at once,
// since its connection ends, one that is stopped since it gives no signs of life.
//
// Data of the run itself goes between GPUs (NcclTransport.h), never through here.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_PROCESSES_H
#define DUALPIPE_RUNTIME_PROCESSES_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Peers.h"
#include "dualpipe/Runtime/Rendezvous.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace dualpipe::runtime {

using Bytes = std::vector<uint8_t>;

/// One number for what all ranks of a program share, whichever of its ranks a file holds: pipelines
/// and placements, channels with the digests of their sequences, reduce groups, contract.
uint64_t digestShared(const program::SharedInfo &shared);

/// For each reduce group of a rank, by number: one number for the order in which it sums the
/// gradients of stages. All members must have the same (D1).
std::map<uint32_t, uint64_t> digestReductions(const program::RankProgram &rank);

/// How long processes wait for each other once they have met.
struct ProcessTimes {
  /// Until a process is missed that does not come to a point of the run, or stands still. Nothing:
  /// as long as for the meeting.
  std::optional<double> patienceSeconds = {};
  /// Rank 0 waits so long after a failure for the end of a process that has died, which is then the
  /// one to name.
  double secondLookSeconds = 0.2;
};

class Processes : public Peers {
public:
  /// Waits for all processes of the run (Rendezvous.h).
  static Result<std::unique_ptr<Processes>>
  meet(const ProcessPlace &place, const MeetingOptions &options, const ProcessTimes &times = {});
  /// Leaves.
  ~Processes() override;

  const ProcessPlace &getPlace() const;
  /// Whether this is rank 0, which collects what the others have to show.
  bool collects() const override;

  // From one thread at a time, by all processes in the same order. Each fails with the failure of
  // the run.

  /// Gives all what rank 0 has; what others bring is not looked at.
  Result<Bytes> share(const Bytes &bytes);
  /// Gives rank 0 what all have, by rank; the others get nothing.
  Result<std::vector<Bytes>> gather(const Bytes &bytes);
  /// Rank 0 asks another rank for something, by a number.
  Result<Bytes> fetch(uint32_t rank, uint64_t item);
  /// The others answer until rank 0 says that the run is over.
  Status answer(const std::function<Result<Bytes>(uint64_t item)> &find);
  /// Rank 0 lets the others go: all has been shown.
  void finish();

  // While it runs.

  void listen(Listener *listener) override;
  void finishStep(uint32_t step, std::span<const MicrobatchLoss> losses) override;
  void standStill(const std::optional<std::string> &holdUp) override;
  void finishRun(const std::string &end) override;

  // At any time.

  /// Tells all that the run has failed here. The first failure counts.
  void fail(const Status &status) override;
  /// The failure of the run, the same in all processes: waits a while for word of rank 0, and takes
  /// `own`, which this process has failed with, where none comes.
  Status agreeOnFailure(const Status &own);
  /// Ends the connections, after what was sent has arrived. For who ends without destructors.
  void leave();

private:
  struct State;
  explicit Processes(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_PROCESSES_H
