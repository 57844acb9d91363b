//===- StreamOps.td - ops of the stream dialect -----------------*- tablegen -*-===//
//
// One op per kind of command of the program file. The examples below are parsed
// by test/Stream/documentation.test.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_DIALECTS_STREAM_OPS
#define DUALPIPE_DIALECTS_STREAM_OPS

include "dialects/Stream/StreamDialect.td"

class Stream_Op<string mnemonic, list<Trait> traits = []> : Op<Stream_Dialect, mnemonic, traits>;

/// A command of the rank's list.
class Stream_CommandOp<string mnemonic, list<Trait> traits = []>
    : Stream_Op<mnemonic, !listconcat(traits, [HasParent<"ProgramOp">])>;

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

def Stream_ProgramOp
    : Stream_Op<"program", [IsolatedFromAbove, NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "the commands of one rank in the order in which the host issues them";
  let description = [{
    A stream runs its commands in order, and streams run side by side; events are
    the only order between them. Streams are numbered by their place in the
    table, slots run through the classes in their order (peak + spares).
    `model` is the contract of the rank that it was made from. Invariants P1 to P4.

    ```mlir
    stream.program 1 of @example streams [<compute>, <recv act from 0>]
        slots [input 1 + 1, output 1] {
      stream.recv act on 1 stage 1 mb 0 from 0 slot 0
      %e = stream.record on 1
      stream.wait %e on 0
      stream.launch forward on 0 stage 1 mb 0 (input = 0, output = 2)
    }
    ```
  }];
  let arguments = (ins NumberProp:$rank, FlatSymbolRefAttr:$schedule,
                       Stream_StreamTableAttr:$streams, ModelProp:$model,
                       SlotClassListProp:$slots);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = [{
    $rank `of` $schedule `streams` custom<StreamTable>($streams) `` custom<Model>($model)
    `` custom<SlotClasses>($slots) attr-dict-with-keyword $bodyRegion
  }];
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "uint32_t":$rank, "::mlir::FlatSymbolRefAttr":$schedule,
                                 "::llvm::ArrayRef<::mlir::Attribute>":$streams,
                                 "::dualpipe::SlotClassList":$slots,
                                 CArg<"const ::dualpipe::program::Contract &",
                                      "::dualpipe::program::Contract()">:$model)>];
  let extraClassDeclaration = [{
    /// The entry of a stream, or null where the number is out of range.
    StreamAttr getStream(uint32_t stream);
  }];
  let hasVerifier = 1;
}

def Stream_PhaseOp : Stream_CommandOp<"phase"> {
  let summary = "marks where a phase of the schedule begins";
  let description = [{
    No command: the phase begins with the next one.

    ```mlir
    stream.program 0 of @example streams [<compute>] {
      stream.phase "warm-up"
    }
    ```
  }];
  let arguments = (ins StrAttr:$name);
  let assemblyFormat = "$name attr-dict";
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

def Stream_LaunchOp : Stream_Op<"launch", [ParentOneOf<["ProgramOp", "PairOp"]>]> {
  let summary = "calls a function of a stage for one micro-batch";
  let description = [{
    The slots are given by the role in which the function uses them; a slot's
    class may differ from its role: what is handed over inside a rank is an
    output slot read as an input. `accumulate` adds to the weight gradient
    instead of overwriting it, `first` and `last` say where the stage stands in
    its pipeline. Invariants P2, P3.

    ```mlir
    stream.program 0 of @example streams [<compute>] slots [input 1, output 1, saved 1] {
      stream.launch load_input on 0 stage 0 mb 4 (input = 0) first
      stream.launch forward on 0 stage 0 mb 4 (input = 0, output = 1, saved = 2) first
    }
    ```
  }];
  let arguments = (ins Stream_FunctionProp:$function, NumberProp:$stream, StageProp:$stage,
                       NumberProp:$microbatch, OptionalNumberProp:$component,
                       Stream_RoleSlotsProp:$slots, FlagProp:$first, FlagProp:$last,
                       FlagProp:$accumulate);
  let assemblyFormat = [{
    custom<Function>($function) `on` $stream `stage` $stage `mb` $microbatch
    `` custom<Component>($component) `` custom<RoleSlots>($slots)
    `` custom<LaunchFlags>($first, $last, $accumulate) attr-dict
  }];
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::dualpipe::program::Function":$function, "uint32_t":$stream,
                                 "uint32_t":$stage, "uint32_t":$microbatch,
                                 "const ::dualpipe::stream::RoleSlots &":$slots, "bool":$first,
                                 "bool":$last, "bool":$accumulate,
                                 CArg<"uint32_t", "0">:$component)>];
  let extraClassDeclaration = [{
    /// The flags as program::LaunchFlags.
    uint8_t getFlags();
    /// The function computes a weight gradient.
    bool yieldsWeightGradient();
  }];
  let hasVerifier = 1;
}

def Stream_PairOp
    : Stream_CommandOp<"pair", [NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "launches that are meant to overlap";
  let description = [{
    Two or more launches on one stream that begin together, after the inputs of
    all are there. What follows on the stream comes after all of them.

    ```mlir
    stream.program 0 of @example streams [<compute>]
        slots [input 1, output 1, grad_output 1, saved 2] {
      stream.pair on 0 {
        stream.launch forward on 0 stage 0 mb 5 (input = 0, output = 1, saved = 3) first
        stream.launch backward on 0 stage 0 mb 4 (grad_output = 2, saved = 4) first accumulate
      }
    }
    ```
  }];
  let arguments = (ins NumberProp:$stream);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = "`on` $stream attr-dict-with-keyword $bodyRegion";
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "uint32_t":$stream)>];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

class Stream_TransferOp<string mnemonic>
    : Stream_Op<mnemonic, [ParentOneOf<["ProgramOp", "GroupOp"]>]> {
  let arguments = (ins EnumProp<TransferKind>:$kind, NumberProp:$stream, StageProp:$stage,
                       NumberProp:$microbatch, NumberProp:$peer, NumberProp:$slot);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::dualpipe::TransferKind":$kind, "uint32_t":$stream,
                                 "uint32_t":$stage, "uint32_t":$microbatch, "uint32_t":$peer,
                                 "uint32_t":$slot), [{
    auto &properties = $_state.getOrAddProperties<Properties>();
    properties.kind = kind;
    properties.stream = stream;
    properties.stage = stage;
    properties.microbatch = microbatch;
    properties.peer = peer;
    properties.slot = slot;
  }]>];
  let hasVerifier = 1;
}

def Stream_SendOp : Stream_TransferOp<"send"> {
  let summary = "sends what a slot holds to another rank";
  let description = [{
    On the channel to `to` for the kind. Stage and micro-batch are those of the
    consumer. Invariants D1 to D3.

    ```mlir
    stream.program 3 of @example streams [<compute>, <send act to 4>] slots [output 1 + 1] {
      stream.send act on 1 stage 4 mb 4 to 4 slot 1
    }
    ```
  }];
  let assemblyFormat = [{
    $kind `on` $stream `stage` $stage `mb` $microbatch `to` $peer `slot` $slot attr-dict
  }];
}

def Stream_RecvOp : Stream_TransferOp<"recv"> {
  let summary = "receives into a slot from another rank";
  let description = [{
    On the channel from `from` for the kind. Stage and micro-batch are those of
    the consumer, on this rank. Invariants D1 to D3.

    ```mlir
    stream.program 3 of @example streams [<compute>, <recv act from 2>] slots [input 1 + 1] {
      stream.recv act on 1 stage 3 mb 4 from 2 slot 1
    }
    ```
  }];
  let assemblyFormat = [{
    $kind `on` $stream `stage` $stage `mb` $microbatch `from` $peer `slot` $slot attr-dict
  }];
}

def Stream_GroupOp
    : Stream_CommandOp<"group", [NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "transfers that are issued as one";
  let description = [{
    For devices that ask for grouped calls. All on one stream (P3).

    ```mlir
    stream.program 3 of @example streams [<compute>, <recv act from 2>] slots [input 2] {
      stream.group on 1 {
        stream.recv act on 1 stage 3 mb 4 from 2 slot 0
        stream.recv act on 1 stage 3 mb 5 from 2 slot 1
      }
    }
    ```
  }];
  let arguments = (ins NumberProp:$stream);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = "`on` $stream attr-dict-with-keyword $bodyRegion";
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "uint32_t":$stream)>];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

def Stream_RecordOp : Stream_CommandOp<"record"> {
  let summary = "records an event after what the stream has got so far";
  let description = [{
    That a wait comes after the record in issue order (P1) is dominance of the
    event's definition.

    ```mlir
    stream.program 0 of @example streams [<compute>, <send act to 1>] {
      %e = stream.record on 0
      stream.wait %e on 1
    }
    ```
  }];
  let arguments = (ins NumberProp:$stream);
  let results = (outs Stream_EventType:$event);
  let assemblyFormat = "`on` $stream attr-dict";
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "uint32_t":$stream)>];
}

def Stream_WaitOp : Stream_CommandOp<"wait"> {
  let summary = "holds a stream until an event has happened";
  let description = [{
    What follows on the stream begins after the commands before the record.

    ```mlir
    stream.program 0 of @example streams [<compute>, <send act to 1>] {
      %e = stream.record on 1
      stream.wait %e on 0
    }
    ```
  }];
  let arguments = (ins Stream_EventType:$event, NumberProp:$stream);
  let assemblyFormat = "$event `on` $stream attr-dict";
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$event, "uint32_t":$stream)>];
}

//===----------------------------------------------------------------------===//
// After the backwards
//===----------------------------------------------------------------------===//

def Stream_ReduceOp : Stream_CommandOp<"reduce"> {
  let summary = "sums the gradients of a stage over the ranks that hold a copy";
  let description = [{
    Invariants D1, D3.

    ```mlir
    stream.program 0 of @example streams [<compute>, <reduce [0, 7]>] {
      stream.reduce on 1 stage 3 with [0, 7]
    }
    ```
  }];
  let arguments = (ins NumberProp:$stream, StageProp:$stage, DenseI32ArrayAttr:$ranks);
  let assemblyFormat = "`on` $stream `stage` $stage `with` $ranks attr-dict";
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "uint32_t":$stream, "uint32_t":$stage,
                                 "::mlir::DenseI32ArrayAttr":$ranks)>];
  let hasVerifier = 1;
}

def Stream_StepOp : Stream_CommandOp<"step"> {
  let summary = "optimizer step of a stage's copy on this rank";
  let description = [{
    On a compute stream, after the last gradient of the stage and its reduction.

    ```mlir
    stream.program 0 of @example streams [<compute>] {
      stream.step on 0 stage 3
    }
    ```
  }];
  let arguments = (ins NumberProp:$stream, StageProp:$stage);
  let assemblyFormat = "`on` $stream `stage` $stage attr-dict";
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "uint32_t":$stream, "uint32_t":$stage)>];
}

#endif // DUALPIPE_DIALECTS_STREAM_OPS
