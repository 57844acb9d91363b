//===- Bridge.h - NCCL made of software between processes -----------------------===//
//
// A unique id names a socket of the process that made it. Other processes whose ranks
// join connect to it; that process forwards what is not for its own ranks. Over it go
// who has joined, which receives have begun (a send that is not eager ends only then),
// the data of sends, and what ranks bring to collectives. So a rank in another process
// is like one in this: the k-th send meets the k-th receive, groups and the order of
// a communicator are those of the rank that issues them, and where a rank has died or
// aborted the others wait until they abort, too.
//
// Not between processes: vector clocks (what a rank receives is ordered after nothing),
// the order of communicators, and waits that can never end.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_TEST_SUPPORT_SOFTGPU_BRIDGE_H
#define DUALPIPE_TEST_SUPPORT_SOFTGPU_BRIDGE_H

#include "State.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace dualpipe::test::softgpu {

/// What one process tells another about a communicator.
struct Frame {
  enum Kind : uint32_t {
    Join,       ///< rank `from`, on GPU `to`, of `number` ranks
    Ready,      ///< all have joined; `number` is 1 where they may not
    Post,       ///< the receive of this number, from `from` to `to`, has begun
    Data,       ///< of the send of this number, from `from` to `to`
    Contribute, ///< rank `from` brings this to the collective of this number
  };
  Kind kind;
  uint32_t id; ///< of the communicator, as its maker numbers them
  int32_t from = 0, to = 0;
  uint64_t number = 0;
  uint32_t captured = 0; ///< whether it is of a captured graph: those meet each other only
  uint64_t size = 0;     ///< of the data behind it
};

inline Frame makeFrame(Frame::Kind kind, int from, int to, const Part &part) {
  return {kind, 0, from, to, part.number, part.captured, 0};
}

class Link;

/// All calls but constructor and destructor with the lock of the state.
class Bridge {
public:
  explicit Bridge(SoftGpu::State &state);
  /// Without the lock.
  ~Bridge();

  /// The id of a new communicator: begins to listen.
  UniqueId makeId(uint32_t number);
  /// A rank of this process has joined. False where the maker of the id cannot be reached.
  bool join(Clique &clique, const UniqueId &id, int rank, int gpu);
  void send(const Clique &clique, Frame frame, std::vector<unsigned char> data = {});

private:
  friend class Link;
  void listenForOthers();
  void accept();
  Link *connectTo(const std::string &maker);
  void receive(Link &from, const Frame &frame, std::vector<unsigned char> data);
  void addMember(Link &from, const Frame &frame);
  void deliver(Clique &clique, const Frame &frame, std::vector<unsigned char> data);
  void announce(Clique &clique);
  void route(Link *origin, Clique &clique, const Frame &frame,
             const std::vector<unsigned char> &data);

  SoftGpu::State &state;
  std::string name; ///< of our socket; empty until we listen
  int listener = -1;
  std::thread acceptor;
  std::vector<std::unique_ptr<Link>> links;
};

} // namespace dualpipe::test::softgpu

#endif // DUALPIPE_TEST_SUPPORT_SOFTGPU_BRIDGE_H
