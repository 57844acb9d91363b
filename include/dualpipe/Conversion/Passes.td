//===- Passes.td - passes from one dialect to another -----------*- tablegen -*-===//

#ifndef DUALPIPE_CONVERSION_PASSES
#define DUALPIPE_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def ConvertPipeToStream : Pass<"convert-pipe-to-stream", "::mlir::ModuleOp"> {
  let summary = "turn ranks with slots into commands on streams";
  let description = [{
    Replaces every `pipe.rank` by a `stream.program`. Stream 0 computes; every
    channel (peer, kind, direction) and every reduce group has a stream of its
    own, in the order of first use. Commands keep the order of the ops. A command
    waits for what it reads if another stream writes it, and for the last uses of
    a slot that it overwrites if they are on other streams; for the last of them
    where several are on one stream. `stream-prune-events` removes the waits that
    others imply.

    The ranks must be in the dataflow phase, with slots.
  }];
  let dependentDialects = ["::dualpipe::stream::StreamDialect"];
  let statistics = [Statistic<"numStreams", "streams", "streams made">];
}

#endif // DUALPIPE_CONVERSION_PASSES
