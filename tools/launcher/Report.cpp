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

using nlohmann::ordered_json;
using runtime::cuda::CommunicatorUse;

static std::string describeUse(const CommunicatorUse &use) {
  return fmt::format("{}, {} when they were made; hold up to {} of {} multiprocessors while "
                     "transfers wait{}",
                     use.communicators, runtime::describeBytes(use.bytes), use.blocks,
                     use.multiprocessors,
                     use.blocks > use.multiprocessors ? ", more than there are" : "");
}

static ordered_json toJson(const CommunicatorUse &use) {
  return {{"count", use.communicators},
          {"bytes", use.bytes},
          {"blocks", use.blocks},
          {"multiprocessors", use.multiprocessors}};
}

static uint64_t countCommands(const program::Program &program, uint32_t rank) {
  for (const program::RankProgram &own : program.ranks)
    if (own.rank == rank)
      return own.commands.size();
  return 0;
}

std::vector<RankReport> reportRanks(const program::Program &program,
                                    const std::vector<runtime::RankMemory> &memory,
                                    const runtime::cuda::CudaBackend *cuda) {
  std::vector<RankReport> reports;
  ordered_json all = runtime::toJson(memory, program);
  for (size_t i = 0; i != memory.size(); ++i) {
    const uint32_t rank = memory[i].rank;
    RankReport &report =
        reports.emplace_back(RankReport{rank, countCommands(program, rank),
                                        runtime::summarizeRank(memory[i]), "", std::move(all[i])});
    const std::optional<CommunicatorUse> use = cuda ? cuda->getCommunicatorUse(rank) : std::nullopt;
    if (!use)
      continue;
    report.communicators = describeUse(*use);
    report.json["communicators"] = toJson(*use);
  }
  return reports;
}

static std::string describeRanks(const RunDescription &run) {
  std::vector<std::pair<uint32_t, std::string>> memory, communicators;
  for (const RankReport &rank : run.ranks) {
    memory.emplace_back(rank.rank, rank.memory);
    if (!rank.communicators.empty())
      communicators.emplace_back(rank.rank, rank.communicators);
  }
  return runtime::joinRanks("memory", memory) + runtime::joinRanks("communicators", communicators);
}

static uint64_t countCommands(const RunDescription &run) {
  uint64_t commands = 0;
  for (const RankReport &rank : run.ranks)
    commands += rank.numCommands;
  return commands;
}

std::string describeRun(const RunDescription &run, const Options &options) {
  const program::SharedInfo &shared = *run.shared;
  std::string settings;
  for (const std::string &setting : options.settings)
    settings += " " + setting;
  return fmt::format(
      "{}: {} ranks, {} stages, {} micro-batches, {}\n"
      "  model {}{} on {}, {} commands a step{}\n{}",
      shared.schedule, shared.numRanks, shared.numStages, shared.numMicrobatches,
      shared.training ? fmt::format("{} with lr {}", options.optimizer, options.learningRate)
                      : "forward only",
      run.model, settings, run.device, countCommands(run),
      options.step.empty() ? "" : fmt::format(", issued by {}", options.step), describeRanks(run));
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
  for (const RankReport &rank : run.ranks)
    text += fmt::format("{}\n    {}", text.empty() ? "" : ",",
                        rank.json.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  return text;
}

uint64_t digestWeights(const runtime::StageCopy &copy) {
  return XXH3_64bits(copy.getParamBuffer().data(), copy.getParamBuffer().size());
}

std::string toJson(const RunDescription &run, const Options &options,
                   const runtime::RunReport &report, const std::vector<uint64_t> &digests,
                   const runtime::CheckReport *check, const std::string &explanation) {
  const program::SharedInfo &shared = *run.shared;
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
  text += fmt::format("  \"weights_digest\": \"{:016x}\",\n",
                      XXH3_64bits(digests.data(), digests.size() * sizeof(uint64_t)));
  text += fmt::format("  \"commands_per_step\": {},\n  \"wall_seconds_per_step\": {},\n"
                      "  \"cpu_seconds_per_step\": {},\n",
                      countCommands(run), report.wallSeconds / steps, report.cpuSeconds / steps);
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
