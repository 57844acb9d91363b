//===- NcclTasks.cpp - NCCL made of software: groups, matching, orders ----------===//

#include "Bridge.h"
#include "State.h"

#include <fmt/format.h>

#include <cstring>

namespace dualpipe::test {

using namespace softgpu;

/// Beyond it groups have hung in practice.
static constexpr size_t kMaxGroup = 256;

static std::string describe(const SoftComm &comm, const Part &part) {
  const size_t clique = comm.clique->number;
  const char *captured = part.captured ? "captured " : "";
  switch (part.kind) {
  case PartKind::Send:
    return fmt::format("{}send {} from {} to {} of communicator {}", captured, part.number,
                       comm.rank, part.peer, clique);
  case PartKind::Recv:
    return fmt::format("{}receive {} at {} from {} of communicator {}", captured, part.number,
                       comm.rank, part.peer, clique);
  case PartKind::AllGather:
  case PartKind::AllReduce:
    return fmt::format("{}collective {} at {} of communicator {}", captured, part.number, comm.rank,
                       clique);
  }
  return "";
}

static std::tuple<size_t, int, int, uint64_t> getMeeting(const SoftComm &comm, const Part &part) {
  const size_t clique = comm.clique->number;
  if (part.kind == PartKind::Send)
    return {clique, comm.rank, part.peer, part.number};
  if (part.kind == PartKind::Recv)
    return {clique, part.peer, comm.rank, part.number};
  return {clique, -1, -1, part.number};
}

/// Turns the calls of a group into one operation per communicator. False where a capture has
/// failed.
bool SoftGpu::State::closeGroup(HostThread &thread) {
  std::vector<std::pair<SoftComm *, Part>> calls = std::move(thread.group);
  thread.group.clear();
  if (calls.size() > kMaxGroup)
    report(
        fmt::format("a group of {} operations, of which NCCL has been seen to hang: split it into "
                    "groups of {}",
                    calls.size(), kMaxGroup));
  std::vector<std::shared_ptr<NcclTask>> tasks;
  std::set<SoftStream *> used;
  for (auto &[comm, part] : calls) {
    used.insert(part.stream);
    std::shared_ptr<NcclTask> task;
    for (const std::shared_ptr<NcclTask> &other : tasks)
      if (other->comm == comm)
        task = other;
    if (!task) {
      task = tasks.emplace_back(std::make_shared<NcclTask>());
      task->comm = comm;
      task->stream = part.stream;
    }
    task->parts.push_back(std::move(part));
  }
  if (used.size() > 1)
    report(
        fmt::format("a group uses {} streams, which makes them wait for each other", used.size()));
  std::set<const Capture *> captures;
  for (const SoftStream *stream : used)
    captures.insert(stream->capture.get());
  if (captures.size() > 1)
    report("a group uses streams that are not all in one capture, or all in none");
  bool good = true;
  for (const std::shared_ptr<NcclTask> &task : tasks) {
    if (const std::shared_ptr<Capture> &capture = task->stream->capture) {
      if (capture->invalidated) {
        task->comm->error = NcclStatus::UnhandledCudaError;
        good = false;
        continue;
      }
      Op op; // launches number its parts
      op.kind = OpKind::Nccl;
      op.nccl = task;
      take(*task->stream, std::move(op));
    } else
      issue(thread, *task->stream, enqueue(task));
  }
  return good;
}

/// Gives an operation its place among those of its communicator.
Op SoftGpu::State::enqueue(const std::shared_ptr<NcclTask> &task) {
  SoftComm &comm = *task->comm;
  IssuedTask order{comm.gpu, comm.clique->number, {}, nullptr};
  std::string name;
  for (Part &part : task->parts) {
    part.number = part.kind == PartKind::Send   ? comm.numSends[part.peer]++
                  : part.kind == PartKind::Recv ? comm.numRecvs[part.peer]++
                                                : comm.numCollectives++;
    part.eager = part.kind == PartKind::Send && !options.rendezvous && dice.below(2) == 0;
    name += (name.empty() ? "" : ", ") + describe(comm, part);
    order.meetings.push_back(getMeeting(comm, part));
  }
  task->name = order.name = makeName(std::move(name));
  issued.push_back(std::move(order));
  comm.order.push_back(task);
  Op op;
  op.kind = OpKind::Nccl;
  op.name = task->name;
  op.nccl = task;
  return op;
}

/// The other end of a transfer, where it has begun.
std::shared_ptr<NcclTask> SoftGpu::State::findPartner(const NcclTask &task, const Part &part,
                                                      Part *&other) {
  if (part.peer < 0 || part.peer >= int(task.comm->clique->members.size()))
    return nullptr;
  SoftComm *peer = task.comm->clique->members[size_t(part.peer)];
  if (!peer)
    return nullptr;
  const PartKind wanted = part.kind == PartKind::Send ? PartKind::Recv : PartKind::Send;
  for (const std::shared_ptr<NcclTask> &candidate : peer->order)
    for (Part &its : candidate->parts)
      if (its.kind == wanted && its.peer == task.comm->rank && its.number == part.number &&
          its.captured == part.captured) {
        other = &its;
        return candidate->started && !its.done ? candidate : nullptr;
      }
  return nullptr;
}

bool SoftGpu::State::hasAllMembers(NcclTask &task, const Part &part) {
  if (Clique &clique = *task.comm->clique; clique.spansProcesses())
    return clique.collectives[part.number].inputs.size() == clique.members.size();
  for (SoftComm *member : task.comm->clique->members) {
    if (!member)
      return false;
    bool here = false;
    for (const std::shared_ptr<NcclTask> &candidate : member->order)
      for (const Part &its : candidate->parts)
        here |= candidate->started && its.kind == part.kind && its.number == part.number &&
                its.captured == part.captured;
    if (!here)
      return false;
  }
  return true;
}

/// Between the same two ranks transfers of one direction go in order.
static bool isNext(const NcclTask &task, const Part &part) {
  for (const Part &other : task.parts)
    if (!other.done && other.kind == part.kind && other.peer == part.peer &&
        other.number < part.number)
      return false;
  return true;
}

bool SoftGpu::State::canAdvance(NcclTask &task, const Part &part) {
  if (part.done || !task.started || task.comm->error != NcclStatus::Success)
    return false;
  if (part.kind == PartKind::AllGather || part.kind == PartKind::AllReduce)
    return hasAllMembers(task, part);
  if (!isNext(task, part))
    return false;
  Part *other = nullptr;
  if (part.kind == PartKind::Send)
    return part.eager || findPartner(task, part, other) ||
           task.comm->clique->posted.count(
               {task.comm->rank, part.peer, part.number, part.captured});
  const auto found = task.comm->clique->inFlight.find({part.peer, task.comm->rank});
  if (found != task.comm->clique->inFlight.end())
    if (const auto flight = found->second.find(part.number); flight != found->second.end())
      return flight->second.captured == part.captured;
  return findPartner(task, part, other) != nullptr;
}

/// The data leaves the sender now; it may arrive at any later time.
void SoftGpu::State::advance(NcclTask &task, Part &part) {
  Clique &clique = *task.comm->clique;
  const size_t bytes = part.count * getBytes(part.type);
  ++numRun;
  if (part.kind == PartKind::AllGather || part.kind == PartKind::AllReduce)
    return clique.spansProcesses() ? finishCollective(task, part) : runCollective(task, part);
  if (part.kind == PartKind::Send) {
    std::vector<unsigned char> data = readInput(task, part);
    part.done = true;
    if (clique.spansProcesses() && !clique.isHere(part.peer)) {
      clique.posted.erase({task.comm->rank, part.peer, part.number, part.captured});
      bridge->send(clique, makeFrame(Frame::Data, task.comm->rank, part.peer, part),
                   std::move(data));
    } else {
      clique.inFlight[{task.comm->rank, part.peer}][part.number] = {part.captured, std::move(data),
                                                                    task.clock};
    }
    return;
  }
  auto &queue = clique.inFlight[{part.peer, task.comm->rank}];
  if (!queue.count(part.number)) { // a send that waits for us
    Part *other = nullptr;
    const std::shared_ptr<NcclTask> sender = findPartner(task, part, other);
    advance(*sender, *other);
  }
  const InFlight flight = std::move(queue[part.number]);
  queue.erase(part.number);
  if (options.ordersAcrossRanks)
    task.clock.join(flight.clock);
  const SoftUse use{part.to, bytes, true};
  if (flight.data.size() != bytes)
    report(fmt::format("{} expects {} bytes, {} were sent", *task.name, bytes, flight.data.size()));
  else if (checkRange(use, *task.name))
    std::memcpy(part.to, flight.data.data(), bytes);
  touch(use, *task.stream, task.clock, task.name);
  part.done = true;
}

template <typename T>
static void sumInto(void *to, const std::vector<const void *> &from, size_t count) {
  std::vector<T> sum(count);
  for (const void *member : from)
    for (size_t i = 0; i != count; ++i)
      sum[i] += static_cast<const T *>(member)[i];
  std::memcpy(to, sum.data(), count * sizeof(T));
}

/// All members at once, in ascending order of rank.
void SoftGpu::State::runCollective(NcclTask &task, Part &part) {
  struct Member {
    NcclTask *task;
    Part *part;
  };
  std::vector<Member> members;
  for (SoftComm *comm : task.comm->clique->members)
    for (const std::shared_ptr<NcclTask> &candidate : comm->order)
      for (Part &its : candidate->parts)
        if (its.kind == part.kind && its.number == part.number)
          members.push_back({candidate.get(), &its});
  const size_t bytes = part.count * getBytes(part.type);
  Clock all;
  for (const Member &member : members)
    all.join(member.task->clock);
  bool good = true;
  std::vector<std::vector<unsigned char>> inputs;
  std::vector<const void *> data;
  const size_t outputs = part.kind == PartKind::AllGather ? members.size() : 1;
  for (const Member &member : members) {
    const SoftUse use{member.part->from, bytes, false};
    good &= checkRange(use, *member.task->name) &&
            checkRange({member.part->to, bytes * outputs, true}, *member.task->name);
    touch(use, *member.task->stream, member.task->clock, member.task->name);
    if (good) {
      const auto *input = static_cast<const unsigned char *>(member.part->from);
      data.push_back(inputs.emplace_back(input, input + bytes).data());
    }
  }
  for (const Member &member : members) {
    if (options.ordersAcrossRanks)
      member.task->clock.join(all);
    member.part->done = true;
    touch({member.part->to, bytes * outputs, true}, *member.task->stream, member.task->clock,
          member.task->name);
    if (!good)
      continue;
    writeCollective(*member.task, *member.part, data);
  }
}

/// The output of one member, from the inputs of all, by rank.
void SoftGpu::State::writeCollective(NcclTask &task, Part &part,
                                     const std::vector<const void *> &data) {
  const size_t bytes = part.count * getBytes(part.type);
  if (part.kind == PartKind::AllGather)
    for (size_t i = 0; i != data.size(); ++i)
      std::memcpy(static_cast<unsigned char *>(part.to) + i * bytes, data[i], bytes);
  else if (part.type == NcclType::Float32)
    sumInto<float>(part.to, data, part.count);
  else if (part.type == NcclType::Float64)
    sumInto<double>(part.to, data, part.count);
  else
    report(fmt::format("{} sums a type that is not made of software", *task.name));
}

/// An abort ends what the communicator is at, without data.
void SoftGpu::State::cancel(SoftComm &comm) {
  for (const std::shared_ptr<NcclTask> &task : comm.order)
    task->cancelled = true;
  comm.order.clear();
}

/// Whether the transfers of all communicators could run one after the other on every GPU, in the
/// order in which its host issued them: if not, kernels of different communicators can wait for
/// each other's room on the GPUs.
void SoftGpu::State::reportOrders() {
  std::map<int, std::deque<const IssuedTask *>> queues;
  std::map<std::tuple<size_t, int, int, uint64_t>, size_t> ends, atFront;
  for (const IssuedTask &task : issued) {
    queues[task.gpu].push_back(&task);
    for (const auto &meeting : task.meetings)
      ++ends[meeting];
  }
  std::map<size_t, size_t> sizes;
  for (const auto &[id, clique] : cliques)
    sizes[clique->number] = clique->members.size();
  const auto isComplete = [&](const IssuedTask &task) {
    for (const auto &meeting : task.meetings) {
      const bool collective = std::get<1>(meeting) < 0;
      const size_t expected = collective ? sizes[std::get<0>(meeting)] : 2;
      if (ends[meeting] != expected)
        return true; // a partner never came: that is reported where it waits
      if (atFront[meeting] != expected)
        return false;
    }
    return true;
  };
  for (auto &[gpu, queue] : queues)
    if (!queue.empty())
      for (const auto &meeting : queue.front()->meetings)
        ++atFront[meeting];
  for (bool moved = true; moved;) {
    moved = false;
    for (auto &[gpu, queue] : queues)
      while (!queue.empty() && isComplete(*queue.front())) {
        moved = true;
        queue.pop_front();
        if (!queue.empty())
          for (const auto &meeting : queue.front()->meetings)
            ++atFront[meeting];
      }
  }
  std::string text;
  for (const auto &[gpu, queue] : queues)
    if (!queue.empty())
      text +=
          fmt::format("{} GPU {} comes to {}", text.empty() ? "" : ";", gpu, *queue.front()->name);
  if (!text.empty())
    report("communicators are used in different orders:" + text);
}

} // namespace dualpipe::test
