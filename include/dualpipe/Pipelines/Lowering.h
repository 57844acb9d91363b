//===- Lowering.h - the pass pipeline from order to streams -----------------===//

#ifndef DUALPIPE_PIPELINES_LOWERING_H
#define DUALPIPE_PIPELINES_LOWERING_H

#include "dualpipe/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"

namespace dualpipe {

/// How far a lowering goes.
enum class Level { Order, Dataflow, Streams };

/// Adds the passes that take `pipe.rank` ops of the order phase in a module down
/// to `level`. Each phase ends with a pass that rejects what does not belong to
/// the next. `spares` slots are added to the peak for each channel.
void buildLowering(mlir::OpPassManager &pm, Level level, unsigned spares = kDefaultSpares);

/// Registers the pipelines `--lower-to-dataflow` and `--lower-to-streams`.
void registerLoweringPipelines();

} // namespace dualpipe

#endif // DUALPIPE_PIPELINES_LOWERING_H
