//===- Options.cpp - the launcher's command line ----------------------------===//

#include "Options.h"

#include "dualpipe/Runtime/Model.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <system_error>

namespace dualpipe::launcher {

static std::string describeModels() {
  std::string text = "Models and their settings:\n";
  for (const dp_model_api *model : runtime::getBuiltinModels())
    text += fmt::format("  {:<8} {}\n", model->name, model->settings);
  text += "  or the path of a plug-in, a shared object that exports dp_get_model (stage.h)\n\n"
          "A process per rank: where RANK and WORLD_SIZE are set, this one runs rank RANK of the "
          "program\n"
          "on GPU LOCAL_RANK, and meets the others at MASTER_ADDR, port MASTER_PORT (or "
          "DUALPIPE_PORT).\n\n"
          "Examples:\n"
          "  launcher dualpipe.dpx --check\n"
          "  launcher dualpipe.dpx --set hidden=64 --set dtype=f64 --steps=10 --lr=0.1 --check\n"
          "  launcher dualpipe.dpx --backend=sim --cost=fwd=1,bwd_input=1.1,bwd_weight=0.9\n"
          "  launcher dualpipe.dpx --backend=sim --model=mlp --set hidden=1024\n"
          "  launcher step/dualpipe.dpx --step=step/build/libdualpipe_step.so --check\n"
          "  launcher dualpipe.dpx --dump\n";
  return text;
}

/// Whole numbers in decimal, nothing else: CLI11 would take "010" for 8, and -1 for 2^64 - 1.
static CLI::Validator makeWhole(uint64_t least, uint64_t most) {
  const auto check = [=](std::string &text) {
    uint64_t value = 0;
    const char *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end || value < least || value > most)
      return fmt::format("expected a whole number from {} to {}, got '{}'", least, most, text);
    text = fmt::format("{}", value);
    return std::string();
  };
  return CLI::Validator(check, "");
}

/// Finite numbers: NaN would pass any comparison with a bound.
static CLI::Validator makeFinite(double least, double most) {
  const auto check = [=](std::string &text) {
    double value = 0;
    const char *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && stop == end && std::isfinite(value) && value >= least &&
        value <= most)
      return std::string();
    return fmt::format("expected a number from {} to {}, got '{}'", least, most, text);
  };
  return CLI::Validator(check, "");
}

static void addOptions(CLI::App &app, Options &options) {
  app.add_option("program", options.program, "The compiled program")->type_name("PROGRAM.dpx");
  app.add_option("--backend", options.backend,
                 "Where to run: auto (a GPU where one can be used, else the CPU), cpu or cuda; sim "
                 "predicts instead")
      ->check(CLI::IsMember({"auto", "cpu", "cuda", "sim"}))
      ->capture_default_str();
  app.add_flag("--fold-channels", options.foldChannels,
               "Between GPUs, one communicator of NCCL for all channels instead of one each: less "
               "memory, and transfers of a rank wait for each other");
  app.add_flag("--graph{try}", options.graph,
               "On a GPU, capture the second step as a CUDA graph and launch it again for every "
               "later one; where a model does not allow that steps are issued as without it, with "
               "a note, or, with --graph=require, the run fails. Needs two steps or more (3 unless "
               "--steps is given)")
      ->check(CLI::IsMember({"try", "require"}));
  app.add_option(
         "--cost", options.costs,
         "Times for --backend=sim, instead of those planned with: a profile, times, or both. "
         "fwd, bwd, bwd_input, bwd_weight, load_input, load_labels, reduce, step, all also "
         "of a stage as in fwd[3]; fused, forward_done, backward_done, start=joint|separate; "
         "transfer (latency), occupancy, bandwidth, bytes, reduce_bytes, links=own|shared; "
         "node (ranks of one), far_transfer, far_occupancy, far_bandwidth; cores (of a node)")
      ->type_name("[FILE.json,]fwd=1,bwd=2,...");
  app.add_option("--model", options.model,
                 "A built-in model or a plug-in; with --backend=sim, the one whose memory is told")
      ->type_name("NAME|PLUGIN.so")
      ->capture_default_str();
  app.add_option("--set", options.settings, "A setting of the model; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--step", options.step,
                 "Issue the steps of ranks by what --emit=cuda of dualpipe-opt wrote for this "
                 "program, built into a shared object")
      ->type_name("STEP.so");
  app.add_option("--steps", options.steps,
                 "Training steps; with --profile, --explain or --graph 3 unless given")
      ->transform(makeWhole(1, 1u << 24))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Seed of weights and data")
      ->transform(makeWhole(0, UINT64_MAX))
      ->capture_default_str();
  app.add_option("--optimizer", options.optimizer, "How weights are updated: sgd")
      ->capture_default_str();
  app.add_option("--lr", options.learningRate, "Learning rate")
      ->check(makeFinite(-1e9, 1e9))
      ->capture_default_str();
  app.add_flag("--check", options.check,
               "Replay the run without a pipeline and compare losses, gradients and weights bit "
               "for bit");
  app.add_option("--trace", options.trace,
                 "Write when each command of the last step ran, for ui.perfetto.dev")
      ->type_name("FILE");
  app.add_option("--profile", options.profile,
                 "Write what the stages took, for --cost=FILE.json; needs two steps or more (3 "
                 "unless --steps is given), the first does not count")
      ->type_name("FILE.json");
  app.add_flag("--explain", options.explain,
               "Predict the run with its own times and print where it differs; needs two steps or "
               "more (3 unless --steps is given)");
  app.add_option("--timeout", options.timeoutSeconds,
                 "Stop when nothing moves for so long, and say what each rank waits for")
      ->type_name("SECONDS")
      ->check(makeFinite(0.001, 1e9))
      ->capture_default_str();
  app.add_option("--jitter", options.jitterSeed,
                 "Pause at random before commands of every stream, to shake out what depends on "
                 "timing")
      ->type_name("SEED")
      ->transform(makeWhole(0, UINT64_MAX));
  app.add_option("--shuffle", options.shuffleSeed,
                 "Run on one thread, at each point one of the commands that may come next, picked "
                 "at random; a program that cannot go on is found at once")
      ->type_name("SEED")
      ->transform(makeWhole(0, UINT64_MAX))
      ->excludes("--jitter");
  app.add_flag("--json", options.json, "Print the results as JSON");
  app.add_flag("--dump", options.dump, "Print the program instead of running it");
  app.add_flag("--devices", options.devices, "List the devices of this machine");
}

/// The first step does not count.
static constexpr uint32_t kLeastMeasuredSteps = 2;
/// Unless --steps says: a median of two.
static constexpr uint32_t kMeasuredSteps = 3;

/// What does not go with --graph.
static std::string findGraphMistake(const CLI::App &app, const Options &options) {
  if (options.graph.empty())
    return "";
  if (options.backend != "cuda" && options.backend != "auto")
    return "--graph does not apply without --backend=cuda or auto: it captures what a GPU does";
  for (const char *name : {"--jitter", "--shuffle"})
    if (app.count(name) != 0)
      return fmt::format("--graph does not apply with {}, which runs on the CPU", name);
  for (const char *name : {"--trace", "--profile", "--explain"})
    if (app.count(name) != 0)
      return fmt::format("--graph does not apply with {}: times of commands cannot be taken in a "
                         "captured step",
                         name);
  if (options.steps < kLeastMeasuredSteps)
    return "--graph needs --steps=2 or more: the first step is not captured";
  return "";
}

/// What is wrong with the options together; empty where nothing is.
static std::string findMistake(const CLI::App &app, const Options &options) {
  if (options.program.empty() && !options.devices)
    return "expected a compiled program (.dpx)";
  const bool predicts = options.backend == "sim";
  if (!predicts && app.count("--cost") != 0)
    return "--cost does not apply without --backend=sim";
  if (predicts && app.count("--model") == 0)
    for (const char *name : {"--set", "--optimizer"})
      if (app.count(name) != 0)
        return fmt::format("{} does not apply with --backend=sim without --model, which gives the "
                           "sizes of its memory",
                           name);
  for (const char *name : {"--steps", "--check", "--jitter", "--shuffle", "--seed", "--lr",
                           "--timeout", "--step", "--trace", "--profile", "--explain"})
    if (predicts && app.count(name) != 0)
      return fmt::format("{} does not apply with --backend=sim, which computes nothing", name);
  if (const std::string mistake = findGraphMistake(app, options); !mistake.empty())
    return mistake;
  for (const char *name : {"--jitter", "--shuffle"})
    if (options.backend == "cuda" && app.count(name) != 0)
      return fmt::format("{} does not apply with --backend=cuda", name);
  if (!options.step.empty())
    for (const char *name : {"--shuffle", "--trace", "--profile", "--explain"})
      if (app.count(name) != 0)
        return fmt::format("{} does not apply with --step: it takes the program's own commands",
                           name);
  if (options.backend != "cuda" && options.backend != "auto" && options.foldChannels)
    return "--fold-channels does not apply without --backend=cuda or auto";
  for (const char *name : {"--trace", "--profile", "--explain"})
    if (options.shuffleSeed && app.count(name) != 0)
      return fmt::format("{} does not apply with --shuffle, which runs on one thread", name);
  if (options.steps < kLeastMeasuredSteps && (options.explain || !options.profile.empty()))
    return fmt::format("{} needs --steps=2 or more: the first step does not count",
                       options.explain ? "--explain" : "--profile");
  return "";
}

std::optional<Options> parseOptions(int argc, char **argv, int &exitCode) {
  Options options;
  CLI::App app(
      "Runs a compiled pipeline schedule: trains a model with it, checks it, or prints it.",
      "launcher");
  app.footer(describeModels());
  app.set_version_flag("--version", "launcher " DUALPIPE_VERSION);
  addOptions(app, options);
  exitCode = 0;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) {
    app.exit(success);
    return {};
  } catch (const CLI::ParseError &error) {
    std::cerr << "launcher: error: " << error.what() << "\n(--help lists the options)\n";
    exitCode = 1;
    return {};
  }
  const bool measures = options.explain || !options.profile.empty();
  if (app.count("--steps") == 0 && (measures || !options.graph.empty()))
    options.steps = kMeasuredSteps;
  options.backendGiven = app.count("--backend") != 0;
  if (const std::string mistake = findMistake(app, options); !mistake.empty()) {
    std::cerr << "launcher: error: " << mistake << "\n(--help lists the options)\n";
    exitCode = 1;
    return {};
  }
  options.measuresModel = options.backend == "sim" && app.count("--model") != 0;
  return options;
}

} // namespace dualpipe::launcher
