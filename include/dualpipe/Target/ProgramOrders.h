//===- ProgramOrders.h - from a program back to order tables ----------------===//

#ifndef DUALPIPE_TARGET_PROGRAMORDERS_H
#define DUALPIPE_TARGET_PROGRAMORDERS_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Schedule/Schedule.h"
#include "dualpipe/Support/Status.h"

namespace dualpipe {

/// The order tables that a program runs: compute ops with fused groups, phases and
/// places, and its sends and receives as transfers that the schedule places itself.
/// The program must have been verified, as it is after reading a file. Fails where it
/// does not have all ranks.
Result<Schedule> readOrders(const program::Program &program);

} // namespace dualpipe

#endif // DUALPIPE_TARGET_PROGRAMORDERS_H
