// A group has at least one transfer.
// RUN: dualpipe-opt %s --verify-diagnostics --pass-pipeline='builtin.module(stream.program(stream-split-groups{limit=0}))'

// expected-error@+1 {{stream-split-groups: limit is 0, expected at least 1}}
stream.program 0 of @s streams [<compute>] {
  stream.step on 0 stage 0
}
