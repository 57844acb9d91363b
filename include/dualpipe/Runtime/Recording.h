//===- Recording.h - when the commands of a step ran ------------------------===//
//
// A rank's recorder takes begin and end of its commands while a step runs. On the CPU
// computes are recorded by the executor, transfers and reductions by the transport: from
// the moment when the last end has come. On a GPU the executor has all commands marked in
// their streams, and `alignEnds` then finds that moment. Without a recorder nothing is
// measured.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_RECORDING_H
#define DUALPIPE_RUNTIME_RECORDING_H

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dualpipe::program {
struct Program;
}

namespace dualpipe::runtime {

/// When a command ran, in nanoseconds from the beginning of its step. Records and
/// waits take no time and have none.
struct CommandSpan {
  int64_t begin = 0, end = 0;
  /// Of a compute: its time without that in which its thread could have run but had
  /// no core, and the time on a core.
  int64_t own = 0, cpu = 0;
  /// How long its thread had no core when it could have gone on to it.
  int64_t queued = 0;
};

/// One step of all ranks, which began it together.
struct StepRecording {
  uint32_t step = 0;
  /// By rank and command.
  std::vector<std::vector<CommandSpan>> ranks;
};

/// Begins transfers and reductions when the last of their ends could begin, where each was taken
/// by itself. An end that is over by then, since clocks of two GPUs differ, takes no time.
/// `recording` is of this program, with all ranks.
void alignEnds(const program::Program &program, StepRecording &recording);

/// Where a compute thread stands.
struct ThreadClock {
  int64_t wall = 0;   ///< of the steady clock
  int64_t cpu = 0;    ///< on a core
  int64_t delay = 0;  ///< ready, but without a core
  int64_t queued = 0; ///< that since the last look
};

/// Takes the times of one rank. A compute is recorded by the rank's thread, a
/// transfer by whichever thread completes it while both ends stand still.
class RankRecorder {
public:
  explicit RankRecorder(size_t numCommands) : spans(numCommands) {}
  ~RankRecorder();
  RankRecorder(const RankRecorder &) = delete;
  RankRecorder &operator=(const RankRecorder &) = delete;

  static int64_t getTime() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  /// From the rank's thread.
  ThreadClock getThreadClock();

  /// The beginning of a step, as `getTime` has it.
  void beginStep(int64_t time) { stepBegin = time; }
  void recordCompute(uint32_t command, const ThreadClock &begin, const ThreadClock &end) {
    const int64_t wall = end.wall - begin.wall, delay = end.delay - begin.delay;
    spans[command] = {begin.wall - stepBegin, end.wall - stepBegin, delay < wall ? wall - delay : 0,
                      end.cpu - begin.cpu, begin.queued};
  }
  void recordTransfer(uint32_t command, int64_t begin, int64_t end) {
    spans[command] = {begin - stepBegin, end - stepBegin, 0, 0, 0};
  }
  /// By the clock of a device, where computes need no core; times as `getTime` has them.
  void recordOnDevice(uint32_t command, int64_t begin, int64_t end) {
    spans[command] = {begin - stepBegin, end - stepBegin, end - begin, 0, 0};
  }
  /// The times of the step; the next one begins with none.
  std::vector<CommandSpan> takeStep() {
    return std::exchange(spans, std::vector<CommandSpan>(spans.size()));
  }

private:
  std::vector<CommandSpan> spans;
  int64_t stepBegin = 0;
  int64_t lastDelay = 0;         ///< of the rank's thread when it was last looked at
  int schedulerFile = kUnopened; ///< the system's account of the rank's thread
  static constexpr int kUnopened = -2;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_RECORDING_H
