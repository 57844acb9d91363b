//===- Driver.cpp - the CUDA driver made of software ---------------------------===//

#include "DriverCall.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

namespace dualpipe::test::softgpu {
namespace {

using Code = DriverStatus;

//===--- Start, devices, contexts -------------------------------------------===//

Code init(unsigned) {
  BEGIN_CALL(cuInit, Change);
  return call->options.numGpus == 0 ? Code::NoDevice : Code::Success;
}

Code driverGetVersion(int *version) {
  BEGIN_CALL(cuDriverGetVersion, Change);
  *version = call->options.driverVersion;
  return Code::Success;
}

Code getErrorString(Code status, const char **text) {
  *text = getName(status) ? "as the software device says" : nullptr;
  return *text ? Code::Success : Code::InvalidValue;
}

Code deviceGetCount(int *count) {
  BEGIN_CALL(cuDeviceGetCount, Change);
  *count = call->options.numGpus;
  return Code::Success;
}

Code deviceGet(DeviceId *device, int ordinal) {
  BEGIN_CALL(cuDeviceGet, Change);
  if (ordinal < 0 || ordinal >= call->options.numGpus)
    return Code::InvalidDevice;
  *device = ordinal;
  return Code::Success;
}

Code deviceGetName(char *name, int size, DeviceId) {
  BEGIN_CALL(cuDeviceGetName, Change);
  std::snprintf(name, size_t(size), "GPU made of software");
  return Code::Success;
}

Code deviceTotalMem(size_t *bytes, DeviceId) {
  BEGIN_CALL(cuDeviceTotalMem, Change);
  *bytes = call->options.memoryBytes;
  return Code::Success;
}

Code deviceGetAttribute(int *value, DeviceAttribute attribute, DeviceId) {
  BEGIN_CALL(cuDeviceGetAttribute, Change);
  switch (attribute) {
  case DeviceAttribute::MultiprocessorCount:
    *value = 1;
    return Code::Success;
  case DeviceAttribute::ComputeCapabilityMajor:
    *value = 9;
    return Code::Success;
  case DeviceAttribute::ComputeCapabilityMinor:
    *value = 0;
    return Code::Success;
  }
  return Code::InvalidValue;
}

Code devicePrimaryCtxRetain(Context *context, DeviceId device) {
  BEGIN_CALL(cuDevicePrimaryCtxRetain, Change);
  *context = reinterpret_cast<Context>(intptr_t(device) + 1);
  return Code::Success;
}

Code devicePrimaryCtxRelease(DeviceId) {
  BEGIN_CALL(cuDevicePrimaryCtxRelease, Change);
  return Code::Success;
}

Code ctxGetCurrent(Context *context) {
  BEGIN_CALL(cuCtxGetCurrent, Change);
  *context = reinterpret_cast<Context>(intptr_t(call.thread.gpu) + 1);
  return Code::Success;
}

Code ctxSetCurrent(Context context) {
  BEGIN_CALL(cuCtxSetCurrent, Change);
  call.thread.gpu = int(reinterpret_cast<intptr_t>(context)) - 1;
  call.thread.hasUsedGpu |= context != nullptr;
  return Code::Success;
}

Code ctxGetStreamPriorityRange(int *least, int *greatest) {
  BEGIN_CALL_IN_CONTEXT(cuCtxGetStreamPriorityRange, Change);
  *least = 0;
  *greatest = -5;
  return Code::Success;
}

//===--- Memory -------------------------------------------------------------===//

Code memGetInfo(size_t *free, size_t *total) {
  BEGIN_CALL_IN_CONTEXT(cuMemGetInfo, Change);
  *total = call->options.memoryBytes;
  *free = *total - call->usedBytes[size_t(call.thread.gpu)];
  return Code::Success;
}

Code memAlloc(DevicePointer *pointer, size_t bytes) {
  BEGIN_UNSAFE_CALL(cuMemAlloc, Change);
  if (bytes == 0)
    return Code::InvalidValue;
  size_t &used = call->usedBytes[size_t(call.thread.gpu)];
  const size_t rounded = (bytes + 255) / 256 * 256;
  void *memory =
      bytes <= call->options.memoryBytes - used ? std::aligned_alloc(256, rounded) : nullptr;
  if (!memory)
    return Code::OutOfMemory;
  used += bytes;
  std::memset(memory, 0xff, bytes); // not a number, in every type
  *pointer = reinterpret_cast<DevicePointer>(memory);
  const bool isShort = bytes == call->options.missingOf;
  call->allocations[*pointer] = {bytes - (isShort ? call->options.missingBytes : 0),
                                 call.thread.gpu};
  return Code::Success;
}

/// Freed memory stays, so that nobody gets it a second time.
Code memFree(DevicePointer pointer) {
  BEGIN_UNSAFE_CALL(cuMemFree, Change);
  const auto found = call->allocations.find(pointer);
  if (found == call->allocations.end() || found->second.freed || found->second.onHost) {
    call->report("cuMemFree of memory that is not allocated");
    return Code::InvalidValue;
  }
  found->second.freed = true;
  call->usedBytes[size_t(found->second.gpu)] -= found->second.bytes;
  call->shadow.forget(pointer, pointer + found->second.bytes);
  std::memset(reinterpret_cast<void *>(pointer), 0xfe, found->second.bytes);
  return Code::Success;
}

Code memHostAlloc(void **pointer, size_t bytes, unsigned) {
  BEGIN_UNSAFE_CALL(cuMemHostAlloc, Change);
  *pointer = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*pointer)
    return Code::OutOfMemory;
  Allocation &allocation = call->allocations[reinterpret_cast<uint64_t>(*pointer)];
  allocation = {bytes, call.thread.gpu};
  allocation.onHost = true;
  return Code::Success;
}

Code memFreeHost(void *pointer) {
  BEGIN_UNSAFE_CALL(cuMemFreeHost, Change);
  const auto found = call->allocations.find(reinterpret_cast<uint64_t>(pointer));
  if (found == call->allocations.end() || found->second.freed || !found->second.onHost)
    return Code::InvalidValue;
  found->second.freed = true;
  return Code::Success;
}

/// An operation of one stream that is done at once when it runs.
Code issueWork(Call &call, Stream handle, std::string name, std::vector<SoftUse> uses,
               std::function<void()> run) {
  SoftStream *stream = nullptr;
  if (const Code status = findStream(call, handle, stream); status != Code::Success)
    return status;
  Op op;
  op.name = makeName(std::move(name));
  op.run = std::move(run);
  op.uses = std::move(uses);
  call->issue(call.thread, *stream, std::move(op));
  return Code::Success;
}

Code memcpyHtoDAsync(DevicePointer to, const void *from, size_t bytes, Stream stream) {
  BEGIN_CALL_IN_CONTEXT(cuMemcpyHtoDAsync, Change);
  auto *target = reinterpret_cast<void *>(to);
  return issueWork(call, stream, "a copy to the GPU", {{target, bytes, true}},
                   [=] { std::memcpy(target, from, bytes); });
}

Code memcpyDtoHAsync(void *to, DevicePointer from, size_t bytes, Stream stream) {
  BEGIN_CALL_IN_CONTEXT(cuMemcpyDtoHAsync, Change);
  const auto *source = reinterpret_cast<const void *>(from);
  return issueWork(call, stream, "a copy from the GPU", {{source, bytes, false}},
                   [=] { std::memcpy(to, source, bytes); });
}

Code memcpyDtoDAsync(DevicePointer to, DevicePointer from, size_t bytes, Stream stream) {
  BEGIN_CALL_IN_CONTEXT(cuMemcpyDtoDAsync, Change);
  auto *target = reinterpret_cast<void *>(to);
  const auto *source = reinterpret_cast<const void *>(from);
  return issueWork(call, stream, fmt::format("a copy of {} bytes", bytes),
                   {{source, bytes, false}, {target, bytes, true}},
                   [=] { std::memmove(target, source, bytes); });
}

Code memsetD8Async(DevicePointer to, unsigned char value, size_t bytes, Stream stream) {
  BEGIN_CALL_IN_CONTEXT(cuMemsetD8Async, Change);
  auto *target = reinterpret_cast<void *>(to);
  return issueWork(call, stream, "a fill", {{target, bytes, true}},
                   [=] { std::memset(target, value, bytes); });
}

//===--- Streams and events -------------------------------------------------===//

Code streamCreateWithPriority(Stream *stream, unsigned flags, int priority) {
  BEGIN_CALL_IN_CONTEXT(cuStreamCreateWithPriority, Change);
  if (priority > 0 || priority < -5 || flags > kStreamNonBlocking)
    return Code::InvalidValue;
  SoftStream &made = call->addStream(call.thread.gpu);
  made.blocking = flags == kStreamDefault;
  *stream = reinterpret_cast<Stream>(&made);
  return Code::Success;
}

/// What is left in a stream still runs: the stream goes when it is empty.
Code streamDestroy(Stream handle) {
  BEGIN_UNSAFE_CALL(cuStreamDestroy, Change);
  for (std::unique_ptr<SoftStream> &stream : call->streams)
    if (stream && stream.get() == get(handle)) {
      if (stream->capture) {
        stream->capture->invalidated = true;
        return Code::StreamCaptureUnsupported;
      }
      if (!stream->ops.empty())
        call->report(fmt::format("stream {} is destroyed while it is at work", stream->number));
      else
        stream = nullptr;
      return Code::Success;
    }
  return Code::InvalidHandle;
}

Code streamQuery(Stream handle) {
  BEGIN_UNSAFE_CALL(cuStreamQuery, Poll);
  SoftStream *stream = nullptr;
  if (const Code status = findStream(call, handle, stream); status != Code::Success)
    return status;
  if (stream->capture) {
    stream->capture->invalidated = true;
    return Code::StreamCaptureUnsupported;
  }
  const bool isAwaited = call.thread.awaited == stream;
  call->pollOnce(call.thread, stream);
  if (stream->ops.empty()) {
    if (isAwaited)
      call->goOn(call.thread, stream);
    call.thread.awaited = nullptr;
    call.thread.clock.join(stream->clock);
    return Code::Success;
  }
  return call->stuck ? Code::LaunchTimeout : Code::NotReady;
}

Code eventCreate(Event *event, unsigned flags) {
  BEGIN_CALL_IN_CONTEXT(cuEventCreate, Change);
  auto *made = new SoftEvent;
  made->timing = (flags & kEventDisableTiming) == 0;
  call->events.insert(made);
  *event = reinterpret_cast<Event>(made);
  return Code::Success;
}

Code eventDestroy(Event event) {
  BEGIN_CALL_IN_CONTEXT(cuEventDestroy, Change);
  if (call->events.erase(get(event)) == 0)
    return Code::InvalidHandle;
  delete get(event);
  return Code::Success;
}

Code eventRecord(Event handle, Stream streamHandle) {
  BEGIN_CALL_IN_CONTEXT(cuEventRecord, Change);
  SoftStream *stream = nullptr;
  if (const Code status = findStream(call, streamHandle, stream); status != Code::Success)
    return status;
  if (!call->events.count(get(handle)))
    return Code::InvalidHandle;
  SoftEvent &event = *get(handle);
  Op op;
  op.kind = OpKind::Record;
  op.name = makeName("the record of an event");
  op.record = std::make_shared<Record>();
  event.last = op.record;
  call->issue(call.thread, *stream, std::move(op));
  return Code::Success;
}

/// What a wait means where the stream or the event belongs to a capture: a stream may join it, and
/// no dependence may cross its boundary.
Code crossCapture(SoftGpu::State &state, SoftStream &stream, const Record *record) {
  const std::shared_ptr<Capture> from = record ? record->capture : nullptr;
  const bool isActive = state.captures.count(from) != 0;
  if (!record || from == stream.capture)
    return Code::Success;
  if (!stream.capture) { // a fork
    if (!isActive)
      return Code::CapturedEvent;
    if (from->invalidated)
      return Code::StreamCaptureInvalidated;
    state.join(stream, from);
    return Code::Success;
  }
  stream.capture->invalidated = true;
  if (!isActive)
    return Code::StreamCaptureIsolation;
  from->invalidated = true;
  return Code::StreamCaptureMerge;
}

/// An event of a capture can only be waited for in it.
bool isCaptured(SoftGpu::State &state, const Record *record) {
  if (!record || !record->capture)
    return false;
  if (state.captures.count(record->capture))
    record->capture->invalidated = true;
  return true;
}

Code streamWaitEvent(Stream streamHandle, Event handle, unsigned) {
  BEGIN_CALL_IN_CONTEXT(cuStreamWaitEvent, Change);
  SoftStream *stream = nullptr;
  if (const Code status = findStream(call, streamHandle, stream); status != Code::Success)
    return status;
  if (!call->events.count(get(handle)))
    return Code::InvalidHandle;
  if (const Code status = crossCapture(call.state, *stream, get(handle)->last.get());
      status != Code::Success)
    return status;
  Op op;
  op.kind = OpKind::Wait;
  op.name = makeName("a wait");
  op.record = get(handle)->last;
  call->issue(call.thread, *stream, std::move(op));
  return Code::Success;
}

Code eventQuery(Event handle) {
  BEGIN_UNSAFE_CALL(cuEventQuery, Poll);
  if (!call->events.count(get(handle)))
    return Code::InvalidHandle;
  const std::shared_ptr<Record> &record = get(handle)->last;
  if (!record)
    return Code::Success;
  if (isCaptured(call.state, record.get()))
    return Code::CapturedEvent;
  if (!record->done)
    return Code::NotReady;
  call.thread.clock.join(record->clock);
  return Code::Success;
}

Code eventElapsedTime(float *milliseconds, Event start, Event end) {
  BEGIN_CALL_IN_CONTEXT(cuEventElapsedTime, Change);
  if (!call->events.count(get(start)) || !call->events.count(get(end)) || !get(start)->timing ||
      !get(end)->timing || !get(start)->last || !get(end)->last)
    return Code::InvalidHandle;
  if (isCaptured(call.state, get(start)->last.get()) ||
      isCaptured(call.state, get(end)->last.get()))
    return Code::CapturedEvent;
  if (!get(start)->last->done || !get(end)->last->done)
    return Code::NotReady;
  *milliseconds =
      std::chrono::duration<float, std::milli>(get(end)->last->time - get(start)->last->time)
          .count();
  return Code::Success;
}

//===--- Kernels ------------------------------------------------------------===//

Code moduleLoadData(Module *module, const void *image) {
  BEGIN_UNSAFE_CALL(cuModuleLoadData, Change);
  if (!image)
    return Code::InvalidValue;
  *module = reinterpret_cast<Module>(intptr_t(call.thread.gpu) + 1);
  return Code::Success;
}

Code moduleUnload(Module) {
  BEGIN_UNSAFE_CALL(cuModuleUnload, Change);
  return Code::Success;
}

Code moduleGetFunction(Function *function, Module, const char *name) {
  BEGIN_CALL_IN_CONTEXT(cuModuleGetFunction, Change);
  const auto found = call->kernels.find(name);
  if (found == call->kernels.end())
    return Code::NotFound;
  *function = reinterpret_cast<Function>(const_cast<SoftKernel *>(found->second.get()));
  return Code::Success;
}

Code launchKernel(Function function, unsigned gridX, unsigned gridY, unsigned gridZ,
                  unsigned blockX, unsigned blockY, unsigned blockZ, unsigned, Stream handle,
                  void **parameters, void **) {
  BEGIN_CALL_IN_CONTEXT(cuLaunchKernel, Change);
  const int64_t threads = int64_t(gridX) * gridY * gridZ * blockX * blockY * blockZ;
  if (threads == 0 || int64_t(blockX) * blockY * blockZ > 1024)
    return Code::InvalidValue;
  SoftStream *stream = nullptr;
  if (const Code status = findStream(call, handle, stream); status != Code::Success)
    return status;
  const SoftKernel *kernel = get(function);
  const auto *bytes = static_cast<const unsigned char *>(parameters[0]);
  std::vector<unsigned char> argument(bytes, bytes + kernel->argumentBytes);
  Op op;
  op.name = makeName(fmt::format("kernel {}", kernel->name));
  kernel->listUses(argument.data(), op.uses);
  op.run = [kernel, argument = std::move(argument), threads] {
    kernel->run(argument.data(), threads);
  };
  op.hangs = ++call->numKernels == call->options.hangAt;
  call->issue(call.thread, *stream, std::move(op));
  return Code::Success;
}

} // namespace

DriverApi makeDriver(int version) {
  DriverApi driver;
#define DUALPIPE_DRIVER(member, name, since, parameters) driver.member = member;
#include "dualpipe/Runtime/Cuda/Driver.def"
  driver.version = version;
  return driver;
}

} // namespace dualpipe::test::softgpu
