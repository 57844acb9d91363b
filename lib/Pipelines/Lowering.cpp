//===- Lowering.cpp - the pass pipeline from order to streams ---------------===//

#include "dualpipe/Pipelines/Lowering.h"

#include "dualpipe/Conversion/Passes.h"
#include "dualpipe/Transforms/Passes.h"

#include "mlir/Pass/PassRegistry.h"

using namespace dualpipe;
using namespace mlir;

/// Values instead of positions: dependence and liveness can be read off the IR.
static void addDataflow(OpPassManager &pm) {
  OpPassManager &rank = pm.nest<pipe::RankOp>();
  rank.addPass(createPipeVerifyOrder());
  rank.addPass(createPipeMaterializeDataflow());
  rank.addPass(createPipeVerifyDataflow());
}

/// Slots first, since they decide which accesses must be ordered; then streams
/// with an event for every order that is needed; then without those that others
/// imply.
static void addStreams(OpPassManager &pm, unsigned spares) {
  pm.nest<pipe::RankOp>().addPass(createPipeAssignSlots({spares}));
  pm.addPass(createConvertPipeToStream());
  pm.nest<stream::ProgramOp>().addPass(createStreamPruneEvents());
}

void dualpipe::buildLowering(OpPassManager &pm, Level level, unsigned spares) {
  if (level == Level::Order)
    return;
  addDataflow(pm);
  if (level == Level::Streams)
    addStreams(pm, spares);
}

void dualpipe::registerLoweringPipelines() {
  PassPipelineRegistration<>("lower-to-dataflow",
                             "From the order phase of pipe to its dataflow phase",
                             [](OpPassManager &pm) { buildLowering(pm, Level::Dataflow); });
  PassPipelineRegistration<>("lower-to-streams",
                             "From the order phase of pipe to the stream dialect",
                             [](OpPassManager &pm) { buildLowering(pm, Level::Streams); });
}
