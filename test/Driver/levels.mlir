// A module goes on from the phase in which it stands.
// RUN: dualpipe-opt %s --emit=dataflow -o %t.dataflow.mlir
// RUN: dualpipe-opt %t.dataflow.mlir --emit=dataflow -o %t.again.mlir
// RUN: diff %t.dataflow.mlir %t.again.mlir
// RUN: dualpipe-opt %s --emit=streams -o %t.streams.mlir
// RUN: dualpipe-opt %t.dataflow.mlir --emit=streams -o %t.again.mlir
// RUN: diff %t.streams.mlir %t.again.mlir
// RUN: dualpipe-opt %t.streams.mlir --emit=streams | diff %t.streams.mlir -
// RUN: dualpipe-opt %t.streams.mlir -o %t.dpx
// RUN: dualpipe-opt %t.streams.mlir | FileCheck %s

// The named pipelines do the same.
// RUN: dualpipe-opt %t.dataflow.mlir -o %t.printed.mlir
// RUN: dualpipe-opt %s --lower-to-dataflow | diff %t.printed.mlir -
// RUN: dualpipe-opt %t.streams.mlir -o %t.printed.mlir
// RUN: dualpipe-opt %s --lower-to-streams | diff %t.printed.mlir -

// It does not go back.
// RUN: not dualpipe-opt %t.streams.mlir --emit=dataflow -o %t.none 2>&1 | FileCheck %s --check-prefix=BACK
// BACK: error: is of the stream dialect, and --emit asks for a level before it: expected pipe.rank
// RUN: not ls %t.none

// Nothing to go on from.
// RUN: echo "module {}" > %t.empty.mlir
// RUN: not dualpipe-opt %t.empty.mlir --emit=streams 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: expected a pipe.rank or a stream.program for each rank, got none

// CHECK: stream.program 0 of @one
pipe.rank 0 of @one {
  pipe.fwd stage 0 mb 0 first last
  pipe.bwd stage 0 mb 0 first last
  pipe.step stage 0
}
