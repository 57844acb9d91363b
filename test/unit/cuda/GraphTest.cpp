//===- GraphTest.cpp - steps as graphs, on GPUs made of software ---------------===//

#include "ExpectRight.h"
#include "Harness.h"
#include "test/support/Subject.h"
#include "test/support/softrun/SoftExact.h"
#include "test/support/softrun/SoftRun.h"
#include "test/unit/runtime/TestPrograms.h"

#include "runtime/device/cuda/Capture.h"
#include "runtime/executor/FirstFailure.h"

#include <optional>
#include <thread>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::runtime;
using namespace dualpipe::test;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
// Of the program's and of CUDA's, these are CUDA's.
using CudaStream = runtime::cuda::Stream;
using CudaEvent = runtime::cuda::Event;

namespace {

/// The first is issued, three run as graphs.
constexpr TrainingOptions kTraining = {.seed = 7, .numSteps = 4, .learningRate = 1};

SoftRunOptions makeOptions(SoftTransport transport, SoftGpuOptions gpu = {},
                           GraphUse use = GraphUse::Try) {
  SoftRunOptions options;
  options.transport = transport;
  options.training = kTraining;
  options.gpu = std::move(gpu);
  options.timeoutSeconds = 20;
  options.graph.use = use;
  return options;
}

TEST(GraphTest, CapturedPipelinesComputeWhatOneDeviceDoes) {
  for (const PipelineOptions &pipelines : kPipelines)
    expectRight(
        Subject("", buildPipelines(pipelines), kTraining),
        [](SoftTransport transport, const SoftGpuOptions &gpu) {
          return makeOptions(transport, gpu);
        },
        [](const SoftRunResult &run) {
          EXPECT_EQ(run.numReplayed, 3u);
          EXPECT_EQ(run.note, "");
        });
}

/// What a graph leaves unordered shows in it, not only in the step that is issued.
TEST(GraphTest, AMissingWaitShowsInTheGraph) {
  const Program correct = buildPipelines({.numRanks = 2});
  unsigned waits = 0;
  for (uint32_t rank = 0; rank != 2; ++rank)
    for (uint32_t i = find(correct.ranks[rank], CommandOp::Wait); i != kNone;
         i = find(correct.ranks[rank], CommandOp::Wait, i + 1)) {
      Program broken = correct;
      broken.ranks[rank].commands.erase(broken.ranks[rank].commands.begin() + i);
      broken.ranks[rank].phases.clear();
      bool found = false;
      for (uint64_t seed = 0; seed != 20 && !found; ++seed)
        for (const std::string &report :
             runOnSoftGpus(broken, makeOptions(SoftTransport::Nccl, {.seed = seed})).reports)
          found |= report.find(" of a graph") != report.npos;
      EXPECT_TRUE(found) << "rank " << rank << ", command " << i;
      ++waits;
    }
  EXPECT_GT(waits, 4u);
}

//===--- Faults -------------------------------------------------------------===//

SoftRunResult runWith(SoftTransport transport, SoftFault fault, GraphUse use = GraphUse::Try) {
  return runOnSoftGpus(buildPipelines({.numRanks = 2, .mirrored = true}),
                       makeOptions(transport, {.faults = {std::move(fault)}}, use));
}

TEST(GraphTest, StepsThatCannotBeCapturedAreIssued) {
  const Subject subject("", buildPipelines({.numRanks = 2, .mirrored = true}), kTraining);
  const SoftFault faults[] = {{"cuStreamBeginCapture", 1, 900},
                              {"cuStreamBeginCapture", 2, 999},
                              {"cuGraphInstantiateWithFlags", 1, 2}};
  for (const SoftTransport transport : kTransports)
    for (const SoftFault &fault : faults) {
      const SoftRunResult run = runWith(transport, fault);
      EXPECT_EQ(run.failure, "") << fault.function;
      EXPECT_THAT(run.reports, IsEmpty()) << fault.function;
      EXPECT_EQ(run.numReplayed, 0u);
      EXPECT_EQ(subject.compare(run.result), "") << fault.function;
      EXPECT_THAT(
          run.note,
          AllOf(StartsWith("steps are issued without graphs, since one cannot be captured: "),
                HasSubstr(fault.function + " failed: CUDA_ERROR_")));
      EXPECT_THAT(runWith(transport, fault, GraphUse::Require).failure,
                  AllOf(StartsWith("graphs are required (--graph=require), and a step cannot be "
                                   "captured: "),
                        HasSubstr(fault.function + " failed: CUDA_ERROR_")));
    }
}

/// No stage function is to blame.
TEST(GraphTest, WhereNothingCanBeCaptured) {
  std::vector<SoftFault> faults;
  for (uint32_t i = 1; i != 200; ++i)
    faults.push_back({"cuStreamBeginCapture", i, 801});
  for (const SoftTransport transport : kTransports) {
    const SoftRunResult run =
        runOnSoftGpus(buildPipelines({.numRanks = 2}), makeOptions(transport, {.faults = faults}));
    EXPECT_EQ(run.failure, "");
    EXPECT_THAT(run.note, HasSubstr("cannot be captured: cuStreamBeginCapture failed: "
                                    "CUDA_ERROR_NOT_SUPPORTED"));
  }
}

/// Other ranks may have launched theirs: nothing can be issued instead.
TEST(GraphTest, ALaunchThatFailsStopsTheRun) {
  for (const SoftTransport transport : kTransports)
    for (const uint32_t number : {1u, 2u, 3u})
      EXPECT_THAT(runWith(transport, {"cuGraphLaunch", number, 719}).failure,
                  AllOf(HasSubstr(", a captured step: cuGraphLaunch failed: "
                                  "CUDA_ERROR_LAUNCH_FAILED"),
                        StartsWith("rank ")));
  EXPECT_NE(runWith(SoftTransport::Nccl, {"cuStreamEndCapture", 1, 999}).failure, "");
}

/// Kernels of the exact model before the capture of the second step.
uint32_t countKernels(const Program &program) {
  uint32_t kernels = 0;
  for (const RankProgram &rank : program.ranks) {
    kernels += uint32_t(rank.launches.size());
    for (const Command &command : rank.commands)
      kernels += command.op == CommandOp::Step ? 2 : 0; // the first weights of each copy, and steps
  }
  return kernels;
}

TEST(GraphTest, AKernelThatNeverEndsIsFound) {
  const Program program = buildPipelines({.numRanks = 2});
  for (const SoftTransport transport : kTransports) {
    const SoftRunResult run =
        runOnSoftGpus(program, makeOptions(transport, {.hangAt = countKernels(program) + 3}));
    EXPECT_THAT(run.failure, AllOf(HasSubstr(": a captured step on GPU "),
                                   HasSubstr(" failed: CUDA_ERROR_LAUNCH_TIMEOUT")));
    EXPECT_THAT(run.reports, Contains(HasSubstr(" of a graph is at kernel exact")));
  }
}

TEST(GraphTest, TheWatchdogSaysThatRanksAreInTheGraph) {
  const Program program = buildPipelines({.numRanks = 2});
  for (const SoftTransport transport : kTransports) {
    SoftRunOptions options = makeOptions(transport, {.hangAt = countKernels(program) + 3});
    options.timeoutSeconds = 3;
    options.hostThreads = ~0u;
    EXPECT_THAT(runOnSoftGpus(program, options).failure,
                AllOf(HasSubstr("no progress for 3 s; what each rank waits for:"),
                      HasSubstr("rank 0 is in a captured step, where its commands do not show; "
                                "without --graph they do"),
                      HasSubstr("rank 1 is in a captured step")));
  }
}

TEST(GraphTest, AnErrorOfNcclStopsAllRanks) {
  const Program program = buildPipelines({.numRanks = 2, .mirrored = true});
  size_t transfers = 0; // of a step
  for (const RankProgram &rank : program.ranks)
    transfers += rank.transfers.size();
  for (uint64_t seed = 0; seed != 4; ++seed)
    EXPECT_THAT(
        runOnSoftGpus(program, makeOptions(SoftTransport::Nccl,
                                           {.seed = seed, .asyncErrorAt = uint32_t(transfers) + 9}))
            .failure,
        HasSubstr("ncclRemoteError"));
}

TEST(GraphTest, ACapturedStepHasNoTimes) {
  SoftRunOptions options = makeOptions(SoftTransport::Copies);
  options.numRecordedSteps = 1;
  EXPECT_EQ(runOnSoftGpus(buildPipelines({.numRanks = 2}), options).failure,
            "times of commands cannot be taken in a captured step; record the run without graphs");
}

//===--- Processes ----------------------------------------------------------===//

TEST(GraphTest, AllProcessesCaptureOrNone) {
  const Subject subject("", buildPipelines({.numRanks = 2}), kTraining);
  for (const SoftTransport transport : kTransports) {
    SoftRunOptions options = makeOptions(transport);
    std::vector<std::string> given;
    std::mutex mutex;
    options.graph.agree = [&](const std::string &failure) -> Result<std::string> {
      const std::lock_guard lock(mutex);
      given.push_back(failure);
      return std::string("rank 9 was not able to");
    };
    const SoftRunResult run = runOnSoftGpus(subject.program, options);
    EXPECT_THAT(given, testing::ElementsAre(""));
    EXPECT_THAT(run.note, HasSubstr("cannot be captured: rank 9 was not able to"));
    EXPECT_EQ(run.numReplayed, 0u);
    EXPECT_EQ(subject.compare(run.result), "");
    options.graph.agree = [](const std::string &) -> Result<std::string> {
      return Status::failure("rank 9 has gone");
    };
    EXPECT_EQ(runOnSoftGpus(subject.program, options).failure, "rank 9 has gone");
  }
}

//===--- What stage functions must not do -------------------------------------===//

enum class Deed { Allocate, AllocateAndTell, Query, UseLegacy, LeaveFork, JoinFork };

/// What the forward of stage 1 does beside its own, where it is captured.
std::optional<Deed> deed;

dp_status doDeed(dp_call *call) {
  const DriverApi &driver = *static_cast<SoftExactRuntime *>(call->runtime)->driver;
  const auto stream = static_cast<CudaStream>(call->stream);
  CaptureStatus status = CaptureStatus::None;
  driver.streamIsCapturing(stream, &status);
  if (!deed || status == CaptureStatus::None || call->stage != 1 || call->microbatch != 2)
    return DP_OK;
  DevicePointer pointer = 0;
  switch (*deed) {
  case Deed::Allocate:
    driver.memAlloc(&pointer, 8);
    return DP_OK;
  case Deed::AllocateAndTell: {
    const DriverStatus allocated = driver.memAlloc(&pointer, 8);
    if (allocated == DriverStatus::Success)
      return DP_OK;
    return dp_fail(call->message, call->message_size, "no memory: %s", getName(allocated));
  }
  case Deed::Query:
    driver.streamQuery(stream);
    return DP_OK;
  case Deed::UseLegacy:
    driver.memsetD8Async(reinterpret_cast<DevicePointer>(call->tensors[DP_INPUT]->data), 0, 8,
                         nullptr);
    return DP_OK;
  case Deed::LeaveFork:
  case Deed::JoinFork:
    CudaStream other = nullptr;
    CudaEvent event = nullptr;
    driver.streamCreateWithPriority(&other, kStreamNonBlocking, 0);
    driver.eventCreate(&event, kEventDisableTiming);
    driver.eventRecord(event, stream);
    driver.streamWaitEvent(other, event, 0);
    driver.memcpyDtoDAsync(reinterpret_cast<DevicePointer>(call->tensors[DP_INPUT]->data),
                           reinterpret_cast<DevicePointer>(call->tensors[DP_INPUT]->data), 8,
                           other);
    driver.eventRecord(event, other);
    if (*deed == Deed::JoinFork)
      driver.streamWaitEvent(stream, event, 0);
    return DP_OK;
  }
  return DP_OK;
}

dp_status forwardWithDeed(dp_model *model, dp_call *call) {
  const dp_status status = doDeed(call);
  return status == DP_OK ? getSoftExactModel().forward(model, call) : status;
}

SoftRunResult runWithDeed(SoftTransport transport, Deed what, GraphUse use,
                          const Program &program) {
  dp_model_api api = getSoftExactModel();
  api.forward = forwardWithDeed;
  SoftRunOptions options = makeOptions(transport, {}, use);
  options.model = &api;
  deed = what;
  SoftRunResult run = runOnSoftGpus(program, options);
  deed.reset();
  return run;
}

/// The note names the rank, the function, its place in the text, and what it did.
TEST(GraphTest, AStageFunctionThatCannotBeCapturedIsNamed) {
  const struct {
    Deed deed;
    const char *says;
  } cases[] = {
      {Deed::Allocate, "allocates or frees memory, or makes another call that is in no stream"},
      {Deed::AllocateAndTell, "no memory: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {Deed::Query, "waits for its stream or for an event, or asks whether they are done"},
      {Deed::UseLegacy, "uses the legacy stream (stream 0): a function uses only the stream that "
                        "it is given"},
      {Deed::LeaveFork, "leaves work on a stream of its own: a function that forks from its stream "
                        "joins it again by an event"}};
  const Subject subject("", buildPipelines({.numRanks = 2}), kTraining);
  for (const SoftTransport transport : kTransports)
    for (const auto &[what, says] : cases) {
      const SoftRunResult run = runWithDeed(transport, what, GraphUse::Try, subject.program);
      EXPECT_EQ(run.failure, "");
      EXPECT_THAT(run.reports, IsEmpty()) << says;
      EXPECT_EQ(run.numReplayed, 0u);
      EXPECT_EQ(subject.compare(run.result), "") << says;
      EXPECT_THAT(run.note,
                  AllOf(HasSubstr("cannot be captured: rank 1, command "),
                        HasSubstr(": forward of stage 1, micro-batch 2 ("), HasSubstr(says)));
      EXPECT_THAT(runWithDeed(transport, what, GraphUse::Require, subject.program).failure,
                  AllOf(StartsWith("graphs are required"), HasSubstr(says)));
    }
}

TEST(GraphTest, AStageFunctionMayForkAndJoin) {
  const Subject subject("", buildPipelines({.numRanks = 2}), kTraining);
  for (const SoftTransport transport : kTransports) {
    const SoftRunResult run =
        runWithDeed(transport, Deed::JoinFork, GraphUse::Require, subject.program);
    EXPECT_EQ(run.failure, "");
    EXPECT_THAT(run.reports, IsEmpty());
    EXPECT_GT(run.numReplayed, 0u);
    EXPECT_EQ(subject.compare(run.result), "");
  }
}

//===--- Parts ----------------------------------------------------------------===//

TEST(GraphTest, ACaptureEndsOnEveryPath) {
  SoftGpu gpu;
  Host host(gpu);
  int *numbers = host.makeInts(2, 1);
  Result<GpuContext> context = GpuContext::create(gpu.getDriver(), 0);
  ASSERT_TRUE(context.ok());
  auto capture = std::move(*StepCapture::create(*context));
  EXPECT_EQ(capture->launch().message(), "the captured step was dropped, since the run has failed");
  ASSERT_TRUE(capture->begin(CaptureMode::Global).ok());
  const CudaStream stream = host.makeStream();
  ASSERT_TRUE(capture->fork({&stream, 1}).ok());
  host.add(stream, numbers, numbers, numbers);
  EXPECT_STREQ(capture->findBreach(stream), "");
  EXPECT_TRUE(capture->end(false).ok()); // thrown away
  ASSERT_TRUE(capture->begin(CaptureMode::Global).ok());
  EXPECT_EQ(gpu.getDriver().memsetD8Async(reinterpret_cast<DevicePointer>(numbers), 0, 4, nullptr),
            DriverStatus::StreamCaptureImplicit);
  EXPECT_THAT(capture->end(true).message(),
              StartsWith("something uses the legacy stream (stream 0)"));
  ASSERT_TRUE(capture->begin(CaptureMode::Global).ok());
  EXPECT_EQ(gpu.getDriver().streamQuery(stream), DriverStatus::StreamCaptureUnsupported);
  EXPECT_THAT(capture->findBreach(capture->getStream()),
              StartsWith("makes a call that a capture does not allow"));
  EXPECT_THAT(capture->end(true).message(), HasSubstr("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"));
  ASSERT_TRUE(capture->begin(CaptureMode::Global).ok());
  EXPECT_TRUE(capture->end(true).ok());
  EXPECT_TRUE(capture->launch().ok());
  EXPECT_CUDA(host.wait(capture->getStream()));
  capture->drop();
  EXPECT_FALSE(capture->launch().ok());
  EXPECT_EQ(host.read(numbers), 1);
  EXPECT_THAT(gpu.getReports(), IsEmpty());
}

/// Commands that are none.
struct Nothing : StepCommands {
  Status issueAll() override { return Status::success(); }
  Status issueOne(uint32_t) override { return Status::success(); }
};

TEST(GraphTest, ARankThatWaitsForOthersCanBeStopped) {
  for (const bool together : {false, true}) {
    SoftGpu gpu({.hostThreads = ~0u});
    const Program program = buildPipelines({.numRanks = 2});
    Result<GpuContext> context = GpuContext::create(gpu.getDriver(), 0);
    ASSERT_TRUE(context.ok());
    const ContextScope scope(*context);
    FirstFailure failures;
    GraphHub hub(program.shared, {GraphUse::Try, together, {}});
    std::vector<std::unique_ptr<CudaDevice>> devices;
    std::vector<std::unique_ptr<StepGraph>> graphs;
    for (const RankProgram &rank : program.ranks) {
      devices.push_back(std::move(*CudaDevice::create(rank, failures, *context, {})));
      graphs.push_back(std::move(*hub.connect(rank, *devices.back())));
    }
    Nothing nothing;
    EXPECT_TRUE(graphs[0]->runStep(nothing).ok());
    std::thread thread([&] {
      while (devices[0]->getPosition().graph != GraphPosition::Waits)
        std::this_thread::yield();
      devices[0]->abort();
    });
    EXPECT_EQ(graphs[0]->runStep(nothing).message(),
              "rank 0 was stopped while it waited for the other ranks at a captured step");
    thread.join();
  }
}

} // namespace
