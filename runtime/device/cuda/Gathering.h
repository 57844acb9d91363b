//===- Gathering.h - where host threads wait for each other ----------------------===//

#ifndef DUALPIPE_RUNTIME_DEVICE_CUDA_GATHERING_H
#define DUALPIPE_RUNTIME_DEVICE_CUDA_GATHERING_H

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace dualpipe::runtime::cuda {

/// A barrier that ends when the run does.
class Gathering {
public:
  /// One more thread comes from now on, before any has come.
  void add() { ++numMembers; }
  uint32_t getNumMembers() const { return numMembers; }

  /// Waits until all have come; the last one runs `action` before anybody goes on. False where
  /// `poll`, which is called now and then meanwhile, says that the run has ended: then the
  /// gathering is of no more use.
  bool arrive(const std::function<bool()> &poll, const std::function<void()> &action = {}) {
    std::unique_lock lock(mutex);
    if (++numHere == numMembers) {
      if (action)
        action();
      numHere = 0;
      ++numGathered;
      changed.notify_all();
      return true;
    }
    const uint64_t awaited = numGathered + 1;
    while (!changed.wait_for(lock, kLook, [&] { return numGathered >= awaited; })) {
      lock.unlock();
      const bool goesOn = poll();
      lock.lock();
      if (!goesOn && numGathered < awaited)
        return false;
    }
    return true;
  }

private:
  static constexpr std::chrono::milliseconds kLook{1};

  std::mutex mutex;
  std::condition_variable changed;
  uint32_t numMembers = 0;
  uint32_t numHere = 0;
  uint64_t numGathered = 0;
};

} // namespace dualpipe::runtime::cuda

#endif // DUALPIPE_RUNTIME_DEVICE_CUDA_GATHERING_H
