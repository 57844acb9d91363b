// Waits that others imply, and records that nobody waits for.
// RUN: dualpipe-opt %s --split-input-file --pass-pipeline='builtin.module(stream.program(stream-prune-events))' | FileCheck %s --implicit-check-not=stream.wait --implicit-check-not=stream.record

// A wait on the stream that recorded says nothing.
// CHECK-LABEL: stream.program 0 of @own
stream.program 0 of @own streams [<compute>] {
  stream.step on 0 stage 0
  %e = stream.record on 0
  stream.wait %e on 0
  // CHECK: stream.step on 0 stage 0
  // CHECK: stream.step on 0 stage 1
  stream.step on 0 stage 1
}

// -----

// Of two events of one stream, the later one is enough; a wait for the earlier
// one says nothing after that.
// CHECK-LABEL: stream.program 0 of @later
stream.program 0 of @later streams [<compute>, <send act to 1>] slots [output 2] {
  // CHECK: stream.send act on 1 stage 1 mb 0
  stream.send act on 1 stage 1 mb 0 to 1 slot 0
  %e0 = stream.record on 1
  // CHECK: stream.send act on 1 stage 1 mb 1
  // CHECK-NEXT: %[[E:.+]] = stream.record on 1
  stream.send act on 1 stage 1 mb 1 to 1 slot 1
  %e1 = stream.record on 1
  // CHECK-NEXT: stream.wait %[[E]] on 0
  // CHECK-NEXT: stream.step on 0 stage 0
  stream.wait %e0 on 0
  stream.wait %e1 on 0
  stream.step on 0 stage 0
  // CHECK-NEXT: stream.step on 0 stage 1
  stream.wait %e0 on 0
  stream.step on 0 stage 1
}

// -----

// Transitive: the receive waited for the launch, so who waits for the receive
// has waited for the launch too.
// CHECK-LABEL: stream.program 0 of @transitive
stream.program 0 of @transitive streams [<compute>, <recv act from 1>, <send act to 1>] slots [input 1, output 1] {
  // CHECK: stream.step on 0 stage 0
  // CHECK-NEXT: %[[A:.+]] = stream.record on 0
  stream.step on 0 stage 0
  %a = stream.record on 0
  // CHECK-NEXT: stream.wait %[[A]] on 1
  // CHECK-NEXT: stream.recv act on 1
  // CHECK-NEXT: %[[B:.+]] = stream.record on 1
  stream.wait %a on 1
  stream.recv act on 1 stage 1 mb 0 from 1 slot 0
  %b = stream.record on 1
  // CHECK-NEXT: stream.wait %[[B]] on 2
  // CHECK-NEXT: stream.send act on 2
  stream.wait %a on 2
  stream.wait %b on 2
  stream.send act on 2 stage 2 mb 0 to 1 slot 1
}

// -----

// Nothing implies these: two streams that know nothing of each other.
// CHECK-LABEL: stream.program 0 of @needed
stream.program 0 of @needed streams [<compute>, <recv act from 1>, <recv grad from 1>] slots [input 1, grad_output 1] {
  // CHECK: stream.recv act on 1
  // CHECK-NEXT: %[[A:.+]] = stream.record on 1
  stream.recv act on 1 stage 1 mb 0 from 1 slot 0
  %a = stream.record on 1
  // CHECK-NEXT: stream.recv grad on 2
  // CHECK-NEXT: %[[B:.+]] = stream.record on 2
  stream.recv grad on 2 stage 1 mb 0 from 1 slot 1
  %b = stream.record on 2
  // CHECK-NEXT: stream.wait %[[A]] on 0
  // CHECK-NEXT: stream.wait %[[B]] on 0
  // CHECK-NEXT: stream.step on 0 stage 0
  stream.wait %a on 0
  stream.wait %b on 0
  stream.step on 0 stage 0
}

// -----

// The same event twice before one command: one wait stays.
// CHECK-LABEL: stream.program 0 of @twice
stream.program 0 of @twice streams [<compute>, <recv act from 1>] slots [input 1] {
  // CHECK: stream.recv act on 1
  // CHECK-NEXT: %[[A:.+]] = stream.record on 1
  stream.recv act on 1 stage 1 mb 0 from 1 slot 0
  %a = stream.record on 1
  // CHECK-NEXT: stream.wait %[[A]] on 0
  // CHECK-NEXT: stream.step on 0 stage 0
  stream.wait %a on 0
  stream.wait %a on 0
  stream.step on 0 stage 0
}

// -----

// A wait between two records: the second one says more than the first, with no
// command between them. Stream 2 may not forget the receive on stream 1.
// CHECK-LABEL: stream.program 0 of @wait_between
stream.program 0 of @wait_between streams [<compute>, <recv act from 1>, <send act to 1>] slots [input 1, output 1] {
  // CHECK: stream.recv act on 1
  // CHECK-NEXT: %[[W:.+]] = stream.record on 1
  stream.recv act on 1 stage 1 mb 0 from 1 slot 0
  %w = stream.record on 1
  // CHECK-NEXT: stream.step on 0 stage 0
  // CHECK-NEXT: %[[E:.+]] = stream.record on 0
  // CHECK-NEXT: stream.wait %[[W]] on 0
  // CHECK-NEXT: %[[F:.+]] = stream.record on 0
  stream.step on 0 stage 0
  %e = stream.record on 0
  stream.wait %w on 0
  %f = stream.record on 0
  // CHECK-NEXT: stream.wait %[[E]] on 2
  // CHECK-NEXT: stream.send act on 2 stage 2 mb 0
  stream.wait %e on 2
  stream.send act on 2 stage 2 mb 0 to 1 slot 1
  // CHECK-NEXT: stream.wait %[[F]] on 2
  // CHECK-NEXT: stream.send act on 2 stage 2 mb 1
  stream.wait %f on 2
  stream.send act on 2 stage 2 mb 1 to 1 slot 0
}
