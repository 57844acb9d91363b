//===- SplitGroups.cpp - groups of no more transfers than a device takes ----===//
//
// The transfers of a group are those of one channel in its order, since a group
// has one stream (P3). Parts that follow each other in that order finish whenever
// the whole did (docs/proofs.md).
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Transforms/Passes.h"

#include "llvm/ADT/STLExtras.h"

#include <iterator>

namespace dualpipe {
#define GEN_PASS_DEF_STREAMSPLITGROUPS
#include "lib/Transforms/Passes.h.inc"
} // namespace dualpipe

using namespace dualpipe;
using namespace mlir;

/// Moves what is beyond the first `limit` transfers of `group` into a group right behind it.
/// Returns that one, or nothing where all fit.
static stream::GroupOp splitOff(stream::GroupOp group, unsigned limit) {
  Block &body = *group.getBody();
  if (!llvm::hasNItemsOrMore(body.begin(), body.end(), limit + 1))
    return {};
  OpBuilder builder(group.getContext());
  builder.setInsertionPointAfter(group);
  auto rest = stream::GroupOp::create(builder, group.getLoc(), group.getStream());
  rest->setDiscardableAttrs(group->getDiscardableAttrDictionary());
  rest.getBody()->getOperations().splice(rest.getBody()->end(), body.getOperations(),
                                         std::next(body.begin(), limit), body.end());
  return rest;
}

unsigned dualpipe::splitGroups(stream::ProgramOp program, unsigned limit) {
  unsigned numAdded = 0;
  // What was split off comes next.
  for (auto group : program.getBody()->getOps<stream::GroupOp>())
    if (splitOff(group, limit))
      ++numAdded;
  return numAdded;
}

namespace {
struct StreamSplitGroupsPass : dualpipe::impl::StreamSplitGroupsBase<StreamSplitGroupsPass> {
  using StreamSplitGroupsBase::StreamSplitGroupsBase;

  void runOnOperation() override {
    if (limit == 0) {
      getOperation().emitError() << "stream-split-groups: limit is 0, expected at least 1";
      return signalPassFailure();
    }
    numGroups += splitGroups(getOperation(), limit);
  }
};
} // namespace
