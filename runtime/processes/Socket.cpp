//===- Socket.cpp - connections between the processes of a run ---------------------===//

#include "dualpipe/Runtime/Socket.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace dualpipe::runtime {

Socket::~Socket() {
  if (number >= 0)
    close(number);
}

int Deadline::getMilliseconds() const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  return int(std::max<int64_t>(0, std::min<int64_t>(left.count(), 1000)));
}

bool waitFor(const Socket &socket, short events, const Deadline &deadline) {
  while (!deadline.hasPassed()) {
    pollfd entry{socket.get(), events, 0};
    if (poll(&entry, 1, deadline.getMilliseconds()) > 0)
      return true;
  }
  return false;
}

/// Moves bytes by `call`, which does a part of them at a time.
template <typename Byte, typename Call>
static bool moveAll(const Socket &socket, Byte *bytes, size_t size, short events, double patience,
                    Call call) {
  while (size != 0) {
    if (!waitFor(socket, events, Deadline(patience)))
      return false;
    const ssize_t moved = call(bytes, size);
    if (moved < 0 && (errno == EAGAIN || errno == EINTR))
      continue;
    if (moved <= 0)
      return false;
    bytes += moved;
    size -= size_t(moved);
  }
  return true;
}

bool sendAll(const Socket &socket, const void *data, size_t size, double patience) {
  return moveAll(socket, static_cast<const char *>(data), size, POLLOUT, patience,
                 [&](const char *bytes, size_t left) {
                   return send(socket.get(), bytes, left, MSG_NOSIGNAL | MSG_DONTWAIT);
                 });
}

bool receiveAll(const Socket &socket, void *data, size_t size, double patience) {
  return moveAll(
      socket, static_cast<char *>(data), size, POLLIN, patience,
      [&](char *bytes, size_t left) { return recv(socket.get(), bytes, left, MSG_DONTWAIT); });
}

} // namespace dualpipe::runtime
