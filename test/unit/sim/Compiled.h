//===- Compiled.h - schedules and their programs ----------------------------===//

#ifndef DUALPIPE_TEST_UNIT_SIM_COMPILED_H
#define DUALPIPE_TEST_UNIT_SIM_COMPILED_H

#include "test/unit/library/Library.h"

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Prediction.h"
#include "dualpipe/Schedule/Schedule.h"

#include <string>

namespace dualpipe::test {

struct Compiled {
  Schedule schedule;
  program::Program program;
};

/// Throws where the schedule cannot be compiled. `spares` slots for each channel.
Compiled compile(Schedule schedule, unsigned spares = 1);
/// `examples/<name>.pipe`.
Compiled compileExample(const std::string &name, Size size, const Example::Options &options = {});
/// An order of test/reference/orders/, in PyTorch's grammar.
Compiled compileOrder(const std::string &file);

/// Throws where the program cannot be simulated.
runtime::Prediction predict(const program::Program &program, const std::string &costs);

/// "13.5" for 13,500,000 ticks.
inline std::string print(Ticks ticks) { return Costs::printTicks(ticks); }

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_UNIT_SIM_COMPILED_H
