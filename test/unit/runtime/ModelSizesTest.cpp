//===- ModelSizesTest.cpp - sizes of models in JSON, and memory from them ---===//

#include "TestPrograms.h"

#include "dualpipe/Runtime/Prediction.h"
#include "dualpipe/Runtime/RankMemory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::runtime;
using namespace dualpipe::test;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

namespace {

/// Every size of every stage is another number.
ModelSizes makeSizes(uint32_t numStages) {
  ModelSizes sizes;
  for (uint32_t i = 0; i != numStages; ++i) {
    StageSizes stage;
    for (unsigned kind = 0; kind != kNumSlotKinds; ++kind)
      stage.tensors[kind] = 1000 * (kind + 1) + i;
    stage.weights = 10'000 + i;
    stage.gradients = 20'000 + i;
    stage.optimizerState = 40'000 + i;
    stage.workspace = 500 + i;
    sizes.stages.push_back(stage);
  }
  return sizes;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

TEST(ModelSizesTest, ReadsWhatItPrints) {
  ModelSizes sizes = makeSizes(3);
  sizes.fused = true;
  sizes.stages[1].weights = ModelSizes::kMaxBytes;
  const Result<ModelSizes> read = parseModelSizes(printModelSizes(sizes));
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(*read, sizes);
}

TEST(ModelSizesTest, PrintsOneNamePerSize) {
  EXPECT_EQ(toJson(makeSizes(1)).dump(),
            R"({"fused":false,"stages":[{"input":1000,"output":2000,"grad_output":3000,)"
            R"("grad_input":4000,"saved":5000,"weight_context":6000,"labels":7000,)"
            R"("weights":10000,"gradients":20000,"optimizer_state":40000,"workspace":500}]})");
}

/// The complaint about the sizes of one stage after `change`.
template <typename Change> std::string complainAfter(Change change) {
  nlohmann::json json = toJson(makeSizes(2));
  change(json);
  const Result<ModelSizes> read = readModelSizes(json);
  return read.ok() ? "fine" : read.message();
}

TEST(ModelSizesTest, RejectsWhatIsNoSize) {
  const auto set = [](nlohmann::json value) {
    return complainAfter([&](nlohmann::json &json) { json["stages"][1]["saved"] = value; });
  };
  const std::string expected = ", expected a whole number of bytes from 0 to 70368744177664";
  EXPECT_EQ(set(0), "fine");
  EXPECT_EQ(set(-5), "stages[1].saved is -5" + expected);
  EXPECT_EQ(set(1.5), "stages[1].saved is 1.5" + expected);
  EXPECT_EQ(set("12"), "stages[1].saved is \"12\"" + expected);
  EXPECT_EQ(set(nullptr), "stages[1].saved is null" + expected);
  EXPECT_EQ(set(ModelSizes::kMaxBytes + 1), "stages[1].saved is 70368744177665" + expected);
  EXPECT_THAT(set(std::string(100, 'x')), StartsWith("stages[1].saved is \"xxxxxxxxxxxxxxxxxx"));
  EXPECT_THAT(set(std::string(100, 'x')), HasSubstr("xxx\"..., expected"));
}

TEST(ModelSizesTest, RejectsMissingAndUnknownNames) {
  EXPECT_EQ(complainAfter([](nlohmann::json &json) { json["stages"][0].erase("labels"); }),
            "stages[0].labels is missing, expected a number of bytes");
  EXPECT_EQ(complainAfter([](nlohmann::json &json) { json["stages"][1]["wights"] = 1; }),
            "stages[1]: unknown name 'wights', expected input, output, grad_output, grad_input, "
            "saved, weight_context, labels, weights, gradients, optimizer_state, workspace");
  EXPECT_EQ(complainAfter([](nlohmann::json &json) { json["size"] = 1; }),
            "sizes of a model: unknown name 'size', expected fused, stages");
}

TEST(ModelSizesTest, RejectsAnotherShape) {
  const auto complain = [](const char *text) {
    const Result<ModelSizes> read = parseModelSizes(text);
    return read.ok() ? "fine" : read.message();
  };
  EXPECT_EQ(complain(""), "the sizes of a model are no JSON");
  EXPECT_EQ(complain("{\"fused\": fal"), "the sizes of a model are no JSON");
  EXPECT_EQ(complain("[1]"),
            "the sizes of a model are a list of 1, expected an object with 'fused' and 'stages'");
  const char *noTruth =
      "fused of the sizes of a model is missing or no truth value, expected true or false";
  EXPECT_EQ(complain("{}"), noTruth);
  EXPECT_EQ(complain(R"({"fused": 1, "stages": [{}]})"), noTruth);
  const char *noStages = "stages of the sizes of a model is missing, empty or no list, expected an "
                         "object for every stage";
  EXPECT_EQ(complain(R"({"fused": true})"), noStages);
  EXPECT_EQ(complain(R"({"fused": true, "stages": []})"), noStages);
  EXPECT_EQ(complain(R"({"fused": true, "stages": 4})"), noStages);
  EXPECT_EQ(complain(R"({"fused": true, "stages": [7]})"),
            "stages[0] is 7, expected an object with the sizes of a stage");
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

std::vector<RankMemory> measure(const Program &program, const ModelSizes &sizes) {
  Result<std::vector<RankMemory>> memory = measureMemory(program, sizes);
  EXPECT_TRUE(memory.ok()) << memory.message();
  return std::move(*memory);
}

const ClassUse &find(const RankMemory &memory, SlotKind kind) {
  for (const ClassUse &use : memory.slots.classes)
    if (use.slotClass.kind == kind)
      return use;
  ADD_FAILURE() << "no class " << getName(kind);
  return memory.slots.classes.front();
}

TEST(RankMemoryTest, CopiesCountOnTheirRank) {
  // Each rank holds one stage of each of two pipelines over the same stages.
  const Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 4, .mirrored = true});
  const ModelSizes sizes = makeSizes(2);
  for (const RankMemory &memory : measure(program, sizes)) {
    EXPECT_EQ(memory.weights, sizes.stages[0].weights + sizes.stages[1].weights);
    EXPECT_EQ(memory.gradients, sizes.stages[0].gradients + sizes.stages[1].gradients);
    EXPECT_EQ(memory.optimizerState,
              sizes.stages[0].optimizerState + sizes.stages[1].optimizerState);
  }
}

TEST(RankMemoryTest, CopiesOfOneStageOnOneRankAreOne) {
  Program program = buildPipelines({.numRanks = 1, .numMicrobatches = 1});
  program.shared.pipelines.push_back(program.shared.pipelines.front());
  EXPECT_EQ(measure(program, makeSizes(1))[0].weights, 10'000u);
}

TEST(RankMemoryTest, ForwardOnlyHasWeightsAlone) {
  const Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 2, .training = false});
  const std::vector<RankMemory> memory = measure(program, makeSizes(2));
  EXPECT_EQ(memory[1].weights, 10'001u);
  EXPECT_EQ(memory[1].gradients, 0u);
  EXPECT_EQ(memory[1].optimizerState, 0u);
}

TEST(RankMemoryTest, AClassHasTheLargestTensorOfItsSizeGroup) {
  Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 2});
  const ModelSizes sizes = makeSizes(2);
  // One group: the second stage is the larger one, on both ranks.
  EXPECT_EQ(find(measure(program, sizes)[0], SlotKind::Saved).slotBytes, 5001u);
  program.shared.contract.numSizeGroups = 2;
  program.shared.contract.sizeGroup = {0, 1};
  EXPECT_EQ(find(measure(program, sizes)[0], SlotKind::Saved).slotBytes, 5000u);
}

TEST(RankMemoryTest, ClassesAndTotalsAddUp) {
  const Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 2});
  for (const RankMemory &memory : measure(program, makeSizes(2))) {
    uint64_t arena = 0;
    for (const ClassUse &use : memory.slots.classes) {
      EXPECT_EQ(use.allocatedBytes, use.slotBytes * use.slotClass.count);
      EXPECT_EQ(use.peakBytes, use.slotBytes * use.peak);
      arena += use.allocatedBytes;
    }
    EXPECT_GT(arena, 0u);
    EXPECT_EQ(memory.slots.arenaBytes, arena);
    EXPECT_EQ(memory.workspace, 501u);
    EXPECT_EQ(memory.getTotal(),
              memory.weights + memory.gradients + memory.optimizerState + memory.workspace + arena);
  }
}

TEST(RankMemoryTest, MembersOfAPairThatRunAsOneHaveWorkspacesOfTheirOwn) {
  Program program = buildPipelines({.numRanks = 1, .numMicrobatches = 2});
  program.ranks[0].commands.insert(program.ranks[0].commands.begin(), {CommandOp::Pair, 0, 2, 0});
  ModelSizes sizes = makeSizes(1);
  EXPECT_EQ(measure(program, sizes)[0].workspace, 500u);
  sizes.fused = true;
  EXPECT_EQ(measure(program, sizes)[0].workspace, 1000u);
}

TEST(RankMemoryTest, OtherNumbersOfStagesAreRejected) {
  const Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 2});
  EXPECT_EQ(measureMemory(program, makeSizes(3)).message(),
            "the sizes are those of a model with 3 stages, the program has 2; cut the model into "
            "as many");
}

TEST(RankMemoryTest, MoreThanMemoryCanBeIsRejected) {
  Program program = buildPipelines({.numRanks = 1, .numMicrobatches = 2});
  ModelSizes sizes = makeSizes(1);
  sizes.stages[0].tensors[unsigned(SlotKind::Saved)] = ModelSizes::kMaxBytes;
  EXPECT_TRUE(measureMemory(program, sizes).ok());
  for (SlotClass &entry : program.ranks[0].slotClasses)
    if (entry.kind == SlotKind::Saved)
      entry.count = 1u << 20;
  EXPECT_EQ(measureMemory(program, sizes).message(),
            "rank 0 needs more than memory can be: its slots and workspaces have more than "
            "18446744073709551615 bytes");
}

//===----------------------------------------------------------------------===//
// Predictions
//===----------------------------------------------------------------------===//

TEST(RankMemoryTest, PredictionsHaveItWhereSizesAreKnown) {
  const Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 2});
  SimulationCosts costs;
  Result<Prediction> without = predict(program, costs);
  ASSERT_TRUE(without.ok()) << without.message();
  EXPECT_TRUE(without->memory.empty());
  EXPECT_THAT(printJson(*without, program), HasSubstr("\"memory\": null,"));

  costs.model = makeSizes(2);
  Result<Prediction> with = predict(program, costs);
  ASSERT_TRUE(with.ok()) << with.message();
  ASSERT_EQ(with->memory.size(), 2u);
  EXPECT_EQ(with->memory[1].getTotal(), measure(program, makeSizes(2))[1].getTotal());
  const nlohmann::json json = nlohmann::json::parse(printJson(*with, program));
  EXPECT_EQ(json["memory"], nlohmann::json(toJson(with->memory, program)));
  EXPECT_THAT(printText(*with, program),
              HasSubstr("most that hold values, in the order of the list"));
  EXPECT_THAT(printText(*without, program), Not(HasSubstr("in use at once")));

  costs.model = makeSizes(3);
  EXPECT_THAT(predict(program, costs).message(),
              StartsWith("the sizes are those of a model with 3 stages"));
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

TEST(RankMemoryTest, JsonNamesWhereAPeakStands) {
  const Program program = buildPipelines({.numRanks = 1, .numMicrobatches = 2});
  const nlohmann::ordered_json json = toJson(measure(program, makeSizes(1)), program);
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["rank"], 0);
  EXPECT_EQ(json[0]["weights"], 10'000);
  EXPECT_EQ(json[0]["optimizer_state"], 40'000);
  const auto saved =
      std::find_if(json[0]["classes"].begin(), json[0]["classes"].end(),
                   [](const nlohmann::ordered_json &entry) { return entry["kind"] == "saved"; });
  ASSERT_NE(saved, json[0]["classes"].end());
  EXPECT_EQ((*saved)["slots"], 2);
  EXPECT_EQ((*saved)["peak_bytes"], 10'000);
  EXPECT_EQ((*saved)["peak_at"]["command"], 5);
  EXPECT_THAT(std::string((*saved)["peak_at"]["what"]),
              StartsWith("rank 0, command 5: forward of stage 0, micro-batch 1 (test.pipe:"));
}

TEST(RankMemoryTest, JsonOfNothingInUseHasNoPlace) {
  Program program = buildPipelines({.numRanks = 1, .numMicrobatches = 1});
  program.ranks[0].slotClasses.push_back({SlotKind::WeightContext, 0, 1, 1});
  const nlohmann::ordered_json json = toJson(measure(program, makeSizes(1)), program);
  EXPECT_TRUE(json[0]["classes"].back()["peak_at"].is_null());
  EXPECT_EQ(json[0]["classes"].back()["bytes"], 6000);
}

TEST(RankMemoryTest, RanksWithEqualMemoryShareALine) {
  const Program program = buildPipelines({.numRanks = 2, .numMicrobatches = 4, .mirrored = true});
  std::vector<std::pair<uint32_t, std::string>> ranks;
  for (const RankMemory &memory : measure(program, makeSizes(2)))
    ranks.emplace_back(memory.rank, summarizeRank(memory));
  const std::string text = joinRanks("memory", ranks);
  EXPECT_THAT(text, StartsWith("  memory of ranks 0 to 1: "));
  EXPECT_THAT(text, HasSubstr(": weights 19.5 KiB, gradients 39.1 KiB, optimizer state 78.1 KiB, "
                              "workspace 501 B, slots "));
  EXPECT_THAT(text, HasSubstr("saved "));
}

TEST(RankMemoryTest, BytesHaveUnits) {
  EXPECT_EQ(describeBytes(0), "0 B");
  EXPECT_EQ(describeBytes(1023), "1023 B");
  EXPECT_EQ(describeBytes(1536), "1.5 KiB");
  EXPECT_EQ(describeBytes(uint64_t(3) << 40), "3.0 TiB");
}

} // namespace
