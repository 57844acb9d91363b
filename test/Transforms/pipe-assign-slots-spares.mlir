// More spares than the program file holds.
// RUN: not dualpipe-opt %s --pass-pipeline='builtin.module(pipe.rank(pipe-materialize-dataflow,pipe-assign-slots{spares=4294967295}))' 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: error: rank 1: spares of 4294967295 for each channel, expected at most 1024
// RUN: not dualpipe-opt %s --pass-pipeline='builtin.module(pipe.rank(pipe-materialize-dataflow,pipe-assign-slots{spares=600}))' 2>&1 | FileCheck %s --check-prefix=CLASS
// CLASS: error: rank 1: spares of 600 for each of 2 channels give input 1200 spare slots, expected at most 1024
// RUN: dualpipe-opt %s --pass-pipeline='builtin.module(pipe.rank(pipe-materialize-dataflow,pipe-assign-slots{spares=512}))' | FileCheck %s --check-prefix=FITS
// FITS: pipe.rank 1 of @s forward_only slots [input 2 + 1024, labels 1]

pipe.rank 1 of @s forward_only {
  pipe.recv act stage 1 mb 0 from 0
  pipe.recv act stage 1 mb 1 from 2
  pipe.fwd stage 1 mb 0 last
  pipe.fwd stage 1 mb 1 last
}
