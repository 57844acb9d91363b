//===- ProfileTest.cpp - measuring, writing, reading, and what is wrong -----===//

#include "test/unit/runtime/TestPrograms.h"

#include "dualpipe/Runtime/Profile.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::runtime;
using namespace dualpipe::test;

namespace {

ModelSizes makeSizes(size_t numStages) {
  ModelSizes sizes;
  for (size_t stage = 0; stage != numStages; ++stage) {
    StageSizes own;
    own.tensors.fill(64 * (stage + 1));
    own.gradients = 1024;
    sizes.stages.push_back(own);
  }
  return sizes;
}

ProfileOrigin makeOrigin(const Program &program) {
  return {program.shared.schedule,
          {{"chunks", 2}},
          program.shared.numRanks,
          program.shared.numStages,
          program.shared.numMicrobatches,
          program.shared.contract.numComponents,
          "mlp",
          {"hidden=64", "dtype=\"f64\""},
          "cpu",
          2};
}

/// Every compute of stage s takes 100 * (s + 1) ns times `factor`, each transfer 10 ns
/// and a tenth of its bytes; commands follow each other as in a simulation.
StepRecording record(const Program &program, uint32_t step, int64_t factor = 1) {
  StepRecording recording{step, {}};
  for (const RankProgram &rank : program.ranks) {
    std::vector<CommandSpan> &spans = recording.ranks.emplace_back(rank.commands.size());
    int64_t now = 1000;
    for (size_t i = 0; i != rank.commands.size(); ++i) {
      const Command &command = rank.commands[i];
      int64_t time = 0;
      if (command.op == CommandOp::Launch)
        time = 100 * (rank.launches[command.arg].stage + 1) * factor;
      if (command.op == CommandOp::Recv || command.op == CommandOp::Send) {
        const Transfer &transfer = rank.transfers[command.arg];
        time = 10 + 64 * (transfer.stage + 1) / 10;
      }
      if (command.op == CommandOp::Reduce || command.op == CommandOp::Step)
        time = 50;
      spans[i] = {now, now + time, time, time / 2, 0};
      now += time;
    }
  }
  return recording;
}

Result<Profile> measure(const Program &program, const std::vector<StepRecording> &recordings) {
  return measureProfile(program, recordings, makeOrigin(program),
                        makeSizes(program.shared.numStages));
}

Profile makeProfile(const Program &program) {
  Result<Profile> profile = measure(program, {record(program, 0, 1000), record(program, 1),
                                              record(program, 2, 3), record(program, 3)});
  EXPECT_TRUE(profile.ok()) << profile.message();
  return std::move(*profile);
}

const FunctionProfile *find(const Profile &profile, Function function, uint32_t stage) {
  for (const FunctionProfile &own : profile.functions)
    if (own.key == FunctionKey{function, stage, 0})
      return &own;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

/// The first step is warm-up, one step of three is an outlier.
TEST(MeasureProfile, MediansByStage) {
  const Program program = buildPipelines({.numRanks = 3, .numMicrobatches = 4});
  const Profile profile = makeProfile(program);
  EXPECT_EQ(profile.steps, 3u);
  for (uint32_t stage = 0; stage != 3; ++stage)
    for (Function function : {Function::Forward, Function::Backward}) {
      const FunctionProfile *own = find(profile, function, stage);
      ASSERT_NE(own, nullptr);
      EXPECT_EQ(own->time, 100 * (stage + 1));
      EXPECT_EQ(own->cpu, 50 * (stage + 1));
      EXPECT_EQ(own->samples, 12u);
    }
  EXPECT_NE(find(profile, Function::LoadInput, 0), nullptr);
  EXPECT_EQ(find(profile, Function::BackwardInput, 0), nullptr);
  ASSERT_EQ(profile.stageSteps.size(), 3u);
  EXPECT_EQ(profile.stageSteps[1].time, 50);
  EXPECT_EQ(profile.transfers.size(), 3u); // into stages 1 and 2, and back into 0 and 1
}

/// The members of a pair that runs as one have no times of their own.
TEST(MeasureProfile, PairsOfAFusedFunction) {
  Program program = buildPipelines({.numRanks = 1, .numMicrobatches = 4});
  RankProgram &rank = program.ranks[0];
  uint32_t pair = 0;
  while (rank.commands[pair].op != CommandOp::Launch ||
         rank.launches[rank.commands[pair].arg].function != Function::Backward)
    ++pair;
  --pair;
  rank.commands.insert(rank.commands.begin() + pair, {CommandOp::Pair, 0, 2, 0});
  StepRecording fused = record(program, 1), inTurn = record(program, 1);
  fused.ranks[0][pair] = {5000, 5150, 150, 120, 0};
  fused.ranks[0][pair + 1] = fused.ranks[0][pair + 2] = {};
  Result<Profile> profile = measure(program, {fused});
  ASSERT_TRUE(profile.ok()) << profile.message();
  ASSERT_EQ(profile->pairs.size(), 1u);
  EXPECT_EQ(profile->pairs[0].time, 150);
  EXPECT_EQ(profile->pairs[0].cpu, 120);
  ASSERT_EQ(profile->pairs[0].members.size(), 2u);
  Result<SimulationCosts> costs = getCosts(*profile, program);
  ASSERT_TRUE(costs.ok()) << costs.message();
  Result<Simulation> run = simulate(program, *costs, true);
  ASSERT_TRUE(run.ok()) << run.message();
  EXPECT_EQ(run->commands[0][pair].end - run->commands[0][pair].start, 150);
  Result<Profile> apart = measure(program, {inTurn});
  ASSERT_TRUE(apart.ok()) << apart.message();
  EXPECT_TRUE(apart->pairs.empty());
}

TEST(MeasureProfile, NothingAfterTheFirstStep) {
  const Program program = buildPipelines({});
  const std::string message = "nothing was recorded after the first step, which is left out of a "
                              "profile: run at least two steps";
  EXPECT_EQ(measure(program, {}).message(), message);
  EXPECT_EQ(measure(program, {record(program, 0)}).message(), message);
  EXPECT_EQ(measure(program, {{1, {}}}).message(), "the recording is empty: no step was recorded");
}

TEST(FitTransfers, LatencyAndBandwidth) {
  Profile profile;
  const auto fit = [&](std::vector<TransferProfile> transfers) {
    profile.transfers = std::move(transfers);
    fitTransfers(profile);
    return fmt::format("{} + bytes / {}", profile.latency, profile.bandwidth);
  };
  // 500 ns, and 1 ns for every 10 bytes: 10^7 bytes in a millisecond.
  EXPECT_EQ(fit({{1000, 600, 1}, {2000, 700, 1}, {4000, 900, 1}, {8000, 1300, 1}}),
            "500 + bytes / 10000000");
  EXPECT_EQ(
      fit({{1000, 600, 1}, {2000, 700, 1}, {4000, 900, 1}, {6000, 99999, 1}, {8000, 1300, 1}}),
      "500 + bytes / 10000000");
  EXPECT_EQ(fit({{1000, 600, 1}}), "600 + bytes / 0");
  EXPECT_EQ(fit({{1000, 600, 1}, {2000, 300, 1}}), "300 + bytes / 0");
  EXPECT_EQ(fit({{1000, 100, 1}, {2000, 300, 1}}), "0 + bytes / 5000000");
  EXPECT_EQ(fit({}), "0 + bytes / 0");
}

//===----------------------------------------------------------------------===//
// Predicting
//===----------------------------------------------------------------------===//

TEST(ProfileCosts, ServeASchedule) {
  const Program program = buildPipelines({.numRanks = 3, .numMicrobatches = 4});
  const Profile profile = makeProfile(program);
  Result<SimulationCosts> costs = getCosts(profile, program);
  ASSERT_TRUE(costs.ok()) << costs.message();
  EXPECT_EQ(costs->ops.get(OpKind::Forward, 2), 300);
  EXPECT_EQ(costs->components.at({Function::Forward, 2, 0}).cpu, 150);
  EXPECT_EQ(costs->step.find(0), 50);
  EXPECT_EQ(costs->sizes.activations, (std::vector<uint64_t>{64, 128, 192}));
  EXPECT_TRUE(simulate(program, *costs).ok());
  // A time that is given needs its core.
  ASSERT_TRUE(costs->override("fwd[2]=7").ok());
  EXPECT_EQ(costs->components.count({Function::Forward, 2, 0}), 0u);
  EXPECT_EQ(costs->components.count({Function::Forward, 1, 0}), 1u);
}

TEST(ProfileCosts, OfAnotherSchedule) {
  const Program program = buildPipelines({.numRanks = 3, .numMicrobatches = 4});
  const Profile profile = makeProfile(program);
  const auto getError = [&](const Program &other) {
    Result<SimulationCosts> costs = getCosts(profile, other);
    return costs ? "none" : costs.message();
  };
  EXPECT_EQ(getError(buildPipelines({.numRanks = 3, .numMicrobatches = 12})), "none");
  EXPECT_EQ(getError(buildPipelines({.numRanks = 4, .numMicrobatches = 4})),
            fmt::format("the profile is of '{0}' with 3 stages, '{0}' has 4: a profile serves "
                        "schedules of equally many stages",
                        program.shared.schedule));
  EXPECT_EQ(getError(buildPipelines({.numRanks = 3, .numMicrobatches = 4, .splitBackward = true})),
            fmt::format("the profile of '{0}' has no bwd_input of stage 0, which '{0}' launches: "
                        "profile a schedule that does, or this one, or give its time after the "
                        "file",
                        program.shared.schedule));
  Program parts = program;
  parts.shared.contract.numComponents = 2;
  EXPECT_EQ(getError(parts),
            fmt::format("the profile is of a model with 1 components per stage, '{}' was compiled "
                        "for 2",
                        program.shared.schedule));
  // A full backward is its halves.
  const Profile halves =
      makeProfile(buildPipelines({.numRanks = 3, .numMicrobatches = 4, .splitBackward = true}));
  EXPECT_TRUE(getCosts(halves, program).ok());
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

TEST(ProfileFile, RoundTrip) {
  const Profile profile =
      makeProfile(buildPipelines({.numRanks = 4, .numMicrobatches = 8, .mirrored = true}));
  Result<Profile> read = parseProfile(printProfile(profile));
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_TRUE(*read == profile);
  EXPECT_EQ(printProfile(*read), printProfile(profile));
}

const std::string &getText() {
  static const std::string text =
      printProfile(makeProfile(buildPipelines({.numRanks = 2, .numMicrobatches = 4})));
  return text;
}

/// The message after the first `from` has become `to`.
std::string getError(const std::string &from, const std::string &to) {
  std::string text = getText();
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from << " in\n" << text;
  if (at != text.npos)
    text.replace(at, from.size(), to);
  Result<Profile> profile = parseProfile(text);
  return profile ? "none" : profile.message();
}

TEST(ProfileFile, Errors) {
  EXPECT_EQ(parseProfile("").message(),
            "it is empty, expected a profile as launcher --profile writes it");
  EXPECT_EQ(parseProfile(" \n").message(),
            "it is empty, expected a profile as launcher --profile writes it");
  EXPECT_EQ(parseProfile("[]").message(), "it is [], expected an object");
  EXPECT_EQ(parseProfile("{}").message(), "format is missing, expected a text");
  EXPECT_EQ(parseProfile("{\n  \"format\": NaN}").message(),
            "line 2, column 13: no JSON, at '\"format\": N'");
  EXPECT_EQ(getError("dualpipe-profile", "chrome-trace"),
            "format is \"chrome-trace\", expected 'dualpipe-profile': a profile as launcher "
            "--profile writes it");
  EXPECT_EQ(getError("\"version\": 1", "\"version\": 2"),
            "version is 2, expected a whole number from 1 to 1");
  EXPECT_EQ(getError("\"unit\": \"ms\"", "\"unit\": \"s\""), "unit is \"s\", expected 'ms'");
  EXPECT_EQ(getError("\"time\":0.0001", "\"time\":-0.0001"),
            "functions[0].time is -0.0001, expected a number of milliseconds from 0 to 1e9");
  EXPECT_EQ(getError("\"time\":0.0001", "\"time\":null"),
            "functions[0].time is null, expected a number of milliseconds from 0 to 1e9");
  EXPECT_EQ(getError("\"time\":0.0001", "\"tmie\":0.0001"),
            "functions[0].time is missing, expected a number of milliseconds from 0 to 1e9");
  EXPECT_EQ(getError("\"cpu\":", "\"gpu\":1,\"cpu\":"),
            "unknown name 'gpu' in functions[0], expected function, stage, component, time, cpu, "
            "samples");
  EXPECT_EQ(getError("\"steps\": 3", "\"speed\": 1,\n  \"steps\": 3"),
            "unknown name 'speed', expected format, version, unit, program, steps, step_time, "
            "functions, pairs, transfers, latency, bandwidth, reductions, stage_steps, sizes");
  EXPECT_EQ(getError("\"function\":\"load_input\"", "\"function\":\"forward\""),
            "functions[0].function is \"forward\", expected one of load_input, load_labels, fwd, "
            "bwd, bwd_input, bwd_weight");
  EXPECT_EQ(getError("\"stage\":0", "\"stage\":2"),
            "functions[0].stage is 2, expected a whole number from 0 to 1");
  EXPECT_EQ(
      getError("\"stages\":2", "\"stages\":0"),
      fmt::format("program.stages is 0, expected a whole number from 1 to {}", UINT32_MAX - 1));
  EXPECT_EQ(getError("\"params\":{\"chunks\":2}", "\"params\":{\"chunks\":0.5}"),
            "program.params is an object of 1, expected whole numbers by name");
  EXPECT_EQ(getError("\"params\":{\"chunks\":2}", "\"params\":7"),
            "program.params is 7, expected an object");
  EXPECT_EQ(getError("\"settings\":[\"hidden=64\"", "\"settings\":[64"),
            "program.settings is a list of 2, expected a list of texts");
  EXPECT_EQ(getError("\"bandwidth\": ", "\"bandwidth\": -1, \"rest\": "),
            "bandwidth is -1, expected more than 0 bytes in a millisecond, or null");
  EXPECT_EQ(getError("\"pairs\": []", "\"pairs\": {}"), "pairs is {}, expected a list");
  EXPECT_EQ(getError("\"workspace\":0", "\"workspace\":-1"),
            "sizes: stages[0].workspace is -1, expected a whole number of bytes from 0 to "
            "70368744177664");
}

TEST(ProfileFile, NamesGivenTwice) {
  EXPECT_EQ(getError("\"unit\": \"ms\"", "\"unit\": \"ms\", \"steps\": 3"),
            "'steps' is given twice in an object, expected it once");
  EXPECT_EQ(getError("\"cpu\":", "\"time\":7,\"cpu\":"),
            "'functions.time' is given twice in an object, expected it once");
  EXPECT_EQ(parseProfile(R"({"a": {"b": 1, "c": 2}, "d": [{"b": 1}, {"b": 2}], "a": 3})").message(),
            "'a' is given twice in an object, expected it once");
}

TEST(ProfileFile, DeepJson) {
  const size_t numLists = 200000;
  const std::string deep = std::string(numLists, '[') + std::string(numLists, ']');
  const std::string error = "lists and objects are more than 64 deep, expected less";
  EXPECT_EQ(parseProfile(deep).message(), error);
  EXPECT_EQ(getError("\"pairs\": []", "\"pairs\": " + deep), error);
  const std::string allowed = std::string(64, '[') + std::string(64, ']');
  EXPECT_EQ(parseProfile(allowed).message(), "it is a list of 1, expected an object");
  // A long text is cut, wherever that is.
  std::string text = "\"";
  for (int i = 0; i != 100; ++i)
    text += i == 39 ? "\u00e4" : "x";
  EXPECT_EQ(parseProfile(text + '"').message(),
            "it is \"" + std::string(39, 'x') + "\uFFFD\"..., expected an object");
}

TEST(ProfileFile, MoreErrors) {
  const std::string text = getText();
  const auto replaceLines = [&](const std::string &name, const std::string &lines) {
    const size_t begin = text.find("\"" + name + "\": [") + name.size() + 4;
    const size_t end = text.find("\n  ]", begin) + 4;
    Result<Profile> profile = parseProfile(text.substr(0, begin) + lines + text.substr(end));
    return profile ? "none" : profile.message();
  };
  const auto replacePairs = [&](const std::string &pairs) {
    const std::string empty = "\"pairs\": []";
    std::string changed = text;
    changed.replace(text.find(empty), empty.size(), "\"pairs\": " + pairs);
    Result<Profile> profile = parseProfile(changed);
    return profile ? "none" : profile.message();
  };
  EXPECT_EQ(replaceLines("functions", "[]"),
            "functions is empty, expected the times of every stage: nothing was measured");
  const std::string entry =
      R"({"function":"fwd","stage":0,"component":0,"time":1,"cpu":1,"samples":1})";
  EXPECT_EQ(replaceLines("functions", "[" + entry + "," + entry + "]"),
            "functions[1] is of the same function, stage and component as another entry");
  EXPECT_EQ(replaceLines("functions", R"([{"function":"fwd","stage":0,"component":0,"time":1.5,)"
                                      R"("cpu":2,"samples":1}])"),
            "functions[0].cpu is 2, expected at most time, which is 1.5");
  const auto makePair = [](const std::string &members, int cpu) {
    return fmt::format(R"({{"members":[{}],"time":1,"cpu":{},"samples":1}})", members, cpu);
  };
  const std::string fwd = R"({"function":"fwd","stage":0,"component":0})";
  const std::string bwd = R"({"function":"bwd","stage":1,"component":0})";
  EXPECT_EQ(replacePairs("[" + makePair("", 1) + "]"),
            "pairs[0].members is [], expected two or more functions");
  EXPECT_EQ(replacePairs("[" + makePair(fwd, 1) + "]"),
            "pairs[0].members is a list of 1, expected two or more functions");
  EXPECT_EQ(replacePairs("[" + makePair(fwd + "," + bwd, 2) + "]"),
            "pairs[0].cpu is 2, expected at most time, which is 1");
  EXPECT_EQ(replacePairs("[" + makePair(fwd + "," + bwd, 1) + "]"), "none");
  EXPECT_EQ(
      replacePairs("[" + makePair(fwd + "," + bwd, 1) + "," + makePair(bwd + "," + fwd, 1) + "]"),
      "pairs[1] is of the same members as another entry");
  const std::string stage = R"({"stage":1,"time":1,"samples":1})";
  for (const std::string name : {"reductions", "stage_steps"})
    EXPECT_EQ(replaceLines(name, "[" + stage + "," + stage + "]"),
              name + "[1] is of the same stage as another entry");
  const std::string transfer = R"({"bytes":8,"time":1,"samples":1})";
  EXPECT_EQ(replaceLines("transfers", "[" + transfer + "," + transfer + "]"),
            "transfers[1] is of the same bytes as another entry");
  EXPECT_EQ(replaceLines("functions", "[3]"), "functions[0] is 3, expected an object");
  const size_t sizes = text.find("\"sizes\":");
  const std::string head = text.substr(0, sizes);
  EXPECT_EQ(parseProfile(head + "\"sizes\": {\"fused\": false, \"stages\": []}}")
                .message()
                .find("sizes: stages of the sizes of a model is missing, empty or no list"),
            0u);
  const std::string of3 = printModelSizes(makeSizes(3));
  EXPECT_EQ(parseProfile(head + "\"sizes\": " + of3 + "}").message(),
            "sizes has 3 stages, expected 2 as the program has");
  EXPECT_EQ(parseProfile(head.substr(0, head.rfind(',')) + "}").message(),
            "sizes is missing, expected the sizes of the model");
}

/// Whatever is cut off or changed, there is a message and no crash.
TEST(ProfileFile, EveryTruncation) {
  const std::string &text = getText();
  for (size_t size = 0; size + 2 < text.size(); size += 7)
    EXPECT_FALSE(parseProfile(text.substr(0, size)).ok()) << size;
}

TEST(CostOption, FileAndOverrides) {
  const std::string path = testing::TempDir() + "profile-test.json";
  std::ofstream(path) << getText();
  const Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 4});
  Result<CostOption> option = CostOption::parse(path + ",fwd=3,cores=2");
  ASSERT_TRUE(option.ok()) << option.message();
  Result<SimulationCosts> costs = option->getCosts(program);
  ASSERT_TRUE(costs.ok()) << costs.message();
  EXPECT_EQ(costs->cores, 2u);
  EXPECT_EQ(costs->ops.get(OpKind::Forward, 1), 3 * Costs::kTicksPerUnit);
  EXPECT_EQ(costs->ops.get(OpKind::Backward, 1), 200);
  EXPECT_EQ(CostOption::parse("nowhere.json").message(), "cannot read the profile 'nowhere.json'");
  const std::string folder = testing::TempDir() + "profile-folder.json";
  std::filesystem::create_directory(folder);
  EXPECT_EQ(CostOption::parse(folder).message(),
            "the profile '" + folder +
                "' is a directory, expected a file as launcher --profile writes it");
  std::filesystem::remove(folder);
  EXPECT_EQ(CostOption::parse(path + ",speed=1").message().find("unknown cost 'speed'"), 0u);
  std::ofstream(path) << "{";
  EXPECT_EQ(CostOption::parse(path).message().find("profile '" + path + "': line 1, column "), 0u);
  std::remove(path.c_str());
}

} // namespace
