//===- EvaluatePlans.h - costs, memory and model of a schedule -------------===//

#ifndef DUALPIPE_LIB_FRONTEND_EVALUATEPLANS_H
#define DUALPIPE_LIB_FRONTEND_EVALUATEPLANS_H

#include "Evaluator.h"

namespace dualpipe::frontend {

/// Fills `world.costs`. Stages must have their numbers; findings are left in the
/// evaluator.
void evaluateCosts(World &world, Evaluator &evaluator, const CostItem &item);

/// Fills `world.memory`. Stages must have their numbers; findings are left in the
/// evaluator.
void evaluateMemory(World &world, Evaluator &evaluator, const MemoryItem &item);

/// Fills `world.model`. Stages must have their numbers; findings are left in the
/// evaluator.
void evaluateModel(World &world, Evaluator &evaluator, const ModelItem &item);

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_EVALUATEPLANS_H
