// Streams must be there.
// RUN: dualpipe-opt %s --verify-diagnostics --pass-pipeline='builtin.module(stream.program(stream-prune-events))'

stream.program 0 of @s streams [<compute>] {
  // expected-error@+1 {{'stream.step' op stands on stream 3, expected one of the 1 streams of the rank}}
  stream.step on 3 stage 0
}
