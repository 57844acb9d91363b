//===- PipeDialect.td - dialect, types and interface ------------*- tablegen -*-===//
//
// The `pipe` dialect: what one rank computes, sends and receives for one
// training step, in program order. README.md lists its phases and invariants.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_DIALECTS_PIPE_DIALECT
#define DUALPIPE_DIALECTS_PIPE_DIALECT

include "dialects/Common/Common.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Pipe_Dialect : Dialect {
  let name = "pipe";
  let cppNamespace = "::dualpipe::pipe";
  let summary = "the program of one rank as values between stages";
  let useDefaultTypePrinterParser = 1;
}

class Pipe_Type<string name, string typeMnemonic, string what> : TypeDef<Pipe_Dialect, name> {
  let mnemonic = typeMnemonic;
  let summary = what;
}

def Pipe_ActType : Pipe_Type<"Act", "act", "an activation of one micro-batch at a stage boundary">;
def Pipe_GradType : Pipe_Type<"Grad", "grad", "the gradient of such an activation">;
def Pipe_SavedType : Pipe_Type<"Saved", "saved", "what a forward keeps for its backward">;
def Pipe_WctxType
    : Pipe_Type<"Wctx", "wctx", "what an input half keeps for its weight half">;
def Pipe_LabelsType : Pipe_Type<"Labels", "labels", "the labels of one micro-batch">;

def Pipe_Value : AnyTypeOf<[Pipe_ActType, Pipe_GradType, Pipe_SavedType, Pipe_WctxType,
                            Pipe_LabelsType]>;

def Pipe_ComputeOpInterface : OpInterface<"ComputeOpInterface"> {
  let cppNamespace = "::dualpipe::pipe";
  let description = [{
    One stage function for one micro-batch: `fwd`, `bwd`, `bwd_input` or
    `bwd_weight`. Values are absent in the order phase and complete in the
    dataflow phase.
  }];
  let methods = [
    InterfaceMethod<"What the op computes", "::dualpipe::OpKind", "getKind">,
    InterfaceMethod<"Global number of the stage", "uint32_t", "getStage">,
    InterfaceMethod<"Global number of the micro-batch", "uint32_t", "getMicrobatch">,
    InterfaceMethod<"The stage is the first of its pipeline", "bool", "getFirst">,
    InterfaceMethod<"The stage is the last of its pipeline", "bool", "getLast">,
    InterfaceMethod<"Adds to the weight gradient instead of overwriting it", "bool",
                    "getAccumulate">,
    InterfaceMethod<"Sets whether the op adds to the weight gradient", "void", "setAccumulate",
                    (ins "bool":$accumulate)>,
    InterfaceMethod<"The roles of the operands as bits; 0 for those of the usual contract",
                    "uint32_t", "getReads">,
    InterfaceMethod<"The slots of the results; empty before slots are assigned",
                    "::llvm::ArrayRef<uint32_t>", "getSlots">,
    InterfaceMethod<"Sets the slots of the results", "void", "setSlots",
                    (ins "::llvm::ArrayRef<uint32_t>":$slots)>
  ];
  let extraClassDeclaration = [{
    /// The op computes a weight gradient: `bwd` and `bwd_weight`.
    bool yieldsWeightGradient() {
      return getKind() == ::dualpipe::OpKind::Backward ||
             getKind() == ::dualpipe::OpKind::BackwardWeight;
    }
  }];
}

#endif // DUALPIPE_DIALECTS_PIPE_DIALECT
