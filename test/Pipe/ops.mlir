// Text, generic form and bytecode of every op in both phases come back unchanged.
// RUN: dualpipe-opt %s | FileCheck %s
// RUN: dualpipe-opt %s | dualpipe-opt - | FileCheck %s
// RUN: dualpipe-opt --mlir-print-op-generic %s | dualpipe-opt - | FileCheck %s
// RUN: dualpipe-opt --emit-bytecode %s | dualpipe-opt - | FileCheck %s

// The order phase: no values.
// CHECK-LABEL: pipe.rank 3 of @dualpipe {
pipe.rank 3 of @dualpipe {
  // CHECK-NEXT: pipe.phase "warm-up"
  pipe.phase "warm-up"
  // CHECK-NEXT: pipe.recv act stage 3 mb 4 from 2
  pipe.recv act stage 3 mb 4 from 2
  // CHECK-NEXT: pipe.fwd stage 3 mb 4
  pipe.fwd stage 3 mb 4
  // CHECK-NEXT: pipe.send act stage 4 mb 4 to 4
  pipe.send act stage 4 mb 4 to 4
  // CHECK-NEXT: pipe.fused_fb {
  // CHECK-NEXT:   pipe.fwd stage 7 mb 5 last
  // CHECK-NEXT:   pipe.bwd stage 0 mb 4 first
  // CHECK-NEXT: }
  pipe.fused_fb {
    pipe.fwd stage 7 mb 5 last
    pipe.bwd stage 0 mb 4 first
  }
  // CHECK-NEXT: pipe.bwd_input stage 4 mb 11
  pipe.bwd_input stage 4 mb 11
  // CHECK-NEXT: pipe.bwd_weight stage 4 mb 11
  pipe.bwd_weight stage 4 mb 11
  // CHECK-NEXT: pipe.send grad stage 3 mb 11 to 2
  pipe.send grad stage 3 mb 11 to 2
  // CHECK-NEXT: pipe.reduce_grad stage 3 with [3, 7]
  pipe.reduce_grad stage 3 with [3, 7]
  // CHECK-NEXT: pipe.step stage 3
  pipe.step stage 3
}

// The dataflow phase: all values, with slots.
// CHECK-LABEL: pipe.rank 0 of @dualpipe slots [input 2 + 1, output 1 + 1, saved 2, labels 1 size_group 2] {
pipe.rank 0 of @dualpipe slots [input 2 + 1, output 1 + 1, saved 2, labels 1 size_group 2] {
  // CHECK-NEXT: %[[X:.+]] = pipe.input act stage 0 mb 0 slots [0]
  %x = pipe.input act stage 0 mb 0 slots [0]
  // CHECK-NEXT: %[[F:.+]]:2 = pipe.fwd stage 0 mb 0 (%[[X]]) first slots [3, 5]
  %y, %s = pipe.fwd stage 0 mb 0 (%x) first slots [3, 5]
  // CHECK-NEXT: pipe.send act stage 1 mb 0 to 1 (%[[F]]#0)
  pipe.send act stage 1 mb 0 to 1 (%y)
  // CHECK-NEXT: %[[L:.+]] = pipe.input labels stage 7 mb 9 slots [7]
  %l = pipe.input labels stage 7 mb 9 slots [7]
  // CHECK-NEXT: %[[X2:.+]] = pipe.recv act stage 7 mb 9 from 1 slots [1]
  %x2 = pipe.recv act stage 7 mb 9 from 1 slots [1]
  // CHECK-NEXT: %[[DY:.+]] = pipe.recv grad stage 0 mb 0 from 1
  %dy = pipe.recv grad stage 0 mb 0 from 1
  // CHECK-NEXT: %[[R:.+]] = pipe.fused_fb {
  // CHECK-NEXT:   %[[S:.+]] = pipe.fwd stage 7 mb 9 (%[[X2]], %[[L]]) last slots [6]
  // CHECK-NEXT:   pipe.bwd stage 0 mb 0 (%[[DY]], %[[F]]#1) first accumulate
  // CHECK-NEXT:   pipe.yield %[[S]] : !pipe.saved
  // CHECK-NEXT: }
  %s2 = pipe.fused_fb {
    %a = pipe.fwd stage 7 mb 9 (%x2, %l) last slots [6]
    pipe.bwd stage 0 mb 0 (%dy, %s) first accumulate
    pipe.yield %a : !pipe.saved
  }
  // CHECK-NEXT: %[[B:.+]]:2 = pipe.bwd_input stage 7 mb 9 (%[[R]]) last
  %dx, %w = pipe.bwd_input stage 7 mb 9 (%s2) last
  // CHECK-NEXT: pipe.bwd_weight stage 7 mb 9 (%[[R]], %[[B]]#1) last
  pipe.bwd_weight stage 7 mb 9 (%s2, %w) last
  // CHECK-NEXT: pipe.send grad stage 6 mb 9 to 1 (%[[B]]#0)
  pipe.send grad stage 6 mb 9 to 1 (%dx)
}

// Forward only: nothing is saved, and the last stage yields nothing at all.
// CHECK-LABEL: pipe.rank 1 of @serve forward_only {
pipe.rank 1 of @serve forward_only {
  // CHECK-NEXT: %[[X:.+]] = pipe.recv act stage 1 mb 0 from 0
  %x = pipe.recv act stage 1 mb 0 from 0
  // CHECK-NEXT: %[[L:.+]] = pipe.input labels stage 1 mb 0
  %l = pipe.input labels stage 1 mb 0
  // CHECK-NEXT: pipe.fwd stage 1 mb 0 (%[[X]], %[[L]]) last
  pipe.fwd stage 1 mb 0 (%x, %l) last
}

// A model contract: what is not as usual is named, on the rank and on the ops.
// CHECK-LABEL: pipe.rank 1 of @lean model (bwd reads [input, grad_output], bwd_weight reads [input, grad_output, weight_context], groups [0, 1]) slots [input 1 size_group 1] {
pipe.rank 1 of @lean model (groups [0, 1], bwd_weight reads [weight_context, grad_output, input], bwd reads [input, grad_output]) slots [input 1 size_group 1] {
  // CHECK-NEXT: %[[X:.+]] = pipe.recv act stage 1 mb 0 from 0
  %x = pipe.recv act stage 1 mb 0 from 0
  // CHECK-NEXT: %[[L:.+]] = pipe.input labels stage 1 mb 0
  %l = pipe.input labels stage 1 mb 0
  // CHECK-NEXT: %[[S:.+]] = pipe.fwd stage 1 mb 0 (%[[X]], %[[L]]) last
  %s = pipe.fwd stage 1 mb 0 (%x, %l) last
  // CHECK-NEXT: %[[DX:.+]] = pipe.bwd stage 1 mb 0 (input = %[[X]]) last
  %dx = pipe.bwd stage 1 mb 0 (input = %x) last
  // CHECK-NEXT: pipe.bwd_weight stage 1 mb 1 (input = %[[X]], grad_output = %[[DX]])
  pipe.bwd_weight stage 1 mb 1 (input = %x, grad_output = %dx)
}

// The usual contract, written out, is not printed; and neither is one size group.
// CHECK-LABEL: pipe.rank 0 of @usual {
pipe.rank 0 of @usual model (bwd reads [grad_output, saved], groups [0, 0]) {
}
