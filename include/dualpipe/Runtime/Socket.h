//===- Socket.h - connections between the processes of a run -----------------------===//

#ifndef DUALPIPE_RUNTIME_SOCKET_H
#define DUALPIPE_RUNTIME_SOCKET_H

#include <chrono>
#include <cstddef>
#include <utility>

namespace dualpipe::runtime {

/// A socket that closes itself. Move-only.
class Socket {
public:
  explicit Socket(int number = -1) : number(number) {}
  Socket(Socket &&other) noexcept : number(std::exchange(other.number, -1)) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(number, other.number);
    return *this;
  }
  ~Socket();

  int get() const { return number; }
  bool isOpen() const { return number >= 0; }

private:
  int number;
};

/// A point in time after which nobody waits any more.
class Deadline {
public:
  explicit Deadline(double seconds)
      : end(Clock::now() +
            std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}
  bool hasPassed() const { return Clock::now() >= end; }
  /// Until then, at most a second.
  int getMilliseconds() const;

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end;
};

/// Waits until the socket is ready for `events` of poll(2). False after the deadline.
bool waitFor(const Socket &socket, short events, const Deadline &deadline);

/// All bytes, or false: the other end has gone, or has taken or sent nothing for `patience`
/// seconds.
bool sendAll(const Socket &socket, const void *data, size_t size, double patience);
bool receiveAll(const Socket &socket, void *data, size_t size, double patience);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_SOCKET_H
