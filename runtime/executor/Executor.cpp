//===- Executor.cpp - walks one rank's commands -----------------------------===//

#include "Executor.h"
#include "EmittedRun.h"

#include "dualpipe/Program/Verify.h"
#include "dualpipe/Runtime/AlignedBuffer.h"

#include <fmt/format.h>

#include <algorithm>

namespace dualpipe::runtime {

using program::Command;
using program::CommandOp;
using program::kNone;
using program::Launch;
using program::SlotKind;

Executor::Executor(const ExecutorParts &parts) : parts(parts) {}
Executor::~Executor() = default;

Result<std::unique_ptr<Executor>> Executor::create(const ExecutorParts &parts) {
  std::unique_ptr<Executor> executor(new Executor(parts));
  if (Status status = executor->allocateSlots(); !status.ok())
    return status;
  if (Status status = executor->allocateOnDevice(); !status.ok())
    return status;
  if (Status status = executor->allocateCalls(); !status.ok())
    return status;
  executor->resolveCopies();
  if (parts.emitted)
    executor->emitted = std::make_unique<EmittedRun>(*executor, *parts.emitted);
  return executor;
}

/// One arena; the slots of a class stand next to each other, as their numbers do.
Status Executor::allocateSlots() {
  std::vector<size_t> strides;
  for (const program::SlotClass &slotClass : parts.rank->slotClasses) {
    const size_t bytes =
        parts.model->getSlotBytes(parts.shared->contract, slotClass.kind, slotClass.sizeGroup);
    strides.push_back(alignTensor(bytes));
    size_t bytesOfClass = 0;
    if (__builtin_mul_overflow(strides.back(), size_t(slotClass.count), &bytesOfClass) ||
        __builtin_add_overflow(slotBytes, bytesOfClass, &slotBytes))
      return Status::failure(fmt::format("the slots of rank {} are larger than memory can be: {} "
                                         "of {} bytes",
                                         parts.rank->rank, slotClass.count, strides.back()));
    classBytes.push_back(bytesOfClass);
  }
  Result<void *> arena = parts.device->allocate(slotBytes);
  if (!arena.ok())
    return arena.getStatus();
  auto *next = static_cast<std::byte *>(*arena);
  for (size_t i = 0; i != strides.size(); ++i)
    for (uint32_t slot = 0; slot != parts.rank->slotClasses[i].count; ++slot) {
      slots.push_back(strides[i] == 0 ? nullptr : next);
      next = strides[i] == 0 ? next : next + strides[i];
    }
  return Status::success();
}

/// A device with memory of its own finds there what changes from step to step, and leaves losses.
Status Executor::allocateOnDevice() {
  for (const Launch &launch : parts.rank->launches)
    if (launch.function == program::Function::Forward && (launch.flags & program::kLastStage))
      lossMicrobatches.push_back(launch.microbatch);
  deviceState = &stepState;
  if (!hasOwnMemory())
    return Status::success();
  Result<void *> state = parts.device->allocate(sizeof(dp_step_state));
  if (!state.ok())
    return state.getStatus();
  Result<void *> written = parts.device->allocate(parts.shared->numMicrobatches * sizeof(double));
  if (!written.ok())
    return written.getStatus();
  deviceState = static_cast<dp_step_state *>(*state);
  deviceLosses = static_cast<double *>(*written);
  return Status::success();
}

/// A fused function gets its members' calls at once: each has scratch memory of its own.
Status Executor::allocateCalls() {
  uint32_t numCalls = 1;
  if (parts.model->hasFused())
    for (const Command &command : parts.rank->commands)
      if (command.op == CommandOp::Pair)
        numCalls = std::max(numCalls, command.arg);
  const size_t bytes = parts.model->getMaxWorkspaceBytes();
  if (__builtin_mul_overflow(bytes, size_t(numCalls), &workspaceBytes))
    return Status::failure(fmt::format("the workspaces of rank {} are larger than memory can be: "
                                       "{} of {} bytes",
                                       parts.rank->rank, numCalls, bytes));
  Result<void *> workspace = parts.device->allocate(workspaceBytes);
  if (!workspace.ok())
    return workspace.getStatus();
  for (uint32_t i = 0; i != numCalls; ++i) {
    void *own = bytes == 0 ? nullptr : static_cast<std::byte *>(*workspace) + bytes * i;
    const CallPlace place = {parts.device->getPlace(), nullptr, parts.math};
    calls.push_back(std::make_unique<StageCall>(*parts.model, *deviceState, own, bytes, place));
    callPointers.push_back(calls.back().get());
  }
  functions.resize(numCalls);
  return Status::success();
}

Status Executor::initializeCopies(uint64_t seed) {
  if (Status status = beginStep({0, seed, 0.0}, nullptr); !status.ok())
    return status;
  const auto compute = std::find_if(
      parts.rank->streams.begin(), parts.rank->streams.end(),
      [](const program::Stream &stream) { return stream.kind == program::StreamKind::Compute; });
  const auto stream = uint32_t(compute - parts.rank->streams.begin());
  if (stream == parts.rank->streams.size())
    return Status::success(); // a rank without computes has no copies either
  StageCall &call = *calls.front();
  call.get().stream = parts.device->getNativeStream(stream);
  for (StageCopy &copy : parts.copies)
    if (Status status = copy.initialize(*parts.model, call); !status.ok())
      return status;
  const bool done = parts.device->synchronize();
  parts.device->endStep();
  return done ? Status::success() : Status::failure("the initial weights could not be written");
}

StageCopy *Executor::findCopy(uint32_t stage) const {
  for (StageCopy &copy : parts.copies)
    if (copy.getStage() == stage)
      return &copy;
  return nullptr;
}

void Executor::resolveCopies() {
  copies.resize(parts.rank->commands.size(), nullptr);
  for (size_t i = 0; i != copies.size(); ++i) {
    const Command &command = parts.rank->commands[i];
    if (command.op == CommandOp::Launch)
      copies[i] = findCopy(parts.rank->launches[command.arg].stage);
    else if (command.op == CommandOp::Reduce)
      copies[i] = findCopy(parts.rank->reductions[command.arg].stage);
    else if (command.op == CommandOp::Step)
      copies[i] = findCopy(command.arg);
  }
}

bool Executor::runStep(const dp_step_state &state, double *stepLosses) {
  if (issueStep(state, stepLosses) && finishStep())
    return true;
  if (parts.graph)
    parts.graph->drop();
  parts.transport->abort();
  return false;
}

bool Executor::finishStep() {
  if (!parts.device->synchronize())
    return false;
  Status status = hasOwnMemory() ? fetchLosses() : Status::success();
  if (status.ok())
    status = parts.device->takeTimes();
  parts.device->endStep();
  return status.ok() || fail(std::move(status));
}

/// Micro-batches that end on other ranks have their losses from there.
Status Executor::fetchLosses() {
  if (lossMicrobatches.empty())
    return Status::success();
  std::vector<double> all(parts.shared->numMicrobatches);
  if (Status status = parts.device->download(all.data(), deviceLosses, all.size() * sizeof(double));
      !status.ok())
    return status;
  for (const uint32_t microbatch : lossMicrobatches)
    losses[microbatch] = all[microbatch];
  return Status::success();
}

bool Executor::fail(Status status) {
  parts.failures->fail(std::move(status));
  return false;
}

Status Executor::beginStep(const dp_step_state &state, double *stepLosses) {
  stepState = state;
  losses = stepLosses;
  if (Status status = parts.device->beginStep(); !status.ok())
    return status;
  if (!hasOwnMemory()) {
    deviceLosses = losses;
    return Status::success();
  }
  return parts.device->upload(const_cast<dp_step_state *>(deviceState), &stepState,
                              sizeof stepState);
}

bool Executor::issueStep(const dp_step_state &state, double *stepLosses) {
  if (Status status = beginStep(state, stepLosses); !status.ok())
    return fail(std::move(status));
  Status status = parts.graph ? parts.graph->runStep(*this) : issueAll();
  return status.ok() || fail(std::move(status));
}

Status Executor::issueAll() {
  if (emitted)
    return emitted->issue();
  const std::vector<Command> &commands = parts.rank->commands;
  for (uint32_t i = 0; i != commands.size(); ++i) {
    if (Status status = issue(i); !status.ok())
      return status;
    if (commands[i].op == CommandOp::Pair || commands[i].op == CommandOp::Group)
      i += commands[i].arg; // what follows runs with it
  }
  return Status::success();
}

/// Has begin and end of commands marked in their streams, where times are taken on the device.
template <typename Issue> Status Executor::mark(uint32_t first, uint32_t count, Issue &&issue) {
  if (!parts.device->marksCommands())
    return issue();
  const auto markAll = [&](CommandEdge edge) {
    Status status = Status::success();
    for (uint32_t i = first; i != first + count && status.ok(); ++i)
      status = parts.device->mark(parts.rank->commands[i].stream, i, edge);
    return status;
  };
  Status status = markAll(CommandEdge::Begin);
  if (status.ok())
    status = issue();
  return status.ok() ? markAll(CommandEdge::End) : std::move(status);
}

Status Executor::issue(uint32_t index) {
  const Command &command = parts.rank->commands[index];
  switch (command.op) {
  case CommandOp::Launch:
  case CommandOp::Pair:
  case CommandOp::Step:
    return parts.device->launch(command.stream, index, runCommand, this);
  case CommandOp::Send:
  case CommandOp::Recv:
    return mark(index, 1, [&] { return issueTransfer(index); });
  case CommandOp::Group:
    return mark(index + 1, command.arg, [&] { return issueGroup(index + 1, command.arg); });
  case CommandOp::Record:
    return parts.device->record(command.stream, index, command.arg);
  case CommandOp::Wait:
    return parts.device->wait(command.stream, index, command.arg);
  case CommandOp::Reduce:
    return mark(index, 1, [&] {
      return parts.transport->reduce(command.stream, index,
                                     parts.rank->reductions[command.arg].group, *copies[index]);
    });
  }
  return Status::failure("unknown command");
}

Status Executor::issueGroup(uint32_t first, uint32_t count) {
  Status status = parts.transport->startGroup();
  for (uint32_t i = 0; i != count && status.ok(); ++i)
    status = issueTransfer(first + i);
  Status ended = parts.transport->endGroup();
  return status.ok() ? std::move(ended) : std::move(status);
}

Status Executor::issueTransfer(uint32_t index) {
  const Command &command = parts.rank->commands[index];
  const program::Transfer &transfer = parts.rank->transfers[command.arg];
  // The consumer's tensor; the model has said that both ends agree in size.
  const bool activation = parts.shared->channels[transfer.channel].kind == SlotKind::Output;
  const size_t bytes =
      parts.model->getBytes(transfer.stage, activation ? SlotKind::Input : SlotKind::GradOutput);
  void *slot = slots[transfer.slot];
  if (command.op == CommandOp::Send)
    return parts.transport->send(command.stream, index, transfer.channel, slot, bytes);
  return parts.transport->recv(command.stream, index, transfer.channel, slot, bytes);
}

/// Called by the device; a failure says where it happened.
Status Executor::runCommand(void *context, uint32_t index) {
  auto *executor = static_cast<Executor *>(context);
  Status status = executor->runRecorded(index, &Executor::run);
  if (status.ok())
    return status;
  const ExecutorParts &parts = executor->parts;
  const std::string place =
      program::describeLocation(*parts.shared, parts.rank->commands[index].loc);
  return Status::failure(
      fmt::format("rank {} ({}): {}", parts.rank->rank, place, status.message()));
}

Status Executor::runRecorded(uint32_t index, Status (Executor::*run)(uint32_t)) {
  RankRecorder *recorder = parts.recorder;
  if (!recorder || parts.device->marksCommands())
    return mark(index, 1, [&] { return (this->*run)(index); });
  const ThreadClock begin = recorder->getThreadClock();
  Status status = (this->*run)(index);
  recorder->recordCompute(index, begin, recorder->getThreadClock());
  return status;
}

Status Executor::runLaunch(uint32_t index) {
  return parts.model->run(getLaunch(index).function, prepare(index, 0));
}

Status Executor::run(uint32_t index) {
  const Command &command = parts.rank->commands[index];
  void *stream = parts.device->getNativeStream(command.stream);
  for (StageCall *call : callPointers)
    call->get().stream = stream;
  if (command.op == CommandOp::Pair)
    return runPair(index + 1, command.arg);
  if (command.op == CommandOp::Step)
    return takeStep(*parts.model, *parts.optimizer, *copies[index], *calls.front());
  return runLaunch(index);
}

/// Members of a fused function have no times of their own.
Status Executor::runPair(uint32_t first, uint32_t count) {
  if (parts.model->hasFused()) {
    for (uint32_t i = 0; i != count; ++i) {
      prepare(first + i, i);
      functions[i] = getLaunch(first + i).function;
    }
    return parts.model->runFused(callPointers.data(), functions.data(), count);
  }
  for (uint32_t i = 0; i != count; ++i)
    if (Status status = runRecorded(first + i, &Executor::runLaunch); !status.ok())
      return status;
  return Status::success();
}

StageCall &Executor::prepare(const Launch &launch, StageCopy &copy, uint32_t member) {
  StageCall &call = *calls[member];
  call.begin(copy, launch, parts.shared->training);
  for (unsigned kind = 0; kind != program::kNumSlotKinds; ++kind)
    if (launch.slots[kind] != kNone)
      call.bind(SlotKind(kind), slots[launch.slots[kind]]);
  if (launch.function == program::Function::Forward && (launch.flags & program::kLastStage))
    call.setLoss(&deviceLosses[launch.microbatch]);
  return call;
}

} // namespace dualpipe::runtime
