// Two ranks, forward only: all activations go over in one group.
stream.program 0 of @group streams [<compute>, <send act to 1>] slots [input 1, output 3] {
  stream.launch load_input on 0 stage 0 mb 0 (input = 0) first
  stream.launch forward on 0 stage 0 mb 0 (input = 0, output = 1) first
  stream.launch load_input on 0 stage 0 mb 1 (input = 0) first
  stream.launch forward on 0 stage 0 mb 1 (input = 0, output = 2) first
  stream.launch load_input on 0 stage 0 mb 2 (input = 0) first
  stream.launch forward on 0 stage 0 mb 2 (input = 0, output = 3) first
  %e = stream.record on 0
  stream.wait %e on 1
  stream.group on 1 {
    stream.send act on 1 stage 1 mb 0 to 1 slot 1
    stream.send act on 1 stage 1 mb 1 to 1 slot 2
    stream.send act on 1 stage 1 mb 2 to 1 slot 3
  }
}
stream.program 1 of @group streams [<compute>, <recv act from 0>] slots [input 3, labels 1] {
  stream.group on 1 {
    stream.recv act on 1 stage 1 mb 0 from 0 slot 0
    stream.recv act on 1 stage 1 mb 1 from 0 slot 1
    stream.recv act on 1 stage 1 mb 2 from 0 slot 2
  }
  %e = stream.record on 1
  stream.wait %e on 0
  stream.launch load_labels on 0 stage 1 mb 0 (labels = 3) last
  stream.launch forward on 0 stage 1 mb 0 (input = 0, labels = 3) last
  stream.launch load_labels on 0 stage 1 mb 1 (labels = 3) last
  stream.launch forward on 0 stage 1 mb 1 (input = 1, labels = 3) last
  stream.launch load_labels on 0 stage 1 mb 2 (labels = 3) last
  stream.launch forward on 0 stage 1 mb 2 (input = 2, labels = 3) last
}
