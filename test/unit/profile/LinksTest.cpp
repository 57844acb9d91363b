//===- LinksTest.cpp - links of two classes, rings, components --------------===//

#include "test/unit/runtime/TestPrograms.h"

#include "dualpipe/Runtime/Prediction.h"
#include "runtime/sim/CostTables.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::runtime;
using namespace dualpipe::test;

namespace {

std::string getMakespan(const Program &program, const SimulationCosts &costs) {
  Result<Simulation> result = simulate(program, costs);
  return result ? Costs::printTicks(result->makespan) : "error: " + result.message();
}

std::string getMakespan(const Program &program, const std::string &text) {
  Result<SimulationCosts> costs = SimulationCosts::parse(text);
  return costs ? getMakespan(program, *costs) : "error: " + costs.message();
}

std::string parse(const std::string &text) {
  Result<SimulationCosts> costs = SimulationCosts::parse(text);
  if (!costs)
    return "error: " + costs.message();
  std::string printed;
  for (const auto &[name, value] : costs->print())
    printed += (printed.empty() ? "" : ",") + name + "=" + value;
  return printed;
}

/// Down and up four ranks, one micro-batch: 4 * (1 + 2), and six transfers.
const Program &getChain() {
  static const Program program = buildPipelines({.numRanks = 4, .numMicrobatches = 1});
  return program;
}

TEST(Links, NearAndFar) {
  EXPECT_EQ(getMakespan(getChain(), "fwd=1,bwd=2,transfer=0.1"), "12.6");
  EXPECT_EQ(getMakespan(getChain(), "fwd=1,bwd=2,transfer=0.1,node=2,far_transfer=0.5"), "13.4");
  EXPECT_EQ(getMakespan(getChain(), "fwd=1,bwd=2,transfer=0.1,node=1,far_transfer=0.5"), "15");
  EXPECT_EQ(getMakespan(getChain(), "fwd=1,bwd=2,transfer=0.1,node=2,far_occupancy=0.4"), "13.4");
  EXPECT_EQ(getMakespan(getChain(), "fwd=1,bwd=2,transfer=0.1,node=2"), "12.6");
}

TEST(Links, BytesOverBandwidth) {
  EXPECT_EQ(getMakespan(getChain(), "fwd=1,bwd=2,bytes=100,bandwidth=1000"), "12.6");
  EXPECT_EQ(
      getMakespan(getChain(), "fwd=1,bwd=2,bytes=100,bandwidth=1000,node=2,far_bandwidth=200"),
      "13.4");
  EXPECT_EQ(getMakespan(getChain(), "fwd=1,bwd=2,bytes=100"), "12");
}

/// 100, 200 and 300 bytes down, 1000, 2000 and 3000 up.
TEST(Links, SizesByStage) {
  SimulationCosts costs = *SimulationCosts::parse("fwd=1,bwd=2,bandwidth=1000");
  costs.sizes.activations = {7, 100, 200, 300};
  costs.sizes.gradients = {1000, 2000, 3000, 7};
  EXPECT_EQ(getMakespan(getChain(), costs), "18.6");
  // One size for all takes their place.
  ASSERT_TRUE(costs.override("bytes=100").ok());
  EXPECT_EQ(getMakespan(getChain(), costs), "12.6");
}

/// 2(n - 1)/n of the bytes over the bandwidth, and 2(n - 1) latencies.
TEST(Links, RingsOfReductions) {
  const Program mirrored = buildPipelines({.numRanks = 2, .numMicrobatches = 4, .mirrored = true});
  EXPECT_EQ(getMakespan(mirrored, "transfer=0.1,bandwidth=1000,reduce_bytes=1000"),
            getMakespan(mirrored, "transfer=0.1,reduce=1.2"));
  EXPECT_EQ(getMakespan(mirrored, "transfer=0.1,bandwidth=1000,reduce_bytes=1000,reduce=0.5"),
            getMakespan(mirrored, "transfer=0.1,reduce=1.7"));
  Program four = getChain();
  four.shared.reduceGroups = {{{0, 1, 2, 3}}, {{0, 1}}, {{3}}};
  const auto getTime = [&](const std::string &text, uint32_t group) {
    const SimulationCosts costs = *SimulationCosts::parse(text);
    return Costs::printTicks(CostTables(four, costs).get(Reduction{group, 0}));
  };
  EXPECT_EQ(getTime("transfer=0.1,bandwidth=1000,reduce_bytes=1000", 0), "2.1");
  EXPECT_EQ(getTime("transfer=0.1,bandwidth=1000,reduce_bytes=1000", 1), "1.2");
  EXPECT_EQ(getTime("transfer=0.1,bandwidth=1000,reduce_bytes=1000", 2), "0");
  // Over nodes the slower links decide.
  const std::string far = "node=2,far_transfer=1,far_bandwidth=500,";
  EXPECT_EQ(getTime(far + "transfer=0.1,bandwidth=1000,reduce_bytes=1000", 0), "9");
  EXPECT_EQ(getTime(far + "transfer=0.1,bandwidth=1000,reduce_bytes=1000", 1), "1.2");
}

TEST(Links, LoadsAndStepsByStage) {
  EXPECT_EQ(getMakespan(getChain(), "fwd=1,bwd=2,load_input=0.5,load_labels=0.25"), "12.75");
  EXPECT_EQ(getMakespan(getChain(), "fwd=1,bwd=2,step[0]=3,step[3]=1"), "15");
}

TEST(Components, TakePartsOfTheirOp) {
  Program program = getChain();
  program.shared.contract.numComponents = 2; // the program runs the first alone
  EXPECT_EQ(getMakespan(program, "fwd=1,bwd=2"), "6");
  EXPECT_EQ(getMakespan(program, "fwd=1,bwd=2,fwd[0.0]=3,bwd[1.1]=9"), "8.5");
  EXPECT_EQ(getMakespan(program, "fwd=1,bwd=2,fwd[0.2]=3"),
            "error: a cost names component 2 of stage 0, expected a stage below 4 and a component "
            "below 2");
  EXPECT_EQ(parse("fwd[0.1]=3"),
            "fwd=1,bwd_input=1,bwd_weight=1,transfer=0,fwd[0.1]=3,start=joint");
  EXPECT_EQ(parse(",fwd=1"), "error: expected NAME=VALUE in the costs, got ''");
  for (const std::string name :
       {"fwd[-1]", "fwd[x]", "bwd[", "fused[1]", "transfer[0]", "fwd[-1.0]"})
    EXPECT_EQ(parse(name + "=1"),
              "error: unknown cost '" + name +
                  "', expected fwd, bwd, bwd_input, bwd_weight, one of these for a stage as in "
                  "fwd[3] or for a component of it as in fwd[3.1], fused, transfer, load_input, "
                  "load_labels, forward_done, backward_done, occupancy, bandwidth, far_transfer, "
                  "far_occupancy, far_bandwidth, bytes, reduce_bytes, reduce, step, node, cores, "
                  "links or start");
  for (const std::string name : {"fwd", "occupancy", "fwd[0.1]"})
    EXPECT_EQ(parse(name + "=1000000000"),
              "error: cost '" + name +
                  "' is '1000000000', expected a decimal number with at most "
                  "six places, less than 1000000000");
  EXPECT_EQ(parse("fwd[0.1]=no"),
            "error: cost 'fwd[0.1]' is 'no', expected a decimal number with at most six places, "
            "less than 1000000000");
}

TEST(LinkCosts, RoundTrip) {
  const std::string all =
      "fwd=1,bwd_input=1,bwd_weight=1,fused=3,transfer=0.25,load_input=0.5,load_labels[3]=1,"
      "forward_done=1,backward_done=2,occupancy=0.5,bandwidth=1000,far_transfer=2,"
      "far_occupancy=3,far_bandwidth=12.5,bytes=64,reduce_bytes=128,reduce=1,reduce[2]=6,step=7,"
      "node=8,cores=2,links=shared,start=joint";
  EXPECT_EQ(parse(all), all);
}

TEST(LinkCosts, Errors) {
  EXPECT_EQ(parse("bandwidth=0"),
            "error: cost 'bandwidth' is '0', expected more than 0 bytes in a unit of time");
  EXPECT_EQ(parse("far_bandwidth=nan"),
            "error: cost 'far_bandwidth' is 'nan', expected more than 0 bytes in a unit of time");
  EXPECT_EQ(parse("bytes=-1"), "error: cost 'bytes' is '-1', expected a whole number of bytes up "
                               "to 1125899906842624");
  EXPECT_EQ(parse("cores=0"), "error: cost 'cores' is '0', expected a whole number from 1 to "
                              "1048576");
  EXPECT_EQ(parse("node=1.5"), "error: cost 'node' is '1.5', expected a whole number from 1 to "
                               "1048576");
  EXPECT_EQ(parse("links=mine"), "error: cost 'links' is 'mine', expected own or shared");
  EXPECT_EQ(parse("cores[1]=2"), "error: cost 'cores[1]' is '2', expected no stage in its name");
  EXPECT_EQ(parse("step[x]=2"), "error: cost 'step[x]' names no stage, expected a number in "
                                "brackets as in step[3]");
  EXPECT_EQ(parse("far_transfer=-2"), "error: cost 'far_transfer' is '-2', expected a decimal "
                                      "number with at most six places, "
                                      "less than 1000000000");
  EXPECT_EQ(getMakespan(getChain(), "reduce[4]=1"),
            "error: cost 'reduce[4]' names no stage, expected one below 4");
}

} // namespace
