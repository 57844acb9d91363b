//===- StreamTimes.cpp - when commands ran, by the clock of a GPU ---------------===//

#include "StreamTimes.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace dualpipe::runtime::cuda {

using program::CommandOp;
using program::kNone;

static constexpr size_t kNumTries = 5;

/// Group headers have the time of their members; records and waits take none.
static bool takesTime(CommandOp op) {
  return op != CommandOp::Record && op != CommandOp::Wait && op != CommandOp::Group;
}

Result<std::unique_ptr<StreamTimes>> StreamTimes::create(const DriverApi &driver,
                                                         const program::RankProgram &rank,
                                                         RankRecorder &recorder) {
  std::unique_ptr<StreamTimes> times(new StreamTimes(driver, rank, recorder));
  const auto make = [&] { return OwnedEvent::create(driver, EventClock::Kept); };
  for (size_t i = 0; i != kNumTries; ++i) {
    Result<OwnedEvent> event = make();
    if (!event.ok())
      return event.getStatus();
    times->bases.push_back(std::move(*event));
  }
  times->places.resize(rank.commands.size(), kNone);
  for (size_t i = 0; i != rank.commands.size(); ++i) {
    if (!takesTime(rank.commands[i].op))
      continue;
    Result<OwnedEvent> begin = make();
    if (!begin.ok())
      return begin.getStatus();
    Result<OwnedEvent> end = make();
    if (!end.ok())
      return end.getStatus();
    times->places[i] = uint32_t(times->marks.size());
    times->marks.push_back({std::move(*begin), std::move(*end)});
  }
  return times;
}

Status StreamTimes::beginStep(Stream stream, const std::function<Status()> &wait) {
  marked.clear();
  int64_t shortest = 0;
  for (size_t i = 0; i != bases.size(); ++i) {
    const int64_t before = RankRecorder::getTime();
    if (Status status = check(driver, driver.eventRecord(bases[i].get(), stream), "cuEventRecord");
        !status.ok())
      return status;
    if (Status status = wait(); !status.ok())
      return status;
    const int64_t took = RankRecorder::getTime() - before;
    if (i != 0 && took >= shortest)
      continue;
    shortest = took;
    base = i;
    baseTime = before + took / 2;
  }
  return Status::success();
}

DriverStatus StreamTimes::mark(Stream stream, uint32_t command, CommandEdge edge) {
  const Marks &own = marks[places[command]];
  if (edge == CommandEdge::End)
    marked.push_back(command);
  return driver.eventRecord((edge == CommandEdge::Begin ? own.begin : own.end).get(), stream);
}

/// Nanoseconds of the steady clock. CUDA says milliseconds, to half a microsecond.
Result<int64_t> StreamTimes::measure(const OwnedEvent &event) {
  float milliseconds = 0;
  const DriverStatus status =
      driver.eventElapsedTime(&milliseconds, bases[base].get(), event.get());
  if (status != DriverStatus::Success)
    return check(driver, status, fmt::format("rank {}: cuEventElapsedTime", rank.rank));
  return baseTime + std::llround(double(milliseconds) * 1e6);
}

Status StreamTimes::endStep() {
  for (const uint32_t command : marked) {
    const Marks &own = marks[places[command]];
    Result<int64_t> begin = measure(own.begin);
    if (!begin.ok())
      return begin.getStatus();
    Result<int64_t> end = measure(own.end);
    if (!end.ok())
      return end.getStatus();
    recorder.recordOnDevice(command, *begin, *end);
  }
  return Status::success();
}

} // namespace dualpipe::runtime::cuda
