// Two ranks of a pipeline, lowered and checked as the program file is: alone
// and together.
// RUN: dualpipe-opt %s --pass-pipeline='builtin.module(pipe.rank(pipe-materialize-dataflow,pipe-assign-slots),convert-pipe-to-stream,stream-verify)' | FileCheck %s
// RUN: dualpipe-opt %s --pass-pipeline='builtin.module(pipe.rank(pipe-materialize-dataflow,pipe-assign-slots),convert-pipe-to-stream,stream.program(stream-prune-events),stream-verify)' | FileCheck %s

// CHECK: stream.program 0 of @two
pipe.rank 0 of @two {
  pipe.fwd stage 0 mb 0 first
  pipe.send act stage 1 mb 0 to 1
  pipe.fwd stage 0 mb 1 first
  pipe.send act stage 1 mb 1 to 1
  pipe.recv grad stage 0 mb 0 from 1
  pipe.bwd stage 0 mb 0 first
  pipe.recv grad stage 0 mb 1 from 1
  pipe.bwd_input stage 0 mb 1 first
  pipe.bwd_weight stage 0 mb 1 first
  pipe.step stage 0
}
// CHECK: stream.program 1 of @two
pipe.rank 1 of @two {
  pipe.recv act stage 1 mb 0 from 0
  pipe.fwd stage 1 mb 0 last
  pipe.recv act stage 1 mb 1 from 0
  pipe.bwd stage 1 mb 0 last
  pipe.send grad stage 0 mb 0 to 0
  pipe.fwd stage 1 mb 1 last
  pipe.bwd stage 1 mb 1 last
  pipe.send grad stage 0 mb 1 to 0
  pipe.step stage 1
}
