// Slots by liveness over the issue order.
// RUN: dualpipe-opt %s --split-input-file --pass-pipeline='builtin.module(pipe.rank(pipe-materialize-dataflow,pipe-assign-slots))' | FileCheck %s
// RUN: dualpipe-opt %s --split-input-file --pass-pipeline='builtin.module(pipe.rank(pipe-materialize-dataflow,pipe-assign-slots{spares=0}))' | FileCheck %s --check-prefix=NOSPARE

// One micro-batch after the other: one of each class is live at a time, and one
// spare for each channel. The slot that has been free the longest
// is taken, so the transfer kinds alternate between two slots.
// CHECK-LABEL: pipe.rank 1 of @sequence slots [input 1 + 1, output 1 + 1, grad_output 1 + 1, grad_input 1 + 1, saved 1]
// NOSPARE-LABEL: pipe.rank 1 of @sequence slots [input 1, output 1, grad_output 1, grad_input 1, saved 1]
pipe.rank 1 of @sequence {
  // CHECK: pipe.recv act stage 1 mb 0 from 0 slots [0]
  // NOSPARE: pipe.recv act stage 1 mb 0 from 0 slots [0]
  pipe.recv act stage 1 mb 0 from 0
  // CHECK: pipe.fwd stage 1 mb 0 ({{.*}}) slots [2, 8]
  pipe.fwd stage 1 mb 0
  pipe.send act stage 2 mb 0 to 2
  // CHECK: pipe.recv grad stage 1 mb 0 from 2 slots [4]
  pipe.recv grad stage 1 mb 0 from 2
  // CHECK: pipe.bwd stage 1 mb 0 ({{.*}}) slots [6]
  pipe.bwd stage 1 mb 0
  pipe.send grad stage 0 mb 0 to 0
  // CHECK: pipe.recv act stage 1 mb 1 from 0 slots [1]
  // NOSPARE: pipe.recv act stage 1 mb 1 from 0 slots [0]
  pipe.recv act stage 1 mb 1 from 0
  // CHECK: pipe.fwd stage 1 mb 1 ({{.*}}) slots [3, 8]
  pipe.fwd stage 1 mb 1
  pipe.send act stage 2 mb 1 to 2
  // CHECK: pipe.recv grad stage 1 mb 1 from 2 slots [5]
  pipe.recv grad stage 1 mb 1 from 2
  // CHECK: pipe.bwd stage 1 mb 1 ({{.*}}) accumulate slots [7]
  pipe.bwd stage 1 mb 1
  pipe.send grad stage 0 mb 1 to 0
}

// -----

// No op works in place: the results of a hand-over are placed before the
// operand is freed, here two outputs at once. No channel brings an input, so
// there is no spare for one.
// CHECK-LABEL: pipe.rank 0 of @handover forward_only slots [input 1, output 2 + 1]
pipe.rank 0 of @handover forward_only {
  // CHECK: pipe.input act stage 0 mb 0 slots [0]
  // CHECK: pipe.fwd stage 0 mb 0 ({{.*}}) first slots [1]
  pipe.fwd stage 0 mb 0 first
  // CHECK: pipe.fwd stage 1 mb 0 ({{.*}}) slots [2]
  pipe.fwd stage 1 mb 0
  pipe.send act stage 2 mb 0 to 1
}

// -----

// A saved context lives until the last half that reads it, a weight context
// until its weight half; neither class has a spare.
// CHECK-LABEL: pipe.rank 0 of @split slots [input 1, output 1 + 1, grad_output 1 + 1, saved 2, weight_context 2]
pipe.rank 0 of @split {
  // CHECK: pipe.fwd stage 0 mb 0 ({{.*}}) first slots [1, 5]
  pipe.fwd stage 0 mb 0 first
  pipe.send act stage 1 mb 0 to 1
  // CHECK: pipe.recv grad stage 0 mb 0 from 1 slots [3]
  pipe.recv grad stage 0 mb 0 from 1
  // CHECK: pipe.bwd_input stage 0 mb 0 ({{.*}}) first slots [7]
  pipe.bwd_input stage 0 mb 0 first
  // CHECK: pipe.fwd stage 0 mb 1 ({{.*}}) first slots [2, 6]
  pipe.fwd stage 0 mb 1 first
  pipe.send act stage 1 mb 1 to 1
  pipe.recv grad stage 0 mb 1 from 1
  // CHECK: pipe.bwd_input stage 0 mb 1 ({{.*}}) first slots [8]
  pipe.bwd_input stage 0 mb 1 first
  pipe.bwd_weight stage 0 mb 0 first
  pipe.bwd_weight stage 0 mb 1 first
}

// -----

// A fused group is one point of time: what its backward frees is not there for
// its forward. The members hold the slots.
// CHECK-LABEL: pipe.rank 0 of @fused slots [input 1, output 1 + 1, grad_output 1 + 1, saved 2]
pipe.rank 0 of @fused {
  // CHECK: pipe.fwd stage 0 mb 0 ({{.*}}) first slots [1, 5]
  pipe.fwd stage 0 mb 0 first
  pipe.send act stage 1 mb 0 to 1
  pipe.recv grad stage 0 mb 0 from 1
  // CHECK: pipe.fused_fb
  pipe.fused_fb {
    pipe.bwd stage 0 mb 0 first
    // CHECK: pipe.fwd stage 0 mb 1 ({{.*}}) first slots [2, 6]
    pipe.fwd stage 0 mb 1 first
  }
  pipe.send act stage 1 mb 1 to 1
  pipe.recv grad stage 0 mb 1 from 1
  pipe.bwd stage 0 mb 1 first
}

// -----

// Two channels bring activations into one class, and each has its spare: neither
// takes the slack of the other.
// CHECK-LABEL: pipe.rank 1 of @two_channels forward_only slots [input 1 + 2, output 1 + 2]
pipe.rank 1 of @two_channels forward_only {
  // CHECK: pipe.recv act stage 1 mb 0 from 0 slots [0]
  pipe.recv act stage 1 mb 0 from 0
  pipe.fwd stage 1 mb 0
  pipe.send act stage 2 mb 0 to 2
  // CHECK: pipe.recv act stage 4 mb 0 from 2 slots [1]
  pipe.recv act stage 4 mb 0 from 2
  pipe.fwd stage 4 mb 0
  pipe.send act stage 5 mb 0 to 0
  // CHECK: pipe.recv act stage 1 mb 1 from 0 slots [2]
  pipe.recv act stage 1 mb 1 from 0
  pipe.fwd stage 1 mb 1
  pipe.send act stage 2 mb 1 to 2
}

// -----

// What the rank loads itself takes the slot freed last: the receive after it gets
// the one that has been free the longest.
// CHECK-LABEL: pipe.rank 0 of @loads forward_only slots [input 1 + 1, output 1 + 1, labels 1]
pipe.rank 0 of @loads forward_only {
  // CHECK: pipe.recv act stage 3 mb 0 from 1 slots [0]
  pipe.recv act stage 3 mb 0 from 1
  pipe.fwd stage 3 mb 0 last
  // CHECK: pipe.input act stage 0 mb 1 slots [0]
  pipe.fwd stage 0 mb 1 first
  pipe.send act stage 1 mb 1 to 1
  // CHECK: pipe.recv act stage 3 mb 1 from 1 slots [1]
  pipe.recv act stage 3 mb 1 from 1
  pipe.fwd stage 3 mb 1 last
}

// -----

// Size groups have classes of their own: two stages of this rank are of different
// groups. Each channel has its spare in the class that it uses.
// CHECK-LABEL: pipe.rank 0 of @groups model (groups [0, 1, 1, 0]) slots [input 1, input 1 + 1 size_group 1, output 1 + 1, output 1 + 1 size_group 1, grad_output 1 + 1, grad_output 1 + 1 size_group 1, grad_input 1 + 1 size_group 1, saved 1, saved 1 size_group 1]
pipe.rank 0 of @groups model (groups [0, 1, 1, 0]) {
  // CHECK: pipe.input act stage 0 mb 0 slots [0]
  // CHECK: pipe.fwd stage 0 mb 0 (%{{.+}}) first slots [3, 13]
  pipe.fwd stage 0 mb 0 first
  pipe.send act stage 1 mb 0 to 1
  // CHECK: pipe.recv act stage 2 mb 0 from 1 slots [1]
  // CHECK-NEXT: pipe.fwd stage 2 mb 0 (%{{.+}}) slots [5, 14]
  pipe.recv act stage 2 mb 0 from 1
  pipe.fwd stage 2 mb 0
  pipe.send act stage 3 mb 0 to 1
  // CHECK: pipe.recv grad stage 2 mb 0 from 1 slots [9]
  // CHECK-NEXT: pipe.bwd stage 2 mb 0 (%{{.+}}) slots [11]
  pipe.recv grad stage 2 mb 0 from 1
  pipe.bwd stage 2 mb 0
  pipe.send grad stage 1 mb 0 to 1
  // CHECK: pipe.recv grad stage 0 mb 0 from 1 slots [7]
  pipe.recv grad stage 0 mb 0 from 1
  pipe.bwd stage 0 mb 0 first
}

// -----

// A value lives until the last half that reads it: inputs until the weight halves,
// saved contexts only until the input halves, and a weight context that nobody reads
// not at all.
// CHECK-LABEL: pipe.rank 0 of @lean model
// CHECK-SAME:  slots [input 2, output 1 + 1, grad_output 2 + 1, saved 1, weight_context 1]
pipe.rank 0 of @lean model (bwd_weight reads [input, grad_output]) {
  pipe.fwd stage 0 mb 0 first
  pipe.send act stage 1 mb 0 to 1
  pipe.recv grad stage 0 mb 0 from 1
  pipe.bwd_input stage 0 mb 0 first
  pipe.fwd stage 0 mb 1 first
  pipe.send act stage 1 mb 1 to 1
  pipe.recv grad stage 0 mb 1 from 1
  pipe.bwd_input stage 0 mb 1 first
  pipe.bwd_weight stage 0 mb 0 first
  pipe.bwd_weight stage 0 mb 1 first
}
