// Broken programs, found at the op with the number of the invariant.
// RUN: dualpipe-opt %s --split-input-file --verify-diagnostics --stream-verify

// P2: the send does not wait for the forward that writes its slot.
stream.program 0 of @s streams [<compute>, <send act to 1>] slots [input 1, output 1] {
  stream.launch load_input on 0 stage 0 mb 0 (input = 0) first
  // expected-note@+1 {{rank 0, command 1: forward of stage 0, micro-batch 0: writes it here}}
  stream.launch forward on 0 stage 0 mb 0 (input = 0, output = 1) first
  // expected-error@+1 {{P2: rank 0, command 2: send of the activation for stage 1, micro-batch 0 to rank 1: reads slot 1 with no order after a command that writes it}}
  stream.send act on 1 stage 1 mb 0 to 1 slot 1
}

// -----

// P2: nothing writes the input.
stream.program 0 of @s streams [<compute>] slots [input 1, output 1] {
  // expected-error@+1 {{P2: rank 0, command 0: forward of stage 0, micro-batch 0: reads slot 0 before anything is written to it}}
  stream.launch forward on 0 stage 0 mb 0 (input = 0, output = 1) first
}

// -----

// P3: a slot of the wrong class.
stream.program 0 of @s streams [<compute>] slots [output 1] {
  // expected-error@+1 {{P3: rank 0, command 0:}}
  stream.launch load_input on 0 stage 0 mb 0 (input = 0) first
}

// -----

// P3: a stream that is not in the table.
stream.program 0 of @s streams [<compute>] slots [input 1] {
  // expected-error@+1 {{rank 0: stream.launch stands on stream 1, expected one of the 1 streams of the rank}}
  stream.launch load_input on 1 stage 0 mb 0 (input = 0) first
}

// -----

// P3: a transfer on the stream of another channel.
stream.program 0 of @s streams [<compute>, <send act to 1>, <send act to 2>] slots [input 1, output 1] {
  stream.launch load_input on 0 stage 0 mb 0 (input = 0) first
  stream.launch forward on 0 stage 0 mb 0 (input = 0, output = 1) first
  %e = stream.record on 0
  stream.wait %e on 2
  // expected-error@+1 {{P3: rank 0, command 4:}}
  stream.send act on 2 stage 1 mb 0 to 1 slot 1
}

// -----

// D1: a send without its receive, both ranks at hand.
stream.program 0 of @s streams [<compute>, <send act to 1>] slots [input 1, output 1] {
  stream.launch load_input on 0 stage 0 mb 0 (input = 0) first
  stream.launch forward on 0 stage 0 mb 0 (input = 0, output = 1) first
  %e = stream.record on 0
  stream.wait %e on 1
  stream.send act on 1 stage 1 mb 0 to 1 slot 1
}
// expected-error@+1 {{D1: rank 1: channel 0 from rank 0 to rank 1 has 0 receives here, expected 1}}
stream.program 1 of @s streams [<compute>] slots [labels 1] {
  stream.launch load_labels on 0 stage 1 mb 0 (labels = 0) last
}

// -----

// expected-error@+1 {{expected a stream.program for each rank, got none}}
module {
}

// -----

// expected-error@+1 {{expected programs with launches, got none}}
module {
  stream.program 0 of @s streams [<compute>] {
  }
}

// -----

stream.program 0 of @s streams [<compute>] slots [input 1] {
  stream.launch load_input on 0 stage 0 mb 0 (input = 0) first
}
// expected-error@+1 {{rank 0 has a second program}}
stream.program 0 of @s streams [<compute>] {
}

// -----

stream.program 0 of @s streams [<compute>] slots [input 1] {
  stream.launch load_input on 0 stage 0 mb 0 (input = 0) first
}
// expected-error@+1 {{rank 1: expected a program of @s, got one of @t}}
stream.program 1 of @t streams [<compute>] {
}

// -----

// What the program file cannot hold.
stream.program 0 of @s streams [<compute>] slots [input 1] {
  // expected-error@+1 {{rank 0: component 65536 is out of range}}
  stream.launch load_input on 0 stage 0 mb 0 component 65536 (input = 0) first
}

// -----

stream.program 0 of @s streams [<compute>] slots [input 1] {
  stream.launch load_input on 0 stage 0 mb 0 (input = 0) first
  // expected-error@+1 {{rank 0: stream.program has no counterpart in the program file}}
  stream.program 1 of @s streams [<compute>] {
  }
}

// -----

// D3: every rank sends before it receives. Each stream alone could go on; one
// queue per rank could not.
stream.program 0 of @s streams [<compute>, <send act to 1>, <recv act from 1>] slots [input 2, output 1, labels 1] {
  stream.launch load_input on 0 stage 0 mb 0 (input = 0) first
  stream.launch forward on 0 stage 0 mb 0 (input = 0, output = 2) first
  %e = stream.record on 0
  stream.wait %e on 1
  // expected-error@+1 {{D3: rank 0, command 4: send of the activation for stage 1, micro-batch 0 to rank 1: the program cannot finish}}
  stream.send act on 1 stage 1 mb 0 to 1 slot 2
  // expected-note@-1 {{rank 0, command 4: send of the activation for stage 1, micro-batch 0 to rank 1: waits for rank 1 to come to it}}
  stream.recv act on 2 stage 1 mb 1 from 1 slot 1
  stream.launch load_labels on 0 stage 1 mb 1 (labels = 3) last
  %r = stream.record on 2
  stream.wait %r on 0
  stream.launch forward on 0 stage 1 mb 1 (input = 1, labels = 3) last
}
stream.program 1 of @s streams [<compute>, <send act to 0>, <recv act from 0>] slots [input 2, output 1, labels 1] {
  stream.launch load_input on 0 stage 0 mb 1 (input = 0) first
  stream.launch forward on 0 stage 0 mb 1 (input = 0, output = 2) first
  %e = stream.record on 0
  stream.wait %e on 1
  // expected-note@+1 {{rank 1, command 4: send of the activation for stage 1, micro-batch 1 to rank 0: waits for rank 0 to come to it}}
  stream.send act on 1 stage 1 mb 1 to 0 slot 2
  stream.recv act on 2 stage 1 mb 0 from 0 slot 1
  stream.launch load_labels on 0 stage 1 mb 0 (labels = 3) last
  %r = stream.record on 2
  stream.wait %r on 0
  stream.launch forward on 0 stage 1 mb 0 (input = 1, labels = 3) last
}

// -----

// All ranks ask the same of the model.
stream.program 0 of @s streams [<compute>] model (bwd_weight reads [input, grad_output]) slots [input 1, labels 1, saved 1] {
  stream.launch load_input on 0 stage 0 mb 0 (input = 0) first last
  stream.launch load_labels on 0 stage 0 mb 0 (labels = 1) first last
  stream.launch forward on 0 stage 0 mb 0 (input = 0, labels = 1, saved = 2) first last
}
// expected-error@+1 {{rank 1: expected the same model as in the program of rank 0}}
stream.program 1 of @s streams [<compute>] slots [input 1, labels 1, saved 1] {
  stream.launch load_input on 0 stage 1 mb 1 (input = 0) first last
  stream.launch load_labels on 0 stage 1 mb 1 (labels = 1) first last
  stream.launch forward on 0 stage 1 mb 1 (input = 0, labels = 1, saved = 2) first last
}
