//===- GraphCalls.cpp - the driver's captures and graphs made of software -------===//

#include "DriverCall.h"

namespace dualpipe::test::softgpu {

using Code = DriverStatus;

static bool isKnown(const SoftGpu::State &state, const SoftStream *stream) {
  for (const std::unique_ptr<SoftStream> &known : state.streams)
    if (known.get() == stream)
      return stream != nullptr;
  return false;
}

Code findStream(Call &call, Stream handle, SoftStream *&stream) {
  if (!handle) {
    if (call->invalidateLegacy(call.thread.gpu))
      return Code::StreamCaptureImplicit;
    SoftStream *&legacy = call->legacyStreams[call.thread.gpu];
    if (!legacy)
      legacy = &call->addStream(call.thread.gpu);
    stream = legacy;
    return Code::Success;
  }
  stream = get(handle);
  if (!isKnown(call.state, stream))
    return Code::InvalidHandle;
  return stream->capture && stream->capture->invalidated ? Code::StreamCaptureInvalidated
                                                         : Code::Success;
}

Code streamBeginCapture(Stream handle, CaptureMode mode) {
  BEGIN_CALL_IN_CONTEXT(cuStreamBeginCapture, Change);
  if (!handle)
    return Code::StreamCaptureUnsupported; // the legacy stream
  SoftStream *stream = get(handle);
  if (!isKnown(call.state, stream))
    return Code::InvalidHandle;
  if (stream->capture)
    return Code::IllegalState;
  auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = stream;
  capture->graph->gpu = stream->gpu;
  call->join(*stream, capture);
  call->captures.insert(std::move(capture));
  return Code::Success;
}

Code streamIsCapturing(Stream handle, CaptureStatus *status) {
  BEGIN_CALL_IN_CONTEXT(cuStreamIsCapturing, Change);
  *status = CaptureStatus::None;
  if (!handle)
    return call->invalidateLegacy(call.thread.gpu) ? Code::StreamCaptureImplicit : Code::Success;
  const SoftStream *stream = get(handle);
  if (!isKnown(call.state, stream))
    return Code::InvalidHandle;
  if (stream->capture)
    *status = stream->capture->invalidated ? CaptureStatus::Invalidated : CaptureStatus::Active;
  return Code::Success;
}

/// Ends the capture whatever it returns, but where the caller has no right to it.
Code streamEndCapture(Stream handle, Graph *graph) {
  BEGIN_CALL_IN_CONTEXT(cuStreamEndCapture, Change);
  *graph = nullptr;
  SoftStream *stream = get(handle);
  if (!isKnown(call.state, stream))
    return Code::InvalidHandle;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture)
    return Code::IllegalState;
  if (capture->origin != stream)
    return Code::StreamCaptureUnmatched;
  if (capture->mode != CaptureMode::Relaxed && capture->thread != std::this_thread::get_id())
    return Code::StreamCaptureWrongThread;
  call->endCapture(*capture);
  if (capture->invalidated)
    return Code::StreamCaptureInvalidated;
  if (!call->isJoined(*capture))
    return Code::StreamCaptureUnjoined;
  *graph = reinterpret_cast<Graph>(capture->graph.get());
  call->graphs[*graph] = capture->graph;
  return Code::Success;
}

Code graphInstantiate(GraphExec *executable, Graph graph, unsigned long long flags) {
  BEGIN_UNSAFE_CALL(cuGraphInstantiateWithFlags, Change);
  *executable = nullptr;
  const auto found = call->graphs.find(graph);
  if (found == call->graphs.end() || (flags & ~kGraphUseNodePriority) != 0)
    return Code::InvalidValue;
  auto made = std::make_shared<SoftGraphExec>();
  made->graph = found->second;
  for (const uint32_t stream : made->graph->streams) {
    SoftStream &lane = call->addStream(made->graph->gpu);
    call->lanes[lane.number] = stream;
    made->lanes.push_back(&lane);
  }
  *executable = reinterpret_cast<GraphExec>(made.get());
  call->executables[*executable] = std::move(made);
  return Code::Success;
}

Code graphLaunch(GraphExec executable, Stream handle) {
  BEGIN_CALL_IN_CONTEXT(cuGraphLaunch, Change);
  const auto found = call->executables.find(executable);
  if (found == call->executables.end())
    return Code::InvalidValue;
  SoftStream *stream = nullptr;
  if (const Code status = findStream(call, handle, stream); status != Code::Success)
    return status;
  if (stream->capture)
    return Code::NotSupported; // graphs in graphs are not made of software
  for (const CapturedOp &captured : found->second->graph->ops)
    if (captured.op.nccl && !call->comms.count(captured.op.nccl->comm)) {
      call->report("a graph is launched after one of its communicators has gone");
      return Code::InvalidValue;
    }
  Op op;
  op.kind = OpKind::Graph;
  op.name = makeName("a graph");
  op.graph = call->launch(found->second, call.thread);
  call->issue(call.thread, *stream, std::move(op));
  return Code::Success;
}

/// One that is at work goes when it is done.
Code graphExecDestroy(GraphExec executable) {
  BEGIN_CALL_IN_CONTEXT(cuGraphExecDestroy, Change);
  const auto found = call->executables.find(executable);
  if (found == call->executables.end())
    return Code::InvalidValue;
  found->second->last = nullptr; // a run that has not ended keeps it
  call->executables.erase(found);
  return Code::Success;
}

Code graphDestroy(Graph graph) {
  BEGIN_CALL_IN_CONTEXT(cuGraphDestroy, Change);
  return call->graphs.erase(graph) == 1 ? Code::Success : Code::InvalidValue;
}

} // namespace dualpipe::test::softgpu
