//===- ShuffledRun.h - a program in a random legal order --------------------===//

#ifndef DUALPIPE_RUNTIME_SHUFFLEDRUN_H
#define DUALPIPE_RUNTIME_SHUFFLEDRUN_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Session.h"
#include "dualpipe/Support/Status.h"

#include <cstdint>

namespace dualpipe::runtime {

/// Trains a program on one thread, its commands in an order that is legal and drawn from
/// `shuffleSeed` (ShuffledDevice.h). All ranks must be there, and have passed `verifyShared` and
/// `verifyRanges`; what the other checks establish is not needed, so a program that breaks it can
/// be watched. Fails where a stage function does, or where the program cannot go on, with what each
/// rank waits for.
Result<RunReport> runShuffled(const Model &model, const program::Program &program,
                              const Optimizer &optimizer, const TrainingOptions &options,
                              uint64_t shuffleSeed);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_SHUFFLEDRUN_H
