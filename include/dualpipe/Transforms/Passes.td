//===- Passes.td - passes within a dialect ----------------------*- tablegen -*-===//
//
// Each pass works on one rank: ranks are independent, so a nested pipeline runs
// them on all cores. The functions behind the passes stand in Passes.h.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_TRANSFORMS_PASSES
#define DUALPIPE_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def PipeVerifyOrder : Pass<"pipe-verify-order", "::dualpipe::pipe::RankOp"> {
  let summary = "check that a rank is in the order phase";
  let description = [{
    Rejects values, slots and `pipe.input`: in the order phase ops stand in order
    and nothing else.
  }];
}

def PipeMaterializeDataflow : Pass<"pipe-materialize-dataflow", "::dualpipe::pipe::RankOp"> {
  let summary = "give every op of a rank its values";
  let description = [{
    From the order phase to the dataflow phase: threads activations, gradients and
    contexts from their producers to their consumers by stage and micro-batch,
    adds `pipe.input` before the op that reads it, and marks the backwards that
    add to a gradient. Rejects a value that is missing, defined twice or never
    used.
  }];
  let statistics = [Statistic<"numInputs", "inputs", "pipe.input ops added">];
}

def PipeVerifyDataflow : Pass<"pipe-verify-dataflow", "::dualpipe::pipe::RankOp"> {
  let summary = "check that a rank is in the dataflow phase";
  let description = [{
    Rejects ops without their values, values that nothing uses, and backwards
    whose `accumulate` does not fit: the first gradient of a stage on the rank
    overwrites, all others add.
  }];
}

def PipeAssignSlots : Pass<"pipe-assign-slots", "::dualpipe::pipe::RankOp"> {
  let summary = "assign slots by liveness over the issue order";
  let description = [{
    A value is live from its producer to its last user in the list. A fused group
    is one point. Results are placed before operands are freed, so no op works in
    place. A class has as many slots as its values are live at once, and `spares`
    more for each channel of the rank that reads or writes it (P4), so that every
    channel can have a transfer under way beyond what was planned. Of the free slots, the one
    that has been free the longest is taken, so that spares give slack; an input
    that the rank loads itself takes the one freed last and leaves the slack to
    receives.
  }];
  let options = [
    Option<"spares", "spares", "unsigned", "1",
           "Slots beyond the peak for each channel, at most 1024">
  ];
  let statistics = [
    Statistic<"numSlots", "slots", "slots allocated">,
    Statistic<"numSpares", "spare-slots", "slots beyond the peak of the liveness">
  ];
}

def StreamPruneEvents : Pass<"stream-prune-events", "::dualpipe::stream::ProgramOp"> {
  let summary = "remove waits that others imply and records that nobody waits for";
  let description = [{
    A vector clock per stream knows what has happened before its next command: by
    stream order, and through waits by the order of other streams. A wait for
    something known already is removed.
  }];
  let statistics = [
    Statistic<"numWaits", "waits-removed", "waits removed">,
    Statistic<"numRecords", "records-removed", "records removed">
  ];
}

def StreamSplitGroups : Pass<"stream-split-groups", "::dualpipe::stream::ProgramOp"> {
  let summary = "split groups of more transfers than a device takes at once";
  let description = [{
    A group of more than `limit` transfers becomes several that follow each other,
    each but the last with `limit` transfers, in the order of the group. That is the
    order of their channel, so whatever finished goes on to finish (P5, D3).
  }];
  let options = [
    Option<"limit", "limit", "unsigned", "256", "The most transfers of a group, at least 1">
  ];
  let statistics = [Statistic<"numGroups", "groups-added", "groups that were split off">];
}

#endif // DUALPIPE_TRANSFORMS_PASSES
