//===- SoftGraphTest.cpp - GPUs made of software: captures and graphs -----------===//

#include "Harness.h"

#include <functional>
#include <thread>

using namespace dualpipe;
using namespace dualpipe::test;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// A host that captures.
class Photographer : public Host {
public:
  using Host::Host;

  void begin(Stream stream, CaptureMode mode = CaptureMode::ThreadLocal) {
    EXPECT_CUDA(cuda.streamBeginCapture(stream, mode));
  }
  DriverStatus end(Stream stream) {
    Graph graph = nullptr;
    const DriverStatus status = cuda.streamEndCapture(stream, &graph);
    EXPECT_EQ(graph != nullptr, status == DriverStatus::Success);
    if (graph) {
      EXPECT_CUDA(cuda.graphDestroy(graph));
    }
    return status;
  }
  /// What the capture has taken down, ready to be launched.
  GraphExec finish(Stream stream) {
    Graph graph = nullptr;
    GraphExec executable = nullptr;
    EXPECT_CUDA(cuda.streamEndCapture(stream, &graph));
    EXPECT_CUDA(cuda.graphInstantiate(&executable, graph, kGraphUseNodePriority));
    EXPECT_CUDA(cuda.graphDestroy(graph));
    return executable;
  }
  void launch(GraphExec executable, Stream stream) {
    EXPECT_CUDA(cuda.graphLaunch(executable, stream));
  }
  CaptureStatus getStatus(Stream stream) {
    CaptureStatus status = CaptureStatus::None;
    EXPECT_CUDA(cuda.streamIsCapturing(stream, &status));
    return status;
  }
  /// The second stream comes after what the first one has got.
  void order(Stream before, Stream after) {
    const Event event = makeEvent();
    record(event, before);
    waitFor(after, event);
  }
  Stream makeBlockingStream() {
    Stream stream = nullptr;
    EXPECT_CUDA(cuda.streamCreateWithPriority(&stream, kStreamDefault, 0));
    return stream;
  }
};

TEST(SoftGraphTest, ACaptureRunsNothingAndALaunchRunsAll) {
  EXPECT_THAT(collectReports([](SoftGpu &gpu) {
                Photographer host(gpu);
                int *numbers = host.makeInts(2, 1);
                const Stream stream = host.makeStream();
                EXPECT_EQ(host.getStatus(stream), CaptureStatus::None);
                host.begin(stream);
                EXPECT_EQ(host.getStatus(stream), CaptureStatus::Active);
                host.add(stream, numbers + 1, numbers + 1, numbers);
                const GraphExec graph = host.finish(stream);
                EXPECT_EQ(host.getStatus(stream), CaptureStatus::None);
                EXPECT_EQ(host.read(numbers + 1), 1);
                for (int launches = 1; launches != 4; ++launches) {
                  host.launch(graph, stream);
                  EXPECT_CUDA(host.wait(stream));
                  EXPECT_EQ(host.read(numbers + 1), 1 + launches);
                }
                EXPECT_CUDA(host.cuda.graphExecDestroy(graph));
              }),
              IsEmpty());
}

TEST(SoftGraphTest, ACapturedCopyReadsMemoryWhenItRuns) {
  SoftGpu gpu;
  Photographer host(gpu);
  int *numbers = host.makeInts(1, 1);
  const Stream stream = host.makeStream();
  int value = 2;
  host.begin(stream);
  EXPECT_CUDA(host.cuda.memcpyHtoDAsync(reinterpret_cast<DevicePointer>(numbers), &value,
                                        sizeof value, stream));
  const GraphExec graph = host.finish(stream);
  for (value = 3; value != 5; ++value) {
    host.launch(graph, stream);
    EXPECT_CUDA(host.wait(stream));
    EXPECT_EQ(host.read(numbers), value);
  }
}

/// Two launches, before anybody waits, on streams that nothing orders: the second one waits.
TEST(SoftGraphTest, LaunchesOfAGraphRunOneAfterTheOther) {
  EXPECT_THAT(collectReports([](SoftGpu &gpu) {
                Photographer host(gpu);
                int *numbers = host.makeInts(2, 1);
                const Stream one = host.makeStream(), two = host.makeStream();
                host.begin(one);
                host.add(one, numbers + 1, numbers + 1, numbers);
                const GraphExec graph = host.finish(one);
                host.launch(graph, one);
                host.launch(graph, two);
                EXPECT_CUDA(host.cuda.graphExecDestroy(graph)); // it goes when it is done
                EXPECT_CUDA(host.wait(one));
                EXPECT_CUDA(host.wait(two));
                EXPECT_EQ(host.read(numbers + 1), 3);
              }),
              IsEmpty());
}

/// A fork by a wait, work on both streams, a join. `ordered`: the fork reads what came before it.
void captureFork(SoftGpu &gpu, bool ordered, std::set<int> *results) {
  Photographer host(gpu);
  int *numbers = host.makeInts(3, 1);
  const Stream one = host.makeStream(), two = host.makeStream();
  host.begin(one);
  if (ordered)
    host.add(one, numbers + 1, numbers, numbers);
  host.order(one, two);
  EXPECT_EQ(host.getStatus(two), CaptureStatus::Active);
  if (!ordered)
    host.add(one, numbers + 1, numbers, numbers);
  host.add(two, numbers + 2, numbers + 1, numbers + 1);
  host.order(two, one);
  const GraphExec graph = host.finish(one);
  EXPECT_EQ(host.getStatus(two), CaptureStatus::None);
  host.launch(graph, one);
  EXPECT_CUDA(host.wait(one));
  results->insert(host.read(numbers + 2));
}

TEST(SoftGraphTest, AForkComesAfterWhatItWaitedFor) {
  std::set<int> results;
  EXPECT_THAT(collectReports([&](SoftGpu &gpu) { captureFork(gpu, true, &results); }), IsEmpty());
  EXPECT_THAT(results, ElementsAre(4));
}

TEST(SoftGraphTest, AGraphHasNoOrderThatTheCaptureHasNot) {
  std::set<int> results;
  EXPECT_THAT(
      collectReports([&](SoftGpu &gpu) { captureFork(gpu, false, &results); }),
      Contains(AllOf(HasSubstr("nothing orders kernel add on stream"), HasSubstr(" of a graph"))));
  EXPECT_THAT(results, ElementsAre(2, 4)) << "both orders must come up";
}

/// What comes before a launch on its stream, and after it; a stream beside it has no order.
TEST(SoftGraphTest, ALaunchHasItsPlaceOnItsStream) {
  for (const bool beside : {false, true}) {
    const auto reports = collectReports([&](SoftGpu &gpu) {
      Photographer host(gpu);
      int *numbers = host.makeInts(4, 1);
      const Stream one = host.makeStream(), two = host.makeStream();
      host.begin(one);
      host.add(one, numbers + 2, numbers + 1, numbers + 1);
      const GraphExec graph = host.finish(one);
      host.add(one, numbers + 1, numbers, numbers);
      host.launch(graph, one);
      host.add(beside ? two : one, numbers + 3, numbers + 2, numbers + 2);
      EXPECT_CUDA(host.wait(one));
      EXPECT_CUDA(host.wait(two));
      if (!beside) {
        EXPECT_EQ(host.read(numbers + 3), 8);
      }
    });
    EXPECT_EQ(reports.empty(), !beside);
  }
}

/// One thing that a capture does not survive.
using Deed = std::function<DriverStatus(Photographer &, Stream captured, Event event, int *data)>;

void expectBroken(const char *what, CaptureMode mode, DriverStatus expected, const Deed &deed) {
  SoftGpu gpu;
  Photographer host(gpu);
  int *numbers = host.makeInts(2, 1);
  const Stream stream = host.makeStream();
  const Event event = host.makeEvent();
  host.begin(stream, mode);
  host.record(event, stream);
  EXPECT_EQ(deed(host, stream, event, numbers), expected) << what;
  EXPECT_EQ(host.getStatus(stream), CaptureStatus::Invalidated) << what;
  EXPECT_EQ(host.cuda.eventRecord(event, stream), DriverStatus::StreamCaptureInvalidated) << what;
  EXPECT_EQ(host.end(stream), DriverStatus::StreamCaptureInvalidated) << what;
  EXPECT_EQ(host.getStatus(stream), CaptureStatus::None) << what;
  host.add(stream, numbers + 1, numbers, numbers); // the stream is as before
  EXPECT_CUDA(host.wait(stream));
  EXPECT_EQ(host.read(numbers + 1), 2) << what;
}

TEST(SoftGraphTest, WhatConflictsWithACaptureInEveryMode) {
  for (const CaptureMode mode :
       {CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed}) {
    expectBroken(
        "a query of the stream", mode, DriverStatus::StreamCaptureUnsupported,
        [](auto &host, Stream stream, Event, int *) { return host.cuda.streamQuery(stream); });
    expectBroken(
        "a query of the event", mode,
        mode == CaptureMode::Relaxed ? DriverStatus::CapturedEvent
                                     : DriverStatus::StreamCaptureUnsupported,
        [](auto &host, Stream, Event event, int *) { return host.cuda.eventQuery(event); });
    expectBroken("an event of before", mode, DriverStatus::StreamCaptureIsolation,
                 [](auto &host, Stream stream, Event, int *) {
                   const Stream other = host.makeStream();
                   const Event before = host.makeEvent();
                   host.record(before, other);
                   return host.cuda.streamWaitEvent(stream, before, 0);
                 });
    expectBroken(
        "the end of the stream", mode, DriverStatus::StreamCaptureUnsupported,
        [](auto &host, Stream stream, Event, int *) { return host.cuda.streamDestroy(stream); });
  }
}

/// cuMemAlloc and its like: what a capture cannot see.
TEST(SoftGraphTest, WhatACaptureForbidsItsThread) {
  const Deed deeds[] = {
      [](auto &host, Stream, Event, int *) {
        DevicePointer pointer = 0;
        return host.cuda.memAlloc(&pointer, 4);
      },
      [](auto &host, Stream, Event, int *) {
        void *pointer = nullptr;
        return host.cuda.memHostAlloc(&pointer, 4, 0);
      },
      [](auto &host, Stream, Event, int *data) {
        return host.cuda.memFree(reinterpret_cast<DevicePointer>(data));
      },
      [](auto &host, Stream, Event, int *) { return host.cuda.streamQuery(host.makeStream()); },
      [](auto &host, Stream, Event, int *) { return host.cuda.eventQuery(host.makeEvent()); },
      [](auto &host, Stream, Event, int *) {
        Module module = nullptr;
        return host.cuda.moduleLoadData(&module, "image");
      }};
  for (size_t i = 0; i != std::size(deeds); ++i)
    for (const CaptureMode mode : {CaptureMode::Global, CaptureMode::ThreadLocal})
      expectBroken(std::to_string(i).c_str(), mode, DriverStatus::StreamCaptureUnsupported,
                   deeds[i]);
}

/// Whether an allocation of another thread goes through, and the capture too.
bool survivesAnother(CaptureMode mode, bool onOwnThread) {
  SoftGpu gpu;
  Photographer host(gpu);
  const Stream stream = host.makeStream();
  host.begin(stream, mode);
  const auto allocate = [&] {
    host.enter(0);
    DevicePointer pointer = 0;
    return gpu.getDriver().memAlloc(&pointer, 4) == DriverStatus::Success;
  };
  bool good = false;
  if (onOwnThread)
    good = allocate();
  else
    std::thread([&] { good = allocate(); }).join();
  const bool ended = host.end(stream) == DriverStatus::Success;
  EXPECT_EQ(good, ended);
  return good;
}

TEST(SoftGraphTest, ModesSayWhichThreadsAreWatched) {
  EXPECT_FALSE(survivesAnother(CaptureMode::Global, false));
  EXPECT_TRUE(survivesAnother(CaptureMode::ThreadLocal, false));
  EXPECT_TRUE(survivesAnother(CaptureMode::Relaxed, false));
  EXPECT_TRUE(survivesAnother(CaptureMode::Relaxed, true));
}

TEST(SoftGraphTest, TheLegacyStreamMeetsCapturesOfBlockingStreamsOnly) {
  for (const bool blocking : {false, true}) {
    SoftGpu gpu;
    Photographer host(gpu);
    int *numbers = host.makeInts(2, 1);
    const Stream stream = blocking ? host.makeBlockingStream() : host.makeStream();
    host.begin(stream);
    const DriverStatus status =
        host.cuda.memsetD8Async(reinterpret_cast<DevicePointer>(numbers), 0, 4, nullptr);
    EXPECT_EQ(status, blocking ? DriverStatus::StreamCaptureImplicit : DriverStatus::Success);
    EXPECT_EQ(host.end(stream),
              blocking ? DriverStatus::StreamCaptureInvalidated : DriverStatus::Success);
    EXPECT_CUDA(host.wait(nullptr));
    EXPECT_EQ(host.read(numbers), blocking ? 1 : 0);
  }
}

TEST(SoftGraphTest, WhoMayEndACapture) {
  SoftGpu gpu;
  Photographer host(gpu);
  const Stream one = host.makeStream(), two = host.makeStream(), none = host.makeStream();
  Graph graph = nullptr;
  EXPECT_EQ(host.cuda.streamBeginCapture(nullptr, CaptureMode::Relaxed),
            DriverStatus::StreamCaptureUnsupported);
  EXPECT_EQ(host.cuda.streamEndCapture(none, &graph), DriverStatus::IllegalState);
  host.begin(one);
  EXPECT_EQ(host.cuda.streamBeginCapture(one, CaptureMode::Relaxed), DriverStatus::IllegalState);
  host.order(one, two);
  EXPECT_EQ(host.cuda.streamEndCapture(two, &graph), DriverStatus::StreamCaptureUnmatched);
  std::thread([&] {
    host.enter(0);
    EXPECT_EQ(host.cuda.streamEndCapture(one, &graph), DriverStatus::StreamCaptureWrongThread);
  }).join();
  EXPECT_CUDA(host.end(one)); // a fork without work needs no join
  host.begin(one, CaptureMode::Relaxed);
  std::thread([&] {
    host.enter(0);
    EXPECT_CUDA(host.end(one));
  }).join();
  EXPECT_THAT(gpu.getReports(), IsEmpty());
}

TEST(SoftGraphTest, AForkMustBeJoined) {
  SoftGpu gpu;
  Photographer host(gpu);
  int *numbers = host.makeInts(3, 1);
  const Stream one = host.makeStream(), two = host.makeStream();
  const Event event = host.makeEvent();
  host.begin(one);
  host.record(event, one);
  host.waitFor(two, event);
  host.add(two, numbers + 1, numbers, numbers);
  EXPECT_EQ(host.end(one), DriverStatus::StreamCaptureUnjoined);
  EXPECT_EQ(host.getStatus(two), CaptureStatus::None);
  // An event of a capture that is over is good for nothing until it is recorded again.
  EXPECT_EQ(host.cuda.streamWaitEvent(two, event, 0), DriverStatus::CapturedEvent);
  EXPECT_EQ(host.cuda.eventQuery(event), DriverStatus::CapturedEvent);
  host.record(event, one);
  host.waitFor(two, event);
  EXPECT_CUDA(host.wait(two));
  EXPECT_CUDA(host.cuda.eventQuery(event));
}

TEST(SoftGraphTest, TwoCapturesDoNotMeet) {
  SoftGpu gpu;
  Photographer host(gpu);
  const Stream one = host.makeStream(), two = host.makeStream();
  const Event event = host.makeEvent();
  host.begin(one);
  host.begin(two);
  host.record(event, one);
  EXPECT_EQ(host.cuda.streamWaitEvent(two, event, 0), DriverStatus::StreamCaptureMerge);
  EXPECT_EQ(host.end(one), DriverStatus::StreamCaptureInvalidated);
  EXPECT_EQ(host.end(two), DriverStatus::StreamCaptureInvalidated);
}

TEST(SoftGraphTest, AWaitForNoRecordIsNone) {
  SoftGpu gpu;
  Photographer host(gpu);
  const Stream stream = host.makeStream();
  host.begin(stream);
  host.waitFor(stream, host.makeEvent());
  EXPECT_CUDA(host.end(stream));
}

TEST(SoftGraphTest, HandlesOfNothing) {
  SoftGpu gpu;
  Photographer host(gpu);
  const Stream stream = host.makeStream();
  host.begin(stream);
  const GraphExec graph = host.finish(stream);
  EXPECT_CUDA(host.cuda.graphExecDestroy(graph));
  EXPECT_EQ(host.cuda.graphLaunch(graph, stream), DriverStatus::InvalidValue);
  EXPECT_EQ(host.cuda.graphExecDestroy(graph), DriverStatus::InvalidValue);
  EXPECT_EQ(host.cuda.graphDestroy(nullptr), DriverStatus::InvalidValue);
  GraphExec made = nullptr;
  EXPECT_EQ(host.cuda.graphInstantiate(&made, nullptr, 0), DriverStatus::InvalidValue);
  CaptureStatus status = CaptureStatus::Active;
  EXPECT_CUDA(host.cuda.streamIsCapturing(nullptr, &status));
  EXPECT_EQ(status, CaptureStatus::None);
  host.begin(stream);
  EXPECT_THAT(gpu.getReports(), Contains(HasSubstr("a capture is never ended")));
}

TEST(SoftGraphTest, AKernelThatHangsDoesSoInEveryLaunch) {
  SoftGpu gpu({.hangAt = 1});
  Photographer host(gpu);
  int *numbers = host.makeInts(2, 1);
  const Stream stream = host.makeStream();
  host.begin(stream);
  host.add(stream, numbers + 1, numbers, numbers);
  host.launch(host.finish(stream), stream);
  EXPECT_EQ(host.wait(stream), DriverStatus::LaunchTimeout);
  EXPECT_THAT(gpu.getReports(), Contains(AllOf(HasSubstr("a wait can never end: stream "),
                                               HasSubstr(" of a graph is at kernel add"))));
}

//===--- NCCL ---------------------------------------------------------------===//

/// A rank of a communicator of two, on a GPU of its own.
struct Rank {
  Rank(SoftGpu &gpu, int number, const UniqueId &id)
      : gpu(gpu), number(number), host(gpu, number), stream(host.makeStream()),
        data(host.makeInts(4, number + 1)) {
    NcclConfig config;
    config.blocking = 0;
    EXPECT_NCCL(gpu.getNccl().commInitRankConfig(&communicator, 2, id, number, &config));
  }
  void enter() { host.enter(number); }
  void exchange(Stream on) {
    const NcclApi &nccl = gpu.getNccl();
    EXPECT_NCCL(nccl.groupStart());
    EXPECT_NCCL(nccl.send(data, 1, NcclType::Float32, 1 - number, communicator, on));
    EXPECT_NCCL(nccl.recv(data + 1, 1, NcclType::Float32, 1 - number, communicator, on));
    EXPECT_NCCL(nccl.groupEnd());
  }
  /// Sends in another unit: bits.
  void settle() {
    NcclStatus status = NcclStatus::InProgress;
    while (status == NcclStatus::InProgress)
      EXPECT_NCCL(gpu.getNccl().commGetAsyncError(communicator, &status));
    EXPECT_EQ(status, NcclStatus::Success);
  }

  SoftGpu &gpu;
  int number;
  Photographer host;
  Stream stream;
  int *data;
  Communicator communicator = nullptr;
  GraphExec graph = nullptr;
};

/// Two ranks on one thread, which have met.
struct Two {
  explicit Two(SoftGpuOptions options = {}) : gpu(withTwo(options)) {
    EXPECT_NCCL(gpu.getNccl().getUniqueId(&id));
    for (int rank = 0; rank != 2; ++rank)
      ranks.push_back(std::make_unique<Rank>(gpu, rank, id));
    for (const auto &rank : ranks)
      rank->settle();
  }
  static SoftGpuOptions withTwo(SoftGpuOptions options) {
    options.numGpus = 2;
    return options;
  }
  void capture(Rank &rank, const std::function<void(Rank &)> &issue) {
    rank.enter();
    rank.host.begin(rank.stream);
    issue(rank);
    rank.graph = rank.host.finish(rank.stream);
  }
  void launch(Rank &rank) {
    rank.enter();
    rank.host.launch(rank.graph, rank.stream);
  }
  /// Both streams, to their ends.
  std::vector<DriverStatus> wait() {
    std::vector<DriverStatus> all;
    for (const auto &rank : ranks) {
      rank->enter();
      all.push_back(rank->host.wait(rank->stream));
    }
    return all;
  }
  void dropGraphs() {
    for (const auto &rank : ranks)
      if (rank->graph) {
        EXPECT_CUDA(rank->host.cuda.graphExecDestroy(rank->graph));
      }
  }

  SoftGpu gpu;
  UniqueId id{};
  std::vector<std::unique_ptr<Rank>> ranks;
};

TEST(SoftGraphTest, TransfersAndReductionsAreCaptured) {
  for (uint64_t seed = 0; seed != 20; ++seed) {
    Two two({.seed = seed, .inProgress = uint32_t(seed % 3)});
    for (const auto &rank : two.ranks)
      two.capture(*rank, [](Rank &own) {
        own.settle();
        own.exchange(own.stream);
        own.settle();
        EXPECT_NCCL(own.gpu.getNccl().allGather(own.data + 1, own.data + 2, 1, NcclType::Float32,
                                                own.communicator, own.stream));
        own.settle();
      });
    for (int launches = 0; launches != 3; ++launches) {
      for (const auto &rank : two.ranks)
        two.launch(*rank);
      EXPECT_THAT(two.wait(), ElementsAre(DriverStatus::Success, DriverStatus::Success));
    }
    for (const auto &rank : two.ranks) {
      rank->enter();
      EXPECT_EQ(rank->host.read(rank->data + 1), 2 - rank->number);
      EXPECT_EQ(rank->host.read(rank->data + 2), 2);
      EXPECT_EQ(rank->host.read(rank->data + 3), 1);
    }
    two.dropGraphs();
    EXPECT_THAT(two.gpu.getReports(), IsEmpty());
  }
}

/// With sends that may end early, and without.
TEST(SoftGraphTest, AGraphOfOneRankOnlyWaitsForEver) {
  for (const bool rendezvous : {false, true}) {
    Two two({.rendezvous = rendezvous});
    for (const auto &rank : two.ranks)
      two.capture(*rank, [](Rank &own) { own.exchange(own.stream); });
    two.launch(*two.ranks[0]);
    EXPECT_THAT(two.wait(), Contains(DriverStatus::LaunchTimeout));
    EXPECT_THAT(two.gpu.getReports(), Contains(AllOf(HasSubstr("a wait can never end: "),
                                                     HasSubstr("captured receive 0 at 0 from 1"))));
  }
}

TEST(SoftGraphTest, BothEndsOfATransferAreCapturedOrNone) {
  for (uint64_t seed = 0; seed != 8; ++seed) {
    Two two({.seed = seed});
    two.capture(*two.ranks[0], [](Rank &own) { own.exchange(own.stream); });
    two.ranks[1]->enter();
    two.ranks[1]->exchange(two.ranks[1]->stream);
    two.launch(*two.ranks[0]);
    EXPECT_THAT(two.wait(), Contains(DriverStatus::LaunchTimeout));
    EXPECT_THAT(two.gpu.getReports(),
                Contains(AllOf(HasSubstr("a wait can never end: "), HasSubstr("is at captured "))));
  }
}

TEST(SoftGraphTest, ACollectiveIsCapturedOnAllRanksOrNone) {
  Two two;
  const auto gather = [](Rank &own) {
    EXPECT_NCCL(own.gpu.getNccl().allGather(own.data, own.data + 2, 1, NcclType::Float32,
                                            own.communicator, own.stream));
  };
  two.capture(*two.ranks[0], gather);
  two.ranks[1]->enter();
  gather(*two.ranks[1]);
  two.launch(*two.ranks[0]);
  EXPECT_THAT(two.wait(), Contains(DriverStatus::LaunchTimeout));
  EXPECT_THAT(two.gpu.getReports(), Contains(HasSubstr("is at captured collective 0")));
}

TEST(SoftGraphTest, AGroupIsInOneCapture) {
  Two two;
  Rank &rank = *two.ranks[0];
  const NcclApi &nccl = two.gpu.getNccl();
  rank.enter();
  const Stream other = rank.host.makeStream();
  rank.host.begin(rank.stream);
  EXPECT_NCCL(nccl.groupStart());
  EXPECT_NCCL(nccl.send(rank.data, 1, NcclType::Float32, 1, rank.communicator, rank.stream));
  EXPECT_NCCL(nccl.send(rank.data, 1, NcclType::Float32, 1, rank.communicator, other));
  EXPECT_NCCL(nccl.groupEnd());
  EXPECT_CUDA(rank.host.end(rank.stream));
  EXPECT_THAT(two.gpu.getReports(),
              Contains("a group uses streams that are not all in one capture, or all in none"));
}

TEST(SoftGraphTest, NcclFailsInACaptureThatHasFailed) {
  for (const bool inGroup : {false, true}) {
    Two two;
    Rank &rank = *two.ranks[0];
    const NcclApi &nccl = two.gpu.getNccl();
    rank.enter();
    rank.host.begin(rank.stream);
    if (inGroup) {
      EXPECT_NCCL(nccl.groupStart());
      EXPECT_NCCL(nccl.send(rank.data, 1, NcclType::Float32, 1, rank.communicator, rank.stream));
    }
    EXPECT_EQ(rank.host.cuda.streamQuery(rank.stream), DriverStatus::StreamCaptureUnsupported);
    EXPECT_EQ(inGroup
                  ? nccl.groupEnd()
                  : nccl.send(rank.data, 1, NcclType::Float32, 1, rank.communicator, rank.stream),
              NcclStatus::UnhandledCudaError);
    EXPECT_EQ(rank.host.end(rank.stream), DriverStatus::StreamCaptureInvalidated);
  }
}

TEST(SoftGraphTest, AGraphGoesBeforeItsCommunicators) {
  for (const bool aborts : {false, true})
    for (const bool inTime : {false, true}) {
      Two two;
      Rank &rank = *two.ranks[0];
      two.capture(rank, [](Rank &own) { own.exchange(own.stream); });
      if (inTime)
        two.dropGraphs();
      EXPECT_NCCL(aborts ? two.gpu.getNccl().commAbort(rank.communicator)
                         : two.gpu.getNccl().commDestroy(rank.communicator));
      const std::vector<std::string> reports = two.gpu.getReports();
      EXPECT_EQ(reports.empty(), inTime);
      if (inTime)
        continue;
      EXPECT_THAT(reports, Contains(HasSubstr("before a graph that holds it")));
      EXPECT_EQ(two.gpu.getDriver().graphLaunch(rank.graph, rank.stream),
                DriverStatus::InvalidValue);
      EXPECT_THAT(two.gpu.getReports(),
                  Contains("a graph is launched after one of its communicators has gone"));
    }
}

} // namespace
