//===- PipeOps.td - ops of the pipe dialect ---------------------*- tablegen -*-===//
//
// Every op holds either no value at all (order phase) or every value that its
// kind and flags ask for (dataflow phase). The examples below are parsed by
// test/Pipe/documentation.test.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_DIALECTS_PIPE_OPS
#define DUALPIPE_DIALECTS_PIPE_OPS

include "dialects/Pipe/PipeDialect.td"

class Pipe_Op<string mnemonic, list<Trait> traits = []> : Op<Pipe_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// The rank
//===----------------------------------------------------------------------===//

def Pipe_RankOp
    : Pipe_Op<"rank", [IsolatedFromAbove, NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "the program of one rank";
  let description = [{
    Its ops in the order in which the host issues them. `forward_only` says that
    no backward follows, so that forwards keep nothing. `slots` lists the slot
    classes once `pipe-assign-slots` has run: peak of the liveness + spares; slot
    numbers run through the classes in this order (P4). `model` says what the
    program asks of the stages: which values each half of a backward reads, and the
    size group of each stage; what it does not name is as usual.

    ```mlir
    pipe.rank 0 of @single {
      pipe.phase "steady"
      pipe.fwd stage 0 mb 0 first last
      pipe.bwd stage 0 mb 0 first last
      pipe.step stage 0
    }
    pipe.rank 1 of @lean model (bwd_weight reads [input, grad_output], groups [0, 1]) {
      pipe.fwd stage 1 mb 0 last
      pipe.bwd_input stage 1 mb 0 last
      pipe.bwd_weight stage 1 mb 0 last
    }
    ```
  }];
  let arguments = (ins NumberProp:$rank, FlatSymbolRefAttr:$schedule, FlagProp:$forward_only,
                       ModelProp:$model, SlotClassListProp:$slots);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = [{
    $rank `of` $schedule `` custom<ForwardOnly>($forward_only) `` custom<Model>($model)
    `` custom<SlotClasses>($slots) attr-dict-with-keyword $bodyRegion
  }];
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "uint32_t":$rank, "::llvm::StringRef":$schedule,
                                 CArg<"bool", "false">:$forwardOnly,
                                 CArg<"const ::dualpipe::program::Contract &",
                                      "::dualpipe::program::Contract()">:$model)>];
  let hasVerifier = 1;
}

def Pipe_PhaseOp : Pipe_Op<"phase", [HasParent<"RankOp">]> {
  let summary = "marks where a phase of the schedule begins";
  let description = [{
    The ops from here to the next mark belong to the named phase. Reports and
    pictures use it; it orders nothing.

    ```mlir
    pipe.rank 0 of @dualpipe {
      pipe.phase "warm-up"
    }
    ```
  }];
  let arguments = (ins StrAttr:$name);
  let assemblyFormat = "$name attr-dict";
}

//===----------------------------------------------------------------------===//
// Compute
//===----------------------------------------------------------------------===//

class Pipe_ComputeOp<string mnemonic, string kind>
    : Pipe_Op<mnemonic, [Pipe_ComputeOpInterface, ParentOneOf<["RankOp", "FusedFbOp"]>]> {
  let arguments = (ins StageProp:$stage, NumberProp:$microbatch, FlagProp:$first, FlagProp:$last,
                       FlagProp:$accumulate, OptionalNumberProp:$reads, SlotListProp:$slots,
                       Variadic<Pipe_Value>:$inputs);
  let results = (outs Variadic<Pipe_Value>:$outputs);
  let assemblyFormat =
      "`stage` $stage `mb` $microbatch `` custom<ComputeBody>(\"::dualpipe::OpKind::" #
      kind # "\", $inputs, type($inputs), type($outputs), $first, $last, $accumulate, " #
      "$reads, $slots) " #
      "attr-dict";
  let skipDefaultBuilders = 1;
  let builders = [
    // Order phase: no values.
    OpBuilder<(ins "uint32_t":$stage, "uint32_t":$microbatch, CArg<"bool", "false">:$first,
                   CArg<"bool", "false">:$last), [{
      setNumbers($_state.getOrAddProperties<Properties>(), stage, microbatch, first, last);
    }]>,
    // Dataflow phase.
    OpBuilder<(ins "::mlir::TypeRange":$outputs, "uint32_t":$stage, "uint32_t":$microbatch,
                   "bool":$first, "bool":$last, "bool":$accumulate,
                   "::mlir::ValueRange":$inputs, CArg<"uint32_t", "0">:$reads), [{
      auto &properties = $_state.getOrAddProperties<Properties>();
      setNumbers(properties, stage, microbatch, first, last);
      properties.accumulate = accumulate;
      properties.reads = reads;
      $_state.addTypes(outputs);
      $_state.addOperands(inputs);
    }]>
  ];
  let extraClassDeclaration = [{
    static constexpr ::dualpipe::OpKind kKind = ::dualpipe::OpKind::}] # kind # [{;
    ::dualpipe::OpKind getKind() { return kKind; }

  private:
    static void setNumbers(Properties &properties, uint32_t stage, uint32_t microbatch, bool first,
                           bool last) {
      properties.stage = stage;
      properties.microbatch = microbatch;
      properties.first = first;
      properties.last = last;
    }

  public:
  }];
  let hasVerifier = 1;
}

def Pipe_FwdOp : Pipe_ComputeOp<"fwd", "Forward"> {
  let summary = "forward of one micro-batch through one stage";
  let description = [{
    Reads the stage's input; in the last stage of a pipeline also the labels, and
    ends in the loss there instead of an activation. Yields the saved context
    unless the rank is forward-only. Invariants S1, S3.

    ```mlir
    pipe.rank 1 of @example {
      %x = pipe.recv act stage 1 mb 4 from 0
      %y, %s = pipe.fwd stage 1 mb 4 (%x)
      pipe.send act stage 2 mb 4 to 2 (%y)
    }
    ```
  }];
}

def Pipe_BwdOp : Pipe_ComputeOp<"bwd", "Backward"> {
  let summary = "full backward: input gradient and weight gradient";
  let description = [{
    Reads the gradient of the stage's output (not in the last stage, which seeds
    itself from the loss) and the saved context. Yields the gradient of the
    stage's input (not in the first stage). With `accumulate` it adds to the
    weight gradient, without it overwrites it. Where the model contract lets it
    read other values, each is named by its role. Invariants S2, S3.

    ```mlir
    pipe.rank 0 of @example {
      %x = pipe.input act stage 0 mb 4
      %y, %s = pipe.fwd stage 0 mb 4 (%x) first
      pipe.send act stage 1 mb 4 to 1 (%y)
      %dy = pipe.recv grad stage 0 mb 4 from 1
      pipe.bwd stage 0 mb 4 (%dy, %s) first
    }
    ```
  }];
}

def Pipe_BwdInputOp : Pipe_ComputeOp<"bwd_input", "BackwardInput"> {
  let summary = "input half of a split backward";
  let description = [{
    Like `bwd`, but leaves the weight gradient to `bwd_weight`, for which it
    yields the weight context. Invariants S2, S3.

    ```mlir
    pipe.rank 1 of @example {
      %x = pipe.recv act stage 1 mb 4 from 0
      %l = pipe.input labels stage 1 mb 4
      %s = pipe.fwd stage 1 mb 4 (%x, %l) last
      %dx, %w = pipe.bwd_input stage 1 mb 4 (%s) last
      pipe.send grad stage 0 mb 4 to 0 (%dx)
      pipe.bwd_weight stage 1 mb 4 (%s, %w) last
    }
    ```
  }];
}

def Pipe_BwdWeightOp : Pipe_ComputeOp<"bwd_weight", "BackwardWeight"> {
  let summary = "weight half of a split backward";
  let description = [{
    Reads the saved context and the weight context, or what the model contract
    says, and yields the weight gradient, which is no value: it stays with the
    stage's copy on the rank. Invariants S2, S3.

    ```mlir
    pipe.rank 1 of @example {
      pipe.fwd stage 1 mb 4
      pipe.bwd_input stage 1 mb 4
      pipe.bwd_weight stage 1 mb 4
    }
    pipe.rank 1 of @lean model (bwd_weight reads [input, grad_output]) {
      %x = pipe.recv act stage 1 mb 4 from 0
      %y, %s = pipe.fwd stage 1 mb 4 (%x)
      pipe.send act stage 2 mb 4 to 2 (%y)
      %dy = pipe.recv grad stage 1 mb 4 from 2
      %dx, %w = pipe.bwd_input stage 1 mb 4 (%dy, %s)
      pipe.send grad stage 0 mb 4 to 0 (%dx)
      pipe.bwd_weight stage 1 mb 4 (input = %x, grad_output = %dy)
    }
    ```
  }];
}

def Pipe_FusedFbOp
    : Pipe_Op<"fused_fb", [HasParent<"RankOp">, SingleBlockImplicitTerminator<"YieldOp">,
                           NoRegionArguments]> {
  let summary = "independent compute ops that are meant to overlap";
  let description = [{
    Two or more compute ops, none of which reads what another yields. The group
    yields all results of its members, in order. Invariant S3.

    ```mlir
    pipe.rank 0 of @example {
      %x = pipe.input act stage 0 mb 5
      %dy = pipe.recv grad stage 0 mb 4 from 1
      %x4 = pipe.input act stage 0 mb 4
      %y4, %s4 = pipe.fwd stage 0 mb 4 (%x4) first
      %r:2 = pipe.fused_fb {
        %y, %s = pipe.fwd stage 0 mb 5 (%x) first
        pipe.bwd stage 0 mb 4 (%dy, %s4) first
        pipe.yield %y, %s : !pipe.act, !pipe.saved
      }
    }
    ```
  }];
  let regions = (region SizedRegion<1>:$bodyRegion);
  let results = (outs Variadic<Pipe_Value>:$outputs);
  let assemblyFormat = "custom<FusedBody>($bodyRegion, type($outputs)) attr-dict";
  let skipDefaultBuilders = 1;
  let builders = [
    // With an empty body (and its terminator); the results are those of the dataflow phase.
    OpBuilder<(ins CArg<"::mlir::TypeRange", "{}">:$outputs)>
  ];
  let hasVerifier = 1;
}

def Pipe_YieldOp : Pipe_Op<"yield", [HasParent<"FusedFbOp">, Terminator]> {
  let summary = "ends a fused group and names its results";
  let description = [{
    Not written in the order phase.

    ```mlir
    pipe.rank 0 of @example {
      pipe.fused_fb {
        pipe.fwd stage 0 mb 5 first
        pipe.bwd stage 0 mb 4 first
        pipe.yield
      }
    }
    ```
  }];
  let arguments = (ins Variadic<Pipe_Value>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), "(void)$_state;">];
}

//===----------------------------------------------------------------------===//
// Data in and out
//===----------------------------------------------------------------------===//

def Pipe_InputOp : Pipe_Op<"input", [HasParent<"RankOp">]> {
  let summary = "the input or the labels of one micro-batch";
  let description = [{
    Where data enters: the activation that the first stage of a pipeline reads,
    or the labels that the last one reads. Dataflow phase only.

    ```mlir
    pipe.rank 0 of @example {
      %x = pipe.input act stage 0 mb 3
      %l = pipe.input labels stage 0 mb 3
    }
    ```
  }];
  let arguments = (ins StageProp:$stage, NumberProp:$microbatch, SlotListProp:$slots);
  let results = (outs AnyTypeOf<[Pipe_ActType, Pipe_LabelsType]>:$value);
  let assemblyFormat = [{
    custom<InputType>(type($value)) `stage` $stage `mb` $microbatch `` custom<SlotList>($slots)
    attr-dict
  }];
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "uint32_t":$stage, "uint32_t":$microbatch)>];
  let hasVerifier = 1;
}

def Pipe_SendOp : Pipe_Op<"send", [HasParent<"RankOp">]> {
  let summary = "sends an activation or a gradient to another rank";
  let description = [{
    Stage and micro-batch are those of the consumer; `to` names its rank.
    Invariants D1 to D3.

    ```mlir
    pipe.rank 1 of @example {
      pipe.send act stage 2 mb 4 to 2
      pipe.send grad stage 0 mb 3 to 0
    }
    ```
  }];
  let arguments = (ins EnumProp<TransferKind>:$kind, StageProp:$stage, NumberProp:$microbatch,
                       NumberProp:$peer, Optional<Pipe_Value>:$value);
  let assemblyFormat = [{
    $kind `stage` $stage `mb` $microbatch `to` $peer
    `` custom<SentValue>(ref($kind), $value, type($value)) attr-dict
  }];
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::dualpipe::TransferKind":$kind, "uint32_t":$stage,
                                 "uint32_t":$microbatch, "uint32_t":$peer,
                                 CArg<"::mlir::Value", "{}">:$value)>];
  let hasVerifier = 1;
}

def Pipe_RecvOp : Pipe_Op<"recv", [HasParent<"RankOp">]> {
  let summary = "receives an activation or a gradient from another rank";
  let description = [{
    Stage and micro-batch are those of the consumer, on this rank; `from` names
    the rank of the producer. Invariants D1 to D3.

    ```mlir
    pipe.rank 1 of @example {
      pipe.recv act stage 1 mb 4 from 0
      pipe.recv grad stage 1 mb 3 from 2
    }
    ```
  }];
  let arguments = (ins EnumProp<TransferKind>:$kind, StageProp:$stage, NumberProp:$microbatch,
                       NumberProp:$peer, SlotListProp:$slots);
  let results = (outs Optional<Pipe_Value>:$value);
  let assemblyFormat = [{
    $kind `stage` $stage `mb` $microbatch `from` $peer
    `` custom<ReceivedType>(ref($kind), type($value)) `` custom<SlotList>($slots) attr-dict
  }];
  let skipDefaultBuilders = 1;
  let builders = [
    // Order phase, or dataflow phase with the result.
    OpBuilder<(ins "::dualpipe::TransferKind":$kind, "uint32_t":$stage, "uint32_t":$microbatch,
                   "uint32_t":$peer, CArg<"bool", "false">:$withResult)>
  ];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// After the backwards
//===----------------------------------------------------------------------===//

def Pipe_ReduceGradOp : Pipe_Op<"reduce_grad", [HasParent<"RankOp">]> {
  let summary = "sums the gradients of a stage over the ranks that hold a copy";
  let description = [{
    The ranks are listed in ascending order, this one among them. Invariants D1,
    D3, D4.

    ```mlir
    pipe.rank 0 of @example {
      pipe.bwd stage 3 mb 7
      pipe.reduce_grad stage 3 with [0, 7]
    }
    ```
  }];
  let arguments = (ins StageProp:$stage, DenseI32ArrayAttr:$ranks);
  let assemblyFormat = "`stage` $stage `with` $ranks attr-dict";
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "uint32_t":$stage, "::llvm::ArrayRef<uint32_t>":$ranks)>];
  let hasVerifier = 1;
}

def Pipe_StepOp : Pipe_Op<"step", [HasParent<"RankOp">]> {
  let summary = "optimizer step of a stage's copy on this rank";
  let description = [{
    Comes after the last gradient of the stage, and after its reduction where
    there is one.

    ```mlir
    pipe.rank 0 of @example {
      pipe.bwd stage 3 mb 7
      pipe.step stage 3
    }
    ```
  }];
  let arguments = (ins StageProp:$stage);
  let assemblyFormat = "`stage` $stage attr-dict";
}

#endif // DUALPIPE_DIALECTS_PIPE_OPS
