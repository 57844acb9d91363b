//===- Rendezvous.cpp - how processes of a run find each other ---------------------===//

#include "dualpipe/Runtime/Rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace dualpipe::runtime {

using Clock = std::chrono::steady_clock;

namespace {

constexpr uint64_t kMagic = 0x6475616c70697065ull; // "dualpipe"
constexpr uint32_t kVersion = 1;
/// No program needs so many ids: whoever says more is somebody else.
constexpr uint32_t kMaxPayload = 1u << 26;
/// Between two attempts to reach a rank 0 that does not listen yet.
constexpr std::chrono::milliseconds kRetry{50};

/// What a process says when it comes. Both ends run the same build on the same kind of machine.
struct Hello {
  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t rank = 0;
  uint32_t worldSize = 0;
  uint32_t reserved = 0;
  uint64_t digest = 0;
};

/// What rank 0 answers, before the payload or the reason of a refusal.
struct Answer {
  uint32_t refused = 0;
  uint32_t size = 0;
};

/// A socket that closes itself. Move-only.
class Socket {
public:
  explicit Socket(int number = -1) : number(number) {}
  Socket(Socket &&other) noexcept : number(std::exchange(other.number, -1)) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(number, other.number);
    return *this;
  }
  ~Socket() {
    if (number >= 0)
      close(number);
  }
  int get() const { return number; }
  bool isOpen() const { return number >= 0; }

private:
  int number;
};

struct Deadline {
  explicit Deadline(double seconds)
      : end(Clock::now() +
            std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}
  bool hasPassed() const { return Clock::now() >= end; }
  int getMilliseconds() const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    return int(std::max<int64_t>(0, std::min<int64_t>(left.count(), 1000)));
  }
  Clock::time_point end;
};

/// Waits until the socket is ready for `events`, or the deadline.
bool waitFor(const Socket &socket, short events, const Deadline &deadline) {
  while (!deadline.hasPassed()) {
    pollfd entry{socket.get(), events, 0};
    if (poll(&entry, 1, deadline.getMilliseconds()) > 0)
      return true;
  }
  return false;
}

/// All bytes, or false after the deadline or where the other end has gone.
bool sendAll(const Socket &socket, const void *data, size_t size, const Deadline &deadline) {
  const auto *bytes = static_cast<const char *>(data);
  while (size != 0) {
    if (!waitFor(socket, POLLOUT, deadline))
      return false;
    const ssize_t sent = send(socket.get(), bytes, size, MSG_NOSIGNAL);
    if (sent <= 0)
      return false;
    bytes += sent;
    size -= size_t(sent);
  }
  return true;
}

bool receiveAll(const Socket &socket, void *data, size_t size, const Deadline &deadline) {
  auto *bytes = static_cast<char *>(data);
  while (size != 0) {
    if (!waitFor(socket, POLLIN, deadline))
      return false;
    const ssize_t received = recv(socket.get(), bytes, size, 0);
    if (received <= 0)
      return false;
    bytes += received;
    size -= size_t(received);
  }
  return true;
}

/// The addresses behind a name, freed with the object.
class Addresses {
public:
  static Result<Addresses> resolve(const ProcessPlace &place, bool listens) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = listens ? AI_PASSIVE : 0;
    addrinfo *list = nullptr;
    // Rank 0 listens on all of its addresses: the name may mean another one to itself.
    const int error = getaddrinfo(listens ? nullptr : place.address.c_str(),
                                  fmt::format("{}", place.port).c_str(), &hints, &list);
    if (error != 0)
      return Status::failure(fmt::format("cannot find the address of MASTER_ADDR '{}': {}",
                                         place.address, gai_strerror(error)));
    return Addresses(list);
  }
  Addresses(Addresses &&other) noexcept : list(std::exchange(other.list, nullptr)) {}
  Addresses &operator=(Addresses &&) = delete;
  ~Addresses() {
    if (list)
      freeaddrinfo(list);
  }
  const addrinfo *get() const { return list; }

private:
  explicit Addresses(addrinfo *list) : list(list) {}
  addrinfo *list;
};

} // namespace

//===--- The environment --------------------------------------------------------===//

static Status readNumber(const char *(*getVariable)(const char *), const char *name, uint32_t most,
                         uint32_t &value) {
  const char *text = getVariable(name);
  if (!text)
    return Status::failure(fmt::format("{} is not set: a run of several processes needs RANK, "
                                       "WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT",
                                       name));
  const char *end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error == std::errc() && stop == end && end != text && value <= most)
    return Status::success();
  return Status::failure(
      fmt::format("{} is '{}', expected a whole number from 0 to {}", name, text, most));
}

Result<std::optional<ProcessPlace>> readProcessPlace(const char *(*getVariable)(const char *)) {
  if (!getVariable("RANK") && !getVariable("WORLD_SIZE"))
    return std::optional<ProcessPlace>();
  ProcessPlace place;
  uint32_t port = 0;
  const bool ownPort = getVariable("DUALPIPE_PORT") != nullptr;
  for (Status status :
       {readNumber(getVariable, "RANK", 1u << 20, place.rank),
        readNumber(getVariable, "WORLD_SIZE", 1u << 20, place.worldSize),
        readNumber(getVariable, "LOCAL_RANK", 1u << 20, place.localRank),
        readNumber(getVariable, ownPort ? "DUALPIPE_PORT" : "MASTER_PORT", 65535, port)})
    if (!status.ok())
      return status;
  if (place.rank >= place.worldSize)
    return Status::failure(fmt::format("RANK is {} and WORLD_SIZE is {}, expected a rank below it",
                                       place.rank, place.worldSize));
  const char *address = getVariable("MASTER_ADDR");
  if (!address || !*address)
    return Status::failure("MASTER_ADDR is not set: the name or address of the machine of rank 0");
  place.address = address;
  place.port = uint16_t(port);
  return std::optional(place);
}

//===--- Rank 0 -------------------------------------------------------------------===//

static Result<Socket> listenAt(const ProcessPlace &place) {
  Result<Addresses> addresses = Addresses::resolve(place, true);
  if (!addresses.ok())
    return addresses.getStatus();
  int error = 0;
  for (const addrinfo *at = addresses->get(); at; at = at->ai_next) {
    Socket socket(::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol));
    const int yes = 1, no = 0;
    if (socket.isOpen() &&
        setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        (at->ai_family != AF_INET6 ||
         setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) == 0) &&
        bind(socket.get(), at->ai_addr, at->ai_addrlen) == 0 && listen(socket.get(), 1024) == 0)
      return socket;
    error = errno;
  }
  return Status::failure(
      fmt::format("rank 0 cannot listen at port {}: {}{}", place.port, std::strerror(error),
                  error == EADDRINUSE ? "; set DUALPIPE_PORT to a free port on all ranks" : ""));
}

/// Tells somebody who came why he cannot take part.
static Status refuse(const Socket &socket, std::string reason, const Deadline &deadline) {
  const Answer answer{1, uint32_t(reason.size())};
  if (sendAll(socket, &answer, sizeof answer, deadline))
    (void)sendAll(socket, reason.data(), reason.size(), deadline); // it fails here in any case
  return Status::failure(std::move(reason));
}

static Status checkHello(const Hello &hello, const ProcessPlace &place, uint64_t digest,
                         const std::vector<Socket> &ranks) {
  if (hello.version != kVersion)
    return Status::failure(fmt::format("rank {} runs another version of the launcher", hello.rank));
  if (hello.worldSize != place.worldSize)
    return Status::failure(fmt::format("rank {} has WORLD_SIZE {}, rank 0 has {}", hello.rank,
                                       hello.worldSize, place.worldSize));
  if (hello.rank == 0 || hello.rank >= place.worldSize)
    return Status::failure(fmt::format("a process came as rank {}, expected 1 to {}", hello.rank,
                                       place.worldSize - 1));
  if (ranks[hello.rank].isOpen())
    return Status::failure(fmt::format("two processes came as rank {}", hello.rank));
  if (hello.digest != digest)
    return Status::failure(fmt::format(
        "rank {} runs another program than rank 0; give all ranks the same file", hello.rank));
  return Status::success();
}

static std::string listMissing(const std::vector<Socket> &ranks) {
  std::string text;
  for (size_t rank = 1; rank != ranks.size(); ++rank)
    if (!ranks[rank].isOpen())
      text += fmt::format("{}{}", text.empty() ? "" : ", ", rank);
  return text;
}

static Status giveToAll(const std::vector<Socket> &ranks, const std::vector<uint8_t> &payload,
                        const Deadline &deadline) {
  const Answer answer{0, uint32_t(payload.size())};
  for (size_t rank = 1; rank != ranks.size(); ++rank)
    if (!sendAll(ranks[rank], &answer, sizeof answer, deadline) ||
        !sendAll(ranks[rank], payload.data(), payload.size(), deadline))
      return Status::failure(fmt::format("rank {} went away while ranks met", rank));
  return Status::success();
}

static Status serve(const ProcessPlace &place, uint64_t digest, const std::vector<uint8_t> &payload,
                    double timeoutSeconds) {
  Result<Socket> listener = listenAt(place);
  if (!listener.ok())
    return listener.getStatus();
  const Deadline deadline(timeoutSeconds);
  std::vector<Socket> ranks(place.worldSize);
  for (uint32_t count = 1; count != place.worldSize;) {
    if (!waitFor(*listener, POLLIN, deadline))
      return Status::failure(fmt::format("after {} s rank 0 still waits for ranks {} at port {}",
                                         timeoutSeconds, listMissing(ranks), place.port));
    Socket socket(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
    Hello hello;
    if (!socket.isOpen() || !receiveAll(socket, &hello, sizeof hello, Deadline(5)) ||
        hello.magic != kMagic)
      continue; // somebody else, such as a scan of ports
    if (Status status = checkHello(hello, place, digest, ranks); !status.ok())
      return refuse(socket, status.message(), deadline);
    ranks[hello.rank] = std::move(socket);
    ++count;
  }
  return giveToAll(ranks, payload, deadline);
}

//===--- All others ---------------------------------------------------------------===//

/// Rank 0 may start later.
static Result<Socket> reach(const ProcessPlace &place, double timeoutSeconds,
                            const Deadline &deadline) {
  int error = 0;
  do {
    Result<Addresses> addresses = Addresses::resolve(place, false);
    if (!addresses.ok())
      return addresses.getStatus();
    for (const addrinfo *at = addresses->get(); at; at = at->ai_next) {
      Socket socket(::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol));
      if (socket.isOpen() && connect(socket.get(), at->ai_addr, at->ai_addrlen) == 0)
        return socket;
      error = errno;
    }
    std::this_thread::sleep_for(kRetry);
  } while (!deadline.hasPassed());
  return Status::failure(fmt::format("rank {} cannot reach rank 0 at {}:{} within {} s: {}",
                                     place.rank, place.address, place.port, timeoutSeconds,
                                     std::strerror(error)));
}

static Result<std::vector<uint8_t>> ask(const ProcessPlace &place, uint64_t digest,
                                        double timeoutSeconds) {
  const Deadline deadline(timeoutSeconds);
  Result<Socket> socket = reach(place, timeoutSeconds, deadline);
  if (!socket.ok())
    return socket.getStatus();
  Hello hello;
  hello.rank = place.rank;
  hello.worldSize = place.worldSize;
  hello.digest = digest;
  Answer answer;
  std::vector<uint8_t> payload;
  const auto receivePayload = [&] {
    payload.resize(answer.size);
    return receiveAll(*socket, payload.data(), payload.size(), deadline);
  };
  if (!sendAll(*socket, &hello, sizeof hello, deadline) ||
      !receiveAll(*socket, &answer, sizeof answer, deadline) || answer.size > kMaxPayload ||
      !receivePayload())
    return Status::failure(fmt::format("rank {} has no answer from rank 0 at {}:{}: it has failed, "
                                       "or waits for other ranks for longer than {} s",
                                       place.rank, place.address, place.port, timeoutSeconds));
  if (answer.refused != 0)
    return Status::failure("rank 0 says: " + std::string(payload.begin(), payload.end()));
  return payload;
}

Result<std::vector<uint8_t>> meetAtMaster(const ProcessPlace &place, uint64_t digest,
                                          const std::vector<uint8_t> &payload,
                                          double timeoutSeconds) {
  if (place.rank != 0)
    return ask(place, digest, timeoutSeconds);
  if (Status status = serve(place, digest, payload, timeoutSeconds); !status.ok())
    return status;
  return payload;
}

} // namespace dualpipe::runtime
