//===- emitted.h - what a step that --emit=cuda wrote is built against ------===//
//
// `dualpipe-opt x.pipe --emit=cuda -o DIR` writes the step of each rank as calls of
// the CUDA driver, of NCCL and of stage functions, and this header is all that they
// include. Built into a shared object they take the place of the commands of the
// program file: `launcher DIR/x.dpx --step=libx_step.so`.
//
// The first half is the C interface between the shared object and the runtime, with
// a version of its own; the second half, in C++, gives the calls the names and the
// arguments that they have in NVIDIA's headers, so that the text reads as if it
// called them. It does: through tables, as the runtime does (Api.h). On devices that
// have no driver or no NCCL the runtime puts functions of the same meaning there.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_EMITTED_H
#define DUALPIPE_EMITTED_H

#include <stddef.h>
#include <stdint.h>

struct CUstream_st;
struct CUevent_st;
struct ncclComm;

//===--- The interface ------------------------------------------------------===//

extern "C" {

/// Raised when a field changes its meaning or its place. Fields are only added at the end of
/// dp_step and dp_step_program, which carry their sizes; the other structs never grow.
#define DP_STEP_ABI_VERSION 1
/// No slot of that kind.
#define DP_STEP_NO_SLOT 0xffffffffu

/// The runtime's side of a rank.
struct dp_step_run;

/// The stage functions of stage.h.
enum dp_step_function {
  DP_STEP_LOAD_INPUT = 0,
  DP_STEP_LOAD_LABELS = 1,
  DP_STEP_FORWARD = 2,
  DP_STEP_BACKWARD = 3,
  DP_STEP_BACKWARD_INPUT = 4,
  DP_STEP_BACKWARD_WEIGHT = 5,
};

/// What the runtime says when a transfer begins.
enum dp_step_answer {
  DP_STEP_GO = 0,
  DP_STEP_FAILED = 1, ///< the runtime has the message
  DP_STEP_SKIP = 2,   ///< nothing passes
};

/// One call of a stage function.
struct dp_step_call {
  uint32_t function; ///< dp_step_function
  uint32_t stage;
  uint32_t microbatch;
  uint32_t component;
  uint32_t flags;    ///< 1: adds to the gradients, 2: first stage, 4: last stage
  uint32_t slots[7]; ///< by dp_tensor_kind of stage.h; DP_STEP_NO_SLOT where there is none
};

/// A rank's end of a channel.
struct dp_step_link {
  ncclComm *communicator;
  int peer; ///< within the communicator
};

/// What the runtime gives a step. It stays the same from step to step.
struct dp_step {
  uint32_t struct_size;
  uint32_t command; ///< written by the step: the command of the program file that it is at
  dp_step_run *run;
  CUstream_st *const *streams; ///< by number, as are the others
  CUevent_st *const *events;
  uint8_t *recorded; ///< by event: set to 1 by the step when it has recorded it
  void *const *slots;
  const dp_step_link *links;       ///< by stream; of those of channels
  const size_t *input_bytes;       ///< by stage: what an activation for it has
  const size_t *grad_output_bytes; ///< by stage: what a gradient for it has

  /// The driver's own functions, and NCCL's. What they return goes to `check_driver` and to
  /// `finish_transfer`.
  int (*event_record)(CUevent_st *event, CUstream_st *stream);
  int (*stream_wait_event)(CUstream_st *stream, CUevent_st *event, unsigned flags);
  int (*send)(const void *data, size_t count, int type, int peer, ncclComm *communicator,
              CUstream_st *stream);
  int (*recv)(void *data, size_t count, int type, int peer, ncclComm *communicator,
              CUstream_st *stream);

  /// Takes the message of a call of the driver that failed, by its name and what it returned.
  void (*fail)(dp_step_run *run, const char *name, int status);
  /// NCCL's communicators do not block: each waits until its last call has been taken, before the
  /// next one and, outside of a group, after it. dp_step_answer.
  int (*begin_transfer)(dp_step_run *run, uint32_t stream, size_t bytes);
  int (*finish_transfer)(dp_step_run *run, uint32_t stream, const char *name, int status);
  int (*start_group)(dp_step_run *run);
  int (*end_group)(dp_step_run *run);

  /// Calls stage functions: one, or the members of a fused pair, which are the commands that
  /// follow `command`. These return 0, or 1 where the runtime has a message.
  int (*launch)(dp_step_run *run, uint32_t stream, const dp_step_call *calls, uint32_t num_calls);
  /// Sums the gradients of a stage over the ranks of the stream's group.
  int (*sum_gradients)(dp_step_run *run, uint32_t stream, uint32_t stage);
  int (*optimizer_step)(dp_step_run *run, uint32_t stream, uint32_t stage);
};

/// The step of one rank.
struct dp_step_rank {
  uint32_t rank;
  uint64_t digest; ///< of what the program file has for this rank (Digest.h)
  /// Issues all commands, without waiting for any. 0, or 1 after a call that failed.
  int (*issue)(dp_step *step);
};

/// What the shared object exports.
struct dp_step_program {
  uint32_t abi_version; ///< DP_STEP_ABI_VERSION
  uint32_t struct_size; ///< sizeof(dp_step_program)
  const char *schedule;
  uint32_t num_ranks; ///< of the program
  uint32_t num_steps; ///< of those, ranks that have a step here
  const dp_step_rank *steps;
};

typedef const dp_step_program *(*dp_get_step_fn)(void);
#define DP_GET_STEP_SYMBOL "dp_get_step"

} // extern "C"

//===--- The calls ----------------------------------------------------------===//

/// One command of the program: its number there (`launcher --dump` prints them) and the call that
/// it is. Returns from the function where the call fails; the runtime has the message by then and
/// adds the number, what the program file says of it and its line in the .pipe file.
#define DP_AT(number, ...)                                                                         \
  do {                                                                                             \
    this->step->command = (number);                                                                \
    if ((__VA_ARGS__) != 0)                                                                        \
      return 1;                                                                                    \
  } while (false)

/// Written once, not at each of some thousand calls: compilers take long over that.
#define DP_STEP_CALL __attribute__((noinline))

namespace dualpipe::emitted {

/// Never defined, so no constant expression can call it: the compiler names the line that does.
void thisClassHasFewerSlots();

struct Slot {
  uint32_t number = DP_STEP_NO_SLOT;
};

/// The slots of a class, which stand next to each other.
struct Slots {
  uint32_t first, count;
  consteval Slot operator[](uint32_t index) const {
    if (index >= count)
      thisClassHasFewerSlots();
    return {first + index};
  }
};

struct Event {
  uint32_t number;
};

struct Stream {
  uint32_t number;
};
/// The stream of a rank's end of a channel.
struct Link : Stream {};
/// The stream on which a group of ranks sums gradients.
struct Sum : Stream {};

struct Stage {
  uint32_t number;
};
struct MicroBatch {
  uint32_t number;
};

enum Flags : uint32_t {
  accumulate = 1, ///< adds to the gradients of the stage; without it, overwrites them
  first = 2,      ///< the first stage of its pipeline
  last = 4,       ///< the last one
};
constexpr Flags operator|(Flags a, Flags b) { return Flags(uint32_t(a) | uint32_t(b)); }

/// What a stage function works with, beside its stage and micro-batch.
struct With {
  uint32_t component = 0;
  Slot input = {}, output = {}, grad_output = {}, grad_input = {}, saved = {}, weight_context = {},
       labels = {};
  Flags flags = Flags(0);
};

/// What the step of a rank is derived from. Functions return 0, or 1 after a failure of which the
/// runtime has the message.
class Step {
public:
  explicit Step(dp_step &given) : step(&given) {}

protected:
  /// Here, so that nccl.h may be included, too.
  enum ncclDataType_t { ncclInt8 = 0 };

  static constexpr Stage stage(uint32_t number) { return {number}; }
  static constexpr MicroBatch mb(uint32_t number) { return {number}; }

  /// The bytes of an activation for a stage, and of a gradient for it.
  size_t input_bytes(uint32_t stage) const { return step->input_bytes[stage]; }
  size_t grad_output_bytes(uint32_t stage) const { return step->grad_output_bytes[stage]; }
  /// The other end of a channel, and the communicator that both share.
  int peer(Link link) const { return step->links[link.number].peer; }
  ncclComm *comm(Link link) const { return step->links[link.number].communicator; }

  DP_STEP_CALL int cuEventRecord(Event event, Stream stream) {
    const int status = step->event_record(step->events[event.number], step->streams[stream.number]);
    if (status != 0)
      return fail("cuEventRecord", status);
    step->recorded[event.number] = 1;
    return 0;
  }
  DP_STEP_CALL int cuStreamWaitEvent(Stream stream, Event event, unsigned flags) {
    const int status =
        step->stream_wait_event(step->streams[stream.number], step->events[event.number], flags);
    return status == 0 ? 0 : fail("cuStreamWaitEvent", status);
  }

  DP_STEP_CALL int ncclSend(Slot slot, size_t count, ncclDataType_t type, int peer, ncclComm *comm,
                            Link link) {
    const int answer = step->begin_transfer(step->run, link.number, count);
    if (answer != DP_STEP_GO)
      return answer == DP_STEP_SKIP ? 0 : 1;
    const int status =
        step->send(step->slots[slot.number], count, type, peer, comm, step->streams[link.number]);
    return step->finish_transfer(step->run, link.number, "ncclSend", status);
  }
  DP_STEP_CALL int ncclRecv(Slot slot, size_t count, ncclDataType_t type, int peer, ncclComm *comm,
                            Link link) {
    const int answer = step->begin_transfer(step->run, link.number, count);
    if (answer != DP_STEP_GO)
      return answer == DP_STEP_SKIP ? 0 : 1;
    const int status =
        step->recv(step->slots[slot.number], count, type, peer, comm, step->streams[link.number]);
    return step->finish_transfer(step->run, link.number, "ncclRecv", status);
  }

  /// Transfers that begin together. Ends on every path: a group that is left open takes in all
  /// later calls of the thread.
  class Group {
  public:
    explicit Group(Step &rank) : step(rank.step) {}
    Group(const Group &) = delete;
    Group &operator=(const Group &) = delete;
    ~Group() {
      if (open)
        (void)step->end_group(step->run); // a failure is being reported already
    }
    int ncclGroupStart() {
      open = true;
      return step->start_group(step->run);
    }
    int ncclGroupEnd() {
      open = false;
      return step->end_group(step->run);
    }

  private:
    dp_step *step;
    bool open = false;
  };

  /// A stage function on a stream; without one, as a member of a fused pair.
#define DP_STAGE_FUNCTION(name, function)                                                          \
  DP_STEP_CALL static dp_step_call name(Stage stage, MicroBatch microbatch, const With &with) {    \
    return describe(function, stage, microbatch, with);                                            \
  }                                                                                                \
  DP_STEP_CALL int name(Stage stage, MicroBatch microbatch, Stream stream, const With &with) {     \
    const dp_step_call call = describe(function, stage, microbatch, with);                         \
    return step->launch(step->run, stream.number, &call, 1);                                       \
  }
  DP_STAGE_FUNCTION(load_input, DP_STEP_LOAD_INPUT)
  DP_STAGE_FUNCTION(load_labels, DP_STEP_LOAD_LABELS)
  DP_STAGE_FUNCTION(forward, DP_STEP_FORWARD)
  DP_STAGE_FUNCTION(backward, DP_STEP_BACKWARD)
  DP_STAGE_FUNCTION(backward_input, DP_STEP_BACKWARD_INPUT)
  DP_STAGE_FUNCTION(backward_weight, DP_STEP_BACKWARD_WEIGHT)
#undef DP_STAGE_FUNCTION

  /// A pair: the model's fused function where it has one, else one after the other.
  template <size_t count> int fused(Stream stream, const dp_step_call (&calls)[count]) {
    return step->launch(step->run, stream.number, calls, count);
  }
  DP_STEP_CALL int sum_gradients(Stage stage, Sum sum) {
    return step->sum_gradients(step->run, sum.number, stage.number);
  }
  DP_STEP_CALL int optimizer_step(Stage stage, Stream stream) {
    return step->optimizer_step(step->run, stream.number, stage.number);
  }

  dp_step *step;

private:
  static constexpr dp_step_call describe(dp_step_function function, Stage stage,
                                         MicroBatch microbatch, const With &with) {
    return {uint32_t(function),
            stage.number,
            microbatch.number,
            with.component,
            with.flags,
            {with.input.number, with.output.number, with.grad_output.number, with.grad_input.number,
             with.saved.number, with.weight_context.number, with.labels.number}};
  }
  int fail(const char *name, int status) {
    step->fail(step->run, name, status);
    return 1;
  }
};

} // namespace dualpipe::emitted

#endif // DUALPIPE_EMITTED_H
