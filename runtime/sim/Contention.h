//===- Contention.h - virtual time where ranks share cores or links ---------===//

#ifndef DUALPIPE_RUNTIME_SIM_CONTENTION_H
#define DUALPIPE_RUNTIME_SIM_CONTENTION_H

#include "CostTables.h"

namespace dualpipe::runtime {

/// As `simulate`, for costs with contention: in the order of time, not of the lists.
Result<Simulation> simulateContention(const program::Program &program, const SimulationCosts &costs,
                                      const CostTables &tables, bool keepTimes,
                                      const OnProgress &onProgress);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_SIM_CONTENTION_H
