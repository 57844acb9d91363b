// What does not belong in the dataflow phase.
// RUN: dualpipe-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(pipe.rank(pipe-verify-dataflow))'

pipe.rank 1 of @s {
  // expected-error@+1 {{rank 1: receive of the activation for stage 1, micro-batch 0 has no value, which the dataflow phase asks for}}
  pipe.recv act stage 1 mb 0 from 0
}

// -----

pipe.rank 1 of @s {
  // expected-error@+1 {{rank 1: send of the gradient for stage 0, micro-batch 0 has no value, which the dataflow phase asks for}}
  pipe.send grad stage 0 mb 0 to 0
}

// -----

pipe.rank 1 of @s {
  // expected-error@+1 {{rank 1: forward of stage 1, micro-batch 0 has no values, which the dataflow phase asks for}}
  pipe.fwd stage 1 mb 0
}

// -----

pipe.rank 0 of @s forward_only {
  %x = pipe.input act stage 0 mb 0
  // expected-error@+1 {{rank 0: forward of stage 0, micro-batch 0 keeps a saved context in a forward-only program}}
  %y, %s = pipe.fwd stage 0 mb 0 (%x) first
  pipe.send act stage 1 mb 0 to 1 (%y)
}

// -----

pipe.rank 0 of @s {
  %x = pipe.input act stage 0 mb 0
  // expected-error@+1 {{rank 0: forward of stage 0, micro-batch 0 keeps no saved context in a training program}}
  %y = pipe.fwd stage 0 mb 0 (%x) first
  pipe.send act stage 1 mb 0 to 1 (%y)
}

// -----

// The first gradient of a stage on the rank overwrites what the last step left.
pipe.rank 0 of @s {
  %x = pipe.input act stage 0 mb 0
  %l = pipe.input labels stage 0 mb 0
  %s = pipe.fwd stage 0 mb 0 (%x, %l) first last
  // expected-error@+1 {{rank 0: backward of stage 0, micro-batch 0 is the first gradient of its stage and adds to it, expected no accumulate}}
  pipe.bwd stage 0 mb 0 (%s) first last accumulate
}

// -----

pipe.rank 0 of @s {
  %x = pipe.input act stage 0 mb 0
  %l = pipe.input labels stage 0 mb 0
  %s = pipe.fwd stage 0 mb 0 (%x, %l) first last
  // expected-note@+1 {{the first gradient is here}}
  pipe.bwd stage 0 mb 0 (%s) first last
  %x1 = pipe.input act stage 0 mb 1
  %l1 = pipe.input labels stage 0 mb 1
  %s1 = pipe.fwd stage 0 mb 1 (%x1, %l1) first last
  // expected-error@+1 {{rank 0: backward of stage 0, micro-batch 1 overwrites the gradient of its stage, expected accumulate}}
  pipe.bwd stage 0 mb 1 (%s1) first last
}

// -----

pipe.rank 0 of @s {
  // expected-error@+1 {{rank 0: nothing uses the labels of stage 0, micro-batch 0}}
  %l = pipe.input labels stage 0 mb 0
}

// -----

// Ops read what the model contract of the rank says, no more and no less.
pipe.rank 0 of @s model (bwd reads [input, grad_output]) {
  %x = pipe.input act stage 0 mb 0
  %y, %s = pipe.fwd stage 0 mb 0 (%x) first
  pipe.send act stage 1 mb 0 to 1 (%y)
  %dy = pipe.recv grad stage 0 mb 0 from 1
  // expected-error@+1 {{rank 0: backward of stage 0, micro-batch 0 reads [grad_output, saved], expected [input, grad_output] by the model of the rank}}
  pipe.bwd stage 0 mb 0 (%dy, %s) first
}

// -----

// A context that one way of going back reads must be read where that way is taken.
pipe.rank 0 of @s model (bwd_weight reads [input, grad_output]) {
  %x = pipe.input act stage 0 mb 0
  // expected-error@+1 {{rank 0: nothing uses the saved context of stage 0, micro-batch 0: expected its backward on this rank}}
  %y, %s = pipe.fwd stage 0 mb 0 (%x) first
  pipe.send act stage 1 mb 0 to 1 (%y)
}
