//===- Graphs.cpp - what a capture takes down, and how a graph runs -------------===//
//
// A graph has a lane for each stream that was captured. A launch puts the operations
// of a lane on a stream that nobody else sees, with records and waits of its own:
// streams in random legal orders then are all that a graph leaves open.
//
//===----------------------------------------------------------------------===//

#include "State.h"

#include <fmt/format.h>

namespace dualpipe::test {

using namespace softgpu;

SoftStream &SoftGpu::State::addStream(int gpu) {
  auto made = std::make_unique<SoftStream>();
  made->number = uint32_t(streams.size());
  made->gpu = gpu;
  made->priority = dice.draw();
  return *streams.emplace_back(std::move(made));
}

std::string SoftGpu::State::nameStream(uint32_t number) const {
  const auto lane = lanes.find(number);
  return lane == lanes.end() ? fmt::format("stream {}", number)
                             : fmt::format("stream {} of a graph", lane->second);
}

//===--- Captures -----------------------------------------------------------===//

/// The legacy stream waits for all streams of its GPU that are not non-blocking, also for what a
/// capture has put there. Whether there was such a capture.
bool SoftGpu::State::invalidateLegacy(int gpu) {
  bool found = false;
  for (const std::shared_ptr<Capture> &capture : captures)
    for (const SoftStream *stream : capture->lanes)
      if (stream->blocking && stream->gpu == gpu)
        capture->invalidated = found = true;
  return found;
}

/// Whether a capture forbids the calling thread what a capture cannot see. That capture has failed
/// then.
bool SoftGpu::State::forbidUnsafeCall() {
  bool forbidden = false;
  for (const std::shared_ptr<Capture> &capture : captures)
    if (capture->mode == CaptureMode::Global || (capture->mode == CaptureMode::ThreadLocal &&
                                                 capture->thread == std::this_thread::get_id()))
      capture->invalidated = forbidden = true;
  return forbidden;
}

void SoftGpu::State::join(SoftStream &stream, const std::shared_ptr<Capture> &capture) {
  stream.capture = capture;
  stream.lane = capture->lanes.size();
  capture->lanes.push_back(&stream);
  capture->reached.emplace_back();
  capture->graph->streams.push_back(stream.number);
}

/// Takes an operation down.
void SoftGpu::State::take(SoftStream &stream, Op op) {
  if (op.kind == OpKind::Wait && !op.record)
    return; // for nothing
  Capture &capture = *stream.capture;
  Clock &reached = capture.reached[stream.lane];
  CapturedOp taken{stream.lane, {}};
  if (op.kind == OpKind::Record) {
    taken.record = op.record->number = capture.graph->numRecords++;
    op.record->capture = stream.capture;
    capture.recorded.push_back(reached);
  } else if (op.kind == OpKind::Wait) {
    taken.record = op.record->number;
    reached.join(capture.recorded[taken.record]);
  } else {
    reached.tick(uint32_t(stream.lane));
  }
  op.record = nullptr; // every launch has its own
  taken.op = std::move(op);
  capture.graph->ops.push_back(std::move(taken));
}

void SoftGpu::State::endCapture(Capture &capture) {
  for (SoftStream *stream : capture.lanes)
    stream->capture = nullptr;
  std::erase_if(captures, [&](const auto &active) { return active.get() == &capture; });
}

/// Whether the stream that began comes after all that the others have got.
bool SoftGpu::State::isJoined(const Capture &capture) const {
  for (uint32_t lane = 0; lane != capture.lanes.size(); ++lane)
    if (capture.reached.front().get(lane) < capture.reached[lane].get(lane))
      return false;
  return true;
}

//===--- Graphs -------------------------------------------------------------===//

/// What NCCL does gets its place among the operations of its communicator now.
std::shared_ptr<GraphRun> SoftGpu::State::launch(const std::shared_ptr<SoftGraphExec> &exec,
                                                 const HostThread &thread) {
  auto run = std::make_shared<GraphRun>();
  run->exec = exec;
  run->before = std::exchange(exec->last, run);
  std::vector<std::shared_ptr<Record>> records(exec->graph->numRecords);
  for (std::shared_ptr<Record> &record : records)
    record = std::make_shared<Record>();
  for (const CapturedOp &captured : exec->graph->ops) {
    SoftStream *lane = exec->lanes[captured.lane];
    Op op = captured.op;
    if (op.kind == OpKind::Record || op.kind == OpKind::Wait)
      op.record = records[captured.record];
    if (op.kind == OpKind::Nccl) {
      auto task = std::make_shared<NcclTask>(*captured.op.nccl);
      task->stream = lane;
      for (Part &part : task->parts)
        part.captured = true;
      op = enqueue(task);
    }
    op.host = thread.clock;
    run->ops.emplace_back(lane, std::move(op));
  }
  return run;
}

bool SoftGpu::State::canRunGraph(const GraphRun &run) const {
  if (!run.started)
    return !run.before || run.before->done;
  for (const SoftStream *lane : run.exec->lanes)
    if (!lane->ops.empty())
      return false;
  return true;
}

/// Begins a launch at the front of a stream, or ends it: then it is true.
bool SoftGpu::State::runGraph(SoftStream &stream, const Op &op) {
  GraphRun &run = *op.graph;
  if (run.started) {
    for (const SoftStream *lane : run.exec->lanes)
      stream.clock.join(lane->clock);
    run.clock = stream.clock;
    run.done = true;
    run.exec = nullptr; // which keeps its last run
    return true;
  }
  begin(stream, op);
  run.started = true;
  if (run.before)
    stream.clock.join(run.before->clock);
  run.before = nullptr;
  for (SoftStream *lane : run.exec->lanes)
    lane->clock.join(stream.clock);
  for (auto &[lane, captured] : run.ops)
    lane->ops.push_back(std::move(captured));
  run.ops.clear();
  return false;
}

bool SoftGpu::State::isInGraph(const SoftComm &comm) const {
  const auto holds = [&](const SoftGraph &graph) {
    for (const CapturedOp &captured : graph.ops)
      if (captured.op.nccl && captured.op.nccl->comm == &comm)
        return true;
    return false;
  };
  for (const auto &[handle, graph] : graphs)
    if (holds(*graph))
      return true;
  for (const auto &[handle, exec] : executables)
    if (holds(*exec->graph))
      return true;
  for (const std::shared_ptr<Capture> &capture : captures)
    if (holds(*capture->graph))
      return true;
  return false;
}

} // namespace dualpipe::test
