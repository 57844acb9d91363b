//===- Lowering.cpp - the pass pipeline from order to streams ---------------===//

#include "dualpipe/Pipelines/Lowering.h"

#include "dualpipe/Conversion/Passes.h"
#include "dualpipe/Target/Program.h"
#include "dualpipe/Transforms/Passes.h"

#include "mlir/Pass/PassRegistry.h"

using namespace dualpipe;
using namespace mlir;

/// Values instead of positions: dependence and liveness can be read off the IR.
static void addDataflow(OpPassManager &pm) {
  OpPassManager &rank = pm.nest<pipe::RankOp>();
  rank.addPass(createPipeVerifyOrder());
  rank.addPass(createPipeMaterializeDataflow());
}

/// Slots first, since they decide which accesses must be ordered; then streams
/// with an event for every order that is needed; then without those that others
/// imply.
static void addStreams(OpPassManager &pm, unsigned spares) {
  pm.nest<pipe::RankOp>().addPass(createPipeAssignSlots({spares}));
  pm.addPass(createConvertPipeToStream());
  pm.nest<stream::ProgramOp>().addPass(createStreamPruneEvents());
}

void dualpipe::lowerRanks(OpPassManager &pm, Level from, Level to, unsigned spares) {
  if (to == Level::Order)
    return;
  if (from == Level::Order)
    addDataflow(pm);
  pm.nest<pipe::RankOp>().addPass(createPipeVerifyDataflow());
  if (to == Level::Streams)
    addStreams(pm, spares);
}

void dualpipe::buildLowering(OpPassManager &pm, Level from, Level to, unsigned spares,
                             std::optional<uint32_t> groupLimit) {
  if (from != Level::Streams)
    lowerRanks(pm, from, to, spares);
  if (to != Level::Streams)
    return;
  if (groupLimit)
    pm.nest<stream::ProgramOp>().addPass(createStreamSplitGroups({*groupLimit}));
  pm.addPass(createStreamVerify({groupLimit.value_or(program::kDefaultGroupLimit)}));
}

void dualpipe::registerLoweringPipelines() {
  PassPipelineRegistration<>(
      "lower-to-dataflow", "From the order phase of pipe to its dataflow phase",
      [](OpPassManager &pm) { buildLowering(pm, Level::Order, Level::Dataflow); });
  PassPipelineRegistration<>(
      "lower-to-streams", "From the order phase of pipe to the stream dialect",
      [](OpPassManager &pm) { buildLowering(pm, Level::Order, Level::Streams); });
}
