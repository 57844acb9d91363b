//===- CpuStream.cpp - a communication stream without a thread --------------===//

#include "CpuStream.h"

#include <cassert>
#include <chrono>
#include <thread>

namespace dualpipe::runtime {

void Worklist::push(CpuStream &stream) {
  stream.next = head;
  head = &stream;
}

CpuStream *Worklist::pop() {
  Waiter *first = head;
  if (first)
    head = first->next;
  return static_cast<CpuStream *>(first);
}

void resume(Waiter &waiter, Worklist &work) {
  if (waiter.isThread)
    static_cast<ComputeThread &>(waiter).wake();
  else
    work.push(static_cast<CpuStream &>(waiter));
}

uint32_t Jitter::draw() {
  // A 64-bit xorshift: cheap, and the same on every machine.
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (state >> 62) == 0 ? uint32_t((state >> 20) % (uint64_t(maxMicroseconds) + 1)) : 0;
}

void Jitter::pause() {
  if (const uint32_t microseconds = draw())
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

void CpuStream::issue(const Operation &operation, Worklist &work) {
  assert(issued < queue.size() && "more operations than the stream was made for");
  queue[issued++] = operation;
  if ((published.fetch_add(1, std::memory_order_acq_rel) & kIdle) == 0)
    return;
  published.fetch_and(~kIdle, std::memory_order_relaxed);
  work.push(*this);
}

void CpuStream::advance(Worklist &work) {
  size_t at = position.load(std::memory_order_relaxed);
  while (true) {
    size_t ready = published.load(std::memory_order_acquire);
    if (at == ready) {
      if (published.compare_exchange_strong(ready, ready | kIdle, std::memory_order_acq_rel))
        return;
      continue; // something was issued meanwhile
    }
    const Operation &operation = queue[at];
    position.store(++at, std::memory_order_relaxed);
    jitter.maybePause();
    if (!operation.run(operation, *this, work))
      return;
  }
}

void CpuStream::finish() {
  position.store(0, std::memory_order_relaxed);
  published.store(kIdle, std::memory_order_release);
}

void runWorklist(Worklist &work) {
  while (CpuStream *stream = work.pop())
    stream->advance(work);
}

} // namespace dualpipe::runtime
