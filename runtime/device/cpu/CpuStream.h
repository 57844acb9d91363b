//===- CpuStream.h - a communication stream without a thread ----------------===//
//
// A queue of operations with at most one owner at a time. The owner runs one
// operation after the other until one parks, or until the queue is empty and the
// stream becomes idle. A parked stream belongs to what it is parked at; an idle
// one belongs to the rank's thread, which issues its next operation.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_DEVICE_CPU_CPUSTREAM_H
#define DUALPIPE_RUNTIME_DEVICE_CPU_CPUSTREAM_H

#include "Waiting.h"

#include "runtime/models/CounterRandom.h"

#include <cstddef>
#include <vector>

namespace dualpipe::runtime {

class CpuDevice;

/// What a stream does next.
struct Operation {
  /// Runs it; false where the stream has parked, and then nobody may touch it.
  /// Whoever resumes the stream has completed the operation.
  bool (*run)(const Operation &operation, CpuStream &stream, Worklist &work) = nullptr;
  void *target = nullptr; ///< event, channel, reduction or device
  void *data = nullptr;   ///< the buffer of a transfer, the copy of a reduction
  size_t bytes = 0;
  uint32_t command = 0;
};

/// Random pauses before operations, for tests: nothing may depend on timing.
class Jitter {
public:
  Jitter() = default;
  Jitter(uint64_t seed, uint32_t maxMicroseconds)
      : state(mixSeed(seed)), maxMicroseconds(maxMicroseconds) {}
  /// Pauses one time in four, up to the maximum.
  void maybePause() {
    if (maxMicroseconds != 0)
      pause();
  }

  /// How long the next pause is, in microseconds; mostly 0.
  uint32_t draw();

private:
  void pause();
  /// Neighbouring seeds give unrelated sequences; a xorshift never leaves 0.
  static uint64_t mixSeed(uint64_t seed) {
    const uint64_t mixed = models::mixBits(seed + models::kGoldenGamma);
    return mixed == 0 ? models::kGoldenGamma : mixed;
  }

  uint64_t state = 1;
  uint32_t maxMicroseconds = 0;
};

class CpuStream : public Waiter {
public:
  CpuStream(CpuDevice &device, size_t capacity, Jitter jitter)
      : Waiter(/*isThread=*/false), device(device), queue(capacity), jitter(jitter) {}

  CpuDevice &getDevice() const { return device; }

  /// Starts a step: the queue is empty. The stream must have finished the last one.
  void begin() { issued = 0; }
  /// Adds an operation, and advances the stream if it was idle. From the rank's thread.
  void issue(const Operation &operation, Worklist &work);
  /// Runs operations until one parks or the queue is empty. From the owner.
  void advance(Worklist &work);
  /// As the last operation of a step: gives the stream back to the rank's thread.
  void finish();

  /// The operation that the stream is in. From the owner, or whoever it is parked at.
  const Operation &getCurrent() const {
    return queue[position.load(std::memory_order_relaxed) - 1];
  }
  /// How many operations have begun in this step. From any thread.
  size_t getPosition() const { return position.load(std::memory_order_relaxed); }

private:
  static constexpr size_t kIdle = ~(~size_t(0) >> 1);

  CpuDevice &device;
  std::vector<Operation> queue;
  Jitter jitter;
  size_t issued = 0;                    ///< the issuing thread's own count
  std::atomic<size_t> published{kIdle}; ///< operations that may run, and whether idle
  std::atomic<size_t> position{0};
};

/// Advances streams until none is left to advance.
void runWorklist(Worklist &work);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_DEVICE_CPU_CPUSTREAM_H
