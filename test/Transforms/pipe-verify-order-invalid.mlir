// What does not belong in the order phase.
// RUN: dualpipe-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(pipe.rank(pipe-verify-order))'

// In order: nothing to report.
pipe.rank 0 of @s {
  pipe.fwd stage 0 mb 4 first last
}

// -----

pipe.rank 0 of @s {
  // expected-error@+1 {{rank 0: pipe.input does not belong in the order phase}}
  %x = pipe.input act stage 0 mb 0
}

// -----

pipe.rank 1 of @s {
  // expected-error@+1 {{rank 1: receive of the activation for stage 1, micro-batch 0 has values, which the order phase does not}}
  %x = pipe.recv act stage 1 mb 0 from 0
}

// -----

pipe.rank 1 of @s {
  // expected-error@+1 {{rank 1: backward of stage 1, micro-batch 0 says accumulate, which the dataflow phase decides}}
  pipe.bwd stage 1 mb 0 accumulate
}

// -----

// expected-error@+1 {{rank 1: slot classes do not belong in the order phase}}
pipe.rank 1 of @s slots [input 1] {
}
