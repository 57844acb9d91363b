// Slots need the dataflow phase.
// RUN: dualpipe-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(pipe.rank(pipe-assign-slots))'

pipe.rank 1 of @s {
  // expected-error@+1 {{rank 1: receive of the activation for stage 1, micro-batch 0 has no value, which the dataflow phase asks for}}
  pipe.recv act stage 1 mb 0 from 0
  pipe.fwd stage 1 mb 0 last
}

// -----

// The size group of every stage must be known.
pipe.rank 0 of @s model (groups [0, 1]) {
  %x = pipe.input act stage 0 mb 0
  %y, %s = pipe.fwd stage 0 mb 0 (%x) first
  pipe.send act stage 1 mb 0 to 1 (%y)
  // expected-error@+1 {{rank 0: receive of the gradient for stage 2, micro-batch 0: the model of the rank names the size groups of 2 stages only}}
  %dy = pipe.recv grad stage 2 mb 0 from 1
  %dx = pipe.bwd stage 2 mb 0 (%dy, %s)
  pipe.send grad stage 1 mb 0 to 1 (%dx)
}
