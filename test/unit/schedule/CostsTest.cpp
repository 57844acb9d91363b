//===- CostsTest.cpp - reading planning costs -------------------------------===//

#include "dualpipe/Schedule/Costs.h"
#include "dualpipe/Schedule/Schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dualpipe;

namespace {

std::string failure(const char *text) {
  Result<Costs> costs = Costs::parse(text);
  return costs ? "accepted" : costs.message();
}

TEST(Costs, ReadsWhatItPrints) {
  const char *text =
      "fwd=18.522,bwd=27,bwd_input=18.086,bwd_weight=9.337,fused=40.5,transfer=0.601";
  Result<Costs> costs = Costs::parse(text);
  ASSERT_TRUE(costs) << costs.message();
  EXPECT_EQ(costs->get(OpKind::Forward, 0), 18'522'000);
  EXPECT_EQ(costs->transfer, 601'000);
  std::string printed;
  for (const auto &[name, value] : costs->print())
    printed += (printed.empty() ? "" : ",") + name + "=" + value;
  EXPECT_EQ(printed, text);
}

std::string print(const Costs &costs) {
  std::string text;
  for (const auto &[name, value] : costs.print())
    text += (text.empty() ? "" : ",") + name + "=" + value;
  return text;
}

TEST(Costs, SingleStagesGoBeforeTheRest) {
  const char *text = "fwd=1,fwd[0]=2,fwd[7]=0.5,bwd[7]=9,bwd_input=1,bwd_weight=1,"
                     "bwd_weight[0]=4,transfer=0";
  Result<Costs> costs = Costs::parse(text);
  ASSERT_TRUE(costs) << costs.message();
  constexpr Ticks unit = Costs::kTicksPerUnit;
  EXPECT_EQ(costs->get(OpKind::Forward, 0), 2 * unit);
  EXPECT_EQ(costs->get(OpKind::Forward, 1), unit);
  EXPECT_EQ(costs->get(OpKind::Forward, 7), unit / 2);
  EXPECT_EQ(costs->get(OpKind::Backward, 0), 5 * unit); // the sum of the halves there
  EXPECT_EQ(costs->get(OpKind::Backward, 1), 2 * unit);
  EXPECT_EQ(costs->get(OpKind::Backward, 7), 9 * unit);
  EXPECT_EQ(print(*costs), text);
}

TEST(Costs, TheCommandLineGoesBeforeTheSchedule) {
  Costs costs = *Costs::parse("fwd=3,fwd[1]=4,bwd_input=5,bwd_input[1]=6,bwd=9,transfer=1");
  costs.override(*Costs::parse("fwd=7,bwd_input[2]=8,fused=2"));
  EXPECT_EQ(print(costs), "fwd=7,bwd=9,bwd_input=5,bwd_input[1]=6,bwd_input[2]=8,bwd_weight=1,"
                          "fused=2,transfer=1");
  costs.override(Costs());
  EXPECT_EQ(costs.get(OpKind::Forward, 1), 7 * Costs::kTicksPerUnit);
}

TEST(Costs, SpellsOutWhatSingleStagesCost) {
  Costs costs = *Costs::parse("fwd=3,fwd[1]=4,bwd[0]=9,bwd_input=5");
  costs.spellOut(2);
  EXPECT_EQ(print(costs),
            "fwd[0]=3,fwd[1]=4,bwd[0]=9,bwd[1]=6,bwd_input=5,bwd_weight=1,transfer=0");
}

TEST(Costs, DefaultsAreSums) {
  Result<Costs> costs = Costs::parse("fwd=3,bwd_input=4,bwd_weight=5");
  ASSERT_TRUE(costs) << costs.message();
  EXPECT_EQ(costs->get(OpKind::Backward, 0), 9 * Costs::kTicksPerUnit);
  RankOrder order;
  order.push(OpKind::Forward, 0, 0, 0, 0);
  order.push(OpKind::Backward, 1, 1, 0, 0);
  EXPECT_EQ(costs->getGroup(order, 0, 2), 12 * Costs::kTicksPerUnit);
  costs->fused = 10 * Costs::kTicksPerUnit;
  EXPECT_EQ(costs->getGroup(order, 0, 2), 10 * Costs::kTicksPerUnit);
}

TEST(Costs, RejectsWhatItCannotUse) {
  EXPECT_EQ(failure("fwd"), "expected NAME=VALUE in the costs, got 'fwd'");
  EXPECT_EQ(failure("foward=1"), "unknown cost 'foward', expected fwd, bwd, bwd_input, bwd_weight, "
                                 "one of these for a stage as in fwd[3], fused or transfer");
  EXPECT_EQ(failure("fwd=1,fwd=2"), "cost 'fwd' is given twice");
  EXPECT_EQ(failure("bwd=0"), "cost 'bwd' is 0, expected more than 0");
  EXPECT_EQ(failure("foo=0"), "unknown cost 'foo', expected fwd, bwd, bwd_input, bwd_weight, "
                              "one of these for a stage as in fwd[3], fused or transfer");
  for (const char *name : {"fused[1]", "transfer[0]", "fwd[", "fwd[]", "fwd[-1]", "fwd[x]",
                           "fwd[1]2", "fwd[4294967296]", "[1]"})
    EXPECT_THAT(failure((std::string(name) + "=1").c_str()),
                testing::StartsWith("unknown cost '" + std::string(name) + "'"));
  EXPECT_EQ(failure("fwd[3]=1,fwd[2]=1,fwd[3]=2"), "cost 'fwd[3]' is given twice");
  EXPECT_EQ(failure("fwd[3]=0"), "cost 'fwd[3]' is 0, expected more than 0");
  EXPECT_EQ(failure("fwd=1,"), "expected a cost after the last comma");
  for (const char *value : {"", "-1", "1e3", "nan", "1.", ".5", "1.0000001", "9999999999", "0x1"})
    EXPECT_EQ(failure((std::string("transfer=") + value).c_str()),
              "cost 'transfer' is '" + std::string(value) +
                  "', expected a decimal number with at most six places, "
                  "less than 1000000000");
}

TEST(Costs, BoundsTheTimesOfASchedule) {
  Schedule schedule;
  schedule.ranks.resize(1);
  schedule.numStages = 1;
  for (uint32_t mb = 0; mb != 2000; ++mb)
    schedule.ranks[0].push(OpKind::Forward, 0, mb, RankOrder::kAlone, 0);
  Result<Costs> fits = Costs::parse("fwd=999999999");
  EXPECT_TRUE(fits->checkRange(schedule));
  Result<Costs> tooLong = Costs::parse("fwd=999999999,transfer=999999999");
  EXPECT_EQ(tooLong->checkRange(schedule).message(),
            "2000 ops of up to 999999999 and transfers of 999999999 are too long to plan with, "
            "expected times in a larger unit");
  Result<Costs> long1 = Costs::parse("bwd_input[0]=999999999,bwd_weight[5]=999999999");
  EXPECT_EQ(long1->checkRange(schedule).message(),
            "cost 'bwd_weight[5]' names no stage, expected one below 1");
  EXPECT_EQ(long1->checkRange(2000).message(),
            "2000 ops of up to 1999999998 and transfers of 0 are too long to plan with, "
            "expected times in a larger unit");
}

} // namespace
