// What the verifiers and parsers of the stream ops reject.
// RUN: dualpipe-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected 'compute', 'send', 'recv' or 'reduce', got 'copy'}}
stream.program 0 of @s streams [<copy>] {
}

// -----

// expected-error@+1 {{expected 'from'}}
stream.program 0 of @s streams [<recv act to 1>] {
}

// -----

stream.program 0 of @s streams [<compute>] {
  // expected-error@+1 {{expected a stage function, got 'backwards'}}
  stream.launch backwards on 0 stage 3 mb 0
}

// -----

stream.program 0 of @s streams [<compute>] {
  // expected-error@+1 {{the role input stands twice}}
  stream.launch forward on 0 stage 3 mb 0 (input = 0, input = 1)
}

// -----

// A forward writes an output, except in the last stage.
stream.program 0 of @s streams [<compute>] {
  // expected-error@+1 {{'stream.launch' op expected a slot for the role output}}
  stream.launch forward on 0 stage 3 mb 0 (input = 0)
}

// -----

stream.program 0 of @s streams [<compute>] {
  // expected-error@+1 {{'stream.launch' op has a slot for the role output, which forward does not use here}}
  stream.launch forward on 0 stage 3 mb 0 (input = 0, output = 1, labels = 2) last
}

// -----

// The first stage's backward sends no gradient on.
stream.program 0 of @s streams [<compute>] {
  // expected-error@+1 {{'stream.launch' op has a slot for the role grad_input, which backward does not use here}}
  stream.launch backward on 0 stage 0 mb 0 (grad_output = 0, grad_input = 1, saved = 2) first
}

// -----

stream.program 0 of @s streams [<compute>] {
  // expected-error@+1 {{'stream.launch' op accumulates a weight gradient, which backward_input does not yield}}
  stream.launch backward_input on 0 stage 0 mb 0 (grad_output = 0, saved = 2, weight_context = 3) first accumulate
}

// -----

stream.program 0 of @s streams [<compute>] {
  // expected-error@+1 {{'stream.pair' op expected two or more launches, got 1}}
  stream.pair on 0 {
    stream.launch load_input on 0 stage 0 mb 0 (input = 0) first
  }
}

// -----

stream.program 0 of @s streams [<compute>, <compute>] {
  stream.pair on 0 {
    stream.launch load_input on 0 stage 0 mb 0 (input = 0) first
    // expected-error@+1 {{'stream.launch' op expected stream 0 of the pair, got 1}}
    stream.launch load_input on 1 stage 0 mb 1 (input = 1) first
  }
}

// -----

stream.program 0 of @s streams [<compute>] {
  stream.pair on 0 {
    // expected-error@+1 {{'builtin.module' op is no launch and cannot stand in a pair}}
    builtin.module {
    }
  }
}

// -----

stream.program 0 of @s streams [<compute>, <send act to 1>] {
  // expected-error@+1 {{'stream.group' op expected one or more transfers, got none}}
  stream.group on 1 {
  }
}

// -----

stream.program 0 of @s streams [<compute>, <send act to 1>, <send grad to 1>] {
  stream.group on 1 {
    stream.send act on 1 stage 1 mb 0 to 1 slot 0
    // expected-error@+1 {{'stream.send' op expected stream 1 of the group, got 2}}
    stream.send grad on 2 stage 1 mb 0 to 1 slot 1
  }
}

// -----

stream.program 0 of @s streams [<compute>] {
  stream.group on 1 {
    // expected-error@+1 {{'builtin.module' op is no transfer and cannot stand in a group}}
    builtin.module {
    }
  }
}

// -----

stream.program 1 of @s streams [<compute>] {
  // expected-error@+1 {{'stream.send' op names its own rank 1 as the other end}}
  stream.send act on 0 stage 1 mb 0 to 1 slot 0
}

// -----

stream.program 1 of @s streams [<compute>] {
  // expected-error@+1 {{'stream.recv' op names its own rank 1 as the other end}}
  stream.recv act on 0 stage 1 mb 0 from 1 slot 0
}

// -----

// P1: a wait before its record is a use before its definition.
stream.program 1 of @s streams [<compute>, <send act to 0>] {
  // expected-error@+1 {{operand #0 does not dominate this use}}
  stream.wait %e on 0
  // expected-note@+1 {{operand defined here}}
  %e = stream.record on 1
}

// -----

stream.program 1 of @s streams [<compute>] {
  // expected-error@+1 {{expected the number of a stage function, below 6}}
  "stream.launch"() <{function = 6 : i32, stream = 0 : i32, stage = 0 : i32, microbatch = 0 : i32, slots = array<i32: 0, -1, -1, -1, -1, -1, -1>}> : () -> ()
}

// -----

stream.program 1 of @s streams [<compute>] {
  // expected-error@+1 {{expected the slots by role as array<i32: ...> with 7 entries}}
  "stream.launch"() <{function = 0 : i32, stream = 0 : i32, stage = 0 : i32, microbatch = 0 : i32, slots = array<i32: 0>}> : () -> ()
}

// -----

// Passes rely on the ops being those of the dialect.
stream.program 0 of @s streams [<compute>] {
  // expected-error@+1 {{'builtin.unrealized_conversion_cast' op is of another dialect and cannot stand in a program}}
  %e = builtin.unrealized_conversion_cast to !stream.event
  stream.wait %e on 0
}

// -----

stream.program 0 of @s streams [<compute>] {
  // expected-error@+1 {{'builtin.module' op is of another dialect and cannot stand in a program}}
  builtin.module {
  }
}

// -----

// expected-error@+1 {{'stream.program' op has 4194305 slots, expected at most 4194304}}
stream.program 0 of @s streams [<compute>] slots [input 4194304, output 1] {
}

// -----

stream.program 0 of @s streams [<compute>, <reduce [0, 1]>] {
  // expected-error@+1 {{'stream.reduce' op expected two or more ranks in ascending order, got [-1]}}
  stream.reduce on 1 stage 0 with [-1]
}

// -----

stream.program 0 of @s streams [<compute>, <reduce [0, 1]>] {
  // expected-error@+1 {{'stream.reduce' op expected two or more ranks in ascending order, got [1, 0]}}
  stream.reduce on 1 stage 0 with [1, 0]
}

// -----

stream.program 0 of @s streams [<compute>, <reduce [0, 1]>] {
  // expected-error@+1 {{'stream.reduce' op expected rank 0 among [1, 2]}}
  stream.reduce on 1 stage 0 with [1, 2]
}

// -----

// expected-error@+1 {{'stream.program' op expected 'bwd' to read 'saved' or 'input': nothing else tells it of its forward in the last stage}}
stream.program 0 of @s streams [<compute>] model (bwd reads [grad_output]) {
}
