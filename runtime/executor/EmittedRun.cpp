//===- EmittedRun.cpp - an emitted step of one rank -------------------------===//

#include "EmittedRun.h"

#include "dualpipe/Program/Verify.h"

#include <fmt/format.h>

#include <algorithm>

namespace dualpipe::runtime {

using program::kNone;
using program::SlotKind;
using program::StreamKind;

// What crosses the interface as numbers.
static_assert(DP_STEP_NO_SLOT == kNone);
static_assert(DP_STEP_LOAD_INPUT == int(program::Function::LoadInput));
static_assert(DP_STEP_LOAD_LABELS == int(program::Function::LoadLabels));
static_assert(DP_STEP_FORWARD == int(program::Function::Forward));
static_assert(DP_STEP_BACKWARD == int(program::Function::Backward));
static_assert(DP_STEP_BACKWARD_INPUT == int(program::Function::BackwardInput));
static_assert(DP_STEP_BACKWARD_WEIGHT == int(program::Function::BackwardWeight));
static_assert(uint32_t(emitted::accumulate) == program::kAccumulate);
static_assert(uint32_t(emitted::first) == program::kFirstStage);
static_assert(uint32_t(emitted::last) == program::kLastStage);
static_assert(std::size(dp_step_call{}.slots) == program::kNumSlotKinds);

//===--- What the step is given ---------------------------------------------===//

EmittedRun::EmittedRun(Executor &executor, const dp_step_rank &rank)
    : executor(executor), parts(executor.parts), rank(rank),
      events(parts.device->getDirectEvents()), channels(parts.transport->getDirectChannels()),
      slots(executor.slots.begin(), executor.slots.end()), pending(parts.rank->commands.size()) {
  const uint32_t numStages = parts.model->getNumStages();
  copies.resize(numStages);
  for (uint32_t stage = 0; stage != numStages; ++stage) {
    copies[stage] = executor.findCopy(stage);
    inputBytes.push_back(parts.model->getBytes(stage, SlotKind::Input));
    gradOutputBytes.push_back(parts.model->getBytes(stage, SlotKind::GradOutput));
  }
  step.struct_size = sizeof step;
  step.run = reinterpret_cast<dp_step_run *>(this);
  step.slots = slots.data();
  step.input_bytes = inputBytes.data();
  step.grad_output_bytes = gradOutputBytes.data();
  fillEvents();
  fillTransfers();
  fillCalls();
}

void EmittedRun::fillEvents() {
  if (events) {
    step.streams = events->getStreams().data();
    step.events = events->getEvents().data();
    step.recorded = events->getRecorded();
    step.event_record = events->getRecord();
    step.stream_wait_event = events->getWait();
    return;
  }
  for (uint32_t i = 0; i != parts.rank->streams.size(); ++i)
    streamHandles.push_back({i});
  for (uint32_t i = 0; i != parts.rank->numEvents; ++i)
    eventHandles.push_back({this, i});
  for (StreamHandle &handle : streamHandles)
    streams.push_back(reinterpret_cast<CUstream_st *>(&handle));
  for (EventHandle &handle : eventHandles)
    eventPointers.push_back(reinterpret_cast<CUevent_st *>(&handle));
  recorded.resize(eventHandles.size());
  step.streams = streams.data();
  step.events = eventPointers.data();
  step.recorded = recorded.data();
  step.event_record = recordThroughDevice;
  step.stream_wait_event = waitThroughDevice;
}

/// By stream: each end of a channel has one of its own (P3).
void EmittedRun::fillTransfers() {
  const std::vector<program::Stream> &all = parts.rank->streams;
  links.resize(all.size());
  owners.resize(all.size());
  for (uint32_t i = 0; i != all.size(); ++i)
    linkHandles.push_back({this, i});
  for (uint32_t i = 0; i != all.size(); ++i) {
    if (all[i].kind != StreamKind::Send && all[i].kind != StreamKind::Recv)
      continue;
    links[i] = {reinterpret_cast<ncclComm *>(&linkHandles[i]), 0};
    if (!channels)
      continue;
    const DirectChannels::End end = channels->getEnd(all[i].target);
    links[i] = {end.communicator, end.peer};
    owners[i] = end.owner;
  }
  step.links = links.data();
  step.send = channels ? channels->getSend() : sendThroughTransport;
  step.recv = channels ? channels->getRecv() : recvThroughTransport;
}

void EmittedRun::fillCalls() {
  step.fail = [](dp_step_run *run, const char *name, int status) {
    if (DirectEvents *events = get(run).events)
      get(run).report(events->describe(name, status));
  };
  step.begin_transfer = [](dp_step_run *run, uint32_t stream, size_t bytes) -> int {
    EmittedRun &own = get(run);
    if (!own.channels)
      return DP_STEP_GO;
    if (bytes == 0)
      return DP_STEP_SKIP;
    return own.report(own.channels->begin(own.owners[stream])) == 0 ? DP_STEP_GO : DP_STEP_FAILED;
  };
  step.finish_transfer = [](dp_step_run *run, uint32_t stream, const char *name, int status) {
    EmittedRun &own = get(run);
    if (!own.channels)
      return status;
    return own.report(own.channels->finish(own.owners[stream], name, status));
  };
  step.start_group = [](dp_step_run *run) {
    return get(run).report(get(run).parts.transport->startGroup());
  };
  step.end_group = [](dp_step_run *run) {
    return get(run).report(get(run).parts.transport->endGroup());
  };
  step.launch = [](dp_step_run *run, uint32_t stream, const dp_step_call *calls,
                   uint32_t numCalls) {
    return get(run).report(get(run).launch(stream, calls, numCalls));
  };
  step.sum_gradients = [](dp_step_run *run, uint32_t stream, uint32_t stage) {
    return get(run).report(get(run).sumGradients(stream, stage));
  };
  step.optimizer_step = [](dp_step_run *run, uint32_t stream, uint32_t stage) {
    return get(run).report(get(run).takeOptimizerStep(stream, stage));
  };
}

//===--- Without a driver, without NCCL -------------------------------------===//

int EmittedRun::recordThroughDevice(CUevent_st *event, CUstream_st *stream) {
  const auto &what = *reinterpret_cast<EventHandle *>(event);
  const auto &where = *reinterpret_cast<StreamHandle *>(stream);
  return what.run->report(
      what.run->parts.device->record(where.number, what.run->step.command, what.number));
}

int EmittedRun::waitThroughDevice(CUstream_st *stream, CUevent_st *event, unsigned) {
  const auto &what = *reinterpret_cast<EventHandle *>(event);
  const auto &where = *reinterpret_cast<StreamHandle *>(stream);
  return what.run->report(
      what.run->parts.device->wait(where.number, what.run->step.command, what.number));
}

int EmittedRun::sendThroughTransport(const void *data, size_t count, int, int,
                                     ncclComm *communicator, CUstream_st *) {
  const auto &link = *reinterpret_cast<LinkHandle *>(communicator);
  const ExecutorParts &parts = link.run->parts;
  const uint32_t channel = parts.rank->streams[link.stream].target;
  return link.run->report(
      parts.transport->send(link.stream, link.run->step.command, channel, data, count));
}

int EmittedRun::recvThroughTransport(void *data, size_t count, int, int, ncclComm *communicator,
                                     CUstream_st *) {
  const auto &link = *reinterpret_cast<LinkHandle *>(communicator);
  const ExecutorParts &parts = link.run->parts;
  const uint32_t channel = parts.rank->streams[link.stream].target;
  return link.run->report(
      parts.transport->recv(link.stream, link.run->step.command, channel, data, count));
}

//===--- What the step calls of the runtime ---------------------------------===//

/// The first failure is the cause of the others.
int EmittedRun::report(Status status) {
  if (status.ok())
    return 0;
  if (!failure)
    failure = std::move(status);
  return 1;
}

/// The text may have been changed since it was written.
Status EmittedRun::checkPlace(uint32_t stream, StreamKind kind, uint32_t numCommands) const {
  const std::vector<program::Stream> &all = parts.rank->streams;
  if (stream >= all.size() || all[stream].kind != kind)
    return Status::failure(fmt::format("the emitted step names stream {}, expected a {} stream",
                                       stream, program::getName(kind)));
  if (size_t(step.command) + numCommands > pending.size())
    return Status::failure(fmt::format("the emitted step is at command {} of {}",
                                       size_t(step.command) + numCommands - 1, pending.size()));
  return Status::success();
}

Result<StageCopy *> EmittedRun::findCopy(uint32_t stage) const {
  if (stage < copies.size() && copies[stage])
    return copies[stage];
  return Status::failure(
      fmt::format("the emitted step names stage {}, which the rank has no copy of", stage));
}

Status EmittedRun::describe(uint32_t stream, const dp_step_call &call, Pending &made) const {
  Result<StageCopy *> copy = findCopy(call.stage);
  if (!copy.ok())
    return copy.getStatus();
  if (call.function >= program::kNumFunctions || call.microbatch >= parts.shared->numMicrobatches)
    return Status::failure(fmt::format("the emitted step calls function {} of micro-batch {}",
                                       call.function, call.microbatch));
  made.launch = {program::Function(call.function),
                 uint8_t(call.flags),
                 uint16_t(call.component),
                 call.stage,
                 call.microbatch,
                 {}};
  std::copy(std::begin(call.slots), std::end(call.slots), made.launch.slots.begin());
  for (const uint32_t slot : made.launch.slots)
    if (slot != kNone && slot >= slots.size())
      return Status::failure(
          fmt::format("the emitted step names slot {} of {}", slot, slots.size()));
  made.copy = *copy;
  made.stream = stream;
  made.numCalls = 1;
  return Status::success();
}

/// Members of a pair are the commands that follow it.
Status EmittedRun::launch(uint32_t stream, const dp_step_call *calls, uint32_t numCalls) {
  if (numCalls == 0)
    return Status::failure("the emitted step has a launch without a call");
  const bool isPair = numCalls != 1;
  if (Status status = checkPlace(stream, StreamKind::Compute, isPair ? numCalls + 1 : 1);
      !status.ok())
    return status;
  if (isPair && parts.model->hasFused() && numCalls > executor.calls.size())
    return Status::failure(fmt::format("the emitted step has a pair of {} calls, the largest of "
                                       "the program has {}",
                                       numCalls, executor.calls.size()));
  const uint32_t command = step.command;
  for (uint32_t i = 0; i != numCalls; ++i) {
    Pending &made = pending[command + (isPair ? i + 1 : 0)];
    if (Status status = describe(stream, calls[i], made); !status.ok())
      return status;
  }
  if (isPair) {
    pending[command].stream = stream;
    pending[command].numCalls = numCalls;
  }
  return launchOnDevice(stream);
}

Status EmittedRun::takeOptimizerStep(uint32_t stream, uint32_t stage) {
  if (Status status = checkPlace(stream, StreamKind::Compute, 1); !status.ok())
    return status;
  Result<StageCopy *> copy = findCopy(stage);
  if (!copy.ok())
    return copy.getStatus();
  Pending &made = pending[step.command];
  made.copy = *copy;
  made.stream = stream;
  made.numCalls = 0;
  return launchOnDevice(stream);
}

/// What fails there names the command.
Status EmittedRun::launchOnDevice(uint32_t stream) {
  Status status = parts.device->launch(stream, step.command, runOnDevice, this);
  hasPlace = !status.ok();
  return status;
}

Status EmittedRun::sumGradients(uint32_t stream, uint32_t stage) {
  if (Status status = checkPlace(stream, StreamKind::Reduce, 1); !status.ok())
    return status;
  Result<StageCopy *> copy = findCopy(stage);
  if (!copy.ok())
    return copy.getStatus();
  return parts.transport->reduce(stream, step.command, parts.rank->streams[stream].target, **copy);
}

//===--- Running ------------------------------------------------------------===//

std::string EmittedRun::describeCommand(uint32_t command) const {
  return program::describeCommand(*parts.shared, *parts.rank, command);
}

/// Called by the device: at once, or when its stream comes to it.
Status EmittedRun::runOnDevice(void *context, uint32_t command) {
  auto &own = *static_cast<EmittedRun *>(context);
  Status status = own.runPending(command);
  if (status.ok())
    return status;
  return Status::failure(fmt::format("{}: {}", own.describeCommand(command), status.message()));
}

Status EmittedRun::runPending(uint32_t command) {
  const Pending &own = pending[command];
  void *stream = parts.device->getNativeStream(own.stream);
  for (StageCall *call : executor.callPointers)
    call->get().stream = stream;
  if (own.numCalls == 0)
    return takeStep(*parts.model, *parts.optimizer, *own.copy, *executor.calls.front());
  return runCalls(command, own);
}

Status EmittedRun::runCalls(uint32_t command, const Pending &first) {
  if (first.numCalls == 1)
    return parts.model->run(first.launch.function, executor.prepare(first.launch, *first.copy, 0));
  const bool fused = parts.model->hasFused();
  for (uint32_t i = 0; i != first.numCalls; ++i) {
    const Pending &member = pending[command + 1 + i];
    StageCall &call = executor.prepare(member.launch, *member.copy, fused ? i : 0);
    executor.functions[fused ? i : 0] = member.launch.function;
    if (fused)
      continue;
    if (Status status = parts.model->run(member.launch.function, call); !status.ok())
      return status;
  }
  if (!fused)
    return Status::success();
  return parts.model->runFused(executor.callPointers.data(), executor.functions.data(),
                               first.numCalls);
}

Status EmittedRun::issue() {
  failure.reset();
  hasPlace = false;
  if (rank.issue(&step) == 0)
    return Status::success();
  if (!failure)
    return Status::failure(fmt::format("{}: the emitted step ended here without saying why",
                                       describeCommand(step.command)));
  if (hasPlace)
    return *failure;
  return Status::failure(fmt::format("{}: {}", describeCommand(step.command), failure->message()));
}

} // namespace dualpipe::runtime
