// From the order phase to values.
// RUN: dualpipe-opt %s --split-input-file --pass-pipeline='builtin.module(pipe.rank(pipe-verify-order,pipe-materialize-dataflow,pipe-verify-dataflow))' | FileCheck %s

// Transfers in and out, a split backward, and inputs right before their reader.
// The first gradient of a stage overwrites, the next ones add.
// CHECK-LABEL: pipe.rank 0 of @first
pipe.rank 0 of @first {
  // CHECK-NEXT: pipe.phase "warm-up"
  pipe.phase "warm-up"
  // CHECK-NEXT: %[[X0:.+]] = pipe.input act stage 0 mb 0
  // CHECK-NEXT: %[[F0:.+]]:2 = pipe.fwd stage 0 mb 0 (%[[X0]]) first
  pipe.fwd stage 0 mb 0 first
  // CHECK-NEXT: pipe.send act stage 1 mb 0 to 1 (%[[F0]]#0)
  pipe.send act stage 1 mb 0 to 1
  // CHECK-NEXT: %[[X1:.+]] = pipe.input act stage 0 mb 1
  // CHECK-NEXT: %[[F1:.+]]:2 = pipe.fwd stage 0 mb 1 (%[[X1]]) first
  pipe.fwd stage 0 mb 1 first
  // CHECK-NEXT: pipe.send act stage 1 mb 1 to 1 (%[[F1]]#0)
  pipe.send act stage 1 mb 1 to 1
  // CHECK-NEXT: %[[DY0:.+]] = pipe.recv grad stage 0 mb 0 from 1
  pipe.recv grad stage 0 mb 0 from 1
  // CHECK-NEXT: %[[W:.+]] = pipe.bwd_input stage 0 mb 0 (%[[DY0]], %[[F0]]#1) first
  pipe.bwd_input stage 0 mb 0 first
  // CHECK-NEXT: pipe.bwd_weight stage 0 mb 0 (%[[F0]]#1, %[[W]]) first{{$}}
  pipe.bwd_weight stage 0 mb 0 first
  // CHECK-NEXT: %[[DY1:.+]] = pipe.recv grad stage 0 mb 1 from 1
  pipe.recv grad stage 0 mb 1 from 1
  // CHECK-NEXT: pipe.bwd stage 0 mb 1 (%[[DY1]], %[[F1]]#1) first accumulate
  pipe.bwd stage 0 mb 1 first
  // CHECK-NEXT: pipe.step stage 0
  pipe.step stage 0
}

// -----

// The turn of a V: two stages of one pipeline on the rank, handed over without
// a transfer, forward and backward; the second is the last and reads labels.
// CHECK-LABEL: pipe.rank 1 of @v
pipe.rank 1 of @v {
  // CHECK-NEXT: %[[X:.+]] = pipe.recv act stage 1 mb 0 from 0
  pipe.recv act stage 1 mb 0 from 0
  // CHECK-NEXT: %[[F1:.+]]:2 = pipe.fwd stage 1 mb 0 (%[[X]])
  pipe.fwd stage 1 mb 0
  // CHECK-NEXT: %[[L:.+]] = pipe.input labels stage 2 mb 0
  // CHECK-NEXT: %[[F2:.+]] = pipe.fwd stage 2 mb 0 (%[[F1]]#0, %[[L]]) last
  pipe.fwd stage 2 mb 0 last
  // CHECK-NEXT: %[[B2:.+]] = pipe.bwd stage 2 mb 0 (%[[F2]]) last
  pipe.bwd stage 2 mb 0 last
  // CHECK-NEXT: %[[B1:.+]] = pipe.bwd stage 1 mb 0 (%[[B2]], %[[F1]]#1)
  pipe.bwd stage 1 mb 0
  // CHECK-NEXT: pipe.send grad stage 0 mb 0 to 0 (%[[B1]])
  pipe.send grad stage 0 mb 0 to 0
}

// -----

// A fused group yields the results of its members; inputs stand before it.
// CHECK-LABEL: pipe.rank 0 of @fused
pipe.rank 0 of @fused {
  // CHECK: %[[F0:.+]]:2 = pipe.fwd stage 0 mb 0
  pipe.fwd stage 0 mb 0 first
  pipe.send act stage 1 mb 0 to 1
  // CHECK: %[[DY:.+]] = pipe.recv grad stage 0 mb 0 from 1
  pipe.recv grad stage 0 mb 0 from 1
  // CHECK-NEXT: %[[X1:.+]] = pipe.input act stage 0 mb 1
  // CHECK-NEXT: %[[R:.+]]:2 = pipe.fused_fb {
  // CHECK-NEXT:   %[[F1:.+]]:2 = pipe.fwd stage 0 mb 1 (%[[X1]]) first
  // CHECK-NEXT:   pipe.bwd stage 0 mb 0 (%[[DY]], %[[F0]]#1) first{{$}}
  // CHECK-NEXT:   pipe.yield %[[F1]]#0, %[[F1]]#1 : !pipe.act, !pipe.saved
  pipe.fused_fb {
    pipe.fwd stage 0 mb 1 first
    pipe.bwd stage 0 mb 0 first
  }
  // CHECK: pipe.send act stage 1 mb 1 to 1 (%[[R]]#0)
  pipe.send act stage 1 mb 1 to 1
  // CHECK: %[[DY1:.+]] = pipe.recv grad stage 0 mb 1 from 1
  pipe.recv grad stage 0 mb 1 from 1
  // CHECK: pipe.bwd stage 0 mb 1 (%[[DY1]], %[[R]]#1) first accumulate
  pipe.bwd stage 0 mb 1 first
}

// -----

// Forward only: nothing is kept.
// CHECK-LABEL: pipe.rank 1 of @serve forward_only
pipe.rank 1 of @serve forward_only {
  // CHECK-NEXT: %[[X:.+]] = pipe.recv act stage 1 mb 0 from 0
  pipe.recv act stage 1 mb 0 from 0
  // CHECK-NEXT: %[[L:.+]] = pipe.input labels stage 1 mb 0
  // CHECK-NEXT: pipe.fwd stage 1 mb 0 (%[[X]], %[[L]]) last
  pipe.fwd stage 1 mb 0 last
}

// -----

// Values that the model contract asks for, among them the output that was sent.
// CHECK-LABEL: pipe.rank 1 of @contract model (bwd reads [output, grad_output, saved], bwd_weight reads [input, grad_output])
pipe.rank 1 of @contract model (bwd reads [saved, output, grad_output], bwd_weight reads [input, grad_output]) {
  // CHECK-NEXT: %[[X0:.+]] = pipe.recv act stage 1 mb 0 from 0
  // CHECK-NEXT: %[[F0:.+]]:2 = pipe.fwd stage 1 mb 0 (%[[X0]])
  pipe.recv act stage 1 mb 0 from 0
  pipe.fwd stage 1 mb 0
  pipe.send act stage 2 mb 0 to 2
  // CHECK: %[[X1:.+]] = pipe.recv act stage 1 mb 1 from 0
  // CHECK-NEXT: %[[F1:.+]]:2 = pipe.fwd stage 1 mb 1 (%[[X1]])
  pipe.recv act stage 1 mb 1 from 0
  pipe.fwd stage 1 mb 1
  pipe.send act stage 2 mb 1 to 2
  // CHECK: %[[DY0:.+]] = pipe.recv grad stage 1 mb 0 from 2
  // CHECK-NEXT: %{{.+}} = pipe.bwd stage 1 mb 0 (output = %[[F0]]#0, grad_output = %[[DY0]], saved = %[[F0]]#1)
  pipe.recv grad stage 1 mb 0 from 2
  pipe.bwd stage 1 mb 0
  pipe.send grad stage 0 mb 0 to 0
  // CHECK: %[[DY1:.+]] = pipe.recv grad stage 1 mb 1 from 2
  // CHECK-NEXT: %{{.+}}:2 = pipe.bwd_input stage 1 mb 1 (%[[DY1]], %[[F1]]#1)
  // CHECK-NEXT: pipe.bwd_weight stage 1 mb 1 (input = %[[X1]], grad_output = %[[DY1]]) accumulate
  pipe.recv grad stage 1 mb 1 from 2
  pipe.bwd_input stage 1 mb 1
  pipe.bwd_weight stage 1 mb 1
  pipe.send grad stage 0 mb 1 to 0
}
