// Broken programs, found at the op with the number of the invariant.
// RUN: dualpipe-opt %s --split-input-file --verify-diagnostics --stream-verify

// P2: the send does not wait for the forward that writes its slot.
stream.program 0 of @s streams [<compute>, <send act to 1>] slots [input 1, output 1] {
  stream.launch load_input on 0 stage 0 mb 0 (input = 0) first
  // expected-note@+1 {{rank 0, command 1: writes it here}}
  stream.launch forward on 0 stage 0 mb 0 (input = 0, output = 1) first
  // expected-error@+1 {{P2: rank 0, command 2: reads slot 1 with no order after a command that writes it}}
  stream.send act on 1 stage 1 mb 0 to 1 slot 1
}

// -----

// P2: nothing writes the input.
stream.program 0 of @s streams [<compute>] slots [input 1, output 1] {
  // expected-error@+1 {{P2: rank 0, command 0: reads slot 0 before anything is written to it}}
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
