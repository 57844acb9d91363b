//===- Report.cpp - what the launcher prints --------------------------------===//

#include "Report.h"

#include "dualpipe/Support/Quote.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace dualpipe::launcher {

std::string describeRun(const RunDescription &run, const Options &options) {
  const program::SharedInfo &shared = run.program->shared;
  std::string settings;
  for (const std::string &setting : options.settings)
    settings += " " + setting;
  return fmt::format("{}: {} ranks, {} stages, {} micro-batches, {}\n"
                     "  model {}{} on {}, {} commands a step{}\n{}",
                     shared.schedule, shared.numRanks, shared.numStages, shared.numMicrobatches,
                     shared.training
                         ? fmt::format("{} with lr {}", options.optimizer, options.learningRate)
                         : "forward only",
                     run.model, settings, run.device, run.numCommands,
                     options.step.empty() ? "" : fmt::format(", issued by {}", options.step),
                     runtime::summarizeMemory(*run.memory));
}

std::string describeStep(const runtime::StepReport &step) {
  return fmt::format("step {:<4} loss {:.9g}  {:.3f} ms\n", step.step, step.loss,
                     step.seconds * 1e3);
}

/// JSON has no infinities; a diverged loss is null.
static std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

static std::string joinQuoted(const std::vector<std::string> &texts) {
  std::string joined;
  for (const std::string &text : texts)
    joined += (joined.empty() ? "" : ", ") + quoteJson(text);
  return joined;
}

static std::string stepsToJson(const std::vector<runtime::StepReport> &steps) {
  std::string text;
  for (const runtime::StepReport &step : steps)
    text += fmt::format("{}\n    {{\"step\": {}, \"loss\": {}, \"wall_seconds\": {}}}",
                        text.empty() ? "" : ",", step.step, number(step.loss), step.seconds);
  return text;
}

/// A rank a line, further in.
static std::string memoryToJson(const RunDescription &run) {
  std::string text;
  for (const nlohmann::ordered_json &rank : runtime::toJson(*run.memory, *run.program))
    text +=
        fmt::format("{}\n    {}", text.empty() ? "" : ",",
                    rank.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  return text;
}

/// One number for the bytes of all weights, copy after copy.
static uint64_t digestWeights(const runtime::TrainingResult &result) {
  uint64_t digest = 0;
  for (const runtime::StageCopy &copy : result.copies)
    digest =
        XXH3_64bits_withSeed(copy.getParamBuffer().data(), copy.getParamBuffer().size(), digest);
  return digest;
}

std::string toJson(const RunDescription &run, const Options &options,
                   const runtime::RunReport &report, const runtime::CheckReport *check,
                   const std::string &explanation) {
  const program::SharedInfo &shared = run.program->shared;
  const double steps = double(report.steps.size());
  std::string text = fmt::format(
      "{{\n  \"schedule\": {},\n  \"ranks\": {},\n  \"stages\": {},\n  \"microbatches\": {},\n"
      "  \"training\": {},\n  \"model\": {},\n  \"settings\": [{}],\n  \"device\": {},\n"
      "  \"seed\": {},\n",
      quoteJson(shared.schedule), shared.numRanks, shared.numStages, shared.numMicrobatches,
      shared.training, quoteJson(run.model), joinQuoted(options.settings), quoteJson(run.device),
      options.seed);
  if (!options.step.empty())
    text += fmt::format("  \"step\": {},\n", quoteJson(options.step));
  text += fmt::format("  \"weights_digest\": \"{:016x}\",\n", digestWeights(report.result));
  text += fmt::format("  \"commands_per_step\": {},\n  \"wall_seconds_per_step\": {},\n"
                      "  \"cpu_seconds_per_step\": {},\n",
                      run.numCommands, report.wallSeconds / steps, report.cpuSeconds / steps);
  if (run.numCapturedSteps)
    text += fmt::format("  \"captured_steps\": {},\n", *run.numCapturedSteps);
  text += fmt::format("  \"memory\": [{}\n  ],\n  \"steps\": [{}\n  ]", memoryToJson(run),
                      stepsToJson(report.steps));
  if (check)
    text += fmt::format(
        ",\n  \"check\": {{\"passed\": {}, \"plain_difference\": {}, \"lines\": [{}]}}",
        check->passed, check->plainDifference ? number(*check->plainDifference) : "null",
        joinQuoted(check->lines));
  if (!explanation.empty())
    text += ",\n  \"explain\": " + explanation;
  return text + "\n}\n";
}

} // namespace dualpipe::launcher
