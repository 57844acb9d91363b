//===- Conformance.cpp - one suite for everything that runs programs ---------------===//
//
//   conformance PROGRAM.dpx --on=NAME [--seeds=N] [--graph] [--groups]
//   conformance PROGRAM.dpx --faults
//
// Trains the exact model (test/support/ExactModel.h) and compares losses, gradients
// and weights with one device, bit for bit. NAME is
//
//   cpu        threads, with random pauses
//   shuffled   one thread, in random legal orders
//   copies     GPUs made of software: all ranks on one
//   nccl       GPUs made of software: one each, a communicator per channel
//   folded     the same with one communicator for all channels
//   sim        virtual time: nothing is computed, so only that it ends is looked at
//
// With --graph, on GPUs, four steps are trained, of which the last three must run as
// graphs. With --groups every transfer stands in a group of its own. GPUs made of software must
// have nothing to report. Prints what is wrong and exits with 1 where something is.
//
//===----------------------------------------------------------------------===//

#include "Faults.h"

#include "test/support/BracketTransfers.h"
#include "test/support/Subject.h"
#include "test/support/softrun/SoftRun.h"

#include "dualpipe/Program/Reader.h"
#include "dualpipe/Runtime/Simulation.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

using namespace dualpipe;
using namespace dualpipe::runtime;
using namespace dualpipe::test;

namespace {

/// With graphs: one step that is issued, one that is captured, and two more.
constexpr TrainingOptions kCapturedTraining = {.seed = 7, .numSteps = 4, .learningRate = 1};

/// What a run in one order showed; empty where all is well.
using Runner = std::string (*)(const Subject &subject, uint64_t seed);

std::string runOnCpu(const Subject &subject, uint64_t seed) {
  SessionOptions options;
  options.training = Subject::getTraining();
  options.device.jitterMicroseconds = 20;
  options.device.jitterSeed = seed;
  Result<std::unique_ptr<Session>> session =
      Session::create(std::make_shared<const program::Program>(subject.program),
                      std::make_shared<const Model>(subject.createModel()),
                      std::move(*createOptimizer("sgd")), options);
  if (!session.ok())
    return session.message();
  Result<RunReport> run = (*session)->run();
  return run.ok() ? subject.compare(run->result) : run.message();
}

std::string runShuffled(const Subject &subject, uint64_t seed) {
  return subject.run(subject.program, seed);
}

template <SoftTransport transport, bool captures = false>
std::string runOnSoftGpu(const Subject &subject, uint64_t seed) {
  SoftRunOptions options;
  options.transport = transport;
  options.gpu.seed = seed;
  options.gpu.inProgress = uint32_t(seed % 3);
  options.training = captures ? kCapturedTraining : Subject::getTraining();
  if (captures)
    options.graph.use = cuda::GraphUse::Require;
  const SoftRunResult run = runOnSoftGpus(subject.program, options);
  if (!run.reports.empty())
    return "reported: " + run.reports.front() +
           (run.failure.empty() ? "" : "; the run failed: " + run.failure);
  if (!run.failure.empty())
    return run.failure;
  if (const uint32_t expected = captures ? kCapturedTraining.numSteps - 1 : 0;
      run.numReplayed != expected)
    return fmt::format("{} steps ran as graphs, expected {}", run.numReplayed, expected);
  return subject.compare(run.result);
}

std::string runSimulation(const Subject &subject, uint64_t) {
  Result<SimulationCosts> costs = SimulationCosts::fromProgram(subject.program.shared);
  if (!costs.ok())
    return costs.message();
  Result<Simulation> simulation = simulate(subject.program, *costs);
  return simulation.ok() ? "" : simulation.message();
}

const std::map<std::string, Runner> kRunners = {
    {"cpu", runOnCpu},
    {"shuffled", runShuffled},
    {"copies", runOnSoftGpu<SoftTransport::Copies>},
    {"nccl", runOnSoftGpu<SoftTransport::Nccl>},
    {"folded", runOnSoftGpu<SoftTransport::Folded>},
    {"sim", runSimulation},
};

const std::map<std::string, Runner> kCapturedRunners = {
    {"copies", runOnSoftGpu<SoftTransport::Copies, true>},
    {"nccl", runOnSoftGpu<SoftTransport::Nccl, true>},
    {"folded", runOnSoftGpu<SoftTransport::Folded, true>},
};

struct Options {
  std::string program, on;
  uint64_t seeds = 1;
  bool faults = false;
  bool captures = false;
  bool groups = false;

  const std::map<std::string, Runner> &getRunners() const {
    return captures ? kCapturedRunners : kRunners;
  }
};

bool parse(int argc, char **argv, Options &options) {
  for (int i = 1; i != argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--on=", 0) == 0)
      options.on = argument.substr(5);
    else if (argument.rfind("--seeds=", 0) == 0)
      options.seeds = std::strtoull(argument.c_str() + 8, nullptr, 10);
    else if (argument == "--faults")
      options.faults = true;
    else if (argument == "--graph")
      options.captures = true;
    else if (argument == "--groups")
      options.groups = true;
    else
      options.program = argument;
  }
  return !options.program.empty() && (options.faults || options.getRunners().count(options.on));
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    fmt::print(stderr, "usage: conformance PROGRAM.dpx --on=cpu|shuffled|copies|nccl|folded|sim "
                       "[--seeds=N] [--groups] | --on=copies|nccl|folded --graph [--seeds=N] "
                       "[--groups] | --faults\n");
    return 1;
  }
  Result<program::Program> program = program::readProgramFile(options.program);
  if (!program.ok()) {
    fmt::print(stderr, "{}\n", program.message());
    return 1;
  }
  if (options.groups)
    bracketTransfers(*program);
  const Subject subject(options.program, std::move(*program),
                        options.captures ? kCapturedTraining : Subject::getTraining());
  if (options.faults)
    return plantFaults(subject) ? 0 : 1;
  const Runner run = options.getRunners().at(options.on);
  unsigned bad = 0;
  for (uint64_t seed = 0; seed != options.seeds; ++seed)
    if (const std::string finding = run(subject, seed); !finding.empty()) {
      fmt::print("seed {}: {}\n", seed, finding);
      ++bad;
    }
  return bad == 0 ? 0 : 1;
}
