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

namespace {

constexpr uint64_t kMagic = 0x6475616c70697065ull; // "dualpipe"
constexpr uint32_t kVersion = 3;
/// The longest reason that is taken from rank 0: whoever says more is somebody else.
constexpr uint32_t kMaxReason = 1u << 20;
/// Between two attempts to reach a rank 0 that does not listen yet.
constexpr std::chrono::milliseconds kRetry{50};
/// A stranger who says nothing is let go after so many seconds.
constexpr double kHelloSeconds = 5;

/// What a process says when it comes. Both ends run the same build on the same kind of machine.
struct Hello {
  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t rank = 0;
  uint32_t worldSize = 0;
  uint32_t reserved = 0;
};

/// What rank 0 answers once all have come, or before the reason why there is no run.
struct Answer {
  uint32_t refused = 0;
  uint32_t size = 0;
};

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
  for (Status status : {readNumber(getVariable, "RANK", 1u << 20, place.rank),
                        readNumber(getVariable, "WORLD_SIZE", 1u << 20, place.worldSize)})
    if (!status.ok())
      return status;
  if (place.rank >= place.worldSize)
    return Status::failure(fmt::format("RANK is {} and WORLD_SIZE is {}, expected a rank below it",
                                       place.rank, place.worldSize));
  if (place.worldSize == 1)
    return std::optional<ProcessPlace>();
  uint32_t port = 0;
  const bool ownPort = getVariable("DUALPIPE_PORT") != nullptr;
  for (Status status :
       {readNumber(getVariable, "LOCAL_RANK", 1u << 20, place.localRank),
        readNumber(getVariable, ownPort ? "DUALPIPE_PORT" : "MASTER_PORT", 65535, port)})
    if (!status.ok())
      return status;
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

/// Tells somebody who came why there is no run. He may have gone: then nobody needs to know.
static void refuse(const Socket &socket, const std::string &reason) {
  const Answer answer{1, uint32_t(reason.size())};
  if (sendAll(socket, &answer, sizeof answer, kHelloSeconds))
    (void)sendAll(socket, reason.data(), reason.size(), kHelloSeconds);
}

/// The next process, and what it says; nothing after the deadline.
static std::optional<std::pair<Socket, Hello>> acceptOne(const Socket &listener,
                                                         const Deadline &deadline) {
  while (waitFor(listener, POLLIN, deadline)) {
    Socket socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    Hello hello;
    if (socket.isOpen() && receiveAll(socket, &hello, sizeof hello, kHelloSeconds) &&
        hello.magic == kMagic)
      return std::pair(std::move(socket), hello);
    // Somebody else, such as a scan of ports.
  }
  return {};
}

static Status checkHello(const Hello &hello, const ProcessPlace &place,
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
  return Status::success();
}

static std::string listMissing(const std::vector<Socket> &ranks) {
  std::string text;
  for (size_t rank = 1; rank != ranks.size(); ++rank)
    if (!ranks[rank].isOpen())
      text += fmt::format("{}{}", text.empty() ? "" : ", ", rank);
  return text;
}

namespace {

/// The meeting as rank 0 holds it.
struct Meeting {
  std::vector<Socket> ranks;
  std::vector<Socket> misfits; ///< who came and does not fit
};

} // namespace

static Status collect(const Socket &listener, const ProcessPlace &place, double timeoutSeconds,
                      Meeting &meeting) {
  const Deadline deadline(timeoutSeconds);
  for (uint32_t count = 1; count != place.worldSize; ++count) {
    std::optional<std::pair<Socket, Hello>> one = acceptOne(listener, deadline);
    if (!one)
      return Status::failure(fmt::format("after {} s rank 0 still waits for ranks {} at port {}",
                                         timeoutSeconds, listMissing(meeting.ranks), place.port));
    auto &[socket, hello] = *one;
    if (Status status = checkHello(hello, place, meeting.ranks); !status.ok()) {
      meeting.misfits.push_back(std::move(socket));
      return status;
    }
    meeting.ranks[hello.rank] = std::move(socket);
  }
  return Status::success();
}

/// Whoever goes away later is missed by those who hold the connections.
static Status welcomeAll(const std::vector<Socket> &ranks) {
  for (size_t rank = 1; rank != ranks.size(); ++rank) {
    pollfd entry{ranks[rank].get(), POLLIN, 0}; // nobody speaks before he is answered
    if (poll(&entry, 1, 0) != 0)
      return Status::failure(fmt::format("rank {} went away while ranks met", rank));
  }
  const Answer answer;
  for (size_t rank = 1; rank != ranks.size(); ++rank)
    (void)sendAll(ranks[rank], &answer, sizeof answer, kHelloSeconds);
  return Status::success();
}

/// There will be no run: tells all who came, and those who come a little later.
static void turnAway(const Socket &listener, const Meeting &meeting, const std::string &reason,
                     double lingerSeconds) {
  size_t numTold = meeting.misfits.size();
  for (const Socket &misfit : meeting.misfits)
    refuse(misfit, reason);
  for (const Socket &rank : meeting.ranks)
    if (rank.isOpen()) {
      refuse(rank, reason);
      ++numTold;
    }
  for (const Deadline deadline(lingerSeconds); numTold + 1 < meeting.ranks.size(); ++numTold) {
    const std::optional<std::pair<Socket, Hello>> late = acceptOne(listener, deadline);
    if (!late)
      return;
    refuse(late->first, reason);
  }
}

static Result<std::vector<Socket>> serve(const ProcessPlace &place, const MeetingOptions &options) {
  Result<Socket> listener = listenAt(place);
  if (!listener.ok())
    return listener.getStatus();
  Meeting meeting;
  meeting.ranks.resize(place.worldSize);
  Status status = collect(*listener, place, options.timeoutSeconds, meeting);
  if (status.ok())
    status = welcomeAll(meeting.ranks);
  if (status.ok())
    return std::move(meeting.ranks);
  turnAway(*listener, meeting, status.message(), options.lingerSeconds);
  return status;
}

//===--- All others ---------------------------------------------------------------===//

/// Within the limit, where the other end may drop packets or its queue be full. The error, or 0.
static int connectWithin(const Socket &socket, const addrinfo &to, const Deadline &deadline) {
  if (connect(socket.get(), to.ai_addr, to.ai_addrlen) == 0)
    return 0;
  if (errno != EINPROGRESS)
    return errno;
  if (!waitFor(socket, POLLOUT, deadline))
    return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

/// Rank 0 may start later.
static Result<Socket> reach(const ProcessPlace &place, double timeoutSeconds,
                            const Deadline &deadline) {
  int error = 0;
  do {
    Result<Addresses> addresses = Addresses::resolve(place, false);
    if (!addresses.ok())
      return addresses.getStatus();
    for (const addrinfo *at = addresses->get(); at; at = at->ai_next) {
      // Stays non-blocking: whoever reads or writes polls first (Socket.h).
      Socket socket(
          ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol));
      error = socket.isOpen() ? connectWithin(socket, *at, deadline) : errno;
      if (error == 0)
        return socket;
    }
    std::this_thread::sleep_for(kRetry);
  } while (!deadline.hasPassed());
  return Status::failure(fmt::format("rank {} cannot reach rank 0 at {}:{} within {} s: {}",
                                     place.rank, place.address, place.port, timeoutSeconds,
                                     std::strerror(error)));
}

static Result<std::vector<Socket>> ask(const ProcessPlace &place, double timeoutSeconds) {
  const Deadline deadline(timeoutSeconds);
  Result<Socket> socket = reach(place, timeoutSeconds, deadline);
  if (!socket.ok())
    return socket.getStatus();
  Hello hello;
  hello.rank = place.rank;
  hello.worldSize = place.worldSize;
  Answer answer;
  std::string reason;
  const auto receiveReason = [&] {
    reason.resize(answer.size);
    return receiveAll(*socket, reason.data(), reason.size(), timeoutSeconds);
  };
  if (!sendAll(*socket, &hello, sizeof hello, timeoutSeconds) ||
      !receiveAll(*socket, &answer, sizeof answer, timeoutSeconds) || answer.size > kMaxReason ||
      !receiveReason())
    return Status::failure(fmt::format("rank {} has no answer from rank 0 at {}:{}: it has failed, "
                                       "or waits for other ranks for longer than {} s",
                                       place.rank, place.address, place.port, timeoutSeconds));
  if (answer.refused != 0)
    return Status::failure("rank 0 says: " + reason);
  std::vector<Socket> sockets;
  sockets.push_back(std::move(*socket));
  return sockets;
}

Result<std::vector<Socket>> meetAtMaster(const ProcessPlace &place, const MeetingOptions &options) {
  return place.rank == 0 ? serve(place, options) : ask(place, options.timeoutSeconds);
}

} // namespace dualpipe::runtime
