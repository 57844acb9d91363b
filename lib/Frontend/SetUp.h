//===- SetUp.h - parameters, requirements and pipelines of a schedule ------===//

#ifndef DUALPIPE_LIB_FRONTEND_SETUP_H
#define DUALPIPE_LIB_FRONTEND_SETUP_H

#include "Evaluator.h"

#include "llvm/ADT/SmallVector.h"

namespace dualpipe::frontend {

/// The values that a schedule is set up with. Parameters without a value take
/// their default.
struct Sizes {
  uint32_t ranks = 0;
  uint32_t microbatches = 0;
  llvm::SmallVector<std::optional<int64_t>> params;
};

/// Binds the parameters of `schedule`: sizes, given values and defaults.
void bindParameters(Evaluator &evaluator, const ScheduleDecl &schedule, const Sizes &sizes,
                    std::vector<std::pair<std::string, int64_t>> *values = nullptr);

/// Adds notes with the nearest legal numbers of ranks and micro-batches to the
/// report of a requirement that does not hold.
void suggestLegalSizes(Diagnostic &diagnostic, const ScheduleDecl &schedule, const Sizes &sizes,
                       const Limits &limits, bool training);

/// Evaluates the declarations of `schedule` and fills `world.pipelines`.
/// Findings are left in the evaluator.
void setUpSchedule(World &world, Evaluator &evaluator, const ScheduleDecl &schedule,
                   const Sizes &sizes);

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_SETUP_H
