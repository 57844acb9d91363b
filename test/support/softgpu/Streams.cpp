//===- Streams.cpp - what runs next, and what it touches ----------------------===//

#include "State.h"

#include <fmt/format.h>

namespace dualpipe::test {

using namespace softgpu;

/// Looks elsewhere after which a thread will not come back to its first stream.
static constexpr uint32_t kForgottenAfter = 1000;

/// Looks after which a thread is taken to wait. A thread may look at one stream twice and then go
/// on: once among all of its streams, and again to see that nothing is left.
static constexpr uint32_t kLooks = 3;

/// Whether every thread that uses a GPU has looked so often since anything was issued or has run.
bool SoftGpu::State::isQuiet() const {
  for (const auto &[id, thread] : threads)
    if (thread->gpu >= 0 && (thread->seenChanges != changes || thread->polls < kLooks))
      return false;
  return true;
}

/// Never where communicators span processes, which have threads of their own.
bool SoftGpu::State::isEveryThreadHere() const {
  for (const auto &[id, clique] : cliques)
    if (clique->spansProcesses())
      return false;
  uint32_t here = numEnded;
  for (const auto &[id, thread] : threads)
    here += thread->gpu >= 0 ? 1 : 0;
  return here >= options.hostThreads;
}

/// A thread looks whether something is done: the chance for the GPUs to go on.
void SoftGpu::State::pollOnce(HostThread &thread, const void *subject) {
  if (thread.groupDepth != 0)
    report("a host thread waits inside a group (ncclGroupStart without its ncclGroupEnd): nothing "
           "of the group can begin");
  if (thread.seenChanges != changes || !thread.anchor) {
    thread.seenChanges = changes;
    thread.polls = thread.otherPolls = 0;
    thread.anchor = subject;
  }
  thread.awaited = subject;
  if (subject == thread.anchor)
    ++thread.polls;
  else if (++thread.otherPolls == kForgottenAfter) { // nobody looks there any more
    thread.anchor = subject;
    thread.otherPolls = 0;
  }
  const bool quiet = isQuiet();
  if (quiet || !lazy)
    runSome(quiet);
}

/// What a thread has waited for is done: it is about to issue more.
void SoftGpu::State::goOn(HostThread &thread, const void *subject) {
  if (thread.awaited != subject)
    return;
  thread.awaited = thread.anchor = nullptr;
  thread.polls = 0;
}

/// Priorities are drawn anew before one pick in `picksPerDraw`: 1 is an even choice among all, a
/// large number lets some streams run far ahead of others.
void SoftGpu::State::runSome(bool quiet) {
  bool anyRun = false;
  for (size_t picks = 1 + dice.below(quiet ? 256 : 8); picks != 0; --picks) {
    if (dice.below(picksPerDraw) == 0)
      for (const std::unique_ptr<SoftStream> &stream : streams)
        stream->priority = dice.draw();
    SoftStream *chosen = nullptr;
    bool pending = false;
    for (const std::unique_ptr<SoftStream> &stream : streams) {
      if (!stream || stream->ops.empty())
        continue;
      pending = true;
      if ((!chosen || stream->priority > chosen->priority) && canRun(*stream))
        chosen = stream.get();
    }
    if (!chosen) {
      if (pending && quiet && !stuck && !anyRun && isEveryThreadHere())
        reportStuck();
      return;
    }
    runFront(*chosen);
    anyRun = true;
    ++changes; // somebody may wait for this: all must look again
  }
}

bool SoftGpu::State::canRun(SoftStream &stream) {
  Op &op = stream.ops.front();
  if (op.hangs)
    return false;
  if (op.kind == OpKind::Wait)
    return !op.record || op.record->done;
  if (op.kind == OpKind::Graph)
    return canRunGraph(*op.graph);
  if (op.kind != OpKind::Nccl)
    return true;
  NcclTask &task = *op.nccl;
  if (task.cancelled || task.isDone())
    return true;
  if (!task.started)
    return task.comm->order.front() == op.nccl;
  for (const Part &part : task.parts)
    if (canAdvance(task, part))
      return true;
  return false;
}

void SoftGpu::State::begin(SoftStream &stream, const Op &op) {
  stream.clock.join(op.host);
  stream.clock.tick(stream.number);
  ++numRun;
}

void SoftGpu::State::runFront(SoftStream &stream) {
  Op &op = stream.ops.front();
  switch (op.kind) {
  case OpKind::Work: {
    begin(stream, op);
    bool inRange = true;
    for (const SoftUse &use : op.uses) {
      inRange &= checkRange(use, *op.name);
      touch(use, stream, stream.clock, op.name);
    }
    if (inRange)
      op.run();
    break;
  }
  case OpKind::Record:
    begin(stream, op);
    op.record->done = true;
    op.record->clock = stream.clock;
    op.record->time = std::chrono::steady_clock::now();
    break;
  case OpKind::Wait:
    begin(stream, op);
    if (op.record)
      stream.clock.join(op.record->clock);
    break;
  case OpKind::Graph:
    if (!runGraph(stream, op))
      return;
    break;
  case OpKind::Nccl: {
    NcclTask &task = *op.nccl;
    if (!task.started && !task.cancelled) {
      begin(stream, op);
      task.started = true;
      task.clock = stream.clock;
      announceStart(task);
      return;
    }
    std::vector<Part *> ready;
    if (!task.cancelled)
      for (Part &part : task.parts)
        if (canAdvance(task, part))
          ready.push_back(&part);
    if (!ready.empty())
      advance(task, *ready[dice.below(ready.size())]);
    if (!task.isDone() && !task.cancelled)
      return;
    stream.clock.join(task.clock);
    if (!task.cancelled) // else its communicator is gone
      std::erase(task.comm->order, op.nccl);
    break;
  }
  }
  stream.ops.pop_front();
}

void SoftGpu::State::issue(HostThread &thread, SoftStream &stream, Op op) {
  if (stream.capture)
    return take(stream, std::move(op));
  op.host = thread.clock;
  stream.ops.push_back(std::move(op));
  if (!lazy)
    for (size_t picks = dice.below(3); picks != 0; --picks)
      runSome(false);
}

std::string SoftGpu::State::describeFront(const SoftStream &stream) const {
  const Op &op = stream.ops.front();
  if (op.kind == OpKind::Wait)
    return fmt::format("{} waits for an event", nameStream(stream.number));
  return fmt::format("{} is at {}", nameStream(stream.number), *op.name);
}

/// Every thread waits and nothing can run: it never will.
void SoftGpu::State::reportStuck() {
  stuck = true;
  std::string text = "a wait can never end:";
  bool first = true;
  for (const std::unique_ptr<SoftStream> &stream : streams)
    if (stream && !stream->ops.empty() && stream->ops.front().kind != OpKind::Wait &&
        stream->ops.front().kind != OpKind::Graph) {
      text += fmt::format("{} {}", first ? "" : ";", describeFront(*stream));
      first = false;
    }
  report(std::move(text));
}

//===--- Memory -------------------------------------------------------------===//

/// Whether all of it is in one allocation that is in use.
bool SoftGpu::State::checkRange(const SoftUse &use, const std::string &name) {
  const auto begin = reinterpret_cast<uint64_t>(use.data);
  auto after = allocations.upper_bound(begin);
  if (after == allocations.begin()) {
    report(fmt::format("{} {} memory that no allocation holds", name,
                       use.writes ? "writes" : "reads"));
    return false;
  }
  const auto &[start, allocation] = *std::prev(after);
  if (begin >= start + allocation.bytes) {
    report(fmt::format("{} {} memory that no allocation holds", name,
                       use.writes ? "writes" : "reads"));
    return false;
  }
  if (allocation.freed) {
    report(fmt::format("{} {} memory after it was freed", name, use.writes ? "writes" : "reads"));
    return false;
  }
  if (begin + use.bytes > start + allocation.bytes) {
    report(fmt::format("{} {} {} bytes at byte {} of an allocation of {} bytes", name,
                       use.writes ? "writes" : "reads", use.bytes, begin - start,
                       allocation.bytes));
    return false;
  }
  return true;
}

void SoftGpu::State::touch(const SoftUse &use, const SoftStream &stream, const Clock &clock,
                           const std::shared_ptr<const std::string> &name) {
  if (use.bytes == 0)
    return;
  const auto begin = reinterpret_cast<uint64_t>(use.data);
  const std::optional<Shadow::Conflict> conflict = shadow.touch(
      begin, begin + use.bytes, use.writes, {stream.number, clock.get(stream.number), name}, clock);
  if (conflict)
    report(fmt::format("nothing orders {} on {}, which {} memory, and {} on {}, which "
                       "{} the same",
                       *conflict->before.name, nameStream(conflict->before.stream),
                       conflict->beforeWrites ? "writes" : "reads", *name,
                       nameStream(stream.number), use.writes ? "writes" : "reads"));
}

} // namespace dualpipe::test
