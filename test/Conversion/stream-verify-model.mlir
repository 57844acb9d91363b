// A model contract other than the usual one goes through all levels: halves get the
// slots that they read, and stages of two size groups have classes of their own.
// RUN: dualpipe-opt %s --emit=streams -o %t.streams.mlir
// RUN: FileCheck %s < %t.streams.mlir
// RUN: dualpipe-opt %t.streams.mlir -o %t.dpx
// RUN: launcher %t.dpx --dump | FileCheck %s --check-prefix=PROGRAM
// RUN: dualpipe-opt %t.dpx --emit=streams | FileCheck %s

// Also where the programs of other ranks, and with them later stages, are not there.
// RUN: sed -e '/^pipe.rank 1/,$d' %s > %t.one.mlir
// RUN: dualpipe-opt %t.one.mlir --lower-to-streams --stream-verify | FileCheck %s --check-prefix=ONE
// ONE: stream.program 0 of @two

// PROGRAM:      contract: 1 components, 2 size groups
// PROGRAM-NEXT:   backward reads input, output, grad_output, saved
// PROGRAM-NEXT:   backward_input reads grad_output, saved
// PROGRAM-NEXT:   backward_weight reads input, grad_output

// CHECK:      stream.program 0 of @two streams
// CHECK-SAME: model (bwd reads [input, output, grad_output, saved], bwd_weight reads [input, grad_output], groups [0, 1])
// CHECK-SAME: slots [input 1, output 1 + 1, grad_output 1 + 1, saved 1, weight_context 1]
// CHECK:      stream.launch backward on 0 stage 0 mb 0 (input = 0, output = 1, grad_output = 3, saved = 5) first
// CHECK:      stream.launch backward_input on 0 stage 0 mb 1 (grad_output = 4, saved = 5, weight_context = 6) first
// CHECK:      stream.launch backward_weight on 0 stage 0 mb 1 (input = 0, grad_output = 4) first accumulate
pipe.rank 0 of @two model (bwd reads [input, output, grad_output, saved], bwd_weight reads [input, grad_output], groups [0, 1]) {
  pipe.fwd stage 0 mb 0 first
  pipe.send act stage 1 mb 0 to 1
  pipe.recv grad stage 0 mb 0 from 1
  pipe.bwd stage 0 mb 0 first
  pipe.fwd stage 0 mb 1 first
  pipe.send act stage 1 mb 1 to 1
  pipe.recv grad stage 0 mb 1 from 1
  pipe.bwd_input stage 0 mb 1 first
  pipe.bwd_weight stage 0 mb 1 first
  pipe.step stage 0
}
// The last stage has neither an output nor a gradient of it.
// CHECK:      stream.program 1 of @two streams
// CHECK-SAME: slots [input 1 + 1 size_group 1, grad_input 1 + 1 size_group 1, saved 1 size_group 1, weight_context 1 size_group 1, labels 1 size_group 1]
// CHECK:      stream.launch backward on 0 stage 1 mb 0 (input = 0, grad_input = 2, saved = 4) last
// CHECK:      stream.launch backward_weight on 0 stage 1 mb 1 (input = 1) last accumulate
pipe.rank 1 of @two model (bwd reads [input, output, grad_output, saved], bwd_weight reads [input, grad_output], groups [0, 1]) {
  pipe.recv act stage 1 mb 0 from 0
  pipe.fwd stage 1 mb 0 last
  pipe.bwd stage 1 mb 0 last
  pipe.send grad stage 0 mb 0 to 0
  pipe.recv act stage 1 mb 1 from 0
  pipe.fwd stage 1 mb 1 last
  pipe.bwd_input stage 1 mb 1 last
  pipe.send grad stage 0 mb 1 to 0
  pipe.bwd_weight stage 1 mb 1 last
  pipe.step stage 1
}
