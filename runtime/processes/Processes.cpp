//===- Processes.cpp - a run with one process per rank ------------------------------===//

#include "dualpipe/Runtime/Processes.h"
#include "runtime/processes/Connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <poll.h>
#include <thread>

namespace dualpipe::runtime {

/// How long a process may take to hear of a failure, and to take what is sent after it.
static constexpr double kGraceSeconds = 3;
static constexpr std::chrono::duration<double> kGrace{kGraceSeconds};
/// How often the thread that receives looks whether it is still wanted.
static constexpr int kLookMilliseconds = 100;

struct Processes::State {
  State(const ProcessPlace &place, double patience) : place(place), patience(patience) {
    standing.resize(place.worldSize);
  }

  bool isHub() const { return place.rank == 0; }
  void receiveAll();
  bool handle(Connection &from, Message message);
  void handleStep(const Message &message);
  void handleEnd(Connection &from);
  void handleFailure(std::string text, bool tellsListener);
  void setVerdict(std::string text, bool tellsListener);
  Result<Bytes> take(Connection &from, MessageKind kind, const char *what);
  Result<Message> takeAny(Connection &from, const char *what);
  Connection &getConnection(uint32_t rank) { return *connections[isHub() ? rank - 1 : 0]; }
  void sendAll(MessageKind kind, const Bytes &bytes, double seconds);

  const ProcessPlace place;
  const double patience;
  std::vector<std::unique_ptr<Connection>> connections; ///< of the hub: by rank from 1; else one
  std::thread receiver;

  std::mutex mutex; ///< guards what follows, and the inboxes
  std::condition_variable changed;
  std::optional<std::string> verdict;
  bool hasTold = false; ///< a failure of this process
  bool isOver = false;  ///< rank 0 has let all go: ends are no failures
  bool isLeaving = false;
  bool hasLeft = false;
  /// By rank: what it waits for, where it stands still. Only of the own process but for the hub.
  std::vector<std::optional<std::string>> standing;
  bool stoodStill = false; ///< all did at the last look

  std::mutex listening; ///< held during calls of the listener
  Listener *listener = nullptr;
};

static Bytes toBytes(const std::string &text) { return Bytes(text.begin(), text.end()); }
static std::string toText(const Bytes &bytes) { return std::string(bytes.begin(), bytes.end()); }

//===--- Receiving ----------------------------------------------------------------===//

void Processes::State::receiveAll() {
  for (;;) {
    std::vector<pollfd> entries;
    std::vector<Connection *> open;
    {
      const std::lock_guard lock(mutex);
      if (hasLeft)
        return;
      for (const std::unique_ptr<Connection> &connection : connections)
        if (!connection->hasEnded) {
          entries.push_back({connection->getNumber(), POLLIN, 0});
          open.push_back(connection.get());
        }
    }
    if (open.empty())
      return;
    if (poll(entries.data(), entries.size(), kLookMilliseconds) <= 0)
      continue;
    for (size_t i = 0; i != open.size(); ++i) {
      if (entries[i].revents == 0)
        continue;
      std::optional<Message> message = open[i]->receive(patience);
      if (!message || !handle(*open[i], std::move(*message)))
        handleEnd(*open[i]);
    }
  }
}

/// "rank 2 failed: what it says", unless it begins so.
static std::string nameRank(uint32_t rank, const std::string &text) {
  const std::string name = fmt::format("rank {}", rank);
  const bool named =
      text.compare(0, name.size(), name) == 0 &&
      (text.size() == name.size() || text[name.size()] < '0' || text[name.size()] > '9');
  return named ? text : fmt::format("{} failed: {}", name, text);
}

/// False for a message that cannot be one.
bool Processes::State::handle(Connection &from, Message message) {
  switch (message.kind) {
  case MessageKind::Failure:
    handleFailure(nameRank(from.getRank(), toText(message.bytes)), true);
    return isHub();
  case MessageKind::Verdict:
    setVerdict(toText(message.bytes), true);
    return !isHub();
  case MessageKind::Step:
    handleStep(message);
    return isHub();
  case MessageKind::StandStill: {
    const std::lock_guard lock(mutex);
    standing[from.getRank()] =
        message.bytes.empty() ? std::nullopt : std::optional(toText(message.bytes));
    return isHub();
  }
  case MessageKind::Finish:
  case MessageKind::Share:
  case MessageKind::Gather:
  case MessageKind::Request:
  case MessageKind::Answer:
    break;
  }
  {
    const std::lock_guard lock(mutex);
    isOver |= message.kind == MessageKind::Finish;
    from.inbox.push_back(std::move(message));
  }
  changed.notify_all();
  return true;
}

void Processes::State::handleStep(const Message &message) {
  uint32_t step = 0;
  if (message.bytes.size() < sizeof step)
    return;
  std::memcpy(&step, message.bytes.data(), sizeof step);
  std::vector<MicrobatchLoss> losses((message.bytes.size() - sizeof step) / sizeof(MicrobatchLoss));
  if (!losses.empty())
    std::memcpy(losses.data(), message.bytes.data() + sizeof step,
                losses.size() * sizeof(MicrobatchLoss));
  const std::lock_guard lock(listening);
  if (listener)
    listener->onPeerStep(step, losses);
}

/// A process that ends before the run is over has failed, and says no more why.
void Processes::State::handleEnd(Connection &from) {
  bool isFailure = false;
  {
    const std::lock_guard lock(mutex);
    from.hasEnded = true;
    isFailure = !isOver && !isLeaving;
  }
  if (isFailure)
    setVerdict(fmt::format("rank {} went away: its process was killed or has crashed, or its "
                           "machine cannot be reached; its own output may say more",
                           from.getRank()),
               true);
  changed.notify_all();
}

/// A process that has died makes others fail, since they have lost it: then it is the one to name.
void Processes::State::handleFailure(std::string text, bool tellsListener) {
  for (const std::unique_ptr<Connection> &connection : connections)
    if (connection->isAtEnd())
      handleEnd(*connection);
  setVerdict(std::move(text), tellsListener);
}

/// The first one counts, and rank 0 tells it to all.
void Processes::State::setVerdict(std::string text, bool tellsListener) {
  {
    const std::lock_guard lock(mutex);
    if (verdict)
      return;
    verdict = text;
  }
  if (isHub())
    sendAll(MessageKind::Verdict, toBytes(text), kGraceSeconds);
  changed.notify_all();
  if (!tellsListener)
    return;
  const std::lock_guard lock(listening);
  if (listener)
    listener->onPeerFailure(Status::failure(std::move(text)));
}

/// Who does not take it is missed by the thread that receives.
void Processes::State::sendAll(MessageKind kind, const Bytes &bytes, double seconds) {
  for (const std::unique_ptr<Connection> &connection : connections)
    (void)connection->send(kind, bytes.data(), bytes.size(), seconds);
}

/// Rank 0 waits so long as it has patience; the others as long as rank 0 lives, which has it.
Result<Message> Processes::State::takeAny(Connection &from, const char *what) {
  std::unique_lock lock(mutex);
  const auto isDone = [&] { return !from.inbox.empty() || verdict || from.hasEnded; };
  if (isHub() && !changed.wait_for(lock, std::chrono::duration<double>(patience), isDone)) {
    lock.unlock();
    setVerdict(fmt::format("rank {} has not come to {} after {} s; is its process stopped?",
                           from.getRank(), what, patience),
               true);
    lock.lock();
  }
  changed.wait(lock, isDone);
  if (verdict || from.inbox.empty())
    return Status::failure(verdict.value_or(fmt::format("rank {} has left", from.getRank())));
  Message message = std::move(from.inbox.front());
  from.inbox.pop_front();
  return message;
}

Result<Bytes> Processes::State::take(Connection &from, MessageKind kind, const char *what) {
  Result<Message> message = takeAny(from, what);
  if (!message.ok())
    return message.getStatus();
  if (message->kind == kind)
    return std::move(message->bytes);
  return Status::failure(fmt::format("rank {} is at another point of the run than rank {}: do both "
                                     "run the same launcher?",
                                     from.getRank(), place.rank));
}

//===--- Before and after the run ---------------------------------------------------===//

Processes::Processes(std::unique_ptr<State> state) : state(std::move(state)) {}
Processes::~Processes() { leave(); }
const ProcessPlace &Processes::getPlace() const { return state->place; }
bool Processes::collects() const { return state->isHub(); }

Result<std::unique_ptr<Processes>> Processes::meet(const ProcessPlace &place,
                                                   const MeetingOptions &options) {
  Result<std::vector<Socket>> sockets = meetAtMaster(place, options);
  if (!sockets.ok())
    return sockets.getStatus();
  auto state = std::make_unique<State>(place, options.timeoutSeconds);
  for (size_t i = 0; i != sockets->size(); ++i)
    if ((*sockets)[i].isOpen())
      state->connections.push_back(std::make_unique<Connection>(place.rank == 0 ? uint32_t(i) : 0,
                                                                std::move((*sockets)[i])));
  try {
    state->receiver = std::thread([own = state.get()] { own->receiveAll(); });
  } catch (const std::system_error &error) {
    return Status::failure(
        fmt::format("cannot start the thread that listens to other processes: {}", error.what()));
  }
  return std::unique_ptr<Processes>(new Processes(std::move(state)));
}

Result<Bytes> Processes::share(const Bytes &bytes) {
  if (!state->isHub())
    return state->take(state->getConnection(0), MessageKind::Share, "what rank 0 shares");
  state->sendAll(MessageKind::Share, bytes, state->patience);
  return bytes;
}

Result<std::vector<Bytes>> Processes::gather(const Bytes &bytes) {
  if (!state->isHub()) {
    state->sendAll(MessageKind::Gather, bytes, state->patience);
    return std::vector<Bytes>();
  }
  std::vector<Bytes> all = {bytes};
  for (uint32_t rank = 1; rank != state->place.worldSize; ++rank) {
    Result<Bytes> its =
        state->take(state->getConnection(rank), MessageKind::Gather, "where ranks compare");
    if (!its.ok())
      return its.getStatus();
    all.push_back(std::move(*its));
  }
  return all;
}

Result<Bytes> Processes::fetch(uint32_t rank, uint64_t item) {
  Connection &connection = state->getConnection(rank);
  (void)connection.send(MessageKind::Request, &item, sizeof item, state->patience);
  return state->take(connection, MessageKind::Answer, "its results");
}

Status Processes::answer(const std::function<Result<Bytes>(uint64_t)> &find) {
  Connection &hub = state->getConnection(0);
  for (;;) {
    Result<Message> message = state->takeAny(hub, "the end");
    if (!message.ok())
      return message.getStatus();
    if (message->kind == MessageKind::Finish)
      return Status::success();
    uint64_t item = 0;
    std::memcpy(&item, message->bytes.data(), std::min(sizeof item, message->bytes.size()));
    Result<Bytes> found = find(item);
    if (!found.ok())
      return found.getStatus();
    (void)hub.send(MessageKind::Answer, found->data(), found->size(), state->patience);
  }
}

void Processes::finish() {
  {
    const std::lock_guard lock(state->mutex);
    state->isOver = true;
  }
  state->sendAll(MessageKind::Finish, {}, state->patience);
}

void Processes::leave() {
  std::unique_lock lock(state->mutex);
  if (state->hasLeft)
    return;
  state->isLeaving = true;
  lock.unlock();
  for (const std::unique_ptr<Connection> &connection : state->connections)
    connection->stopSending();
  lock.lock();
  // Closing while something is unread would take back what was sent.
  state->changed.wait_for(lock, kGrace, [&] {
    return std::all_of(state->connections.begin(), state->connections.end(),
                       [](const auto &connection) { return connection->hasEnded; });
  });
  state->hasLeft = true;
  lock.unlock();
  state->receiver.join();
}

//===--- While it runs --------------------------------------------------------------===//

void Processes::listen(Listener *listener) {
  {
    const std::lock_guard lock(state->listening);
    state->listener = listener;
  }
  std::optional<std::string> earlier;
  {
    const std::lock_guard lock(state->mutex);
    earlier = state->verdict;
  }
  if (listener && earlier)
    listener->onPeerFailure(Status::failure(*earlier));
}

void Processes::finishStep(uint32_t step, std::span<const MicrobatchLoss> losses) {
  if (state->isHub())
    return;
  Bytes bytes(sizeof step + losses.size_bytes());
  std::memcpy(bytes.data(), &step, sizeof step);
  if (!losses.empty())
    std::memcpy(bytes.data() + sizeof step, losses.data(), losses.size_bytes());
  state->sendAll(MessageKind::Step, bytes, state->patience);
}

void Processes::standStill(const std::optional<std::string> &holdUp) {
  State &own = *state;
  bool hasTurned = false, allStand = false;
  std::string text;
  {
    const std::lock_guard lock(own.mutex);
    std::optional<std::string> &mine = own.standing[own.place.rank];
    hasTurned = mine.has_value() != holdUp.has_value();
    mine = holdUp;
    allStand = std::all_of(own.standing.begin(), own.standing.end(),
                           [](const std::optional<std::string> &its) { return its.has_value(); });
    // Once more: somebody may have gone on, and his word be under way.
    if (allStand && own.stoodStill)
      for (const std::optional<std::string> &its : own.standing)
        text += "\n  " + *its;
    own.stoodStill = allStand;
  }
  if (!own.isHub()) {
    if (hasTurned)
      own.sendAll(MessageKind::StandStill, toBytes(holdUp.value_or("")), own.patience);
  } else if (!text.empty()) {
    own.setVerdict(
        fmt::format("no progress for {} s; what each rank waits for:{}", own.patience, text), true);
  }
}

void Processes::fail(const Status &status) {
  {
    const std::lock_guard lock(state->mutex);
    if (state->verdict || std::exchange(state->hasTold, true))
      return;
  }
  if (state->isHub())
    state->handleFailure(nameRank(0, status.message()), false);
  else
    state->sendAll(MessageKind::Failure, toBytes(status.message()), kGraceSeconds);
}

Status Processes::agreeOnFailure(const Status &own) {
  fail(own);
  std::unique_lock lock(state->mutex);
  state->changed.wait_for(lock, kGrace, [&] { return state->verdict.has_value(); });
  return state->verdict ? Status::failure(*state->verdict) : own;
}

} // namespace dualpipe::runtime
