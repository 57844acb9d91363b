//===- RunTest.cpp - programs on GPUs made of software, and what goes wrong ---------===//

#include "ExpectRight.h"

#include "test/support/Subject.h"
#include "test/support/softrun/SoftExact.h"
#include "test/support/softrun/SoftRun.h"
#include "test/unit/runtime/TestPrograms.h"

#include "dualpipe/Runtime/Cuda/CudaDevice.h"
#include "dualpipe/Runtime/Cuda/GpuTransport.h"
#include "dualpipe/Runtime/Cuda/NcclTransport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::runtime;
using namespace dualpipe::runtime::cuda;
using namespace dualpipe::test;
using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

SoftRunOptions makeOptions(SoftTransport transport, SoftGpuOptions gpu = {}) {
  SoftRunOptions options;
  options.transport = transport;
  options.training = Subject::getTraining();
  options.gpu = std::move(gpu);
  options.timeoutSeconds = 20;
  return options;
}

TEST(RunTest, PipelinesComputeWhatOneDeviceDoes) {
  for (const PipelineOptions &pipelines : kPipelines)
    expectRight(Subject("", buildPipelines(pipelines)), makeOptions,
                [](const SoftRunResult &run) { EXPECT_GT(run.numRun, 10u); });
}

std::string fail(SoftTransport transport, SoftGpuOptions gpu, double timeoutSeconds = 20) {
  SoftRunOptions options = makeOptions(transport, std::move(gpu));
  options.timeoutSeconds = timeoutSeconds;
  return runOnSoftGpus(buildPipelines({.numRanks = 2, .mirrored = true}), options).failure;
}

TEST(RunTest, AFailedCallStopsTheRunAndSaysWhich) {
  EXPECT_THAT(fail(SoftTransport::Copies, {.faults = {{"cuMemcpyDtoDAsync", 3, 700}}}),
              HasSubstr("cuMemcpyDtoDAsync failed: CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_THAT(fail(SoftTransport::Nccl, {.faults = {{"cuEventRecord", 5, 719}}}),
              AllOf(HasSubstr("issuing command "), HasSubstr("CUDA_ERROR_LAUNCH_FAILED")));
  EXPECT_THAT(fail(SoftTransport::Nccl, {.faults = {{"cuStreamQuery", 12, 719}}}),
              HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
  EXPECT_THAT(fail(SoftTransport::Copies, {.faults = {{"cuLaunchKernel", 8, 701}}}),
              HasSubstr("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"));
  EXPECT_THAT(
      fail(SoftTransport::Nccl, {.faults = {{"ncclSend", 2, 3}}}),
      AllOf(HasSubstr("ncclSend on the communicator from rank"), HasSubstr("ncclInternalError")));
  EXPECT_THAT(fail(SoftTransport::Nccl, {.faults = {{"ncclGetUniqueId", 1, 2}}}),
              HasSubstr("ncclGetUniqueId failed: ncclSystemError"));
  EXPECT_THAT(fail(SoftTransport::Nccl, {.faults = {{"ncclCommInitRankConfig", 2, 2}}}),
              HasSubstr("creating the communicator from rank"));
  EXPECT_THAT(fail(SoftTransport::Nccl, {.faults = {{"ncclCommGetAsyncError", 9, 3}}}),
              HasSubstr("ncclCommGetAsyncError of the communicator"));
  EXPECT_THAT(fail(SoftTransport::Nccl, {.faults = {{"ncclAllReduce", 1, 3}}}),
              HasSubstr("ncclAllReduce failed: ncclInternalError"));
}

TEST(RunTest, SettingUpFails) {
  EXPECT_THAT(fail(SoftTransport::Copies, {.memoryBytes = 400}),
              AllOf(HasSubstr("cuMemAlloc of "), HasSubstr("on GPU 0, which has "),
                    HasSubstr("CUDA_ERROR_OUT_OF_MEMORY")));
  EXPECT_THAT(
      fail(SoftTransport::Copies, {.memoryBytes = 400, .faults = {{"cuMemGetInfo", 1, 999}}}),
      AllOf(HasSubstr("on GPU 0 failed: CUDA_ERROR_OUT_OF_MEMORY"), Not(HasSubstr("free"))));
  EXPECT_THAT(fail(SoftTransport::Copies, {.faults = {{"cuStreamCreateWithPriority", 2, 2}}}),
              HasSubstr("cuStreamCreateWithPriority for rank 0 failed"));
  EXPECT_THAT(fail(SoftTransport::Copies, {.faults = {{"cuEventCreate", 1, 2}}}),
              HasSubstr("cuEventCreate for rank 0 failed"));
  EXPECT_THAT(fail(SoftTransport::Copies, {.faults = {{"cuCtxSetCurrent", 1, 201}}}),
              HasSubstr("cuCtxSetCurrent failed: CUDA_ERROR_INVALID_CONTEXT"));
  EXPECT_THAT(fail(SoftTransport::Copies, {.faults = {{"cuDevicePrimaryCtxRetain", 1, 46}}}),
              HasSubstr("cuDevicePrimaryCtxRetain on GPU 0 failed"));
  EXPECT_THAT(fail(SoftTransport::Copies, {.faults = {{"cuMemcpyHtoDAsync", 1, 1}}}),
              HasSubstr("cuMemcpyHtoDAsync failed"));
  EXPECT_THAT(fail(SoftTransport::Copies, {.faults = {{"cuMemsetD8Async", 1, 1}}}),
              HasSubstr("cuMemsetD8Async failed"));
}

/// An error comes on one rank; the others are stopped, and their communicators aborted.
TEST(RunTest, AnErrorOfNcclStopsAllRanks) {
  for (uint64_t seed = 0; seed != 4; ++seed)
    EXPECT_THAT(fail(SoftTransport::Nccl, {.seed = seed, .asyncErrorAt = 5}),
                AllOf(HasSubstr("the communicator from rank"), HasSubstr("ncclRemoteError")));
}

TEST(RunTest, AKernelThatNeverEndsIsFound) {
  for (const SoftTransport transport : kTransports)
    EXPECT_THAT(fail(transport, {.hangAt = 12}), HasSubstr("CUDA_ERROR_LAUNCH_TIMEOUT"));
}

/// Where the GPU says nothing, the watchdog says where the ranks are.
TEST(RunTest, TheWatchdogSaysWhatRanksWaitFor) {
  SoftRunOptions options = makeOptions(SoftTransport::Nccl, {.hangAt = 12});
  options.timeoutSeconds = 1;
  options.hostThreads = ~0u;
  EXPECT_THAT(runOnSoftGpus(buildPipelines({.numRanks = 2}), options).failure,
              AllOf(HasSubstr("no progress for 1 s; what each rank waits for:"),
                    HasSubstr("rank 0"), HasSubstr("rank 1")));
}

TEST(RunTest, CommunicatorsOfAProgram) {
  const Program program = buildPipelines({.numRanks = 3, .mirrored = true});
  const std::vector<CommunicatorPlan> plans = planCommunicators(program.shared, false);
  size_t reductions = 0;
  for (size_t i = 0; i != program.shared.channels.size(); ++i) {
    EXPECT_THAT(plans[i].ranks, ElementsAre(program.shared.channels[i].source,
                                            program.shared.channels[i].destination));
    EXPECT_THAT(plans[i].channels, ElementsAre(i));
  }
  for (const ReduceGroup &group : program.shared.reduceGroups)
    reductions += group.ranks.size() > 1 ? 1 : 0;
  EXPECT_EQ(plans.size(), program.shared.channels.size() + reductions);
  const std::vector<CommunicatorPlan> folded = planCommunicators(program.shared, true);
  EXPECT_EQ(folded.size(), 1 + reductions);
  EXPECT_THAT(folded.front().ranks, ElementsAre(0, 1, 2));
  EXPECT_EQ(folded.front().channels.size(), program.shared.channels.size());
}

struct Quiet : FailureSink {
  void fail(Status status) override { message = status.message(); }
  std::string message;
};

TEST(RunTest, RanksOnDifferentGpusNeedNccl) {
  SoftGpu gpu({.numGpus = 2});
  const Program program = buildPipelines({.numRanks = 2});
  GpuHub hub(program.shared);
  Quiet failures;
  const auto connect = [&](uint32_t rank) {
    Result<GpuContext> context = GpuContext::create(gpu.getDriver(), int(rank));
    EXPECT_TRUE(context.ok());
    auto device = CudaDevice::create(program.ranks[rank], failures, *context, {});
    EXPECT_TRUE(device.ok());
    const auto transport = hub.connect(program.ranks[rank], **device, nullptr);
    return transport.ok() ? std::string() : transport.message();
  };
  EXPECT_EQ(connect(0), "");
  EXPECT_EQ(connect(1),
            "rank 1 is on GPU 1 and others are on GPU 0: without NCCL all ranks must be "
            "on one GPU");
}

/// Two ranks of a program on GPUs made of software, without a session: calls by hand.
struct Two {
  explicit Two(bool onOne, const dp_model_api &api = getSoftExactModel())
      : gpu({.numGpus = 2, .hostThreads = ~0u}), program(buildPipelines({.mirrored = true})),
        hub(program.shared) {
    ModelOptions options;
    options.numStages = program.shared.numStages;
    options.numMicrobatches = program.shared.numMicrobatches;
    model.emplace(std::move(*Model::create(api, options)));
    ids = *makeUniqueIds(gpu.getNccl(), planCommunicators(program.shared, false).size());
    for (int rank = 0; rank != 2; ++rank) {
      contexts.push_back(std::make_unique<GpuContext>(
          std::move(*GpuContext::create(gpu.getDriver(), onOne ? 0 : rank))));
      devices.push_back(std::move(
          *CudaDevice::create(program.ranks[size_t(rank)], failures, *contexts.back(), {})));
    }
    // The first channel from rank 0, and its streams.
    for (channel = 0; program.shared.channels[channel].source != 0; ++channel) {
    }
    for (size_t rank = 0; rank != 2; ++rank)
      for (uint32_t i = 0; i != program.ranks[rank].streams.size(); ++i) {
        const Stream &stream = program.ranks[rank].streams[i];
        if ((stream.kind == StreamKind::Send || stream.kind == StreamKind::Recv) &&
            stream.target == channel)
          streams[rank] = i;
      }
  }
  Result<std::unique_ptr<Transport>> connect(size_t rank) {
    return hub.connect(program.ranks[rank], *devices[rank], nullptr);
  }
  Result<std::unique_ptr<NcclTransport>> connectNccl(size_t rank, double timeoutSeconds = 20) {
    NcclOptions options;
    options.timeoutSeconds = timeoutSeconds;
    return NcclTransport::create(gpu.getNccl(), program.shared, program.ranks[rank], *model,
                                 *devices[rank], ids, nullptr, options);
  }

  using Stream = program::Stream;
  SoftGpu gpu;
  Program program;
  GpuHub hub;
  Quiet failures;
  std::optional<Model> model;
  std::vector<UniqueId> ids;
  std::vector<std::unique_ptr<GpuContext>> contexts;
  std::vector<std::unique_ptr<CudaDevice>> devices;
  uint32_t channel = 0;
  uint32_t streams[2] = {0, 0};
};

TEST(RunTest, EndsOfAChannelThatDiffer) {
  Two two(true);
  ASSERT_TRUE(two.connect(0).ok());
  for (Transfer &transfer : two.program.ranks[1].transfers)
    transfer.microbatch ^= 1;
  EXPECT_THAT(two.connect(1).message(), HasSubstr("the two ends of the channel from rank"));
}

TEST(RunTest, ATransferOfTwoSizes) {
  Two two(true);
  auto sender = std::move(*two.connect(0)), receiver = std::move(*two.connect(1));
  void *from = *two.devices[0]->allocate(16), *to = *two.devices[1]->allocate(16);
  std::string first;
  std::thread thread([&] {
    const ContextScope scope(*two.contexts[0]);
    first = sender->send(two.streams[0], 5, two.channel, from, 16).message();
  });
  std::string second;
  {
    const ContextScope scope(*two.contexts[1]);
    second = receiver->recv(two.streams[1], 6, two.channel, to, 8).message();
  }
  thread.join();
  // Whoever comes last sees it.
  EXPECT_THAT(second, AnyOf("a transfer has 8 bytes at one end and 16 at the other",
                            "command 6 failed at its other end: a transfer has 16 bytes at one "
                            "end and 8 at the other"));
  EXPECT_THAT(first, AnyOf("a transfer has 16 bytes at one end and 8 at the other",
                           "command 5 failed at its other end: a transfer has 8 bytes at one "
                           "end and 16 at the other"));
}

TEST(RunTest, AHostThreadThatWaitsCanBeStopped) {
  Two two(true);
  auto sender = std::move(*two.connect(0));
  void *from = *two.devices[0]->allocate(8);
  two.devices[0]->abort();
  const ContextScope scope(*two.contexts[0]);
  EXPECT_EQ(sender->send(two.streams[0], 5, two.channel, from, 8).message(),
            "command 5 was stopped while it waited for another rank");
}

TEST(RunTest, ACommunicatorThatNobodyComesTo) {
  Two two(false);
  auto sender = std::move(*two.connectNccl(0, 0.05));
  const ContextScope scope(*two.contexts[0]);
  void *from = *two.devices[0]->allocate(8);
  EXPECT_THAT(
      sender->send(two.streams[0], 5, two.channel, from, 8).message(),
      AllOf(HasSubstr("the communicator from rank 0 to rank 1"),
            HasSubstr("is still in progress after 0.05 s: are all its ranks running, and can "
                      "they reach each other?")));
  two.devices[0]->abort();
  EXPECT_THAT(sender->send(two.streams[0], 5, two.channel, from, 8).message(),
              HasSubstr("the run was stopped while NCCL was at the communicator from rank 0 to"));
}

TEST(RunTest, AGroupThatIsTooLarge) {
  Two two(false);
  auto sender = std::move(*two.connectNccl(0)), receiver = std::move(*two.connectNccl(1));
  const ContextScope scope(*two.contexts[0]);
  void *from = *two.devices[0]->allocate(8);
  ASSERT_TRUE(sender->startGroup().ok());
  Status status = Status::success();
  int count = 0;
  for (; status.ok() && count != 300; ++count)
    status = sender->send(two.streams[0], 5, two.channel, from, 8);
  EXPECT_EQ(count, 257);
  EXPECT_EQ(status.message(), "a group of more than 256 transfers, of which NCCL has been seen to "
                              "hang; compile with smaller groups");
  EXPECT_TRUE(sender->endGroup().ok());
  two.devices[0]->abort();
  two.devices[1]->abort();
}

TEST(RunTest, GradientsThatNcclCannotSum) {
  dp_model_api api = getSoftExactModel();
  api.param = [](const dp_model *, uint32_t, uint32_t, dp_tensor_spec *out) {
    *out = {{kDLInt, 64, 1}, 1, 1, {1}};
    return DP_OK;
  };
  Two two(false, api);
  auto one = std::move(*two.connectNccl(0)), other = std::move(*two.connectNccl(1));
  auto copy = StageCopy::create(*two.model, 0, 0, true, 0, *two.devices[0]);
  ASSERT_TRUE(copy.ok());
  const ContextScope scope(*two.contexts[0]);
  EXPECT_EQ(one->reduce(two.streams[0], 5, 0, *copy).message(),
            "cannot sum the gradients of parameter 0 of stage 0: expected float32 or float64, got "
            "int64");
}

/// A stage of more tensors than a group of NCCL may have: the software device would report it.
TEST(RunTest, GradientsOfMoreTensorsThanAGroupTakes) {
  dp_model_api api = getSoftExactModel();
  api.num_params = [](const dp_model *, uint32_t) -> uint32_t { return 600; };
  api.param = [](const dp_model *, uint32_t, uint32_t, dp_tensor_spec *out) {
    *out = {{kDLFloat, 64, 1}, 1, 1, {1}};
    return DP_OK;
  };
  Two two(false, api);
  std::unique_ptr<NcclTransport> ends[2];
  for (size_t rank = 0; rank != 2; ++rank)
    ends[rank] = std::move(*two.connectNccl(rank));
  double sums[2] = {0, 0};
  std::vector<StageCopy> copies;
  for (size_t rank = 0; rank != 2; ++rank) {
    const ContextScope scope(*two.contexts[rank]);
    copies.push_back(
        std::move(*StageCopy::create(*two.model, uint32_t(rank), 0, true, 0, *two.devices[rank])));
    const double value = 3.0 + double(rank);
    for (const uint32_t i : {0u, 256u, 599u})
      ASSERT_TRUE(
          two.devices[rank]->upload(copies[rank].getGrad(i).data, &value, sizeof value).ok());
  }
  for (size_t rank = 0; rank != 2; ++rank) {
    const ContextScope scope(*two.contexts[rank]);
    const Status status = ends[rank]->reduce(two.streams[rank], 5, 0, copies[rank]);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  for (const uint32_t i : {0u, 256u, 599u})
    for (size_t rank = 0; rank != 2; ++rank) {
      const ContextScope scope(*two.contexts[rank]);
      const auto stream = two.devices[rank]->getStream(two.streams[rank]);
      while (two.gpu.getDriver().streamQuery(stream) == DriverStatus::NotReady) {
      }
      EXPECT_TRUE(two.devices[rank]
                      ->download(&sums[rank], copies[rank].getGrad(i).data, sizeof sums[rank])
                      .ok());
      EXPECT_EQ(sums[rank], 7.0) << "parameter " << i << " of rank " << rank;
    }
  EXPECT_THAT(two.gpu.getReports(), IsEmpty());
}

TEST(RunTest, IdsForOtherCommunicators) {
  SoftGpu gpu({.numGpus = 2});
  const Subject subject("", buildPipelines({.numRanks = 2}));
  const Model model = subject.createModel();
  Quiet failures;
  Result<GpuContext> context = GpuContext::create(gpu.getDriver(), 0);
  ASSERT_TRUE(context.ok());
  auto device = CudaDevice::create(subject.program.ranks[0], failures, *context, {});
  ASSERT_TRUE(device.ok());
  const std::vector<UniqueId> ids(1);
  EXPECT_EQ(NcclTransport::create(gpu.getNccl(), subject.program.shared, subject.program.ranks[0],
                                  model, **device, ids, nullptr, {})
                .message(),
            "the program needs 2 communicators, there are ids for 1");
}

/// A copy to the GPU that never ends does so after the timeout.
TEST(RunTest, ACopyHasADeadline) {
  SoftGpu gpu({.hangAt = 1, .hostThreads = ~0u});
  const Program program = buildPipelines({.numRanks = 1});
  Quiet failures;
  Result<GpuContext> context = GpuContext::create(gpu.getDriver(), 0);
  ASSERT_TRUE(context.ok());
  CudaDeviceOptions options;
  options.timeoutSeconds = 0.05;
  auto device = CudaDevice::create(program.ranks[0], failures, *context, options);
  ASSERT_TRUE(device.ok());
  gpu.addKernel({"hang", 1, [](const void *, int64_t) {}, [](const void *, auto &) {}});
  const ContextScope scope(*context);
  Module module = nullptr;
  cuda::Function function = nullptr;
  ASSERT_EQ(gpu.getDriver().moduleLoadData(&module, "image"), DriverStatus::Success);
  ASSERT_EQ(gpu.getDriver().moduleGetFunction(&function, module, "hang"), DriverStatus::Success);
  char byte = 0;
  void *parameters[] = {&byte};
  ASSERT_EQ(gpu.getDriver().launchKernel(function, 1, 1, 1, 1, 1, 1, 0, (*device)->getCopyStream(),
                                         parameters, nullptr),
            DriverStatus::Success);
  EXPECT_EQ((*device)->allocate(8).getStatus().message(),
            "rank 0: clearing memory on GPU 0 has not ended after 0.05 s");
  (*device)->abort(); // the stream never ends
  EXPECT_EQ((*device)->allocate(8).getStatus().message(), "rank 0: clearing memory was stopped");
}

} // namespace
