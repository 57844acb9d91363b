// What the verifiers and parsers of the pipe ops reject.
// RUN: dualpipe-opt %s --split-input-file --verify-diagnostics

// The last stage's forward reads labels too.
pipe.rank 0 of @s {
  %x = pipe.input act stage 3 mb 0
  // expected-error@+1 {{expected 2 values to read, got 1}}
  %s = pipe.fwd stage 3 mb 0 (%x) last
}

// -----

// A weight half yields no value.
pipe.rank 0 of @s {
  // expected-error@+1 {{expected 0 results, got 1}}
  %r = pipe.bwd_weight stage 3 mb 0
}

// -----

// A forward yields two values, or one where nothing is kept.
pipe.rank 0 of @s {
  %x = pipe.input act stage 3 mb 0
  // expected-error@+1 {{expected 2 results, got 3}}
  %y, %s, %z = pipe.fwd stage 3 mb 0 (%x)
}

// -----

// Values are all there or none is.
pipe.rank 0 of @s {
  // expected-error@+1 {{'pipe.fwd' op expected to read (!pipe.act), got ()}}
  %y, %s = pipe.fwd stage 3 mb 0
}

// -----

pipe.rank 0 of @s {
  %x = pipe.input act stage 3 mb 0
  // expected-error@+1 {{'pipe.fwd' op expected to yield (!pipe.act, !pipe.saved), got ()}}
  pipe.fwd stage 3 mb 0 (%x)
}

// -----

// Values have the type that kind and flags ask for.
pipe.rank 0 of @s {
  %x = pipe.input act stage 3 mb 0
  // expected-error@+1 {{expects different type than prior uses}}
  pipe.bwd stage 3 mb 0 (%x) first last
  // expected-note@-3 {{prior use here}}
}

// -----

pipe.rank 0 of @s {
  // expected-error@+1 {{'pipe.fwd' op accumulates a weight gradient, which only bwd and bwd_weight yield}}
  pipe.fwd stage 3 mb 0 accumulate
}

// -----

pipe.rank 0 of @s {
  // expected-error@+1 {{'pipe.bwd' op is of stage 0, which begins its pipeline: expected first}}
  pipe.bwd stage 0 mb 0
}

// -----

pipe.rank 0 of @s {
  // expected-error@+1 {{stage below 2^24}}
  pipe.bwd stage 16777216 mb 0
}

// -----

// One slot per result.
pipe.rank 0 of @s {
  %x = pipe.input act stage 3 mb 0
  // expected-error@+1 {{'pipe.fwd' op expected one slot per result (2), got 1}}
  %y, %s = pipe.fwd stage 3 mb 0 (%x) slots [1]
}

// -----

// expected-error@+1 {{expected a slot kind, got 'outputs'}}
pipe.rank 0 of @s slots [outputs 2] {
}

// -----

// A fused group has two members or more.
pipe.rank 0 of @s {
  // expected-error@+1 {{'pipe.fused_fb' op expected two or more compute ops, got 1}}
  pipe.fused_fb {
    pipe.fwd stage 3 mb 0
  }
}

// -----

// Members are independent (S3).
pipe.rank 0 of @s {
  %x = pipe.input act stage 3 mb 0
  %l = pipe.input labels stage 3 mb 0
  %r = pipe.fused_fb {
    // expected-note@+1 {{yielded here}}
    %s = pipe.fwd stage 3 mb 0 (%x, %l) last
    // expected-error@+1 {{'pipe.bwd' op reads a value of another member of its fused group}}
    pipe.bwd stage 3 mb 0 (%s) first last
    pipe.yield %s : !pipe.saved
  }
}

// -----

// Only compute ops stand in a fused group.
pipe.rank 0 of @s {
  pipe.fused_fb {
    pipe.fwd stage 3 mb 0
    pipe.fwd stage 3 mb 1
    // expected-error@+1 {{'pipe.step' op is no compute op and cannot stand in a fused group}}
    pipe.step stage 3
  }
}

// -----

pipe.rank 0 of @s {
  pipe.fused_fb {
    pipe.fwd stage 3 mb 0
    // expected-error@+1 {{'pipe.fused_fb' op is no compute op and cannot stand in a fused group}}
    pipe.fused_fb {
      pipe.fwd stage 3 mb 1
      pipe.fwd stage 3 mb 2
    }
  }
}

// -----

// All results of the members leave the group, in order.
pipe.rank 0 of @s {
  %x = pipe.input act stage 3 mb 0
  %x1 = pipe.input act stage 3 mb 1
  %r:3 = pipe.fused_fb {
    %y, %s = pipe.fwd stage 3 mb 0 (%x)
    %y1, %s1 = pipe.fwd stage 3 mb 1 (%x1)
    // expected-error@+1 {{'pipe.yield' op expected all results of the members in order (4 values)}}
    pipe.yield %y, %s, %y1 : !pipe.act, !pipe.saved, !pipe.act
  }
}

// -----

pipe.rank 2 of @s {
  // expected-error@+1 {{'pipe.send' op names its own rank 2 as the other end}}
  pipe.send act stage 3 mb 0 to 2
}

// -----

pipe.rank 2 of @s {
  // expected-error@+1 {{'pipe.recv' op names its own rank 2 as the other end}}
  pipe.recv grad stage 3 mb 0 from 2
}

// -----

pipe.rank 2 of @s {
  // expected-error@+1 {{expected 'act' or 'labels', got 'grad'}}
  %x = pipe.input grad stage 3 mb 0
}

// -----

pipe.rank 2 of @s {
  %x = "pipe.input"() <{stage = 0 : i32, microbatch = 0 : i32}> : () -> !pipe.act
  // expected-error@+1 {{'pipe.send' op expected a value of type '!pipe.grad', got '!pipe.act'}}
  "pipe.send"(%x) <{kind = 1 : i32, stage = 0 : i32, microbatch = 0 : i32, peer = 1 : i32}> : (!pipe.act) -> ()
}

// -----

pipe.rank 2 of @s {
  // expected-error@+1 {{'pipe.reduce_grad' op expected two or more ranks in ascending order, got [7, 2]}}
  pipe.reduce_grad stage 3 with [7, 2]
}

// -----

pipe.rank 2 of @s {
  // expected-error@+1 {{'pipe.reduce_grad' op expected rank 2 among [0, 7]}}
  pipe.reduce_grad stage 3 with [0, 7]
}

// -----

pipe.rank 0 of @s {
  // expected-error@+1 {{'pipe.fused_fb' op expected the results (), got (!pipe.act)}}
  %r = "pipe.fused_fb"() ({
    pipe.bwd stage 3 mb 0
    pipe.bwd stage 3 mb 1
    pipe.yield
  }) : () -> !pipe.act
}

// -----

// Slot classes as attributes: a known kind, and spares within the count.
// expected-error@+1 {{expected a slot class as array<i64: kind, size group, count, spares>}}
"pipe.rank"() <{rank = 0 : i32, schedule = @s, slots = [array<i64: 9, 0, 1, 0>]}> ({
^bb0:
}) : () -> ()

// -----

// expected-error@+1 {{expected the slot classes as an array attribute}}
"pipe.rank"() <{rank = 0 : i32, schedule = @s, slots = 3 : i32}> ({
^bb0:
}) : () -> ()

// -----

pipe.rank 0 of @s {
  // expected-error@+1 {{expected the slots as array<i32: ...>}}
  %x = "pipe.input"() <{stage = 0 : i32, microbatch = 0 : i32, slots = 3 : i32}> : () -> !pipe.act
}

// -----

pipe.rank 0 of @s {
  // expected-error@+1 {{expected a 32-bit integer attribute}}
  "pipe.step"() <{stage = 0 : i64}> : () -> ()
}

// -----

pipe.rank 0 of @s {
  // expected-error@+1 {{expected a region with compute ops}}
  pipe.fused_fb {
  }
}

// -----

// Passes rely on the ops being those of the dialect.
pipe.rank 0 of @s {
  // expected-error@+1 {{'builtin.unrealized_conversion_cast' op is of another dialect and cannot stand in a rank}}
  %x = builtin.unrealized_conversion_cast to !pipe.act
  pipe.send act stage 1 mb 0 to 1 (%x)
}

// -----

pipe.rank 0 of @s {
  // expected-error@+1 {{'builtin.module' op is of another dialect and cannot stand in a rank}}
  builtin.module {
  }
}

// -----

// More slots than a class can have.
// expected-error@+1 {{expected fewer slots in a class, got 4294967297}}
pipe.rank 0 of @s slots [input 4294967295 + 2] {
}

// -----

// expected-error@+1 {{'pipe.rank' op has 4000000000 slots, expected at most 4194304}}
pipe.rank 0 of @s slots [input 4000000000] {
}

// -----

// No wrap in the sum over the classes.
// expected-error@+1 {{'pipe.rank' op has 4294967298 slots, expected at most 4194304}}
pipe.rank 0 of @s slots [input 4294967295, output 3] {
}

// -----

// expected-error@+1 {{'pipe.rank' op lets bwd read [grad_input, weight_context], which it cannot}}
pipe.rank 0 of @s model (bwd reads [saved, grad_output, grad_input, weight_context]) {
}

// -----

// expected-error@+1 {{'pipe.rank' op expected 'bwd_input' to read 'grad_output', through which the gradient comes in}}
pipe.rank 0 of @s model (bwd_input reads [saved]) {
}

// -----

// expected-error@+1 {{'pipe.rank' op has no stage of size group 1, expected numbers without gaps from 0}}
pipe.rank 0 of @s model (groups [0, 2, 0]) {
}

// -----

// expected-error@+1 {{'pipe.rank' op names size group 4294967294 for 1 stages, expected numbers without gaps from 0}}
pipe.rank 0 of @s model (groups [4294967294]) {
}

// -----

// expected-error@+1 {{expected bwd, bwd_input, bwd_weight or groups, got 'fwd'}}
pipe.rank 0 of @s model (fwd reads [input]) {
}

// -----

// expected-error@+1 {{the slot kind saved stands twice}}
pipe.rank 0 of @s model (bwd reads [saved, saved]) {
}

// -----

// expected-error@+1 {{expected the model as array<i64: reads of bwd, bwd_input and bwd_weight, size group of each stage>}}
"pipe.rank"() <{rank = 0 : i32, schedule = @s, model = array<i64: 1, 2>}> ({
^bb0:
}) : () -> ()

// -----

// The roles stand in the order of the slot kinds, for all values or for none.
pipe.rank 0 of @s {
  %x = pipe.input act stage 3 mb 0
  %dy = pipe.recv grad stage 3 mb 0 from 1
  // expected-error@+1 {{the role input stands after [grad_output], expected the order of the slot kinds}}
  pipe.bwd stage 3 mb 0 (grad_output = %dy, input = %x) first
}

// -----

pipe.rank 0 of @s {
  %x = pipe.input act stage 3 mb 0
  %dy = pipe.recv grad stage 3 mb 0 from 1
  // expected-error@+1 {{expected the roles of all values, or of none}}
  pipe.bwd stage 3 mb 0 (input = %x, %dy) first
}

// -----

// The last stage has no gradient to read, and a forward no saved context.
pipe.rank 0 of @s {
  %x = pipe.input act stage 3 mb 0
  %dy = pipe.recv grad stage 3 mb 0 from 1
  // expected-error@+1 {{'pipe.bwd' op reads [grad_output], which it cannot here}}
  pipe.bwd stage 3 mb 0 (input = %x, grad_output = %dy) first last
}
