// The conversion asks for the dataflow phase with slots.
// RUN: dualpipe-opt %s --split-input-file --verify-diagnostics --convert-pipe-to-stream

pipe.rank 1 of @s {
  // expected-error@+1 {{rank 1: receive of the activation for stage 1, micro-batch 0 has no value: expected the dataflow phase}}
  pipe.recv act stage 1 mb 0 from 0
}

// -----

pipe.rank 1 of @s {
  // expected-error@+1 {{rank 1: forward of stage 1, micro-batch 0 has no values: expected the dataflow phase}}
  pipe.fwd stage 1 mb 0
}

// -----

pipe.rank 1 of @s {
  // expected-error@+1 {{rank 1: send of the activation for stage 2, micro-batch 0 reads no value with a slot: expected the dataflow phase}}
  pipe.send act stage 2 mb 0 to 2
}

// -----

pipe.rank 1 of @s {
  // expected-error@+1 {{rank 1: receive of the activation for stage 1, micro-batch 0 has no slots for its results: expected pipe-assign-slots before}}
  %x = pipe.recv act stage 1 mb 0 from 0
}

// -----

pipe.rank 1 of @s slots [input 2] {
  // expected-error@+1 {{rank 1: slot 2 of 2 is out of range}}
  %x = pipe.recv act stage 1 mb 0 from 0 slots [2]
}

// -----

// Every rank reports, whichever thread comes first.
pipe.rank 1 of @s {
  // expected-error@+1 {{rank 1: receive of the activation for stage 1, micro-batch 0 has no value: expected the dataflow phase}}
  pipe.recv act stage 1 mb 0 from 0
}
pipe.rank 2 of @s {
  // expected-error@+1 {{rank 2: receive of the activation for stage 2, micro-batch 0 has no value: expected the dataflow phase}}
  pipe.recv act stage 2 mb 0 from 1
}
pipe.rank 3 of @s {
  // expected-error@+1 {{rank 3: receive of the activation for stage 3, micro-batch 0 has no value: expected the dataflow phase}}
  pipe.recv act stage 3 mb 0 from 2
}
pipe.rank 4 of @s {
  // expected-error@+1 {{rank 4: receive of the activation for stage 4, micro-batch 0 has no value: expected the dataflow phase}}
  pipe.recv act stage 4 mb 0 from 3
}
pipe.rank 5 of @s {
  // expected-error@+1 {{rank 5: receive of the activation for stage 5, micro-batch 0 has no value: expected the dataflow phase}}
  pipe.recv act stage 5 mb 0 from 4
}
pipe.rank 6 of @s {
  // expected-error@+1 {{rank 6: receive of the activation for stage 6, micro-batch 0 has no value: expected the dataflow phase}}
  pipe.recv act stage 6 mb 0 from 5
}
pipe.rank 7 of @s {
  // expected-error@+1 {{rank 7: receive of the activation for stage 7, micro-batch 0 has no value: expected the dataflow phase}}
  pipe.recv act stage 7 mb 0 from 6
}
pipe.rank 8 of @s {
  // expected-error@+1 {{rank 8: receive of the activation for stage 8, micro-batch 0 has no value: expected the dataflow phase}}
  pipe.recv act stage 8 mb 0 from 7
}

// -----

pipe.rank 1 of @s {
  // expected-error@+1 {{rank 1: pipe.rank has no counterpart in the stream dialect}}
  pipe.rank 2 of @s {
  }
}
