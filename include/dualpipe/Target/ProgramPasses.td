//===- ProgramPasses.td - passes on whole programs --------------*- tablegen -*-===//

#ifndef DUALPIPE_TARGET_PROGRAMPASSES
#define DUALPIPE_TARGET_PROGRAMPASSES

include "mlir/Pass/PassBase.td"

def StreamVerify : Pass<"stream-verify", "::mlir::ModuleOp"> {
  let summary = "check the stream programs of a module as the program file is checked";
  let description = [{
    Exports every `stream.program` and runs the checks of the program file on it:
    P3, P1, P2, P5 on each rank, and D1 to D5 and P4 where all ranks are in the
    module. A finding is reported at the op, with the number of the invariant.
  }];
  let options = [
    Option<"groupLimit", "group-limit", "unsigned", "256", "The most transfers of a group (P5)">
  ];
}

#endif // DUALPIPE_TARGET_PROGRAMPASSES
