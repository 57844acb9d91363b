//===- RulesTest.cpp - the same schedule as a program and as rules ----------===//

#include "Library.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

/// Same ops on every rank, in the same order.
bool haveSameOrder(const Schedule &a, const Schedule &b) {
  for (uint32_t rank = 0; rank != a.numRanks; ++rank) {
    const RankOrder &x = a.ranks[rank], &y = b.ranks[rank];
    if (x.kind != y.kind || x.stage != y.stage || x.microbatch != y.microbatch ||
        x.group != y.group)
      return false;
  }
  return true;
}

void expectSameOrders(const char *program, const char *rules, bool alsoFewMicrobatches) {
  Example asProgram(program), asRules(rules);
  for (Size size{1, 1}; size.ranks <= 16; ++size.ranks)
    for (size.microbatches = alsoFewMicrobatches ? 1 : size.ranks; size.microbatches <= 48;
         ++size.microbatches)
      ASSERT_TRUE(haveSameOrder(asProgram.instantiate(size), asRules.instantiate(size))) << size;
}

TEST(Rules, Of1F1BGiveTheOrderOfTheProgram) { expectSameOrders("1f1b", "1f1b-rules", true); }

TEST(Rules, OfZbH1GiveTheOrderOfTheProgramFromPMicrobatchesOn) {
  expectSameOrders("zb-h1", "zb-h1-rules", false);
}

TEST(Rules, OfZbH1TakeNoLongerWithFewerMicrobatches) {
  Example asProgram("zb-h1"), asRules("zb-h1-rules");
  for (Size size : {Size{4, 2}, Size{8, 3}, Size{16, 15}}) {
    SCOPED_TRACE(testing::Message() << size);
    AsapResult program = measure(asProgram.instantiate(size));
    AsapResult rules = measure(asRules.instantiate(size));
    EXPECT_EQ(rules.makespan, program.makespan);
    EXPECT_EQ(rules.peak, program.peak);
  }
}

/// A program or a timeline states its order; rules find one for the times at hand.
TEST(Rules, AloneFollowThePlanningCosts) {
  Costs costs = *Costs::parse("fwd=1,bwd_input=2,bwd_weight=0.5,transfer=0.25");
  for (const Entry &entry : getLibrary()) {
    SCOPED_TRACE(entry.name);
    bool usesRules = std::string(entry.name) == "zb-h1-rules" ||
                     std::string(entry.name) == "v-half" || std::string(entry.name) == "zbv";
    Example example(entry.name);
    Schedule planned = example.instantiate({8, 24}, {.planCosts = costs});
    EXPECT_NE(haveSameOrder(example.instantiate({8, 24}), planned), usesRules);
  }
}

} // namespace
