//===- Lowering.h - the pass pipeline from order to streams -----------------===//

#ifndef DUALPIPE_PIPELINES_LOWERING_H
#define DUALPIPE_PIPELINES_LOWERING_H

#include "dualpipe/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"

#include <cstdint>
#include <optional>

namespace dualpipe {

/// How far a lowering goes.
enum class Level { Order, Dataflow, Streams };

/// Adds the passes that take the ranks of a module from one level down to another.
/// Each phase ends with a pass that rejects what does not belong to the next, the
/// streams with the checks of the program file (`stream-verify`). `spares` slots
/// are added to the peak for each channel. Groups of more transfers than
/// `groupLimit` are split where it is given, and rejected above the default where not.
void buildLowering(mlir::OpPassManager &pm, Level from, Level to, unsigned spares = kDefaultSpares,
                   std::optional<uint32_t> groupLimit = std::nullopt);

/// The same for `pipe.rank` ops without the checks on the programs: for a caller
/// that exports and checks them itself.
void lowerRanks(mlir::OpPassManager &pm, Level from, Level to, unsigned spares);

/// Registers the pipelines `--lower-to-dataflow` and `--lower-to-streams`.
void registerLoweringPipelines();

} // namespace dualpipe

#endif // DUALPIPE_PIPELINES_LOWERING_H
