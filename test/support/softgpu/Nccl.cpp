//===- Nccl.cpp - NCCL made of software: its functions --------------------------===//

#include "Bridge.h"
#include "State.h"

#include <fmt/format.h>

#include <cstring>

namespace dualpipe::test::softgpu {
namespace {

using Code = NcclStatus;

#define BEGIN_CALL(name)                                                                           \
  Call call(#name);                                                                                \
  if (call.fault != 0)                                                                             \
  return Code(call.fault)

SoftComm *get(Communicator communicator) { return reinterpret_cast<SoftComm *>(communicator); }

bool isReady(const SoftComm &comm) {
  return comm.clique->numJoined == int(comm.clique->members.size());
}

/// A call on a communicator that is at work on the last one, or has failed.
Code checkUse(Call &call, SoftComm *comm, const char *name) {
  if (!call->comms.count(comm))
    return Code::InvalidArgument;
  if (comm->aborted)
    return Code::InvalidUsage;
  if (!isReady(*comm) || comm->inProgress != 0) {
    call->report(fmt::format("{} on a communicator that is still in progress: wait until "
                             "ncclCommGetAsyncError no longer says ncclInProgress",
                             name));
    return Code::InvalidUsage;
  }
  return comm->error;
}

/// The result of a call that a communicator works on by itself.
Code goOn(Call &call, SoftComm &comm) {
  comm.inProgress = call->options.inProgress;
  return comm.inProgress == 0 ? Code::Success : Code::InProgress;
}

Code getVersion(int *version) {
  BEGIN_CALL(ncclGetVersion);
  *version = call->options.ncclVersion;
  return Code::Success;
}

const char *getErrorString(Code) { return "as the software device says"; }
const char *getLastError(Communicator) { return ""; }

Code getUniqueId(UniqueId *id) {
  BEGIN_CALL(ncclGetUniqueId);
  const uint32_t number = ++call->numUniqueIds;
  if (call->bridge) {
    *id = call->bridge->makeId(number);
    return Code::Success;
  }
  std::memset(id->internal, 0, sizeof(id->internal));
  std::snprintf(id->internal, sizeof(id->internal), "soft-%u", number);
  return Code::Success;
}

Code commInitRankConfig(Communicator *communicator, int numRanks, UniqueId id, int rank,
                        NcclConfig *config) {
  BEGIN_CALL(ncclCommInitRankConfig);
  if (call.thread.gpu < 0 || numRanks < 1 || rank < 0 || rank >= numRanks ||
      config->magic != 0xcafebeef)
    return Code::InvalidArgument;
  if (config->blocking != 0) {
    call->report("a communicator is created blocking: it could not be aborted safely");
    return Code::InvalidUsage;
  }
  std::shared_ptr<Clique> &clique = call->cliques[std::string(id.internal, sizeof(id.internal))];
  if (!clique) {
    clique = std::make_shared<Clique>(size_t(numRanks));
    clique->number = call->cliques.size();
  }
  if (int(clique->members.size()) != numRanks || clique->gpus[size_t(rank)] >= 0)
    return Code::InvalidArgument;
  auto *comm = new SoftComm;
  comm->clique = clique;
  comm->rank = rank;
  comm->gpu = call.thread.gpu;
  comm->inProgress = call->options.inProgress;
  clique->members[size_t(rank)] = comm;
  clique->here[size_t(rank)] = true;
  const std::vector<int> &machine = call->options.gpusOfMachine;
  const int gpu = machine.empty() ? comm->gpu : machine[size_t(comm->gpu)];
  clique->addGpu(rank, gpu);
  call->comms.insert(comm);
  call->usedBytes[size_t(comm->gpu)] += call->options.communicatorBytes;
  if (call->bridge && !call->bridge->join(*clique, id, rank, gpu))
    return Code::SystemError;
  *communicator = reinterpret_cast<Communicator>(comm);
  return Code::InProgress;
}

Code commGetAsyncError(Communicator communicator, Code *status) {
  Call call("ncclCommGetAsyncError", Call::Poll);
  if (call.fault != 0)
    return Code(call.fault);
  SoftComm *comm = get(communicator);
  if (!call->comms.count(comm))
    return Code::InvalidArgument;
  // Only who waits for other ranks waits: else the host goes on after a look or two.
  if (!isReady(*comm))
    call->pollOnce(call.thread, comm);
  else
    call->goOn(call.thread, comm);
  if (comm->error != Code::Success)
    *status = comm->error;
  else if (comm->clique->refused)
    *status = Code::InvalidUsage; // "Duplicate GPU detected"
  else if (!isReady(*comm))
    *status = call->stuck ? Code::RemoteError : Code::InProgress;
  else if (comm->inProgress != 0) {
    --comm->inProgress;
    *status = Code::InProgress;
  } else
    *status = Code::Success;
  return Code::Success;
}

void forget(Call &call, SoftComm *comm) {
  comm->clique->members[size_t(comm->rank)] = nullptr;
  call->usedBytes[size_t(comm->gpu)] -= call->options.communicatorBytes;
  call->comms.erase(comm);
  delete comm;
}

/// NCCL waits until the graphs that hold a communicator have been destroyed, also in an abort
/// (commDestroySync in its init.cc).
void checkGraphs(Call &call, const SoftComm &comm) {
  if (call->isInGraph(comm))
    call->report("a communicator is destroyed or aborted before a graph that holds it: NCCL waits "
                 "for the graph to be destroyed");
}

Code commFinalize(Communicator communicator) {
  BEGIN_CALL(ncclCommFinalize);
  SoftComm *comm = get(communicator);
  const Code status = checkUse(call, comm, "ncclCommFinalize");
  return status == Code::Success ? goOn(call, *comm) : status;
}

Code commDestroy(Communicator communicator) {
  BEGIN_CALL(ncclCommDestroy);
  SoftComm *comm = get(communicator);
  if (!call->comms.count(comm))
    return Code::InvalidArgument;
  checkGraphs(call, *comm);
  if (!comm->order.empty())
    call->report("a communicator is destroyed while it is at work; abort it");
  call->cancel(*comm);
  forget(call, comm);
  return Code::Success;
}

Code commAbort(Communicator communicator) {
  BEGIN_CALL(ncclCommAbort);
  SoftComm *comm = get(communicator);
  if (!call->comms.count(comm))
    return Code::InvalidArgument;
  checkGraphs(call, *comm);
  call->cancel(*comm);
  forget(call, comm);
  return Code::Success;
}

Code groupStart() {
  BEGIN_CALL(ncclGroupStart);
  ++call.thread.groupDepth;
  return Code::Success;
}

Code groupEnd() {
  BEGIN_CALL(ncclGroupEnd);
  if (call.thread.groupDepth == 0)
    return Code::InvalidUsage;
  if (--call.thread.groupDepth != 0)
    return Code::Success;
  std::set<SoftComm *> comms;
  for (const auto &[comm, part] : call.thread.group)
    comms.insert(comm);
  if (!call->closeGroup(call.thread))
    return Code::UnhandledCudaError;
  Code result = Code::Success;
  for (SoftComm *comm : comms)
    if (goOn(call, *comm) == Code::InProgress)
      result = Code::InProgress;
  return result;
}

Part makePart(PartKind kind, const void *from, void *to, size_t count, NcclType type) {
  Part part{kind};
  part.from = from;
  part.to = to;
  part.count = count;
  part.type = type;
  return part;
}

/// A call of its own is a group of one.
Code add(Call &call, SoftComm *comm, const char *name, Part part, Stream stream) {
  if (const Code status = checkUse(call, comm, name); status != Code::Success)
    return status;
  if (findStream(call, stream, part.stream) != DriverStatus::Success)
    return comm->error = Code::UnhandledCudaError;
  if (++call->numTransfers == call->options.asyncErrorAt)
    comm->error = Code::RemoteError;
  call.thread.group.emplace_back(comm, std::move(part));
  if (call.thread.groupDepth != 0)
    return Code::Success;
  if (!call->closeGroup(call.thread))
    return Code::UnhandledCudaError;
  return goOn(call, *comm);
}

Code send(const void *data, size_t count, NcclType type, int peer, Communicator communicator,
          Stream stream) {
  BEGIN_CALL(ncclSend);
  Part part = makePart(PartKind::Send, data, nullptr, count, type);
  part.peer = peer;
  return add(call, get(communicator), "ncclSend", std::move(part), stream);
}

Code recv(void *data, size_t count, NcclType type, int peer, Communicator communicator,
          Stream stream) {
  BEGIN_CALL(ncclRecv);
  Part part = makePart(PartKind::Recv, nullptr, data, count, type);
  part.peer = peer;
  return add(call, get(communicator), "ncclRecv", std::move(part), stream);
}

Code allGather(const void *from, void *to, size_t count, NcclType type, Communicator communicator,
               Stream stream) {
  BEGIN_CALL(ncclAllGather);
  return add(call, get(communicator), "ncclAllGather",
             makePart(PartKind::AllGather, from, to, count, type), stream);
}

Code allReduce(const void *from, void *to, size_t count, NcclType type, NcclReduction,
               Communicator communicator, Stream stream) {
  BEGIN_CALL(ncclAllReduce);
  return add(call, get(communicator), "ncclAllReduce",
             makePart(PartKind::AllReduce, from, to, count, type), stream);
}

} // namespace

NcclApi makeNccl(int version) {
  NcclApi nccl;
#define DUALPIPE_NCCL(member, name, since, result, parameters) nccl.member = member;
#include "dualpipe/Runtime/Cuda/Nccl.def"
  nccl.version = version;
  return nccl;
}

size_t getBytes(NcclType type) {
  switch (type) {
  case NcclType::Int8:
    return 1;
  case NcclType::Bfloat16:
    return 2;
  case NcclType::Float32:
    return 4;
  case NcclType::Float64:
    return 8;
  }
  return 0;
}

} // namespace dualpipe::test::softgpu
