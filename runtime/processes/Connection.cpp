//===- Connection.cpp - messages between two processes of a run ---------------------===//

#include "runtime/processes/Connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <new>
#include <poll.h>
#include <sys/socket.h>

namespace dualpipe::runtime {

/// No message is larger: whoever says more is not one of us.
static constexpr uint64_t kMaxMessage = uint64_t(1) << 42;
/// A machine that has gone without a word is missed after these seconds.
static constexpr int kKeepIdle = 10, kKeepInterval = 5, kKeepCount = 4;
/// Keepalive rests while something sent has not been acknowledged: the same time for that.
static constexpr int kUserTimeoutMilliseconds = 1000 * (kKeepIdle + kKeepInterval * kKeepCount);

namespace {
struct Header {
  MessageKind kind;
  uint32_t reserved = 0;
  uint64_t size;
};
} // namespace

/// A socket without these still works.
static void setOption(int socket, int level, int option, int value) {
  (void)setsockopt(socket, level, option, &value, sizeof value);
}

Connection::Connection(uint32_t rank, Socket given) : rank(rank), socket(std::move(given)) {
  setOption(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1); // steps are short messages
  setOption(socket.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
  setOption(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdle);
  setOption(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL, kKeepInterval);
  setOption(socket.get(), IPPROTO_TCP, TCP_KEEPCNT, kKeepCount);
  setOption(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMilliseconds);
}

bool Connection::send(MessageKind kind, const void *data, size_t size, double patience) {
  const std::lock_guard lock(sending);
  const Header header{kind, 0, size};
  return sendAll(socket, &header, sizeof header, patience) && sendAll(socket, data, size, patience);
}

std::optional<Message> Connection::receive(double patience) {
  Header header;
  if (!receiveAll(socket, &header, sizeof header, patience) || header.kind > MessageKind::Alive ||
      header.size > kMaxMessage)
    return {};
  try {
    Message message{header.kind, Bytes(header.size)};
    if (receiveAll(socket, message.bytes.data(), message.bytes.size(), patience))
      return message;
  } catch (const std::bad_alloc &) {
    // Nothing can be read behind it: the same as an end.
  }
  return {};
}

/// Whoever sends at the moment says it as well. Where there is room at all there is room for this.
void Connection::sayAlive() {
  const std::unique_lock lock(sending, std::try_to_lock);
  pollfd entry{socket.get(), POLLOUT, 0};
  if (!lock || poll(&entry, 1, 0) != 1)
    return;
  const Header header{MessageKind::Alive, 0, 0};
  (void)sendAll(socket, &header, sizeof header, 1); // who has gone is missed by who receives
}

void Connection::stopSending() {
  const std::lock_guard lock(sending);
  (void)shutdown(socket.get(), SHUT_WR); // it may have ended already
}

} // namespace dualpipe::runtime
