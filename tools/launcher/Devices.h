//===- Devices.h - what this machine can run on ------------------------------===//

#ifndef DUALPIPE_TOOLS_LAUNCHER_DEVICES_H
#define DUALPIPE_TOOLS_LAUNCHER_DEVICES_H

#include <string>

namespace dualpipe::launcher {

/// The devices of this machine and the libraries that they need, a line each; why, where one
/// cannot be used.
std::string describeDevices();

} // namespace dualpipe::launcher

#endif // DUALPIPE_TOOLS_LAUNCHER_DEVICES_H
