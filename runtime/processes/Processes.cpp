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
/// A process says that it lives so many times while another one has patience, and at least so
/// often.
static constexpr double kSignsOfLife = 5, kMaxLifeSeconds = 10;

using Clock = std::chrono::steady_clock;
static Clock::duration toDuration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

namespace {
/// A failure that may come of another process's end.
struct Suspect {
  uint32_t rank;
  std::string text;
  bool tellsListener;
  Clock::time_point due;
};
} // namespace

struct Processes::State {
  State(const ProcessPlace &place, double patience, double secondLook)
      : place(place), patience(patience), secondLook(toDuration(secondLook)) {
    standing.resize(place.worldSize);
  }

  bool isHub() const { return place.rank == 0; }
  void receiveAll();
  void receiveFrom(Connection &from);
  void checkSilence(Connection &from);
  void sayAlive();
  void decideSuspect(bool isDue);
  bool isForUs(MessageKind kind) const;
  void stand(std::optional<std::string> holdUp);
  std::string lookAtAll();
  bool handle(Connection &from, Message message);
  void handleStep(const Message &message);
  void handleEnd(Connection &from);
  void handleFailure(uint32_t rank, std::string text, bool tellsListener);
  void setVerdict(std::string text, bool tellsListener);
  Result<Bytes> take(Connection &from, MessageKind kind, const char *what);
  Result<Message> takeAny(Connection &from, const char *what);
  Status describeConfusion(const Connection &from) const;
  Connection &getConnection(uint32_t rank) { return *connections[isHub() ? rank - 1 : 0]; }
  void sendAll(MessageKind kind, const Bytes &bytes, double seconds);

  const ProcessPlace place;
  const double patience;
  const Clock::duration secondLook; ///< from the word of a failure to the verdict
  std::vector<std::unique_ptr<Connection>> connections; ///< of the hub: by rank from 1; else one
  std::thread receiver, heart;

  std::mutex mutex; ///< guards what follows, and the inboxes
  std::condition_variable changed;
  std::optional<std::string> verdict;
  /// Of rank 0: a failure, until it is sure that no process has died before it.
  std::optional<Suspect> suspect;
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
    if (poll(entries.data(), entries.size(), kLookMilliseconds) < 0)
      continue;
    for (size_t i = 0; i != open.size(); ++i)
      entries[i].revents == 0 ? checkSilence(*open[i]) : receiveFrom(*open[i]);
    decideSuspect(true);
  }
}

void Processes::State::receiveFrom(Connection &from) {
  std::optional<Message> message = from.receive(patience);
  from.lastHeard = Clock::now();
  if (!message || !handle(from, std::move(*message)))
    handleEnd(from);
}

/// Nothing of it is there to be read. Longer than patience, which names whoever has not come.
void Processes::State::checkSilence(Connection &from) {
  if (Clock::now() - from.lastHeard < toDuration(patience + kGraceSeconds))
    return;
  {
    const std::lock_guard lock(mutex);
    if (isOver || isLeaving)
      return;
  }
  setVerdict(fmt::format("rank {} has given no sign of life for {} s; is its process stopped?",
                         from.getRank(), patience + kGraceSeconds),
             true);
}

/// A thread of its own: others wait, compute and receive what is large.
void Processes::State::sayAlive() {
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, toDuration(std::min(patience / kSignsOfLife, kMaxLifeSeconds)),
                           [&] { return isLeaving; })) {
    std::vector<Connection *> open;
    for (const std::unique_ptr<Connection> &connection : connections)
      if (!connection->hasEnded)
        open.push_back(connection.get());
    lock.unlock();
    for (Connection *connection : open)
      connection->sayAlive();
    lock.lock();
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

/// Whether the other side says such things.
bool Processes::State::isForUs(MessageKind kind) const {
  switch (kind) {
  case MessageKind::Gather:
  case MessageKind::Answer:
  case MessageKind::Step:
  case MessageKind::StandStill:
  case MessageKind::Failure:
    return isHub();
  case MessageKind::Share:
  case MessageKind::Request:
  case MessageKind::Finish:
  case MessageKind::Verdict:
    return !isHub();
  case MessageKind::Alive:
    return true;
  }
  return false; // of no kind that there is
}

/// False for a message that cannot be one.
bool Processes::State::handle(Connection &from, Message message) {
  if (!isForUs(message.kind))
    return false;
  switch (message.kind) {
  case MessageKind::Failure:
    handleFailure(from.getRank(), toText(message.bytes), true);
    return true;
  case MessageKind::Verdict:
    setVerdict(toText(message.bytes), true);
    return true;
  case MessageKind::Step:
    handleStep(message);
    return true;
  case MessageKind::Alive:
    return true;
  case MessageKind::StandStill: {
    const std::lock_guard lock(mutex);
    standing[from.getRank()] =
        message.bytes.empty() ? std::nullopt : std::optional(toText(message.bytes));
    return true;
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

/// A process that ends before the run is over has failed, and says no more why than it has said.
void Processes::State::handleEnd(Connection &from) {
  bool isFailure = false, hasSaidWhy = false;
  {
    const std::lock_guard lock(mutex);
    from.hasEnded = true;
    hasSaidWhy = suspect && suspect->rank == from.getRank();
    isFailure = !isOver && !isLeaving;
  }
  if (isFailure && hasSaidWhy)
    decideSuspect(false);
  else if (isFailure)
    setVerdict(fmt::format("rank {} went away: its process was killed or has crashed, or its "
                           "machine cannot be reached; its own output may say more",
                           from.getRank()),
               true);
  changed.notify_all();
}

/// A process that has died makes others fail, since they have lost it: then it is the one to name.
/// The kernel closes its connections one by one, so its end may come after their word: the verdict
/// waits a little. Nobody looks any more once all have been let go.
void Processes::State::handleFailure(uint32_t rank, std::string text, bool tellsListener) {
  bool isLate = false;
  {
    const std::lock_guard lock(mutex);
    if (!suspect)
      suspect = Suspect{rank, nameRank(rank, text), tellsListener, Clock::now() + secondLook};
    isLate = isOver;
  }
  if (isLate)
    decideSuspect(false);
}

/// The failure of which nothing else has come: at its time, or at once.
void Processes::State::decideSuspect(bool isDue) {
  std::optional<Suspect> decided;
  {
    const std::lock_guard lock(mutex);
    if (verdict || !suspect || (isDue && Clock::now() < suspect->due))
      return;
    decided = suspect;
  }
  setVerdict(std::move(decided->text), decided->tellsListener);
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

/// Rank 0 waits so long as it has patience; the others as long as rank 0 gives signs of life.
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
  return describeConfusion(from);
}

Status Processes::State::describeConfusion(const Connection &from) const {
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
                                                   const MeetingOptions &options,
                                                   const ProcessTimes &times) {
  Result<std::vector<Socket>> sockets = meetAtMaster(place, options);
  if (!sockets.ok())
    return sockets.getStatus();
  auto state = std::make_unique<State>(
      place, times.patienceSeconds.value_or(options.timeoutSeconds), times.secondLookSeconds);
  for (size_t i = 0; i != sockets->size(); ++i)
    if ((*sockets)[i].isOpen())
      state->connections.push_back(std::make_unique<Connection>(place.rank == 0 ? uint32_t(i) : 0,
                                                                std::move((*sockets)[i])));
  std::unique_ptr<Processes> processes(new Processes(std::move(state)));
  try {
    State *own = processes->state.get();
    own->receiver = std::thread([own] { own->receiveAll(); });
    own->heart = std::thread([own] { own->sayAlive(); });
  } catch (const std::system_error &error) {
    return Status::failure(
        fmt::format("cannot start the thread that listens to other processes: {}", error.what()));
  }
  return processes;
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
    if (message->kind != MessageKind::Request || message->bytes.size() != sizeof item)
      return state->describeConfusion(hub);
    std::memcpy(&item, message->bytes.data(), sizeof item);
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
  state->decideSuspect(false); // while the others can be told
  std::unique_lock lock(state->mutex);
  if (state->hasLeft)
    return;
  state->isLeaving = true;
  lock.unlock();
  state->changed.notify_all();
  if (state->heart.joinable())
    state->heart.join();
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
  if (state->receiver.joinable())
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

/// What the ranks of this process wait for, where they stand still.
void Processes::State::stand(std::optional<std::string> holdUp) {
  const Bytes bytes = toBytes(holdUp.value_or(""));
  bool hasTurned = false;
  {
    const std::lock_guard lock(mutex);
    hasTurned = standing[place.rank] != holdUp;
    standing[place.rank] = std::move(holdUp);
  }
  if (hasTurned && !isHub())
    sendAll(MessageKind::StandStill, bytes, patience);
}

/// What all wait for, where they stand still at this look and stood still at the last one: in
/// between, the word of somebody who has gone on may have been under way.
std::string Processes::State::lookAtAll() {
  const std::lock_guard lock(mutex);
  const bool allStand = std::all_of(standing.begin(), standing.end(),
                                    [](const auto &its) { return its.has_value(); });
  std::string text;
  if (allStand && stoodStill && !suspect)
    for (const std::optional<std::string> &its : standing)
      text += "\n  " + *its;
  stoodStill = allStand;
  return text;
}

void Processes::standStill(const std::optional<std::string> &holdUp) {
  state->stand(holdUp);
  if (!state->isHub())
    return;
  if (const std::string text = state->lookAtAll(); !text.empty())
    state->setVerdict(
        fmt::format("no progress for {} s; what each rank waits for:{}", state->patience, text),
        true);
}

void Processes::finishRun(const std::string &end) { state->stand(end); }

void Processes::fail(const Status &status) {
  {
    const std::lock_guard lock(state->mutex);
    if (state->verdict || std::exchange(state->hasTold, true))
      return;
  }
  if (state->isHub())
    state->handleFailure(0, status.message(), false);
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
