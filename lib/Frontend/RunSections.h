//===- RunSections.h - runs the sections that state an order ---------------===//

#ifndef DUALPIPE_LIB_FRONTEND_RUNSECTIONS_H
#define DUALPIPE_LIB_FRONTEND_RUNSECTIONS_H

#include "Evaluator.h"
#include "ModuleImpl.h"

#include "dualpipe/Schedule/Greedy.h"

namespace dualpipe::frontend {

/// Numbers of places of the module to places in the schedule's table.
using LocationTable = std::vector<uint32_t>;

/// Runs the sections of `declaration` in the order of the text, each from where the ones before
/// have left the ranks. `running` has its pipelines and costs; its orders, places and
/// phases are filled. False where something was reported.
bool runSections(const ModuleImpl &module, const ScheduleDecl &declaration, const Evaluator &setUp,
                 const World &world, Schedule &running, DiagnosticSink &sink);

/// The rules of a section for each rank of `world`. Findings are left in `evaluator`, which
/// begins with the values of the set-up.
GreedyRules evaluateGreedy(const World &world, Evaluator &evaluator, const GreedyItem &greedy,
                           const LocationTable &locations);

/// Moves what an evaluator has found to `sink`; false where there was something.
bool moveFindings(std::vector<Diagnostic> &findings, DiagnosticSink &sink);

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_RUNSECTIONS_H
