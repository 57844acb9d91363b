//===- NcclTransport.cpp - channels between GPUs, by NCCL ---------------------------===//

#include "dualpipe/Runtime/Cuda/NcclTransport.h"

#include "dualpipe/Program/Verify.h"
#include "dualpipe/Runtime/Numerics.h"
#include "runtime/kernels/Element.h"
#include "runtime/transport/ChannelSequences.h"
#include "runtime/transport/nccl/NcclGroup.h"
#include "runtime/transport/nccl/OwnedCommunicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

namespace dualpipe::runtime::cuda {

using program::kNone;

namespace {

/// This rank's end of a channel.
struct ChannelEnd {
  OwnedCommunicator *communicator;
  int peer; ///< within the communicator
};

/// This rank's part in a reduce group.
struct ReduceEnd {
  OwnedCommunicator *communicator;
  uint32_t numMembers = 1;
  void *scratch = nullptr; ///< the gradients of all members, where there are three or more
  size_t memberBytes = 0;
};

} // namespace

struct NcclTransport::State : DirectChannels {
  State(const NcclApi &nccl, const program::RankProgram &rank, const Model &model,
        CudaDevice &device, SumMembersFunction sum, const NcclOptions &options)
      : nccl(nccl), rank(rank), model(model), device(device), sum(std::move(sum)),
        options(options) {}

  Status createAll(const program::SharedInfo &shared, uint32_t rank, std::span<const UniqueId> ids);
  void addEnds(const program::SharedInfo &shared, const CommunicatorPlan &plan, uint32_t rank,
               OwnedCommunicator *communicator);
  Result<uint64_t> getFreeBytes() const;
  Status measure();
  Status allocateScratch();
  Status settle(OwnedCommunicator &communicator);
  Status beginCall(OwnedCommunicator &communicator);
  Status finishCall(OwnedCommunicator &communicator, NcclStatus status, const char *name);
  template <typename Issue>
  Status transfer(uint32_t channel, size_t bytes, const char *name, Issue &&issue);
  Status sumTwo(Stream stream, ReduceEnd &end, StageCopy &copy);
  Status sumGroup(Stream stream, ReduceEnd &end, StageCopy &copy, uint32_t first, uint32_t last);
  Status sumMany(Stream stream, ReduceEnd &end, StageCopy &copy);
  static Status findErrors(void *context);

  Send getSend() const override { return reinterpret_cast<Send>(nccl.send); }
  Recv getRecv() const override { return reinterpret_cast<Recv>(nccl.recv); }
  End getEnd(uint32_t channel) override {
    ChannelEnd &end = channels.find(channel)->second;
    return {end.communicator->get(), end.peer, end.communicator};
  }
  Status begin(void *owner) override { return beginCall(*static_cast<OwnedCommunicator *>(owner)); }
  Status finish(void *owner, const char *name, int status) override {
    return finishCall(*static_cast<OwnedCommunicator *>(owner), NcclStatus(status), name);
  }

  const NcclApi &nccl;
  const program::RankProgram &rank;
  const Model &model;
  CudaDevice &device;
  const SumMembersFunction sum;
  const NcclOptions options;
  uint64_t freeBefore = 0; ///< bytes of the GPU, before there was a communicator
  const std::shared_ptr<CommunicatorUse> use = std::make_shared<CommunicatorUse>();
  std::vector<std::unique_ptr<OwnedCommunicator>> communicators;
  std::map<uint32_t, ChannelEnd> channels;
  std::map<uint32_t, ReduceEnd> reductions;
  /// A group of the program that is being issued, and what it uses.
  std::optional<NcclGroup> group;
  std::vector<OwnedCommunicator *> used;
  size_t numCalls = 0;
};

//===--- Setting up -----------------------------------------------------------===//

static std::string nameOf(const program::SharedInfo &shared, const CommunicatorPlan &plan) {
  if (plan.channels.size() == 1 && plan.ranks.size() == 2) {
    const program::Channel &channel = shared.channels[plan.channels.front()];
    return fmt::format("from rank {} to rank {} ({})", channel.source, channel.destination,
                       channel.kind == program::SlotKind::Output ? "activations" : "gradients");
  }
  if (!plan.reduceGroups.empty())
    return fmt::format("of ranks {} (gradients)", fmt::join(plan.ranks, ", "));
  return fmt::format("of all {} ranks", plan.ranks.size());
}

void NcclTransport::State::addEnds(const program::SharedInfo &shared, const CommunicatorPlan &plan,
                                   uint32_t rank, OwnedCommunicator *communicator) {
  const auto find = [&](uint32_t wanted) {
    return int(std::find(plan.ranks.begin(), plan.ranks.end(), wanted) - plan.ranks.begin());
  };
  for (const uint32_t channel : plan.channels) {
    const program::Channel &ends = shared.channels[channel];
    if (ends.source == rank || ends.destination == rank)
      channels[channel] = {communicator,
                           find(ends.source == rank ? ends.destination : ends.source)};
  }
  for (const uint32_t group : plan.reduceGroups)
    reductions[group] = {communicator, uint32_t(plan.ranks.size()), nullptr, 0};
}

Status NcclTransport::State::createAll(const program::SharedInfo &shared, uint32_t rank,
                                       std::span<const UniqueId> ids) {
  const std::vector<CommunicatorPlan> plans = planCommunicators(shared, options.fold);
  if (plans.size() != ids.size())
    return Status::failure(fmt::format("the program needs {} communicators, there are ids for {}",
                                       plans.size(), ids.size()));
  for (size_t i = 0; i != plans.size(); ++i) {
    const auto own = std::find(plans[i].ranks.begin(), plans[i].ranks.end(), rank);
    if (own == plans[i].ranks.end())
      continue;
    Result<OwnedCommunicator> made = OwnedCommunicator::create(
        nccl, int(plans[i].ranks.size()), ids[i], int(own - plans[i].ranks.begin()),
        options.maxBlocks, nameOf(shared, plans[i]));
    if (!made.ok())
      return made.getStatus();
    communicators.push_back(std::make_unique<OwnedCommunicator>(std::move(*made)));
    addEnds(shared, plans[i], rank, communicators.back().get());
  }
  return Status::success();
}

/// Each group has a stream, and so memory, of its own.
Status NcclTransport::State::allocateScratch() {
  for (const program::Reduction &reduction : rank.reductions) {
    const auto found = reductions.find(reduction.group);
    if (found == reductions.end() || found->second.numMembers <= 2)
      continue;
    size_t bytes = 0;
    for (uint32_t i = 0; i != model.getNumParams(reduction.stage); ++i) {
      const dp_tensor_spec &spec = model.getParamSpec(reduction.stage, i);
      DLTensor tensor{};
      tensor.dtype = spec.dtype;
      tensor.ndim = spec.ndim;
      tensor.shape = const_cast<int64_t *>(spec.shape);
      bytes += alignTensor(getNumBytes(tensor));
    }
    found->second.memberBytes = std::max(found->second.memberBytes, bytes);
  }
  for (auto &[group, end] : reductions) {
    Result<void *> scratch = device.allocate(end.memberBytes * end.numMembers);
    if (!scratch.ok())
      return scratch.getStatus();
    end.scratch = *scratch;
  }
  return Status::success();
}

NcclTransport::NcclTransport(std::unique_ptr<State> state) : state(std::move(state)) {}

Result<std::unique_ptr<NcclTransport>>
NcclTransport::create(const NcclApi &nccl, const program::SharedInfo &shared,
                      const program::RankProgram &rank, const Model &model, CudaDevice &device,
                      std::span<const UniqueId> ids, SumMembersFunction sum,
                      const NcclOptions &options) {
  const ContextScope scope(device.getGpu());
  if (!scope.getStatus().ok())
    return scope.getStatus();
  std::unique_ptr<NcclTransport> transport(new NcclTransport(
      std::make_unique<State>(nccl, rank, model, device, std::move(sum), options)));
  State &state = *transport->state;
  Result<uint64_t> free = state.getFreeBytes();
  if (!free.ok())
    return free.getStatus();
  state.freeBefore = *free;
  if (Status status = state.createAll(shared, rank.rank, ids); !status.ok())
    return status;
  device.setErrorPoll(State::findErrors, &state);
  return transport;
}

Result<uint64_t> NcclTransport::State::getFreeBytes() const {
  size_t free = 0, total = 0;
  const DriverApi &driver = device.getDriver();
  if (Status status = check(driver, driver.memGetInfo(&free, &total), "cuMemGetInfo"); !status.ok())
    return status;
  return free;
}

Status NcclTransport::State::measure() {
  Result<uint64_t> free = getFreeBytes();
  if (!free.ok())
    return free.getStatus();
  int multiprocessors = 0;
  if (Status status =
          device.getGpu().getAttribute(DeviceAttribute::MultiprocessorCount, multiprocessors);
      !status.ok())
    return status;
  use->communicators = uint32_t(communicators.size());
  use->bytes = freeBefore > *free ? freeBefore - *free : 0;
  use->blocks = use->communicators * uint32_t(options.maxBlocks);
  use->multiprocessors = uint32_t(multiprocessors);
  return Status::success();
}

Status NcclTransport::meet() {
  const ContextScope scope(state->device.getGpu());
  if (!scope.getStatus().ok())
    return scope.getStatus();
  for (const std::unique_ptr<OwnedCommunicator> &communicator : state->communicators)
    if (Status status = state->settle(*communicator); !status.ok())
      return status;
  if (Status status = state->measure(); !status.ok())
    return status;
  return state->allocateScratch();
}

std::shared_ptr<const CommunicatorUse> NcclTransport::getUse() const { return state->use; }

NcclTransport::~NcclTransport() {
  state->device.setErrorPoll(nullptr, nullptr);
  const ContextScope scope(state->device.getGpu());
  if (state->device.isAborted())
    abort();
  state->communicators.clear();
}

//===--- Errors ---------------------------------------------------------------===//

Status NcclTransport::State::findErrors(void *context) {
  for (const std::unique_ptr<OwnedCommunicator> &communicator :
       static_cast<State *>(context)->communicators)
    if (communicator->get())
      if (const Result<bool> inProgress = communicator->isInProgress(); !inProgress.ok())
        return inProgress.getStatus();
  return Status::success();
}

/// While the run goes on; other communicators are not looked at here, which may be in progress.
Status NcclTransport::State::settle(OwnedCommunicator &communicator) {
  return communicator.settle([&] { return !device.isAborted(); }, options.timeoutSeconds);
}

/// A call on a communicator that is in progress would fail.
Status NcclTransport::State::beginCall(OwnedCommunicator &communicator) {
  if (numCalls == program::kDefaultGroupLimit)
    return Status::failure(
        fmt::format("a group of more than {} transfers, of which NCCL has been seen to hang; "
                    "compile with smaller groups",
                    program::kDefaultGroupLimit));
  numCalls += group ? 1 : 0;
  return settle(communicator);
}

Status NcclTransport::State::finishCall(OwnedCommunicator &communicator, NcclStatus status,
                                        const char *name) {
  if (status != NcclStatus::Success && status != NcclStatus::InProgress)
    return check(nccl, status,
                 fmt::format("{} on the communicator {}", name, communicator.getName()),
                 communicator.get());
  if (!group)
    return settle(communicator);
  used.push_back(&communicator);
  return Status::success();
}

void NcclTransport::abort() {
  state->group.reset();
  for (const std::unique_ptr<OwnedCommunicator> &communicator : state->communicators)
    communicator->abort();
}

//===--- Issuing --------------------------------------------------------------===//

Status NcclTransport::startGroup() {
  state->used.clear();
  state->group.emplace(state->nccl);
  return state->group->getStatus();
}

Status NcclTransport::endGroup() {
  if (!state->group)
    return Status::success(); // it never began
  Status status = state->group->end();
  state->group.reset();
  state->numCalls = 0;
  for (OwnedCommunicator *communicator : state->used)
    if (status.ok())
      status = state->settle(*communicator);
  return status;
}

DirectChannels *NcclTransport::getDirectChannels() { return state.get(); }

/// One end of a transfer: `issue` calls the function of NCCL that has this name.
template <typename Issue>
Status NcclTransport::State::transfer(uint32_t channel, size_t bytes, const char *name,
                                      Issue &&issue) {
  const ChannelEnd &end = channels.find(channel)->second;
  if (bytes == 0)
    return Status::success();
  if (Status status = beginCall(*end.communicator); !status.ok())
    return status;
  return finishCall(*end.communicator, issue(end.peer, end.communicator->get()), name);
}

Status NcclTransport::send(uint32_t stream, uint32_t, uint32_t channel, const void *data,
                           size_t bytes) {
  return state->transfer(channel, bytes, "ncclSend", [&](int peer, Communicator communicator) {
    return state->nccl.send(data, bytes, NcclType::Int8, peer, communicator,
                            state->device.getStream(stream));
  });
}

Status NcclTransport::recv(uint32_t stream, uint32_t, uint32_t channel, void *data, size_t bytes) {
  return state->transfer(channel, bytes, "ncclRecv", [&](int peer, Communicator communicator) {
    return state->nccl.recv(data, bytes, NcclType::Int8, peer, communicator,
                            state->device.getStream(stream));
  });
}

/// What NCCL calls it.
static NcclType getNcclType(kernels::Element type) {
  switch (type) {
  case kernels::Element::F32:
    return NcclType::Float32;
  case kernels::Element::F64:
    return NcclType::Float64;
  case kernels::Element::BF16:
    return NcclType::Bfloat16;
  }
  return NcclType::Float32; // all are above
}

/// The gradients of the parameters from `first` to before `last`, in one group of NCCL.
Status NcclTransport::State::sumGroup(Stream stream, ReduceEnd &end, StageCopy &copy,
                                      uint32_t first, uint32_t last) {
  NcclGroup calls(nccl);
  if (Status status = calls.getStatus(); !status.ok())
    return status;
  for (uint32_t i = first; i != last; ++i) {
    const DLTensor &gradient = copy.getGrad(i);
    Result<kernels::Element> type = getGradientType(copy, i);
    if (!type.ok())
      return type.getStatus();
    const NcclStatus status =
        nccl.allReduce(gradient.data, gradient.data, size_t(getNumElements(gradient)),
                       getNcclType(*type), NcclReduction::Sum, end.communicator->get(), stream);
    if (status != NcclStatus::Success && status != NcclStatus::InProgress)
      return check(nccl, status, "ncclAllReduce", end.communicator->get());
  }
  return calls.end();
}

/// a + b is b + a to the last bit. In groups, each within what NCCL takes.
Status NcclTransport::State::sumTwo(Stream stream, ReduceEnd &end, StageCopy &copy) {
  for (uint32_t first = 0; first < copy.getNumParams();) {
    const uint32_t last = std::min(copy.getNumParams(), first + program::kDefaultGroupLimit);
    if (Status status = sumGroup(stream, end, copy, first, last); !status.ok())
      return status;
    if (Status status = settle(*end.communicator); !status.ok())
      return status;
    first = last;
  }
  return Status::success();
}

/// NCCL adds three and more in an order of its own: gather, and add in ours.
Status NcclTransport::State::sumMany(Stream stream, ReduceEnd &end, StageCopy &copy) {
  if (copy.getNumParams() == 0)
    return Status::success();
  auto *gathered = static_cast<std::byte *>(end.scratch);
  const auto *first = static_cast<std::byte *>(copy.getGrad(0).data);
  const DLTensor &last = copy.getGrad(copy.getNumParams() - 1);
  const size_t bytes =
      size_t(static_cast<std::byte *>(last.data) - first) + alignTensor(getNumBytes(last));
  const NcclStatus status =
      nccl.allGather(first, gathered, bytes, NcclType::Int8, end.communicator->get(), stream);
  if (Status finished = finishCall(*end.communicator, status, "ncclAllGather"); !finished.ok())
    return finished;
  std::vector<void *> members(end.numMembers);
  for (uint32_t i = 0; i != copy.getNumParams(); ++i) {
    DLTensor &gradient = copy.getGrad(i);
    Result<kernels::Element> type = getGradientType(copy, i);
    if (!type.ok())
      return type.getStatus();
    const size_t offset = size_t(static_cast<std::byte *>(gradient.data) - first);
    for (uint32_t member = 0; member != end.numMembers; ++member)
      members[member] = gathered + member * bytes + offset;
    if (Status summed = sum(stream, *type, members, getNumElements(gradient)); !summed.ok())
      return summed;
    if (Status copied =
            check(device.getDriver(),
                  device.getDriver().memcpyDtoDAsync(reinterpret_cast<DevicePointer>(gradient.data),
                                                     reinterpret_cast<DevicePointer>(members[0]),
                                                     getNumBytes(gradient), stream),
                  "cuMemcpyDtoDAsync");
        !copied.ok())
      return copied;
  }
  return Status::success();
}

Status NcclTransport::reduce(uint32_t stream, uint32_t, uint32_t group, StageCopy &copy) {
  const auto found = state->reductions.find(group);
  if (found == state->reductions.end())
    return Status::success(); // a group of one
  ReduceEnd &end = found->second;
  if (Status status = state->settle(*end.communicator); !status.ok())
    return status;
  const Stream native = state->device.getStream(stream);
  if (end.numMembers > 2)
    return state->sumMany(native, end, copy);
  return state->sumTwo(native, end, copy);
}

} // namespace dualpipe::runtime::cuda
