//===- Connection.h - messages between two processes of a run -----------------------===//

#ifndef DUALPIPE_RUNTIME_PROCESSES_CONNECTION_H
#define DUALPIPE_RUNTIME_PROCESSES_CONNECTION_H

#include "dualpipe/Runtime/Processes.h"
#include "dualpipe/Runtime/Socket.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

namespace dualpipe::runtime {

enum class MessageKind : uint32_t {
  Share,      ///< what rank 0 has
  Gather,     ///< what another rank has
  Request,    ///< rank 0 asks for an item
  Answer,     ///< the item
  Finish,     ///< rank 0 lets the others go
  Step,       ///< a rank has finished a step
  StandStill, ///< a rank waits for this; without text: it goes on
  Failure,    ///< to rank 0: the run has failed here
  Verdict,    ///< of rank 0: why the run has failed
  Alive,      ///< nothing else: the process runs
};

struct Message {
  MessageKind kind;
  Bytes bytes;
};

/// One end of a connection. Any thread sends; one receives.
class Connection {
public:
  /// The other end is `rank`.
  Connection(uint32_t rank, Socket socket);

  uint32_t getRank() const { return rank; }
  int getNumber() const { return socket.get(); }
  /// False where the other end has gone, or has taken nothing for `patience` seconds.
  bool send(MessageKind kind, const void *data, size_t size, double patience);
  /// Says that this process lives, where it can be said without waiting.
  void sayAlive();
  /// Nothing where the other end has gone, or says what no process of a run says.
  std::optional<Message> receive(double patience);
  /// What was sent arrives; nothing more is sent.
  void stopSending();

  // For who receives.
  std::chrono::steady_clock::time_point lastHeard = std::chrono::steady_clock::now();

  // For who holds the connections, under a lock of his.
  bool hasEnded = false;
  std::deque<Message> inbox;

private:
  const uint32_t rank;
  Socket socket;
  std::mutex sending;
};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_PROCESSES_CONNECTION_H
