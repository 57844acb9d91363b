//===- CostsTest.cpp - reading planning costs -------------------------------===//

#include "dualpipe/Schedule/Costs.h"

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
  EXPECT_EQ(costs->fwd, 18'522'000);
  EXPECT_EQ(costs->transfer, 601'000);
  std::string printed;
  for (const auto &[name, value] : costs->print())
    printed += (printed.empty() ? "" : ",") + name + "=" + value;
  EXPECT_EQ(printed, text);
}

TEST(Costs, DefaultsAreSums) {
  Result<Costs> costs = Costs::parse("fwd=3,bwd_input=4,bwd_weight=5");
  ASSERT_TRUE(costs) << costs.message();
  EXPECT_EQ(costs->get(OpKind::Backward), 9 * Costs::kTicksPerUnit);
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
                                 "fused or transfer");
  EXPECT_EQ(failure("fwd=1,fwd=2"), "cost 'fwd' is given twice");
  EXPECT_EQ(failure("bwd=0"), "cost 'bwd' is 0, expected more than 0");
  EXPECT_EQ(failure("foo=0"), "unknown cost 'foo', expected fwd, bwd, bwd_input, bwd_weight, "
                              "fused or transfer");
  EXPECT_EQ(failure("fwd=1,"), "expected a cost after the last comma");
  for (const char *value : {"", "-1", "1e3", "nan", "1.", ".5", "1.0000001", "9999999999", "0x1"})
    EXPECT_EQ(failure((std::string("transfer=") + value).c_str()),
              "cost 'transfer' is '" + std::string(value) +
                  "', expected a decimal number with at most six places");
}

TEST(Costs, BoundsTheTimesOfASchedule) {
  Schedule schedule;
  schedule.ranks.resize(1);
  for (uint32_t mb = 0; mb != 2000; ++mb)
    schedule.ranks[0].push(OpKind::Forward, 0, mb, RankOrder::kAlone, 0);
  Result<Costs> fits = Costs::parse("fwd=999999999");
  EXPECT_TRUE(fits->checkRange(schedule));
  Result<Costs> tooLong = Costs::parse("fwd=999999999,transfer=999999999");
  EXPECT_EQ(tooLong->checkRange(schedule).message(),
            "2000 ops of up to 999999999 and transfers of 999999999 are too long to plan with, "
            "expected times in a larger unit");
}

} // namespace
