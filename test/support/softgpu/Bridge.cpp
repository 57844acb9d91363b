//===- Bridge.cpp - NCCL made of software between processes ---------------------===//

#include "Bridge.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace dualpipe::test::softgpu {

/// "soft-3@NAME": the third of the process that listens at NAME.
static UniqueId printId(uint32_t number, const std::string &maker) {
  UniqueId id{};
  std::snprintf(id.internal, sizeof(id.internal), "soft-%u@%s", number, maker.c_str());
  return id;
}

static std::string getKey(const UniqueId &id) {
  return std::string(id.internal, sizeof(id.internal));
}

/// A connection to another process: a thread reads, another writes what has been queued, so that
/// nobody waits for the other process with the lock of the state.
class Link {
public:
  /// `maker` is the process at the other end where that has made ids that we use, else empty.
  Link(Bridge &bridge, int socket, std::string maker)
      : maker(std::move(maker)), bridge(bridge), socket(socket), reader([this] { read(); }),
        writer([this] { write(); }) {}
  /// After stop().
  ~Link() { close(socket); }
  /// Returns once nothing is read or written any more.
  void stop() {
    {
      const std::lock_guard lock(mutex);
      isEnding = true;
    }
    shutdown(socket, SHUT_RDWR);
    changed.notify_all();
    reader.join();
    writer.join();
  }
  void send(const Frame &frame, const std::vector<unsigned char> &data) {
    std::string bytes(reinterpret_cast<const char *>(&frame), sizeof frame);
    bytes.append(data.begin(), data.end());
    {
      const std::lock_guard lock(mutex);
      queue.push_back(std::move(bytes));
    }
    changed.notify_all();
  }

  const std::string maker;

private:
  bool receiveAll(void *data, size_t size) {
    auto *bytes = static_cast<char *>(data);
    while (size != 0) {
      const ssize_t received = recv(socket, bytes, size, 0);
      if (received <= 0)
        return false;
      bytes += received;
      size -= size_t(received);
    }
    return true;
  }
  /// Until the other process has gone. That is no error here: who waits for it waits on.
  void read() {
    for (Frame frame; receiveAll(&frame, sizeof frame);) {
      std::vector<unsigned char> data(frame.size);
      if (!receiveAll(data.data(), data.size()))
        return;
      bridge.receive(*this, frame, std::move(data));
    }
  }
  void write() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return isEnding || !queue.empty(); });
      if (isEnding)
        return;
      const std::string bytes = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      for (size_t sent = 0; sent != bytes.size();) {
        const ssize_t more = ::send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (more <= 0)
          return;
        sent += size_t(more);
      }
      lock.lock();
    }
  }

  Bridge &bridge;
  const int socket;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> queue;
  bool isEnding = false;
  std::thread reader, writer; // last: they use all of the above
};

//===--- Sockets ----------------------------------------------------------------===//

/// In the abstract namespace: nothing is left in the file system.
static socklen_t makeAddress(const std::string &name, sockaddr_un &address) {
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(),
              std::min(name.size(), sizeof address.sun_path - 1));
  return socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

void Bridge::listenForOthers() {
  name = fmt::format("dualpipe-softgpu-{}", getpid());
  listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address;
  const socklen_t size = makeAddress(name, address);
  if (bind(listener, reinterpret_cast<sockaddr *>(&address), size) != 0 ||
      ::listen(listener, 1024) != 0)
    state.report("NCCL made of software cannot listen for other processes");
  else
    acceptor = std::thread([this] { accept(); });
}

void Bridge::accept() {
  for (;;) {
    const int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0)
      return;
    const std::lock_guard lock(state.mutex);
    links.push_back(std::make_unique<Link>(*this, socket, ""));
  }
}

Link *Bridge::connectTo(const std::string &maker) {
  for (const std::unique_ptr<Link> &link : links)
    if (link->maker == maker)
      return link.get();
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address;
  const socklen_t size = makeAddress(maker, address);
  if (connect(socket, reinterpret_cast<sockaddr *>(&address), size) != 0) {
    close(socket);
    return nullptr;
  }
  return links.emplace_back(std::make_unique<Link>(*this, socket, maker)).get();
}

Bridge::Bridge(SoftGpu::State &state) : state(state) {}

Bridge::~Bridge() {
  if (listener >= 0)
    shutdown(listener, SHUT_RDWR);
  if (acceptor.joinable())
    acceptor.join();
  if (listener >= 0)
    close(listener);
  // The reader of one link writes to others: all stop before any is freed.
  for (const std::unique_ptr<Link> &link : links)
    link->stop();
}

//===--- Joining ----------------------------------------------------------------===//

UniqueId Bridge::makeId(uint32_t number) {
  if (name.empty())
    listenForOthers();
  return printId(number, name);
}

bool Bridge::join(Clique &clique, const UniqueId &id, int rank, int gpu) {
  const std::string text = id.internal;
  const size_t at = text.find('@');
  const std::string maker = text.substr(at + 1);
  clique.id = uint32_t(std::strtoul(text.c_str() + 5, nullptr, 10));
  if (maker == name) {
    announce(clique);
    return true;
  }
  clique.maker = connectTo(maker);
  if (!clique.maker)
    return false;
  clique.maker->send({Frame::Join, clique.id, rank, gpu, clique.members.size(), 0, 0}, {});
  return true;
}

/// Those who wait for the last one hear of it.
void Bridge::announce(Clique &clique) {
  if (clique.numJoined != int(clique.members.size()))
    return;
  std::set<Link *> others;
  for (const auto &[rank, link] : clique.remotes)
    others.insert(link);
  for (Link *link : others)
    link->send({Frame::Ready, clique.id, 0, 0, clique.refused, 0, 0}, {});
}

void Bridge::addMember(Link &from, const Frame &frame) {
  std::shared_ptr<Clique> &clique = state.cliques[getKey(printId(frame.id, name))];
  if (!clique) {
    clique = std::make_shared<Clique>(frame.number);
    clique->number = state.cliques.size();
    clique->id = frame.id;
  }
  const auto rank = size_t(frame.from);
  if (rank >= clique->members.size() || clique->gpus[rank] >= 0) {
    state.report(
        fmt::format("two processes join communicator {} as rank {}", clique->number, rank));
    return;
  }
  clique->remotes[frame.from] = &from;
  clique->addGpu(frame.from, frame.to);
  announce(*clique);
}

//===--- Messages ---------------------------------------------------------------===//

void Bridge::send(const Clique &clique, Frame frame, std::vector<unsigned char> data) {
  frame.id = clique.id;
  frame.size = data.size();
  route(nullptr, const_cast<Clique &>(clique), frame, data);
}

/// Towards whom it is for, but not back to where it came from.
void Bridge::route(Link *origin, Clique &clique, const Frame &frame,
                   const std::vector<unsigned char> &data) {
  if (clique.maker) { // he forwards
    if (!origin)
      clique.maker->send(frame, data);
    return;
  }
  std::set<Link *> targets;
  for (const auto &[rank, link] : clique.remotes) {
    const int wanted = frame.kind == Frame::Post ? frame.from : frame.to;
    if (frame.kind == Frame::Contribute || rank == wanted)
      targets.insert(link);
  }
  targets.erase(origin);
  for (Link *link : targets)
    link->send(frame, data);
}

/// What is for ranks of this process.
void Bridge::deliver(Clique &clique, const Frame &frame, std::vector<unsigned char> data) {
  if (frame.kind == Frame::Post && clique.isHere(frame.from))
    clique.posted.insert({frame.from, frame.to, frame.number, frame.captured != 0});
  else if (frame.kind == Frame::Data && clique.isHere(frame.to))
    clique.inFlight[{frame.from, frame.to}][frame.number] = {frame.captured != 0, std::move(data),
                                                             Clock()};
  else if (frame.kind == Frame::Contribute)
    clique.collectives[frame.number].inputs[frame.from] = std::move(data);
}

void Bridge::receive(Link &from, const Frame &frame, std::vector<unsigned char> data) {
  const std::lock_guard lock(state.mutex);
  ++state.changes; // whoever waits has to look again
  if (frame.kind == Frame::Join)
    return addMember(from, frame);
  const std::string &maker = from.maker.empty() ? name : from.maker;
  const auto found = state.cliques.find(getKey(printId(frame.id, maker)));
  if (found == state.cliques.end())
    return;
  Clique &clique = *found->second;
  if (frame.kind == Frame::Ready) {
    clique.numJoined = int(clique.members.size());
    clique.refused = frame.number != 0;
    return;
  }
  route(&from, clique, frame, data);
  deliver(clique, frame, std::move(data));
}

} // namespace dualpipe::test::softgpu

namespace dualpipe::test {

using namespace softgpu;

bool softgpu::Clique::isHere(int rank) const {
  return rank >= 0 && size_t(rank) < here.size() && here[size_t(rank)];
}

bool softgpu::Clique::spansProcesses() const { return maker || !remotes.empty(); }

void softgpu::Clique::addGpu(int rank, int gpu) {
  refused |= std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
  gpus[size_t(rank)] = gpu;
  ++numJoined;
}

/// What other processes have to know of an operation that begins.
void SoftGpu::State::announceStart(NcclTask &task) {
  Clique &clique = *task.comm->clique;
  if (!clique.spansProcesses())
    return;
  for (const Part &part : task.parts) {
    if (part.kind == PartKind::Recv && !clique.isHere(part.peer))
      bridge->send(clique, makeFrame(Frame::Post, part.peer, task.comm->rank, part));
    if (part.kind == PartKind::Send || part.kind == PartKind::Recv)
      continue;
    std::vector<unsigned char> input = readInput(task, part);
    clique.collectives[part.number].inputs[task.comm->rank] = input;
    bridge->send(clique, makeFrame(Frame::Contribute, task.comm->rank, -1, part), std::move(input));
  }
}

std::vector<unsigned char> SoftGpu::State::readInput(const NcclTask &task, const Part &part) {
  const SoftUse use{part.from, part.count * getBytes(part.type), false};
  std::vector<unsigned char> data;
  if (checkRange(use, *task.name)) {
    const auto *bytes = static_cast<const unsigned char *>(part.from);
    data.assign(bytes, bytes + use.bytes);
  }
  touch(use, *task.stream, task.clock, task.name);
  return data;
}

/// The output of one member; all have brought their inputs.
void SoftGpu::State::finishCollective(NcclTask &task, Part &part) {
  Clique &clique = *task.comm->clique;
  Collective &collective = clique.collectives[part.number];
  const size_t bytes = part.count * getBytes(part.type);
  std::vector<const void *> data;
  for (const auto &[rank, input] : collective.inputs) {
    if (input.size() != bytes)
      report(fmt::format("{} brings {} bytes, rank {} has brought {}", *task.name, bytes, rank,
                         input.size()));
    else
      data.push_back(input.data());
  }
  const size_t outputs = part.kind == PartKind::AllGather ? data.size() : 1;
  const SoftUse use{part.to, bytes * outputs, true};
  touch(use, *task.stream, task.clock, task.name);
  if (data.size() == clique.members.size() && checkRange(use, *task.name))
    writeCollective(task, part, data);
  part.done = true;
  if (++collective.numDone == size_t(std::count(clique.here.begin(), clique.here.end(), true)))
    clique.collectives.erase(part.number);
}

} // namespace dualpipe::test
