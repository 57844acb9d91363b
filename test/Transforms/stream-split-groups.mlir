// Groups of more transfers than a device takes at once, split in the order of their channel.
// RUN: dualpipe-opt %s --split-input-file --pass-pipeline='builtin.module(stream.program(stream-split-groups{limit=2}))' | FileCheck %s --implicit-check-not=stream.group --implicit-check-not=stream.recv
// RUN: dualpipe-opt %s --split-input-file --pass-pipeline='builtin.module(stream.program(stream-split-groups))' | FileCheck %s --check-prefix=DEFAULT

// Five are two, two and one. What stands before and behind stays there, attributes go with each part.
// CHECK-LABEL: stream.program 1 of @five
// DEFAULT-LABEL: stream.program 1 of @five
stream.program 1 of @five streams [<compute>, <recv act from 0>] slots [input 5] {
  // CHECK: stream.step on 0 stage 3
  // CHECK-NEXT: stream.group on 1 attributes {note = "here"} {
  // CHECK-NEXT:   stream.recv act on 1 stage 1 mb 0 from 0 slot 4
  // CHECK-NEXT:   stream.recv act on 1 stage 1 mb 1 from 0 slot 3
  // CHECK-NEXT: }
  // CHECK-NEXT: stream.group on 1 attributes {note = "here"} {
  // CHECK-NEXT:   stream.recv act on 1 stage 1 mb 2 from 0 slot 2
  // CHECK-NEXT:   stream.recv act on 1 stage 1 mb 3 from 0 slot 1
  // CHECK-NEXT: }
  // CHECK-NEXT: stream.group on 1 attributes {note = "here"} {
  // CHECK-NEXT:   stream.recv act on 1 stage 1 mb 4 from 0 slot 0
  // CHECK-NEXT: }
  // CHECK-NEXT: stream.record on 1
  // Five are fewer than 256.
  // DEFAULT-COUNT-1: stream.group
  // DEFAULT-NOT: stream.group
  // DEFAULT: stream.wait
  stream.step on 0 stage 3
  stream.group on 1 attributes {note = "here"} {
    stream.recv act on 1 stage 1 mb 0 from 0 slot 4
    stream.recv act on 1 stage 1 mb 1 from 0 slot 3
    stream.recv act on 1 stage 1 mb 2 from 0 slot 2
    stream.recv act on 1 stage 1 mb 3 from 0 slot 1
    stream.recv act on 1 stage 1 mb 4 from 0 slot 0
  }
  %e = stream.record on 1
  stream.wait %e on 0
}

// -----

// As many as fit stay together.
// CHECK-LABEL: stream.program 1 of @two
stream.program 1 of @two streams [<compute>, <recv act from 0>] slots [input 2] {
  // CHECK-NEXT: stream.group on 1 {
  // CHECK-NEXT:   stream.recv act on 1 stage 1 mb 0 from 0 slot 0
  // CHECK-NEXT:   stream.recv act on 1 stage 1 mb 1 from 0 slot 1
  // CHECK-NEXT: }
  stream.group on 1 {
    stream.recv act on 1 stage 1 mb 0 from 0 slot 0
    stream.recv act on 1 stage 1 mb 1 from 0 slot 1
  }
}
