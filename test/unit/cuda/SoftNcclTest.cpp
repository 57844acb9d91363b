//===- SoftNcclTest.cpp - NCCL made of software ----------------------------------===//

#include "Harness.h"

#include <thread>

using namespace dualpipe;
using namespace dualpipe::test;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// Two ranks on two GPUs, driven by one thread: calls are not blocking.
class Pair {
public:
  explicit Pair(SoftGpu &gpu, size_t numComms = 1) : host(gpu), nccl(gpu.getNccl()) {
    for (int rank = 0; rank != 2; ++rank) {
      host.enter(rank);
      streams[rank] = host.makeStream();
      numbers[rank] = host.makeInts(4, 10 * (rank + 1));
    }
    for (size_t i = 0; i != numComms; ++i) {
      UniqueId id;
      EXPECT_NCCL(nccl.getUniqueId(&id));
      for (int rank = 0; rank != 2; ++rank) {
        host.enter(rank);
        NcclConfig config;
        config.blocking = 0;
        Communicator comm = nullptr;
        EXPECT_NCCL(nccl.commInitRankConfig(&comm, 2, id, rank, &config));
        comms[rank].push_back(comm);
      }
      settle();
    }
  }
  void settle() {
    for (const std::vector<Communicator> &own : comms)
      for (const Communicator comm : own) {
        NcclStatus status = NcclStatus::InProgress;
        while (status == NcclStatus::InProgress)
          ASSERT_EQ(nccl.commGetAsyncError(comm, &status), NcclStatus::Success);
        ASSERT_EQ(status, NcclStatus::Success);
      }
  }
  void send(int rank, int number, size_t comm = 0, Stream stream = nullptr) {
    EXPECT_NCCL(nccl.send(numbers[rank] + number, 1, NcclType::Float32, 1 - rank, comms[rank][comm],
                          stream ? stream : streams[rank]));
  }
  void recv(int rank, int number, size_t comm = 0, Stream stream = nullptr) {
    EXPECT_NCCL(nccl.recv(numbers[rank] + number, 1, NcclType::Float32, 1 - rank, comms[rank][comm],
                          stream ? stream : streams[rank]));
  }
  void start() { EXPECT_NCCL(nccl.groupStart()); }
  void end() {
    EXPECT_NCCL(nccl.groupEnd());
    settle();
  }
  DriverStatus wait(int rank) { return host.wait(streams[rank]); }

  Host host;
  const NcclApi &nccl;
  Stream streams[2];
  int *numbers[2];
  std::vector<Communicator> comms[2];
};

TEST(SoftNcclTest, TheKthSendMeetsTheKthReceive) {
  EXPECT_THAT(collectReports(
                  [](SoftGpu &gpu) {
                    Pair pair(gpu);
                    pair.host.add(pair.streams[0], pair.numbers[0] + 1, pair.numbers[0],
                                  pair.numbers[0]);
                    pair.send(0, 0);
                    pair.send(0, 1);
                    pair.recv(1, 2);
                    pair.recv(1, 3);
                    EXPECT_CUDA(pair.wait(0));
                    EXPECT_CUDA(pair.wait(1));
                    EXPECT_EQ(pair.host.read(pair.numbers[1] + 2), 10);
                    EXPECT_EQ(pair.host.read(pair.numbers[1] + 3), 20);
                  },
                  {.numGpus = 2}),
              IsEmpty());
}

TEST(SoftNcclTest, OppositeSendsNeedAGroup) {
  const auto run = [](SoftGpu &gpu, bool grouped) {
    Pair pair(gpu);
    for (int rank = 0; rank != 2; ++rank) {
      if (grouped)
        pair.start();
      pair.send(rank, 0);
      pair.recv(rank, 1);
      if (grouped)
        pair.end();
    }
    const bool good =
        pair.wait(0) == DriverStatus::Success && pair.wait(1) == DriverStatus::Success;
    EXPECT_EQ(good, grouped);
  };
  const SoftGpuOptions options{.numGpus = 2, .rendezvous = true};
  EXPECT_THAT(collectReports([&](SoftGpu &gpu) { run(gpu, true); }, options), IsEmpty());
  EXPECT_THAT(collectReports([&](SoftGpu &gpu) { run(gpu, false); }, options),
              Contains(AllOf(HasSubstr("a wait can never end"),
                             HasSubstr("is at send 0 from 0 to 1 of communicator 1"))));
}

TEST(SoftNcclTest, AnUnorderedUseOfASentBuffer) {
  EXPECT_THAT(collectReports(
                  [](SoftGpu &gpu) {
                    Pair pair(gpu);
                    pair.send(0, 0);
                    pair.recv(1, 1);
                    pair.host.enter(0);
                    const Stream other = pair.host.makeStream();
                    pair.host.add(other, pair.numbers[0], pair.numbers[0] + 1, pair.numbers[0] + 1);
                    EXPECT_CUDA(pair.host.wait(other));
                    EXPECT_CUDA(pair.wait(0));
                    EXPECT_CUDA(pair.wait(1));
                  },
                  {.numGpus = 2}),
              Contains(HasSubstr("nothing orders")));
}

/// Eager or not, a send says nothing of when its receive has ended.
TEST(SoftNcclTest, ASendOrdersNothingAtTheReceiver) {
  EXPECT_THAT(collectReports(
                  [](SoftGpu &gpu) {
                    Pair pair(gpu);
                    pair.send(0, 0);
                    pair.send(0, 1);
                    pair.recv(1, 0);
                    pair.recv(1, 1);
                    EXPECT_CUDA(pair.wait(0));
                    pair.host.add(pair.streams[0], pair.numbers[1], pair.numbers[0],
                                  pair.numbers[0]);
                    EXPECT_CUDA(pair.wait(0));
                    EXPECT_CUDA(pair.wait(1));
                  },
                  {.numGpus = 2}),
              Contains(HasSubstr("nothing orders")));
}

TEST(SoftNcclTest, SizesOfBothEndsMustAgree) {
  SoftGpu gpu({.numGpus = 2});
  Pair pair(gpu);
  pair.send(0, 0);
  EXPECT_NCCL(
      pair.nccl.recv(pair.numbers[1], 2, NcclType::Float32, 0, pair.comms[1][0], pair.streams[1]));
  EXPECT_CUDA(pair.wait(0));
  EXPECT_CUDA(pair.wait(1));
  EXPECT_THAT(gpu.getReports(), Contains(HasSubstr("expects 8 bytes, 4 were sent")));
}

TEST(SoftNcclTest, AGroupIsEndedAndSmallAndOnOneStream) {
  SoftGpu gpu({.numGpus = 2});
  Pair pair(gpu);
  pair.start();
  pair.send(0, 0);
  (void)pair.host.cuda.streamQuery(pair.streams[0]);
  EXPECT_THAT(gpu.getReports(), ElementsAre(HasSubstr("a host thread waits inside a group"),
                                            HasSubstr("a host thread leaves a group open")));
  pair.host.enter(0);
  const Stream other = pair.host.makeStream();
  EXPECT_NCCL(
      pair.nccl.recv(pair.numbers[0] + 1, 1, NcclType::Float32, 1, pair.comms[0][0], other));
  for (int i = 0; i != 255; ++i)
    pair.send(0, 0);
  pair.end();
  EXPECT_THAT(gpu.getReports(), AllOf(Contains(HasSubstr("a group uses 2 streams")),
                                      Contains(HasSubstr("a group of 257 operations"))));
}

TEST(SoftNcclTest, AThreadEndsInsideAGroup) {
  SoftGpu gpu;
  std::thread([&] { EXPECT_NCCL(gpu.getNccl().groupStart()); }).join();
  EXPECT_THAT(gpu.getReports(),
              ElementsAre(HasSubstr("a host thread ends and leaves a group open")));
}

TEST(SoftNcclTest, CommunicatorsInDifferentOrders) {
  EXPECT_THAT(collectReports(
                  [](SoftGpu &gpu) {
                    Pair pair(gpu, 2);
                    const Stream others[] = {pair.host.makeStream(), pair.host.makeStream()};
                    pair.send(0, 0, 0);
                    pair.send(0, 1, 1, others[0]);
                    pair.recv(1, 1, 1, others[1]);
                    pair.recv(1, 0, 0);
                    for (int rank = 0; rank != 2; ++rank) {
                      EXPECT_CUDA(pair.wait(rank));
                      EXPECT_CUDA(pair.host.wait(others[rank]));
                    }
                  },
                  {.numGpus = 2}, 4),
              Contains(AllOf(HasSubstr("communicators are used in different orders"),
                             HasSubstr("GPU 0 comes to send 0 from 0 to 1 of communicator 1"),
                             HasSubstr("GPU 1 comes to receive 0 at 1 from 0 of communicator 2"))));
}

TEST(SoftNcclTest, ACallOnACommunicatorInProgress) {
  SoftGpu gpu({.numGpus = 2, .inProgress = 3});
  Pair pair(gpu);
  EXPECT_EQ(
      pair.nccl.send(pair.numbers[0], 1, NcclType::Float32, 1, pair.comms[0][0], pair.streams[0]),
      NcclStatus::InProgress);
  EXPECT_EQ(
      pair.nccl.send(pair.numbers[0], 1, NcclType::Float32, 1, pair.comms[0][0], pair.streams[0]),
      NcclStatus::InvalidUsage);
  EXPECT_THAT(gpu.getReports(), ElementsAre(HasSubstr("ncclSend on a communicator that is still in "
                                                      "progress")));
}

TEST(SoftNcclTest, TwoRanksOnOneGpuAreRefused) {
  SoftGpu gpu;
  Host host(gpu);
  UniqueId id;
  EXPECT_NCCL(gpu.getNccl().getUniqueId(&id));
  Communicator comm = nullptr;
  for (int rank = 0; rank != 2; ++rank) {
    NcclConfig config;
    config.blocking = 0;
    EXPECT_NCCL(gpu.getNccl().commInitRankConfig(&comm, 2, id, rank, &config));
  }
  NcclStatus status = NcclStatus::Success;
  EXPECT_NCCL(gpu.getNccl().commGetAsyncError(comm, &status));
  EXPECT_EQ(status, NcclStatus::InvalidUsage);
}

TEST(SoftNcclTest, AnErrorComesLaterAndAnAbortEndsTheWait) {
  SoftGpu gpu({.numGpus = 2, .asyncErrorAt = 1, .rendezvous = true});
  Pair pair(gpu);
  pair.send(0, 0);
  NcclStatus status = NcclStatus::Success;
  EXPECT_EQ(pair.nccl.commGetAsyncError(pair.comms[0][0], &status), NcclStatus::Success);
  EXPECT_EQ(status, NcclStatus::RemoteError);
  EXPECT_EQ(pair.host.cuda.streamQuery(pair.streams[0]), DriverStatus::NotReady);
  EXPECT_NCCL(pair.nccl.commAbort(pair.comms[0][0]));
  EXPECT_CUDA(pair.wait(0));
}

TEST(SoftNcclTest, ABlockingCommunicatorIsReported) {
  SoftGpu gpu;
  Host host(gpu);
  UniqueId id;
  EXPECT_NCCL(gpu.getNccl().getUniqueId(&id));
  Communicator comm = nullptr;
  NcclConfig config;
  EXPECT_EQ(gpu.getNccl().commInitRankConfig(&comm, 2, id, 0, &config), NcclStatus::InvalidUsage);
  EXPECT_THAT(gpu.getReports(), ElementsAre(HasSubstr("a communicator is created blocking")));
}

TEST(SoftNcclTest, CollectivesTakeAllMembers) {
  EXPECT_THAT(
      collectReports(
          [](SoftGpu &gpu) {
            Pair pair(gpu);
            float *data[2];
            for (int rank = 0; rank != 2; ++rank) {
              pair.host.enter(rank);
              data[rank] = reinterpret_cast<float *>(pair.host.makeInts(3, 0));
              const float own = float(rank + 1);
              EXPECT_CUDA(pair.host.cuda.memcpyHtoDAsync(
                  reinterpret_cast<DevicePointer>(data[rank]), &own, 4, pair.streams[rank]));
              EXPECT_CUDA(pair.wait(rank));
            }
            for (int rank = 0; rank != 2; ++rank) {
              EXPECT_NCCL(pair.nccl.allGather(data[rank], data[rank] + 1, 1, NcclType::Float32,
                                              pair.comms[rank][0], pair.streams[rank]));
              EXPECT_NCCL(pair.nccl.allReduce(data[rank], data[rank], 1, NcclType::Float32,
                                              NcclReduction::Sum, pair.comms[rank][0],
                                              pair.streams[rank]));
            }
            for (int rank = 0; rank != 2; ++rank) {
              EXPECT_CUDA(pair.wait(rank));
              float result[3];
              std::memcpy(result, data[rank], sizeof result);
              EXPECT_THAT(result, ElementsAre(3, 1, 2));
            }
          },
          {.numGpus = 2}),
      IsEmpty());
}

} // namespace
