// Text, generic form and bytecode of every op come back unchanged.
// RUN: dualpipe-opt %s | FileCheck %s
// RUN: dualpipe-opt %s | dualpipe-opt - | FileCheck %s
// RUN: dualpipe-opt --mlir-print-op-generic %s | dualpipe-opt - | FileCheck %s
// RUN: dualpipe-opt --emit-bytecode %s | dualpipe-opt - | FileCheck %s

// CHECK-LABEL: stream.program 3 of @dualpipe
// CHECK-SAME: streams [<compute>, <recv act from 2>, <send act to 4>, <recv grad from 4>, <send grad to 2>, <reduce [3, 4]>]
// CHECK-SAME: slots [input 1 + 1, output 2 + 1 size_group 1, saved 3] {
stream.program 3 of @dualpipe streams [<compute>, <recv act from 2>, <send act to 4>, <recv grad from 4>, <send grad to 2>, <reduce [3, 4]>] slots [input 1 + 1, output 2 + 1 size_group 1, saved 3] {
  // CHECK-NEXT: stream.phase "warm-up"
  stream.phase "warm-up"
  // CHECK-NEXT: stream.recv act on 1 stage 3 mb 0 from 2 slot 0
  stream.recv act on 1 stage 3 mb 0 from 2 slot 0
  // CHECK-NEXT: %[[E:.+]] = stream.record on 1
  %e = stream.record on 1
  // CHECK-NEXT: stream.wait %[[E]] on 0
  stream.wait %e on 0
  // CHECK-NEXT: stream.launch forward on 0 stage 3 mb 0 (input = 0, output = 2, saved = 5)
  stream.launch forward on 0 stage 3 mb 0 (input = 0, output = 2, saved = 5)
  // CHECK-NEXT: stream.launch load_labels on 0 stage 3 mb 0 component 2 (labels = 0) first last
  stream.launch load_labels on 0 stage 3 mb 0 component 2 (labels = 0) first last
  // CHECK-NEXT: stream.pair on 0 {
  // CHECK-NEXT:   stream.launch backward_input on 0 stage 3 mb 0 (grad_output = 1, grad_input = 2, saved = 5, weight_context = 6)
  // CHECK-NEXT:   stream.launch backward_weight on 0 stage 4 mb 0 (saved = 4, weight_context = 7) accumulate
  // CHECK-NEXT: }
  stream.pair on 0 {
    stream.launch backward_input on 0 stage 3 mb 0 (saved = 5, grad_output = 1, grad_input = 2, weight_context = 6)
    stream.launch backward_weight on 0 stage 4 mb 0 (saved = 4, weight_context = 7) accumulate
  }
  // CHECK-NEXT: stream.group on 4 {
  // CHECK-NEXT:   stream.send grad on 4 stage 2 mb 0 to 2 slot 2
  // CHECK-NEXT: }
  stream.group on 4 {
    stream.send grad on 4 stage 2 mb 0 to 2 slot 2
  }
  // CHECK-NEXT: stream.reduce on 5 stage 3 with [3, 4]
  stream.reduce on 5 stage 3 with [3, 4]
  // CHECK-NEXT: stream.step on 0 stage 3
  stream.step on 0 stage 3
}

// A half reads what the model contract says.
// CHECK-LABEL: stream.program 1 of @lean streams [<compute>] model (bwd_weight reads [input, grad_output], groups [0, 1]) slots [input 1 size_group 1]
stream.program 1 of @lean streams [<compute>] model (bwd_weight reads [input, grad_output], groups [0, 1]) slots [input 1 size_group 1] {
  // CHECK-NEXT: stream.launch backward_weight on 0 stage 1 mb 0 (input = 0) last
  stream.launch backward_weight on 0 stage 1 mb 0 (input = 0) last
}
