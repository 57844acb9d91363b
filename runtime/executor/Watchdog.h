//===- Watchdog.h - what each rank waits for --------------------------------===//

#ifndef DUALPIPE_RUNTIME_EXECUTOR_WATCHDOG_H
#define DUALPIPE_RUNTIME_EXECUTOR_WATCHDOG_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Device.h"

#include <chrono>
#include <string>
#include <vector>

namespace dualpipe::runtime {

/// Says whether any rank came further between two looks.
class Watchdog {
public:
  explicit Watchdog(double timeoutSeconds);

  /// How often to look.
  std::chrono::milliseconds getInterval() const { return interval; }
  /// Whether nothing has moved for the timeout.
  bool isExpired(const std::vector<DevicePosition> &now);

private:
  using Clock = std::chrono::steady_clock;
  std::chrono::duration<double> timeout;
  std::chrono::milliseconds interval;
  Clock::time_point lastChange;
  std::vector<DevicePosition> last;
};

/// One line: the command that holds a rank up, behind the events that it waits
/// for, with stream, peer and place in the `.pipe` file.
std::string describeHoldUp(const program::SharedInfo &shared, const program::RankProgram &rank,
                           const DevicePosition &position);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_EXECUTOR_WATCHDOG_H
