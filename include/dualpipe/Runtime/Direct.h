//===- Direct.h - devices and transports for code that calls CUDA itself ----===//
//
// An emitted step (emitted.h) calls the driver and NCCL without a device or a
// transport in between. What both would have known of such a call is here.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_DIRECT_H
#define DUALPIPE_RUNTIME_DIRECT_H

#include "dualpipe/Support/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>

struct CUstream_st;
struct CUevent_st;
struct ncclComm;

namespace dualpipe::runtime {

/// Streams and events of a device, by their numbers in the program, and the driver's functions.
class DirectEvents {
public:
  using Record = int (*)(CUevent_st *event, CUstream_st *stream);
  using Wait = int (*)(CUstream_st *stream, CUevent_st *event, unsigned flags);

  virtual Record getRecord() const = 0;
  virtual Wait getWait() const = 0;
  virtual std::span<CUstream_st *const> getStreams() const = 0;
  virtual std::span<CUevent_st *const> getEvents() const = 0;
  /// By event: 1 where it has been recorded in this step, for the watchdog.
  virtual uint8_t *getRecorded() = 0;
  /// What a call that failed means: `name` is the driver's.
  virtual Status describe(const char *name, int status) const = 0;

protected:
  ~DirectEvents() = default;
};

/// Channels of a transport, and NCCL's functions.
class DirectChannels {
public:
  using Send = int (*)(const void *data, size_t count, int type, int peer, ncclComm *communicator,
                       CUstream_st *stream);
  using Recv = int (*)(void *data, size_t count, int type, int peer, ncclComm *communicator,
                       CUstream_st *stream);
  struct End {
    ncclComm *communicator;
    int peer;    ///< within the communicator
    void *owner; ///< for the two below
  };

  virtual Send getSend() const = 0;
  virtual Recv getRecv() const = 0;
  virtual End getEnd(uint32_t channel) = 0;
  /// Around each call: waits until NCCL has taken the one before, and what it returned.
  virtual Status begin(void *owner) = 0;
  virtual Status finish(void *owner, const char *name, int status) = 0;

protected:
  ~DirectChannels() = default;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_DIRECT_H
