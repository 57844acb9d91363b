// What the order phase cannot be given values for.
// RUN: dualpipe-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(pipe.rank(pipe-materialize-dataflow))'

// Nothing receives the activation.
pipe.rank 3 of @s {
  // expected-error@+1 {{rank 3: forward of stage 3, micro-batch 4 has no input: nothing before it on this rank yields the activation for stage 3, micro-batch 4}}
  pipe.fwd stage 3 mb 4
}

// -----

// The receive comes too late.
pipe.rank 3 of @s {
  // expected-error@+1 {{rank 3: forward of stage 3, micro-batch 4 has no input}}
  pipe.fwd stage 3 mb 4
  // expected-note@+1 {{it comes from here, too late}}
  pipe.recv act stage 3 mb 4 from 2
}

// -----

// S3: forward before backward.
pipe.rank 3 of @s {
  pipe.recv grad stage 3 mb 4 from 4
  // expected-error@+1 {{rank 3: backward of stage 3, micro-batch 4 has no saved context: nothing before it on this rank yields the saved context of stage 3, micro-batch 4}}
  pipe.bwd stage 3 mb 4
}

// -----

pipe.rank 3 of @s {
  pipe.recv act stage 3 mb 4 from 2
  pipe.fwd stage 3 mb 4
  // expected-error@+1 {{rank 3: input half of the backward of stage 3, micro-batch 4 has no output gradient}}
  pipe.bwd_input stage 3 mb 4
}

// -----

// S3: input half before weight half.
pipe.rank 3 of @s {
  pipe.recv act stage 3 mb 4 from 2
  pipe.fwd stage 3 mb 4
  // expected-error@+1 {{rank 3: weight half of the backward of stage 3, micro-batch 4 has no weight context}}
  pipe.bwd_weight stage 3 mb 4
  pipe.recv grad stage 3 mb 4 from 4
  // expected-note@+1 {{it comes from here, too late}}
  pipe.bwd_input stage 3 mb 4
}

// -----

pipe.rank 3 of @s {
  // expected-error@+1 {{rank 3: send of the activation for stage 4, micro-batch 4 has no value}}
  pipe.send act stage 4 mb 4 to 4
}

// -----

// S3: members of a fused group are independent.
pipe.rank 1 of @s {
  pipe.recv act stage 1 mb 0 from 0
  pipe.fused_fb {
    // expected-note@+1 {{it comes from the same fused group}}
    pipe.fwd stage 1 mb 0 last
    // expected-error@+1 {{rank 1: backward of stage 1, micro-batch 0 has no saved context}}
    pipe.bwd stage 1 mb 0 last
  }
}

// -----

// S1: a forward runs once.
pipe.rank 3 of @s {
  // expected-note@+1 {{defined first here}}
  pipe.recv act stage 3 mb 4 from 2
  // expected-error@+1 {{rank 3: second definition of the activation for stage 3, micro-batch 4}}
  pipe.recv act stage 3 mb 4 from 2
}

// -----

pipe.rank 3 of @s {
  pipe.recv act stage 3 mb 4 from 2
  // expected-note@+1 {{defined first here}}
  pipe.fwd stage 3 mb 4
  // expected-error@+1 {{rank 3: second definition of the activation for stage 4, micro-batch 4}}
  pipe.fwd stage 3 mb 4
}

// -----

// D1: what is received is used.
pipe.rank 3 of @s {
  // expected-error@+1 {{rank 3: nothing uses the gradient for stage 3, micro-batch 4}}
  pipe.recv grad stage 3 mb 4 from 4
}

// -----

// S2: every forward has its backward, and every input half its weight half.
pipe.rank 3 of @s {
  pipe.recv act stage 3 mb 4 from 2
  // expected-error@+2 {{rank 3: nothing uses the activation for stage 4, micro-batch 4}}
  // expected-error@+1 {{rank 3: nothing uses the saved context of stage 3, micro-batch 4: expected its backward on this rank}}
  pipe.fwd stage 3 mb 4
}

// -----

pipe.rank 0 of @s {
  pipe.fwd stage 0 mb 4 first last
  // expected-error@+1 {{rank 0: nothing uses the weight context of stage 0, micro-batch 4: expected its weight half on this rank}}
  pipe.bwd_input stage 0 mb 4 first last
}

// -----

pipe.rank 0 of @s forward_only {
  pipe.fwd stage 0 mb 4 first last
  // expected-error@+1 {{rank 0: backward of stage 0, micro-batch 4 stands in a forward-only program}}
  pipe.bwd stage 0 mb 4 first last
}
