// The conversion asks for the dataflow phase with slots.
// RUN: dualpipe-opt %s --split-input-file --verify-diagnostics --convert-pipe-to-stream

pipe.rank 1 of @s {
  // expected-error@+1 {{rank 1: pipe.recv has no value: expected the dataflow phase}}
  pipe.recv act stage 1 mb 0 from 0
}

// -----

pipe.rank 1 of @s {
  // expected-error@+1 {{rank 1: pipe.fwd has no values: expected the dataflow phase}}
  pipe.fwd stage 1 mb 0
}

// -----

pipe.rank 1 of @s {
  // expected-error@+1 {{rank 1: pipe.send reads no value with a slot: expected the dataflow phase}}
  pipe.send act stage 2 mb 0 to 2
}

// -----

pipe.rank 1 of @s {
  // expected-error@+1 {{rank 1: pipe.recv has no slots for its results: expected pipe-assign-slots before}}
  %x = pipe.recv act stage 1 mb 0 from 0
}

// -----

pipe.rank 1 of @s slots [input 2] {
  // expected-error@+1 {{rank 1: slot 2 of 2 is out of range}}
  %x = pipe.recv act stage 1 mb 0 from 0 slots [2]
}

// -----

pipe.rank 1 of @s {
  // expected-error@+1 {{rank 1: builtin.module has no counterpart in the stream dialect}}
  builtin.module {
  }
}
