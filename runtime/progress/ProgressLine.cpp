//===- ProgressLine.cpp - how far something long has come -------------------===//

#include "dualpipe/Runtime/Progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <system_error>
#include <thread>

#include <unistd.h>

namespace dualpipe::runtime {

using Clock = std::chrono::steady_clock;

/// What is over sooner needs no line.
static constexpr std::chrono::milliseconds kDelay{500};
static constexpr std::chrono::milliseconds kInterval{200};

struct ProgressLine::State {
  explicit State(std::string label) : label(std::move(label)), start(Clock::now()) {}

  void run();
  void print();
  void clear();

  std::atomic<uint64_t> done{0}, total{0};
  std::mutex mutex; ///< guards what follows, and the line itself
  std::condition_variable changed;
  std::string label;
  const Clock::time_point start;
  bool isShown = false;
  bool hasEnded = false;
  std::thread thread;
};

void ProgressLine::State::print() {
  const uint64_t of = total.load(std::memory_order_relaxed);
  const uint64_t at = std::min(done.load(std::memory_order_relaxed), of);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::string text = label;
  if (of != 0)
    text += fmt::format(", {} of {} ({} %)", at, of, uint64_t(100.0 * double(at) / double(of)));
  // Back to the beginning of the line, and nothing behind the new text.
  fmt::print(stderr, "\r{}, {:.0f} s\033[K", text, seconds);
  std::fflush(stderr);
  isShown = true;
}

void ProgressLine::State::clear() {
  if (!isShown)
    return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  isShown = false;
}

void ProgressLine::State::run() {
  std::unique_lock lock(mutex);
  std::chrono::milliseconds pause = kDelay;
  while (!changed.wait_for(lock, pause, [&] { return hasEnded; })) {
    print();
    pause = kInterval;
  }
}

/// Without a thread there is no line, which is no reason to fail.
ProgressLine::ProgressLine(std::string label) {
  if (isatty(STDERR_FILENO) == 0)
    return;
  state = std::make_unique<State>(std::move(label));
  try {
    state->thread = std::thread([this] { state->run(); });
  } catch (const std::system_error &) {
    state.reset();
  }
}

ProgressLine::~ProgressLine() { end(); }

void ProgressLine::begin(std::string label) {
  if (!state)
    return;
  const std::lock_guard lock(state->mutex);
  state->label = std::move(label);
  state->done = state->total = 0;
}

void ProgressLine::show(uint64_t done, uint64_t total) {
  if (!state)
    return;
  state->total.store(total, std::memory_order_relaxed);
  state->done.store(done, std::memory_order_relaxed);
}

void ProgressLine::clear() {
  if (!state)
    return;
  const std::lock_guard lock(state->mutex);
  state->clear();
}

void ProgressLine::end() {
  if (!state)
    return;
  {
    const std::lock_guard lock(state->mutex);
    state->hasEnded = true;
    state->clear();
  }
  state->changed.notify_all();
  state->thread.join();
  state.reset();
}

} // namespace dualpipe::runtime
