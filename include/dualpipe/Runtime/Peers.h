//===- Peers.h - the ranks of a run in other processes, as a session sees them -----===//

#ifndef DUALPIPE_RUNTIME_PEERS_H
#define DUALPIPE_RUNTIME_PEERS_H

#include "dualpipe/Support/Status.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace dualpipe::runtime {

/// The loss of a micro-batch, from the rank that has it.
struct MicrobatchLoss {
  uint32_t microbatch;
  double loss;
};

/// What a session tells other processes, and hears of them. A failure of one is a failure of all.
class Peers {
public:
  /// Called from any thread.
  class Listener {
  public:
    virtual ~Listener() = default;
    /// Another rank has finished a step. Only the process that collects hears of it.
    virtual void onPeerStep(uint32_t step, std::span<const MicrobatchLoss> losses) = 0;
    /// The run has failed elsewhere.
    virtual void onPeerFailure(Status status) = 0;
  };

  virtual ~Peers() = default;
  /// Null: nobody listens any more, once this returns. A failure of before is told at once.
  virtual void listen(Listener *listener) = 0;
  /// Whether this process hears of the steps of all ranks and reports them.
  virtual bool collects() const = 0;
  /// A rank of this process has finished a step.
  virtual void finishStep(uint32_t step, std::span<const MicrobatchLoss> losses) = 0;
  /// The session has failed here.
  virtual void fail(const Status &status) = 0;
  /// Called at every look of the watchdog: what the ranks of this process wait for where they stand
  /// still, a line each, else nothing. Where all processes stand still, the run fails.
  virtual void standStill(const std::optional<std::string> &holdUp) = 0;
  /// The ranks of this process have run their last commands: what to show, a line each, where
  /// others stand still. Never fails the run.
  virtual void finishRun(const std::string &end) = 0;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_PEERS_H
