//===- CostsTest.cpp - the times of a prediction, and what is wrong with them ===//

#include "Compiled.h"

#include "test/unit/runtime/TestPrograms.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::test;
using dualpipe::runtime::SimulationCosts;

namespace {

std::string print(const SimulationCosts &costs) {
  std::string text;
  for (const auto &[name, value] : costs.print())
    text += (text.empty() ? "" : ",") + name + "=" + value;
  return text;
}

std::string parse(const std::string &text) {
  Result<SimulationCosts> costs = SimulationCosts::parse(text);
  return costs ? print(*costs) : "error: " + costs.message();
}

TEST(SimulationCosts, PrintWhatCounts) {
  EXPECT_EQ(parse(""), "fwd=1,bwd_input=1,bwd_weight=1,transfer=0,start=joint");
  const std::string all = "fwd=2,bwd=3.5,bwd_input=1,bwd_weight=2,fused=4,transfer=0.25,"
                          "occupancy=0.5,reduce=6,step=7,start=separate";
  EXPECT_EQ(parse(all), all);
  EXPECT_EQ(parse("step=7,fwd[1]=3,start=joint"),
            "fwd[1]=3,bwd_input=1,bwd_weight=1,transfer=0,step=7,start=joint");
}

TEST(SimulationCosts, Errors) {
  EXPECT_EQ(parse("fwd=-1"),
            "error: cost 'fwd' is '-1', expected a decimal number with at most six places, "
            "less than 1000000000");
  EXPECT_EQ(parse("bwd=nan"),
            "error: cost 'bwd' is 'nan', expected a decimal number with at most six places, "
            "less than 1000000000");
  EXPECT_EQ(parse("reduce=-2"),
            "error: cost 'reduce' is '-2', expected a decimal number with at most six places, "
            "less than 1000000000");
  EXPECT_EQ(parse("fwd=0"), "error: cost 'fwd' is 0, expected more than 0");
  EXPECT_EQ(parse("latency=3"),
            "error: unknown cost 'latency', expected fwd, bwd, bwd_input, bwd_weight, one of these "
            "for a stage as in fwd[3] or for a component of it as in fwd[3.1], fused, transfer, "
            "load_input, load_labels, forward_done, backward_done, occupancy, bandwidth, "
            "far_transfer, far_occupancy, far_bandwidth, bytes, reduce_bytes, reduce, step, node, "
            "cores, links or start");
  EXPECT_EQ(parse("step=1,step=2"), "error: cost 'step' is given twice");
  EXPECT_EQ(parse("fwd=1,fwd=2"), "error: cost 'fwd' is given twice");
  EXPECT_EQ(parse("start=early"), "error: cost 'start' is 'early', expected joint or separate");
  EXPECT_EQ(parse("step"), "error: expected NAME=VALUE in the costs, got 'step'");
  EXPECT_EQ(parse("step=1,"), "error: expected a cost after the last comma");
}

TEST(SimulationCosts, OverrideForgetsWhatIsDerived) {
  SimulationCosts costs = *SimulationCosts::parse("fwd=2,bwd=5,fused=6,transfer=1,step=3");
  ASSERT_TRUE(costs.override("transfer=2").ok());
  EXPECT_EQ(print(costs),
            "fwd=2,bwd=5,bwd_input=1,bwd_weight=1,fused=6,transfer=2,step=3,start=joint");
  ASSERT_TRUE(costs.override("bwd_input=2").ok());
  EXPECT_EQ(print(costs), "fwd=2,bwd_input=2,bwd_weight=1,transfer=2,step=3,start=joint");
}

TEST(SimulationCosts, OfAProgramAreThoseItWasPlannedWith) {
  Compiled compiled =
      compileExample("zb-h1", {2, 4}, {.planCosts = *Costs::parse("fwd=2,bwd_weight=0.5")});
  Result<SimulationCosts> costs = SimulationCosts::fromProgram(compiled.program.shared);
  ASSERT_TRUE(costs.ok()) << costs.message();
  EXPECT_EQ(print(*costs), "fwd=2,bwd_input=1,bwd_weight=0.5,transfer=0,start=joint");
  compiled.program.shared.planCosts = {{"speed", "1"}};
  costs = SimulationCosts::fromProgram(compiled.program.shared);
  ASSERT_FALSE(costs.ok());
  EXPECT_EQ(costs.message().find("the planning costs of the program cannot be read: "), 0u);
}

std::string getError(const program::Program &program, const std::string &costs) {
  Result<runtime::Simulation> run = simulate(program, *SimulationCosts::parse(costs));
  return run ? "none" : run.message();
}

TEST(Simulate, Errors) {
  program::Program program = buildPipelines({});
  EXPECT_EQ(getError(program, ""), "none");
  EXPECT_EQ(getError(program, "fwd[2]=3"), "cost 'fwd[2]' names no stage, expected one below 2");
  EXPECT_EQ(getError(buildPipelines({.numRanks = 4, .numMicrobatches = 200}), "fused=999999999"),
            "9205 commands of up to 999999999 are too long to simulate, expected times in a larger "
            "unit");
  program.ranks.pop_back();
  EXPECT_EQ(getError(program, ""), "the program has 1 of 2 ranks: a simulation needs all");
}

/// No verified program comes to this.
TEST(Simulate, AProgramThatCannotFinish) {
  program::Program program = buildPipelines({});
  std::vector<program::Command> &commands = program.ranks[1].commands;
  std::erase_if(commands, [](const program::Command &command) {
    return command.op == program::CommandOp::Recv;
  });
  const std::string error = getError(program, "");
  EXPECT_EQ(error.find("the program cannot finish, it stands at rank 0, command "), 0u) << error;
}

TEST(Simulate, OneRank) {
  program::Program program = buildPipelines({.numRanks = 1, .numMicrobatches = 3});
  EXPECT_EQ(test::print(predict(program, "fwd=2,bwd=3").makespan), "15");
}

} // namespace
