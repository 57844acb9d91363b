//===- Waiting.h - who waits for an event, and how he goes on ---------------===//
//
// A communication stream has no thread. When it has to wait it parks: it leaves
// itself at the one thing it waits for and its thread goes on elsewhere; whoever
// completes that thing resumes it. A compute thread parks in the same way and
// then sleeps. Parking gives the stream away: after a successful park the parker
// must not touch it again.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_DEVICE_CPU_WAITING_H
#define DUALPIPE_RUNTIME_DEVICE_CPU_WAITING_H

#include <atomic>
#include <cstdint>

namespace dualpipe::runtime {

class CpuStream;

/// A stream or a compute thread that can wait for one thing at a time.
struct Waiter {
  explicit Waiter(bool isThread) : isThread(isThread) {}

  Waiter *next = nullptr; ///< in the list that it is parked or queued in
  const bool isThread;
};

/// Streams that the current thread has to advance. A list instead of recursion,
/// so that a long chain of resumed streams needs no stack.
class Worklist {
public:
  void push(CpuStream &stream);
  CpuStream *pop();
  bool isEmpty() const { return !head; }

private:
  Waiter *head = nullptr;
};

/// The place where a compute thread sleeps.
class ComputeThread : public Waiter {
public:
  explicit ComputeThread(uint32_t spins) : Waiter(/*isThread=*/true), spins(spins) {}

  /// Sleeps until `wake`; false after `abort`. A wake that came first counts.
  bool sleep() {
    for (uint32_t i = 0; i != spins && state.load(std::memory_order_acquire) == kAsleep; ++i)
      pause();
    state.wait(kAsleep, std::memory_order_acquire);
    uint32_t expected = kAwake;
    return state.compare_exchange_strong(expected, kAsleep, std::memory_order_acquire);
  }
  void wake() {
    uint32_t expected = kAsleep;
    if (state.compare_exchange_strong(expected, kAwake, std::memory_order_release))
      state.notify_one();
  }
  /// Stays: every later sleep returns at once. An exchange, since notify_one reads a count of
  /// sleepers: a plain store may still be on its way to memory when it does, and a thread that
  /// falls asleep meanwhile would be missed.
  void abort() {
    state.exchange(kAborted, std::memory_order_seq_cst);
    state.notify_one();
  }
  bool isAborted() const { return state.load(std::memory_order_relaxed) == kAborted; }

private:
  static constexpr uint32_t kAsleep = 0, kAwake = 1, kAborted = 2;
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  std::atomic<uint32_t> state{kAsleep};
  const uint32_t spins;
};

/// Lets a waiter go on: a thread wakes, a stream is put into the worklist.
void resume(Waiter &waiter, Worklist &work);

/// Pending, or done, or pending with the waiters that are parked at it.
class Event {
public:
  void reset() { word.store(kPending, std::memory_order_relaxed); }

  /// Whether the waiter is parked now; false where the event is done.
  bool park(Waiter &waiter) {
    uintptr_t seen = word.load(std::memory_order_acquire);
    do {
      if (seen == kDone)
        return false;
      waiter.next = reinterpret_cast<Waiter *>(seen);
    } while (!word.compare_exchange_weak(seen, reinterpret_cast<uintptr_t>(&waiter),
                                         std::memory_order_acq_rel, std::memory_order_acquire));
    return true;
  }

  /// Completes the event and resumes who waits for it.
  void record(Worklist &work) {
    auto *waiter = reinterpret_cast<Waiter *>(word.exchange(kDone, std::memory_order_acq_rel));
    while (waiter) {
      Waiter *next = waiter->next; // read first: a resumed waiter may park again
      resume(*waiter, work);
      waiter = next;
    }
  }

private:
  static constexpr uintptr_t kPending = 0, kDone = 1;
  std::atomic<uintptr_t> word{kPending};
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_DEVICE_CPU_WAITING_H
