// Slots need the dataflow phase.
// RUN: dualpipe-opt %s --verify-diagnostics --pass-pipeline='builtin.module(pipe.rank(pipe-assign-slots))'

pipe.rank 1 of @s {
  // expected-error@+1 {{rank 1: receive of the activation for stage 1, micro-batch 0 has no value, which the dataflow phase asks for}}
  pipe.recv act stage 1 mb 0 from 0
  pipe.fwd stage 1 mb 0 last
}
