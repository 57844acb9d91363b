//===- Graph.cpp - a rank's step as a CUDA graph -----------------------------------===//
//
//   step 0   issued
//   step 1   all ranks meet
//            |- begin, fork all streams, issue, join ------|  nothing runs
//            all ranks meet: was it good on all of them?
//            launched; or, where not, issued
//   step 2…  launched; or issued
//
// With a graph per rank each begins and ends a capture of its own. On one GPU the
// first rank does, and all others fork their streams from it: events that ranks
// record for each other belong to the same capture then.
//
//===----------------------------------------------------------------------===//

#include "dualpipe/Runtime/Cuda/Graph.h"

#include "dualpipe/Program/Verify.h"
#include "runtime/device/cuda/Capture.h"
#include "runtime/device/cuda/Gathering.h"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace dualpipe::runtime::cuda {

using program::Command;
using program::CommandOp;

/// What ranks know together.
struct GraphShare {
  GraphShare(const program::SharedInfo &shared, GraphOptions options)
      : shared(shared), options(std::move(options)) {}

  void fail(const std::string &message);
  void addCulprit(uint32_t rank, const std::string &message);
  void decide();

  const program::SharedInfo &shared;
  const GraphOptions options;
  Gathering gathering;
  std::weak_ptr<StepCapture> common; ///< where ranks are captured together
  std::mutex trials;                 ///< one call at a time: others could spoil its capture
  std::atomic<bool> failed{false};
  std::atomic<uint32_t> numReplayed{0};

  std::mutex mutex;         ///< guards what follows
  std::string firstFailure; ///< in time
  std::map<uint32_t, std::string> culprits;
  std::string note;

  // Written by the last one at a gathering, read by all after it.
  Status agreed = Status::success(); ///< whether the ranks could decide
  std::string reason;                ///< why steps are issued; empty where they are captured
  Status launched = Status::success();
};

void GraphShare::fail(const std::string &message) {
  const std::lock_guard lock(mutex);
  if (firstFailure.empty())
    firstFailure = message;
  failed.store(true, std::memory_order_release);
}

void GraphShare::addCulprit(uint32_t rank, const std::string &message) {
  const std::lock_guard lock(mutex);
  culprits.emplace(rank, message);
}

/// A stage function that is at fault says more than what failed after it.
void GraphShare::decide() {
  const std::lock_guard lock(mutex);
  reason = culprits.empty() ? firstFailure : culprits.begin()->second;
  if (options.agree) {
    Result<std::string> all = options.agree(reason);
    if (all.ok())
      reason = std::move(*all);
    else
      agreed = all.getStatus();
  }
  if (!reason.empty() && options.use == GraphUse::Try)
    note = fmt::format("steps are issued without graphs, since one cannot be captured: {}", reason);
}

namespace {

/// One rank's graph, or its part in one.
class RankGraph : public StepGraph, private CaptureWatch {
public:
  RankGraph(GraphShare &hub, const program::RankProgram &rank, CudaDevice &device,
            std::shared_ptr<StepCapture> capture, LegacySentry sentry, bool leads, bool counts)
      : hub(hub), rank(rank), device(device), capture(std::move(capture)), leads(leads),
        counts(counts) {
    this->sentry.emplace(std::move(sentry));
  }
  ~RankGraph() override;

  Status addStreams();
  Status runStep(StepCommands &commands) override;
  void drop() override { capture->drop(); }

private:
  enum class Turn { WarmUp, Capture, Issue, Replay };

  bool gather(bool asksGpu, const std::function<void()> &action = {});
  Status captureStep(StepCommands &commands);
  Status takeDown(StepCommands &commands);
  Status issueInto(StepCommands &commands);
  Status replay();
  std::string findCulprit(StepCommands &commands);
  Status stopped() const;

  Status checkLaunch(uint32_t stream, uint32_t command, Status status) override;
  bool isStopped() const override { return hub.failed.load(std::memory_order_acquire); }

  GraphShare &hub;
  const program::RankProgram &rank;
  CudaDevice &device;
  const std::shared_ptr<StepCapture> capture;
  std::optional<LegacySentry> sentry; ///< of trials
  const bool leads;                   ///< begins and ends the capture
  const bool counts;                  ///< the steps of all
  std::vector<Stream> streams;
  std::vector<OwnedEvent> joins;   ///< by stream
  std::optional<OwnedEvent> ready; ///< for the next launch
  Turn turn = Turn::WarmUp;
};

} // namespace

//===--- Setting up ---------------------------------------------------------===//

GraphHub::GraphHub(const program::SharedInfo &shared, GraphOptions options)
    : state(std::make_unique<GraphShare>(shared, std::move(options))) {}
GraphHub::~GraphHub() = default;

std::string GraphHub::takeNote() {
  const std::lock_guard lock(state->mutex);
  return std::exchange(state->note, {});
}

uint32_t GraphHub::getNumReplayed() const {
  return state->numReplayed.load(std::memory_order_relaxed);
}

Result<std::unique_ptr<StepGraph>> GraphHub::connect(const program::RankProgram &rank,
                                                     CudaDevice &device) {
  const ContextScope scope(device.getGpu());
  if (!scope.getStatus().ok())
    return scope.getStatus();
  std::shared_ptr<StepCapture> capture = state->common.lock();
  const bool leads = !capture;
  if (leads) {
    Result<std::unique_ptr<StepCapture>> made = StepCapture::create(device.getGpu());
    if (!made.ok())
      return made.getStatus();
    capture = std::move(*made);
  }
  if (state->options.together)
    state->common = capture;
  Result<LegacySentry> sentry = LegacySentry::create(device.getDriver());
  if (!sentry.ok())
    return sentry.getStatus();
  auto graph =
      std::make_unique<RankGraph>(*state, rank, device, std::move(capture), std::move(*sentry),
                                  leads, state->gathering.getNumMembers() == 0);
  if (Status status = graph->addStreams(); !status.ok())
    return status;
  state->gathering.add();
  return std::unique_ptr<StepGraph>(std::move(graph));
}

Status RankGraph::addStreams() {
  for (uint32_t i = 0; i != rank.streams.size(); ++i) {
    Result<OwnedEvent> join = OwnedEvent::create(device.getDriver());
    if (!join.ok())
      return join.getStatus();
    joins.push_back(std::move(*join));
    streams.push_back(device.getStream(i));
  }
  Result<OwnedEvent> event = OwnedEvent::create(device.getDriver());
  if (!event.ok())
    return event.getStatus();
  ready.emplace(std::move(*event));
  return Status::success();
}

RankGraph::~RankGraph() {
  if (device.isAborted()) {
    capture->abandon();
    sentry->abandon();
  }
  const ContextScope scope(device.getGpu()); // for events and the stream
  joins.clear();
  ready.reset();
  sentry.reset();
}

//===--- Steps --------------------------------------------------------------===//

Status RankGraph::stopped() const {
  return Status::failure(fmt::format(
      "rank {} was stopped while it waited for the other ranks at a captured step", rank.rank));
}

/// `asksGpu`: nobody captures yet or any more, and the GPU may be looked at meanwhile.
bool RankGraph::gather(bool asksGpu, const std::function<void()> &action) {
  const auto poll = [&] {
    if (!asksGpu)
      return !device.isAborted();
    device.getDriver().streamQuery(device.getCopyStream()); // an error shows in what follows
    return device.poll();
  };
  return hub.gathering.arrive(poll, action);
}

Status RankGraph::runStep(StepCommands &commands) {
  switch (turn) {
  case Turn::WarmUp:
    turn = Turn::Capture;
    return commands.issueAll();
  case Turn::Capture:
    if (Status status = captureStep(commands); !status.ok())
      return status;
    return turn == Turn::Replay ? replay() : commands.issueAll();
  case Turn::Issue:
    return commands.issueAll();
  case Turn::Replay:
    break;
  }
  return replay();
}

/// Decides for all later steps.
Status RankGraph::captureStep(StepCommands &commands) {
  device.setGraphPosition(GraphPosition::Waits);
  // Twice: when all have come the second time nobody asks the GPU any more.
  if (!gather(true) || !gather(false))
    return stopped();
  device.setGraphPosition(GraphPosition::Captures);
  device.setCapture(this);
  const Status taken = takeDown(commands);
  device.setCapture(nullptr);
  if (!taken.ok())
    hub.fail(taken.message());
  if (!gather(false))
    return stopped();
  const bool mayBeAtFault = !taken.ok() || hub.options.together;
  if (hub.failed.load(std::memory_order_acquire) && mayBeAtFault)
    if (const std::string culprit = findCulprit(commands); !culprit.empty())
      hub.addCulprit(rank.rank, culprit);
  if (!gather(false, [&] { hub.decide(); }))
    return stopped();
  device.setGraphPosition(GraphPosition::None);
  if (!hub.agreed.ok())
    return hub.agreed;
  turn = hub.reason.empty() ? Turn::Replay : Turn::Issue;
  if (turn == Turn::Issue)
    capture->drop();
  if (turn == Turn::Issue && hub.options.use == GraphUse::Require)
    return Status::failure(fmt::format("graphs are required (--graph=require), and a step cannot "
                                       "be captured: {}",
                                       hub.reason));
  return Status::success();
}

/// Ranks that are captured together begin after the first one has, and it ends after all of them.
/// Global mode there: a call that a capture does not allow is refused on every thread, not only on
/// that which has begun. Elsewhere threads of other GPUs must not mind (NCCL User Guide, "Using
/// NCCL with CUDA Graphs", capture modes).
Status RankGraph::takeDown(StepCommands &commands) {
  const CaptureMode mode = hub.options.together ? CaptureMode::Global : CaptureMode::ThreadLocal;
  Status begun = leads ? capture->begin(mode) : Status::success();
  if (!begun.ok())
    hub.fail(begun.message());
  const bool allBegan = gather(false);
  Status issued = begun.ok() && allBegan && !isStopped() ? issueInto(commands) : begun;
  if (!issued.ok())
    hub.fail(issued.message());
  const bool allIssued = allBegan && gather(false);
  if (!leads || !begun.ok())
    return issued;
  Status ended = capture->end(allIssued && !isStopped());
  return issued.ok() ? std::move(ended) : std::move(issued);
}

Status RankGraph::issueInto(StepCommands &commands) {
  if (Status status = capture->fork(streams); !status.ok())
    return status;
  if (Status status = commands.issueAll(); !status.ok())
    return status;
  for (size_t i = 0; i != streams.size(); ++i) {
    if (Status status =
            check(device.getDriver(), device.getDriver().eventRecord(joins[i].get(), streams[i]),
                  "cuEventRecord at the end of a capture");
        !status.ok())
      return status;
    capture->addJoin(joins[i].get());
  }
  return Status::success();
}

/// On one GPU the last rank that comes launches for all, after what each has put on its stream of
/// copies.
Status RankGraph::replay() {
  device.setGraphPosition(GraphPosition::Waits);
  Status launched = Status::success();
  if (hub.options.together) {
    if (Status status = check(device.getDriver(),
                              device.getDriver().eventRecord(ready->get(), device.getCopyStream()),
                              "cuEventRecord before a captured step");
        !status.ok())
      return status;
    capture->addReady(ready->get());
    if (!gather(true, [&] { hub.launched = capture->launch(); }))
      return stopped();
    launched = hub.launched;
  } else {
    launched = capture->launch();
  }
  if (!launched.ok())
    return Status::failure(
        fmt::format("rank {}, a captured step: {}", rank.rank, launched.message()));
  if (counts)
    hub.numReplayed.fetch_add(1, std::memory_order_relaxed);
  device.followGraph(capture->getStream());
  return Status::success();
}

//===--- What a capture does not allow --------------------------------------===//

/// At once: what follows would fail as well, and NCCL for good.
Status RankGraph::checkLaunch(uint32_t stream, uint32_t command, Status status) {
  if (!status.ok())
    return status;
  const char *breach = capture->findBreach(streams[stream]);
  if (!breach[0])
    return status;
  return Status::failure(
      fmt::format("{} {}", program::describeCommand(hub.shared, rank, command), breach));
}

/// Captures the calls of this rank one by one, while all other ranks stand still.
std::string RankGraph::findCulprit(StepCommands &commands) {
  const std::lock_guard lock(hub.trials);
  TrialCapture trial(device.getDriver(), *sentry);
  for (uint32_t i = 0; i != rank.commands.size(); ++i) {
    const Command &command = rank.commands[i];
    const bool isPair = command.op == CommandOp::Pair;
    if (!isPair && command.op != CommandOp::Launch && command.op != CommandOp::Step)
      continue;
    const std::string found =
        trial.find(streams[command.stream], [&] { return commands.issueOne(i); });
    if (!found.empty())
      return fmt::format("{} {}", program::describeCommand(hub.shared, rank, i), found);
    i += isPair ? command.arg : 0; // its members were with it
  }
  return "";
}

} // namespace dualpipe::runtime::cuda
