//===- DriverCall.h - how functions of the driver begin ------------------------===//

#ifndef DUALPIPE_TEST_SUPPORT_SOFTGPU_DRIVERCALL_H
#define DUALPIPE_TEST_SUPPORT_SOFTGPU_DRIVERCALL_H

#include "State.h"

namespace dualpipe::test::softgpu {

/// Returns a planted fault; all functions begin so.
#define BEGIN_CALL(name, kind)                                                                     \
  Call call(#name, Call::kind);                                                                    \
  if (call.fault != 0)                                                                             \
  return DriverStatus(call.fault)

/// What needs a context to be current.
#define BEGIN_CALL_IN_CONTEXT(name, kind)                                                          \
  BEGIN_CALL(name, kind);                                                                          \
  if (call.thread.gpu < 0)                                                                         \
  return DriverStatus::InvalidContext

/// What is not put on a stream, so that a capture would not see it: it must not be called during
/// one (cuThreadExchangeStreamCaptureMode, "potentially unsafe API calls").
#define BEGIN_UNSAFE_CALL(name, kind)                                                              \
  BEGIN_CALL_IN_CONTEXT(name, kind);                                                               \
  if (call->forbidUnsafeCall())                                                                    \
  return DriverStatus::StreamCaptureUnsupported

// Handles are addresses of our own things; contexts are numbers of GPUs, plus one.
inline SoftStream *get(Stream stream) { return reinterpret_cast<SoftStream *>(stream); }
inline SoftEvent *get(Event event) { return reinterpret_cast<SoftEvent *>(event); }
inline const SoftKernel *get(Function function) {
  return reinterpret_cast<const SoftKernel *>(function);
}

DriverStatus streamBeginCapture(Stream stream, CaptureMode mode);
DriverStatus streamIsCapturing(Stream stream, CaptureStatus *status);
DriverStatus streamEndCapture(Stream stream, Graph *graph);
DriverStatus graphInstantiate(GraphExec *executable, Graph graph, unsigned long long flags);
DriverStatus graphLaunch(GraphExec executable, Stream stream);
DriverStatus graphExecDestroy(GraphExec executable);
DriverStatus graphDestroy(Graph graph);

} // namespace dualpipe::test::softgpu

#endif // DUALPIPE_TEST_SUPPORT_SOFTGPU_DRIVERCALL_H
