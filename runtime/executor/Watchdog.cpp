//===- Watchdog.cpp - what each rank waits for ------------------------------===//

#include "Watchdog.h"

#include "dualpipe/Program/Verify.h"

#include <fmt/format.h>

#include <algorithm>

namespace dualpipe::runtime {

using program::Command;
using program::CommandOp;
using program::kNone;

Watchdog::Watchdog(double timeoutSeconds)
    : timeout(timeoutSeconds), interval(int64_t(std::clamp(timeoutSeconds * 1000 / 8, 5.0, 500.0))),
      lastChange(Clock::now()) {}

static bool isSame(const DevicePosition &a, const DevicePosition &b) {
  return a.progress == b.progress && a.streams == b.streams && a.graph == b.graph;
}

bool Watchdog::isExpired(const std::vector<DevicePosition> &now) {
  const Clock::time_point time = Clock::now();
  if (!std::equal(now.begin(), now.end(), last.begin(), last.end(), isSame)) {
    last = now;
    lastChange = time;
  }
  return time - lastChange >= timeout;
}

/// The stream that records an event.
static uint32_t findRecorder(const program::RankProgram &rank, uint32_t event) {
  for (const Command &command : rank.commands)
    if (command.op == CommandOp::Record && command.arg == event)
      return command.stream;
  return kNone;
}

/// From a stream along the events that it waits for, to the stream that holds them all up.
static uint32_t followWaits(const program::RankProgram &rank, const DevicePosition &position,
                            uint32_t stream) {
  // Waits cannot go in a circle (P1), but the snapshot may be torn.
  for (size_t i = 0; i != rank.streams.size(); ++i) {
    const uint32_t at = position.streams[stream];
    if (at == kNone || rank.commands[at].op != CommandOp::Wait)
      return stream;
    const uint32_t recorder = findRecorder(rank, rank.commands[at].arg);
    if (recorder == kNone || position.streams[recorder] == kNone)
      return stream;
    stream = recorder;
  }
  return stream;
}

/// The stream to start from: the compute stream at work, or any that has not finished.
static uint32_t findBusyStream(const program::RankProgram &rank, const DevicePosition &position) {
  uint32_t busy = kNone;
  for (uint32_t i = 0; i != position.streams.size(); ++i) {
    if (position.streams[i] == kNone)
      continue;
    if (rank.streams[i].kind == program::StreamKind::Compute)
      return i;
    if (busy == kNone)
      busy = i;
  }
  return busy;
}

std::string describeHoldUp(const program::SharedInfo &shared, const program::RankProgram &rank,
                           const DevicePosition &position) {
  switch (position.graph) {
  case GraphPosition::None:
    break;
  case GraphPosition::Waits:
    return fmt::format("rank {} waits for the other ranks, before a captured step", rank.rank);
  case GraphPosition::Captures:
    return fmt::format("rank {} is capturing a step", rank.rank);
  case GraphPosition::Runs:
    return fmt::format("rank {} is in a captured step, where its commands do not show; without "
                       "--graph they do",
                       rank.rank);
  }
  const uint32_t busy = findBusyStream(rank, position);
  if (busy == kNone)
    return fmt::format("rank {} is between two steps or has finished", rank.rank);
  const uint32_t stream = followWaits(rank, position, busy);
  return fmt::format("{}, on stream {} ({})",
                     program::describeCommand(shared, rank, position.streams[stream]), stream,
                     program::getName(rank.streams[stream].kind));
}

} // namespace dualpipe::runtime
