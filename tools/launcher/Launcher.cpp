//===- Launcher.cpp - runs a compiled program -------------------------------===//

#include "Devices.h"
#include "Measure.h"
#include "Options.h"
#include "Output.h"
#include "Report.h"
#include "SelectBackend.h"
#include "Together.h"

#include "dualpipe/Program/Dump.h"
#include "dualpipe/Program/Reader.h"
#include "dualpipe/Runtime/MeasureModel.h"
#include "dualpipe/Runtime/Prediction.h"
#include "dualpipe/Runtime/Profile.h"
#include "dualpipe/Runtime/Progress.h"
#include "dualpipe/Runtime/Session.h"
#include "dualpipe/Runtime/ShuffledRun.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

using namespace dualpipe;
using namespace dualpipe::launcher;

/// Spinning pays only where every rank has a core of its own.
static constexpr uint32_t kSpins = 2000;

/// Long enough to turn the order of any two streams around.
static constexpr uint32_t kJitterMicroseconds = 100;

/// At once, so that a step shows when it is done, also through a pipe.
static void print(const std::string &text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

static int fail(const std::string &message) {
  std::fflush(stdout);
  fmt::print(stderr, "launcher: error: {}\n", message);
  return 1;
}

/// A full disk or a closed pipe shows only when the output is flushed.
static int finish(int exitCode) {
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return fail("cannot write the output");
  return exitCode;
}

static Result<runtime::ModelOptions>
makeModelOptions(const Options &options, const program::SharedInfo &shared, DLDeviceType device) {
  runtime::ModelOptions model;
  model.device = device;
  model.name = options.model;
  model.numStages = shared.numStages;
  model.numMicrobatches = shared.numMicrobatches;
  for (const std::string &text : options.settings) {
    Result<std::pair<std::string, std::string>> setting = runtime::parseSetting(text);
    if (!setting.ok())
      return setting.getStatus();
    model.settings.push_back(std::move(*setting));
  }
  return model;
}

/// Said as soon as it is known, once.
static void printGraphNote(const SelectedBackend &backend) {
  const std::string note = backend.cuda ? backend.cuda->takeGraphNote() : "";
  if (!note.empty())
    fmt::print(stderr, "launcher: note: {}\n", note);
}

static runtime::SessionOptions makeSessionOptions(const Options &options, uint32_t numRanks,
                                                  const SelectedBackend &backend) {
  runtime::SessionOptions session;
  session.training = {options.seed, options.steps, options.learningRate};
  session.timeoutSeconds = options.timeoutSeconds;
  session.numRecordedSteps = getNumRecordedSteps(options);
  session.device.spins = std::thread::hardware_concurrency() > numRanks ? kSpins : 0;
  if (options.jitterSeed) {
    session.device.jitterMicroseconds = kJitterMicroseconds;
    session.device.jitterSeed = *options.jitterSeed;
  }
  session.backend = backend.cuda;
  return session;
}

static void showSteps(const Options &options, const SelectedBackend &backend,
                      runtime::ProgressLine &progress, runtime::SessionOptions &session) {
  progress.show(0, options.steps);
  session.onStep = [&options, &backend, &progress](const runtime::StepReport &step) {
    progress.show(step.step + 1, options.steps);
    progress.clear();
    printGraphNote(backend);
    if (!options.json)
      print(describeStep(step));
  };
}

namespace {
/// What a run needs, owned together.
struct Parts {
  std::shared_ptr<const program::Program> program;
  SelectedBackend backend;
  std::shared_ptr<const runtime::Model> model;
  std::shared_ptr<const runtime::Optimizer> optimizer;
  std::shared_ptr<const runtime::EmittedStep> emitted; ///< or null
};
} // namespace

static Result<std::shared_ptr<const runtime::Model>>
loadModel(const Options &options, const program::SharedInfo &shared, DLDeviceType device) {
  Result<runtime::ModelOptions> modelOptions = makeModelOptions(options, shared, device);
  if (!modelOptions.ok())
    return modelOptions.getStatus();
  Result<runtime::Model> model = runtime::Model::create(*modelOptions);
  if (!model.ok())
    return model.getStatus();
  return std::make_shared<const runtime::Model>(std::move(*model));
}

/// Where the user leaves the choice, a model that runs on the CPU alone runs there, unless each
/// rank has a process.
static Status loadModelForBackend(const Options &options, bool isTogether, Parts &parts) {
  const program::SharedInfo &shared = parts.program->shared;
  auto model = loadModel(options, shared, parts.backend.getDevice());
  if (!model.ok() && parts.backend.cuda && options.backend == "auto" && options.graph.empty() &&
      !isTogether) {
    parts.backend = {nullptr, nullptr, "running on the CPU: " + model.message()};
    model = loadModel(options, shared, kDLCPU);
  }
  if (!model.ok())
    return model.getStatus();
  parts.model = std::move(*model);
  return Status::success();
}

/// `processes` are null where this one runs all ranks.
static Result<Parts> loadParts(const Options &options, program::Program program,
                               runtime::Processes *processes) {
  Parts parts;
  parts.program = std::make_shared<const program::Program>(std::move(program));
  Result<SelectedBackend> backend = processes
                                        ? selectTogether(options, parts.program->shared, *processes)
                                        : selectBackend(options, parts.program->shared);
  if (!backend.ok())
    return backend.getStatus();
  parts.backend = std::move(*backend);
  if (Status status = loadModelForBackend(options, processes != nullptr, parts); !status.ok())
    return status;
  Result<std::unique_ptr<runtime::Optimizer>> optimizer =
      runtime::createOptimizer(options.optimizer);
  if (!optimizer.ok())
    return optimizer.getStatus();
  parts.optimizer = std::move(*optimizer);
  if (!options.step.empty()) {
    Result<std::shared_ptr<const runtime::EmittedStep>> emitted =
        runtime::EmittedStep::load(options.step);
    if (!emitted.ok())
      return emitted.getStatus();
    parts.emitted = std::move(*emitted);
  }
  if ((options.backendGiven || parts.backend.noteIsNews) && !parts.backend.note.empty())
    fmt::print(stderr, "launcher: note: {}\n", parts.backend.note);
  return parts;
}

/// On the device of the run: then all agrees bit for bit.
static Result<runtime::CheckReport> checkResult(const Parts &parts,
                                                const runtime::TrainingOptions &training,
                                                const runtime::RunReport &run) {
  runtime::CheckPlace place;
  if (parts.backend.cuda) {
    Result<runtime::CheckPlace> made = parts.backend.cuda->makeCheckPlace();
    if (!made.ok())
      return made.getStatus();
    place = *made;
  }
  return runtime::checkRun(*parts.model, *parts.program, *parts.optimizer, training, run.result,
                           place);
}

/// Checks the run against its replay, prints, and says whether all is well.
static Result<int> report(const Options &options, const Parts &parts,
                          const RunDescription &description,
                          const runtime::TrainingOptions &training, const runtime::RunReport &run,
                          const std::vector<uint64_t> &digests) {
  std::optional<runtime::CheckReport> check;
  if (options.check) {
    Result<runtime::CheckReport> checked = checkResult(parts, training, run);
    if (!checked.ok())
      return Status::failure(fmt::format("the check could not run: {}", checked.message()));
    check = std::move(*checked);
  }
  std::string explanation;
  if (!run.recordings.empty()) {
    Result<std::string> times = reportTimes(options, *parts.program, *parts.model, *parts.optimizer,
                                            run, parts.backend.cuda != nullptr);
    if (!times.ok())
      return times.getStatus();
    explanation = std::move(*times);
  }
  if (options.json)
    print(toJson(description, options, run, digests, check ? &*check : nullptr, explanation));
  else
    print(explanation + (check ? check->getText() : ""));
  if (check && !check->passed)
    return Status::failure("the run does not agree with its replay");
  return finish(0);
}

/// The same run in an order of its own. What the user sees of steps comes at the end.
static Result<runtime::RunReport> runShuffled(const Options &options, const Parts &parts,
                                              const runtime::TrainingOptions &training) {
  Result<runtime::RunReport> run = runtime::runShuffled(
      *parts.model, *parts.program, *parts.optimizer, training, *options.shuffleSeed);
  if (run.ok() && !options.json)
    for (const runtime::StepReport &step : run->steps)
      print(describeStep(step));
  return run;
}

/// What is left of a run whose stage function never returns and still uses the model: leaves
/// without unloading it.
[[noreturn]] static void abandon(Status status, runtime::Processes *processes) {
  if (processes)
    status = processes->agreeOnFailure(status);
  const int exitCode = fail(status.message());
  if (processes)
    processes->leave();
  std::_Exit(exitCode);
}

static std::vector<uint64_t> digestCopies(const runtime::TrainingResult &result) {
  std::vector<uint64_t> digests;
  for (const runtime::StageCopy &copy : result.copies)
    digests.push_back(digestWeights(copy));
  return digests;
}

/// Runs all ranks, or the one of this process where there are others. Rank 0 alone prints then.
static Result<int> runProgram(const Options &options, program::Program program,
                              runtime::Processes *processes) {
  if (Status status = checkOutputs(options); !status.ok())
    return status;
  Result<Parts> parts = loadParts(options, std::move(program), processes);
  if (!parts.ok())
    return parts.getStatus();
  const program::SharedInfo &shared = parts->program->shared;
  const bool prints = !processes || processes->collects();
  runtime::ProgressLine progress("running, steps");
  runtime::SessionOptions sessionOptions =
      makeSessionOptions(options, shared.numRanks, parts->backend);
  if (prints)
    showSteps(options, parts->backend, progress, sessionOptions);
  if (processes) {
    sessionOptions.onlyRank = processes->getPlace().rank;
    sessionOptions.peers = processes;
  }
  sessionOptions.emitted = parts->emitted;
  Result<std::unique_ptr<runtime::Session>> session =
      runtime::Session::create(parts->program, parts->model, parts->optimizer, sessionOptions);
  if (!session.ok())
    return session.getStatus();

  RunDescription description{
      &shared, parts->model->getName(), parts->backend.getName(),
      reportRanks(*parts->program, (*session)->getMemory(), parts->backend.cuda.get())};
  if (processes) {
    Result<std::vector<RankReport>> all = gatherReports(*processes, description.ranks);
    if (!all.ok())
      return all.getStatus();
    description.ranks = std::move(*all);
  }
  if (prints && !options.json)
    print(describeRun(description, options));
  Result<runtime::RunReport> run = options.shuffleSeed
                                       ? runShuffled(options, *parts, sessionOptions.training)
                                       : (*session)->run();
  progress.end();
  if (prints)
    printGraphNote(parts->backend);
  if (!options.graph.empty() && parts->backend.cuda)
    description.numCapturedSteps = parts->backend.cuda->getNumReplayed();
  if (!run.ok() && (*session)->hasStuckThread())
    abandon(run.getStatus(), processes);
  if (!run.ok())
    return run.getStatus();
  std::vector<uint64_t> digests;
  if (!processes)
    digests = digestCopies(run->result);
  else if (Status status =
               collectResults(options, shared, *parts->model, *processes, *run, digests);
           !status.ok())
    return status;
  return prints ? report(options, *parts, description, sessionOptions.training, *run, digests) : 0;
}

/// With the other processes where there are some.
static int run(const Options &options, runtime::Processes *processes) {
  Result<program::Program> program =
      processes ? readTogether(options, *processes) : program::readProgramFile(options.program);
  Result<int> exitCode = program.ok() ? runProgram(options, std::move(*program), processes)
                                      : Result<int>(program.getStatus());
  if (exitCode.ok())
    return *exitCode;
  const Status status =
      processes ? processes->agreeOnFailure(exitCode.getStatus()) : exitCode.getStatus();
  return fail(status.message());
}

static int runTogetherOrAlone(const Options &options) {
  Result<std::unique_ptr<runtime::Processes>> processes = meetProcesses(options);
  return processes.ok() ? run(options, processes->get()) : fail(processes.message());
}

/// What the program would allocate with the model that is named.
static Result<std::vector<runtime::RankMemory>> predictMemory(const Options &options,
                                                              const program::Program &program) {
  auto model = loadModel(options, program.shared, kDLCPU);
  if (!model.ok())
    return model.getStatus();
  if (Status status = (*model)->checkProgram(program.shared); !status.ok())
    return status;
  Result<std::unique_ptr<runtime::Optimizer>> optimizer =
      runtime::createOptimizer(options.optimizer);
  if (!optimizer.ok())
    return optimizer.getStatus();
  return runtime::measureMemory(program, runtime::measureModel(**model, **optimizer));
}

/// The times that the program will take, from the costs that were planned or given.
static int predictProgram(const Options &options, const program::Program &program) {
  Result<runtime::CostOption> option = runtime::CostOption::parse(options.costs);
  if (!option.ok())
    return fail("--cost: " + option.message());
  Result<runtime::SimulationCosts> costs = option->getCosts(program);
  if (!costs.ok())
    return fail("--cost: " + costs.message());
  runtime::ProgressLine progress("simulating");
  Result<runtime::Prediction> prediction = runtime::predict(
      program, *costs, [&](uint64_t done, uint64_t total) { progress.show(done, total); });
  progress.end();
  if (!prediction.ok())
    return fail(prediction.message());
  if (options.measuresModel) {
    Result<std::vector<runtime::RankMemory>> memory = predictMemory(options, program);
    if (!memory.ok())
      return fail(memory.message());
    prediction->memory = std::move(*memory);
  }
  print(options.json ? runtime::printJson(*prediction, program)
                     : runtime::printText(*prediction, program));
  return finish(0);
}

int main(int argc, char **argv) {
  int exitCode = 0;
  const std::optional<Options> options = parseOptions(argc, argv, exitCode);
  if (!options)
    return exitCode;
  if (options->devices) {
    print(describeDevices());
    return finish(0);
  }
  if (options->backend != "sim" && !options->dump)
    return runTogetherOrAlone(*options);
  Result<program::Program> program = program::readProgramFile(options->program);
  if (!program.ok())
    return fail(program.message());
  if (options->dump) {
    print(program::dumpProgram(*program));
    return finish(0);
  }
  return predictProgram(*options, *program);
}
