//===- Measured.h - a run on a device, as a simulation shows it -------------===//
//
// What a prediction reads off a simulated run (waits, bubbles, the critical path) it
// can read off a measured one too.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_MEASURED_H
#define DUALPIPE_RUNTIME_MEASURED_H

#include "dualpipe/Runtime/Prediction.h"
#include "dualpipe/Runtime/Recording.h"

namespace dualpipe::runtime {

/// A recorded step of `program`. A tick is a nanosecond, so a unit of the costs is a
/// millisecond. What a command had to wait for is what ended last of what the program
/// says. Fails where the recording is empty or not of this program.
Result<Simulation> readRecording(const program::Program &program, const StepRecording &recording);

/// What a report says of a run whose times are known. `costs` are only named in it.
Prediction describeRun(const program::Program &program, const SimulationCosts &costs,
                       const Simulation &run);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_MEASURED_H
