// Ranks become commands on streams. The conversion puts every wait; the
// pruning is tested on its own.
// RUN: dualpipe-opt %s --split-input-file --pass-pipeline='builtin.module(pipe.rank(pipe-materialize-dataflow,pipe-assign-slots),convert-pipe-to-stream)' | FileCheck %s
// RUN: dualpipe-opt %s --split-input-file --pass-pipeline='builtin.module(pipe.rank(pipe-materialize-dataflow,pipe-assign-slots{spares=0}),convert-pipe-to-stream)' | FileCheck %s --check-prefix=NOSPARE

// Every channel end has its stream, in the order of first use: the same peer in
// both directions and with both kinds is four streams. A reduce group is one
// more. Receives stand where the list has them, each after what wrote and read
// its slot before.
// CHECK-LABEL: stream.program 0 of @channels
// CHECK-SAME: streams [<compute>, <send act to 1>, <recv grad from 1>, <recv act from 1>, <reduce [0, 1]>, <send grad to 1>]
// CHECK-SAME: slots [input 1 + 1, output 1 + 1, grad_output 1 + 1, grad_input 1 + 1, saved 2, labels 1]
// CHECK-NOT: pipe.
pipe.rank 0 of @channels {
  // CHECK-NEXT: stream.phase "steady"
  pipe.phase "steady"
  // CHECK-NEXT: stream.launch load_input on 0 stage 0 mb 0 (input = 1) first
  // CHECK-NEXT: stream.launch forward on 0 stage 0 mb 0 (input = 1, output = 2, saved = 8) first
  // CHECK-NEXT: %[[F0:.+]] = stream.record on 0
  pipe.fwd stage 0 mb 0 first
  // CHECK-NEXT: stream.wait %[[F0]] on 1
  // CHECK-NEXT: stream.send act on 1 stage 1 mb 0 to 1 slot 2
  pipe.send act stage 1 mb 0 to 1
  // CHECK-NEXT: stream.recv grad on 2 stage 0 mb 0 from 1 slot 4
  // CHECK-NEXT: %[[RG:.+]] = stream.record on 2
  pipe.recv grad stage 0 mb 0 from 1
  // CHECK-NEXT: stream.recv act on 3 stage 1 mb 1 from 1 slot 0
  // CHECK-NEXT: %[[RA:.+]] = stream.record on 3
  pipe.recv act stage 1 mb 1 from 1
  // The pair waits for the inputs of both members.
  // CHECK-NEXT: stream.launch load_labels on 0 stage 1 mb 1 (labels = 10) last
  // CHECK-NEXT: stream.wait %[[RG]] on 0
  // CHECK-NEXT: stream.wait %[[RA]] on 0
  // CHECK-NEXT: stream.pair on 0 {
  // CHECK-NEXT:   stream.launch forward on 0 stage 1 mb 1 (input = 0, saved = 9, labels = 10) last
  // CHECK-NEXT:   stream.launch backward on 0 stage 0 mb 0 (grad_output = 4, saved = 8) first{{$}}
  // CHECK-NEXT: }
  // CHECK-NEXT: %[[P:.+]] = stream.record on 0
  pipe.fused_fb {
    pipe.fwd stage 1 mb 1 last
    pipe.bwd stage 0 mb 0 first
  }
  // The reduction waits for the last gradient of its stage, the step for the reduction.
  // CHECK-NEXT: stream.wait %[[P]] on 4
  // CHECK-NEXT: stream.reduce on 4 stage 0 with [0, 1]
  // CHECK-NEXT: %[[R0:.+]] = stream.record on 4
  pipe.reduce_grad stage 0 with [0, 1]
  // CHECK-NEXT: stream.launch backward on 0 stage 1 mb 1 (grad_input = 6, saved = 9) last{{$}}
  // CHECK-NEXT: %[[B1:.+]] = stream.record on 0
  pipe.bwd stage 1 mb 1 last
  // CHECK-NEXT: stream.wait %[[B1]] on 5
  // CHECK-NEXT: stream.send grad on 5 stage 0 mb 1 to 1 slot 6
  pipe.send grad stage 0 mb 1 to 1
  // CHECK-NEXT: stream.wait %[[B1]] on 4
  // CHECK-NEXT: stream.reduce on 4 stage 1 with [0, 1]
  // CHECK-NEXT: %[[R1:.+]] = stream.record on 4
  pipe.reduce_grad stage 1 with [0, 1]
  // CHECK-NEXT: stream.wait %[[R0]] on 0
  // CHECK-NEXT: stream.step on 0 stage 0
  pipe.step stage 0
  // CHECK-NEXT: stream.wait %[[R1]] on 0
  // CHECK-NEXT: stream.step on 0 stage 1
  pipe.step stage 1
}

// -----

// What the spare slot buys: the second receive need not wait until the first
// forward has read its input, only the third one must; and the second forward
// need not wait until the first output has left. Without spares both wait at once.
// CHECK-LABEL: stream.program 1 of @spares
// CHECK-SAME: slots [input 1 + 1, output 1 + 1]
// NOSPARE-LABEL: stream.program 1 of @spares
// NOSPARE-SAME: slots [input 1, output 1]
pipe.rank 1 of @spares forward_only {
  // CHECK-NEXT: stream.recv act on 1 stage 1 mb 0 from 0 slot 0
  // CHECK-NEXT: %[[R0:.+]] = stream.record on 1
  // CHECK-NEXT: stream.wait %[[R0]] on 0
  // CHECK-NEXT: stream.launch forward on 0 stage 1 mb 0 (input = 0, output = 2)
  // CHECK-NEXT: %[[F0:.+]] = stream.record on 0
  // CHECK-NEXT: stream.wait %[[F0]] on 2
  // CHECK-NEXT: stream.send act on 2 stage 2 mb 0 to 2 slot 2
  // CHECK-NEXT: %[[S0:.+]] = stream.record on 2
  pipe.recv act stage 1 mb 0 from 0
  pipe.fwd stage 1 mb 0
  pipe.send act stage 2 mb 0 to 2
  // CHECK-NEXT: stream.recv act on 1 stage 1 mb 1 from 0 slot 1
  // CHECK-NEXT: %[[R1:.+]] = stream.record on 1
  // CHECK-NEXT: stream.wait %[[R1]] on 0
  // CHECK-NEXT: stream.launch forward on 0 stage 1 mb 1 (input = 1, output = 3)
  // CHECK-NEXT: %[[F1:.+]] = stream.record on 0
  // CHECK-NEXT: stream.wait %[[F1]] on 2
  // CHECK-NEXT: stream.send act on 2 stage 2 mb 1 to 2 slot 3
  // NOSPARE: %[[F0:.+]] = stream.record on 0
  // NOSPARE: %[[S0:.+]] = stream.record on 2
  // NOSPARE-NEXT: stream.wait %[[F0]] on 1
  // NOSPARE-NEXT: stream.recv act on 1 stage 1 mb 1 from 0 slot 0
  // NOSPARE-NEXT: %[[R1:.+]] = stream.record on 1
  // NOSPARE-NEXT: stream.wait %[[S0]] on 0
  // NOSPARE-NEXT: stream.wait %[[R1]] on 0
  // NOSPARE-NEXT: stream.launch forward on 0 stage 1 mb 1 (input = 0, output = 1)
  pipe.recv act stage 1 mb 1 from 0
  pipe.fwd stage 1 mb 1
  pipe.send act stage 2 mb 1 to 2
  // CHECK-NEXT: stream.wait %[[F0]] on 1
  // CHECK-NEXT: stream.recv act on 1 stage 1 mb 2 from 0 slot 0
  // CHECK-NEXT: %[[R2:.+]] = stream.record on 1
  // CHECK-NEXT: stream.wait %[[S0]] on 0
  // CHECK-NEXT: stream.wait %[[R2]] on 0
  // CHECK-NEXT: stream.launch forward on 0 stage 1 mb 2 (input = 0, output = 2)
  pipe.recv act stage 1 mb 2 from 0
  pipe.fwd stage 1 mb 2
  pipe.send act stage 2 mb 2 to 2
}

// -----

// Receive order: two receives on one channel keep the order of the list, which
// is that of the sends, whatever the order in which they are used.
// CHECK-LABEL: stream.program 1 of @order
// CHECK-SAME: streams [<compute>, <recv act from 0>]
pipe.rank 1 of @order forward_only {
  // CHECK: stream.recv act on 1 stage 1 mb 0 from 0 slot 0
  pipe.recv act stage 1 mb 0 from 0
  // CHECK: stream.recv act on 1 stage 1 mb 1 from 0 slot 1
  pipe.recv act stage 1 mb 1 from 0
  // CHECK: stream.launch forward on 0 stage 1 mb 1 (input = 1, labels = 3) last
  pipe.fwd stage 1 mb 1 last
  // CHECK: stream.launch forward on 0 stage 1 mb 0 (input = 0, labels = 3) last
  pipe.fwd stage 1 mb 0 last
}

// -----

// A hand-over inside the rank: an output slot read as an input, a grad_input
// slot read as a grad_output; one stream, so no events.
// CHECK-LABEL: stream.program 0 of @handover streams [<compute>]
// CHECK-SAME: slots [input 1, output 1, grad_input 1, saved 2, labels 1]
// CHECK-NOT: stream.wait
// CHECK-NOT: stream.record
pipe.rank 0 of @handover {
  // CHECK: stream.launch forward on 0 stage 0 mb 0 (input = 0, output = 1, saved = 3) first
  pipe.fwd stage 0 mb 0 first
  // CHECK: stream.launch forward on 0 stage 1 mb 0 (input = 1, saved = 4, labels = 5) last
  pipe.fwd stage 1 mb 0 last
  // CHECK: stream.launch backward on 0 stage 1 mb 0 (grad_input = 2, saved = 4) last
  pipe.bwd stage 1 mb 0 last
  // CHECK: stream.launch backward on 0 stage 0 mb 0 (grad_output = 2, saved = 3) first
  pipe.bwd stage 0 mb 0 first
}
