//===- ShuffledState.h - streams of all ranks, channels, and the dice -------===//

#ifndef DUALPIPE_RUNTIME_DEVICE_SHUFFLED_SHUFFLEDSTATE_H
#define DUALPIPE_RUNTIME_DEVICE_SHUFFLED_SHUFFLEDSTATE_H

#include "dualpipe/Runtime/ShuffledDevice.h"
#include "runtime/models/CounterRandom.h"

#include <deque>
#include <vector>

namespace dualpipe::runtime {

using models::Dice;

/// A command that was issued and has not run yet.
struct ShuffledTask {
  program::CommandOp op; ///< Launch, Record, Wait, Send, Recv or Reduce
  uint32_t command;
  /// Record and Wait: number of the record within the step; Send and Recv: channel; Reduce: group.
  size_t target = 0;
  Device::LaunchFunction function = nullptr;
  void *context = nullptr;
  void *data = nullptr; ///< a transfer's buffer
  size_t bytes = 0;
  StageCopy *copy = nullptr;
  bool eager = false; ///< a send that does not wait for its receive
};

/// One stream of one rank.
struct ShuffledStream {
  uint32_t rank;
  std::deque<ShuffledTask> tasks;
  uint64_t priority = 0;
};

/// What has been read at the sender's end and has not arrived at the other.
using InFlight = std::deque<std::vector<std::byte>>;

struct ShuffledHub::State {
  State(const program::SharedInfo &shared, FailureSink &failures, uint64_t seed);

  /// Runs until nothing is left, or nothing can.
  bool runAll();
  void add(uint32_t stream, ShuffledTask task);

  bool canRun(const ShuffledTask &task) const;
  bool isExpected(uint32_t channel) const;
  bool hasAllMembers(uint32_t group) const;
  size_t choose(const std::vector<uint32_t> &ready);
  Status runTask(ShuffledStream &stream);
  Status runTransfer(const ShuffledTask &task);
  Status runReduce(uint32_t group);

  const program::SharedInfo &shared;
  FailureSink &failures;
  Dice dice;
  /// Priorities are drawn anew before one pick in so many: 1 is an even choice among all, a large
  /// number lets some streams run far ahead of others.
  size_t picksPerDraw;
  unsigned eagerSends;                 ///< of 2: how many sends are eager
  std::vector<ShuffledStream> streams; ///< of all ranks
  std::vector<bool> recorded;          ///< by record of the step, of all ranks
  std::vector<InFlight> inFlight;      ///< by channel
  std::vector<uint32_t> receivers;     ///< by channel: the stream at its receiving end, or kNone
  std::vector<std::vector<uint32_t>> members; ///< by reduce group: the streams of its members
  bool hasFailed = false;
  bool stuck = false;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_DEVICE_SHUFFLED_SHUFFLEDSTATE_H
