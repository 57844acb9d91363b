//===- RankRecorder.cpp - where a compute thread stands ---------------------===//

#include "dualpipe/Runtime/Recording.h"

#include <charconv>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <unistd.h>

namespace dualpipe::runtime {

RankRecorder::~RankRecorder() {
  if (schedulerFile >= 0)
    close(schedulerFile);
}

/// The second number of "/proc/thread-self/schedstat" (Linux, sched-stats.rst): the
/// nanoseconds in which the thread waited for a core. 0 where the system does not say.
static int64_t readDelay(int file) {
  char text[96];
  const ssize_t size = file < 0 ? -1 : pread(file, text, sizeof text, 0);
  if (size <= 0)
    return 0;
  const char *end = text + size;
  const void *blank = std::memchr(text, ' ', size_t(size));
  int64_t delay = 0;
  if (blank)
    std::from_chars(static_cast<const char *>(blank) + 1, end, delay);
  return delay;
}

ThreadClock RankRecorder::getThreadClock() {
  if (schedulerFile == kUnopened)
    schedulerFile = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  timespec cpu{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  const int64_t delay = readDelay(schedulerFile);
  const int64_t queued = delay - std::exchange(lastDelay, delay);
  return {getTime(), int64_t(cpu.tv_sec) * 1'000'000'000 + cpu.tv_nsec, delay, queued};
}

} // namespace dualpipe::runtime
