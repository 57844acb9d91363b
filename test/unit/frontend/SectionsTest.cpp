//===- SectionsTest.cpp - timelines, rules, families, plans, transfers -----===//

#include "Harness.h"

#include "dualpipe/Schedule/Checker.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::frontend;

namespace {

/// A schedule with `items` beside a pipeline `p` of a stage on each rank.
std::string scheduleOf(const std::string &items) {
  return "pipe 1\nschedule s(ranks P, microbatches M) {\n"
         "pipeline p { stages P; microbatches M; place s -> s }\n" +
         items + "\n}\n";
}

Outcome compileItems(const std::string &items, uint32_t ranks = 2, uint32_t microbatches = 4) {
  return compile(scheduleOf(items), sized(ranks, microbatches));
}

/// `items` give one error, with this message.
void expectError(const std::string &items, const std::string &message) {
  Outcome run = compileItems(items);
  EXPECT_EQ(run.numErrors, 1u) << items << "\n" << run.findings;
  EXPECT_NE(run.findings.find("error: " + message + "\n"), std::string::npos) << items << "\n"
                                                                              << run.findings;
}

std::string getOrders(const std::string &items, uint32_t ranks = 2, uint32_t microbatches = 4) {
  Outcome run = compileItems(items, ranks, microbatches);
  EXPECT_TRUE(run.ok) << run.findings;
  return run.ok ? formatOrders(run.schedule) : "";
}

//===----------------------------------------------------------------------===//
// Sections
//===----------------------------------------------------------------------===//

TEST(Sections, GoOnWhereTheOnesBeforeEnd) {
  EXPECT_EQ(getOrders("rank r { fwd p @ 1; fwd p; bwd_input p; fused { fwd p @ 2; bwd_input p } }\n"
                      "rank q { fwd p; bwd p; bwd_weight; bwd_weight p @ 1; bwd p }",
                      1),
            "0F1,0F0,0I0,(0F2;0I1)OVERLAP_F_B,0F3,0B2,0W0,0W1,0B3\n");
}

TEST(Sections, MixInTheOrderOfTheText) {
  EXPECT_EQ(getOrders("timeline { for s in 0..P { fwd p.stage(s) @ 2 at s } }\n"
                      "rank r { fwd p }\n"
                      "greedy { prefer fwd, bwd; until fwd >= 3 }\n"
                      "rank r { fwd p; repeat M { bwd p } }",
                      1),
            "0F2,0F0,0F1,0F3,0B0,0B1,0B2,0B3\n");
}

TEST(Sections, ForwardOnlyDropsBackwardsAtTheEnd) {
  Options options = sized(1, 4);
  options.forwardOnly = true;
  Outcome run = compile(scheduleOf("greedy { prefer bwd, fwd; limit fwd..bwd <= 1 }"), options);
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(formatOrders(run.schedule), "0F0,0F1,0F2,0F3\n");
}

TEST(Sections, PlacesAndPhasesAreThoseOfTheText) {
  Outcome run = compileItems("timeline { phase \"a\" { fwd p.stage(0) @ 0 at 7 } }\n"
                             "greedy { prefer fwd }",
                             1, 2);
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(run.schedule.getLoc(0, 0).line, 4u);
  EXPECT_EQ(run.schedule.getLoc(0, 0).column, 24u);
  EXPECT_EQ(run.schedule.getLoc(0, 1).line, 5u);
  EXPECT_EQ(run.schedule.getLoc(0, 1).column, 17u);
  EXPECT_EQ(run.schedule.phaseNames.front(), "a");
}

//===----------------------------------------------------------------------===//
// Timelines
//===----------------------------------------------------------------------===//

TEST(Timelines, OrderByTimeThenByText) {
  EXPECT_EQ(getOrders("timeline { fwd p.stage(0) @ 0 at 3; fwd p.stage(0) @ 1 at -1\n"
                      "fwd p.stage(0) @ 2 at 3; bwd p.stage(0) @ 1 split (true) at 0 }",
                      1),
            "0F1,0I1,0F0,0F2\n");
}

TEST(Timelines, EveryAddsToTheTimesInside) {
  EXPECT_EQ(
      getOrders("timeline { every 10 as i { every 3 as k in 0..2 {\n"
                "if k == 0 { fwd p.stage(0) @ i at 0 } else { bwd p.stage(0) @ i at 0 } } } }",
                1, 2),
      "0F0,0B0,0F1,0B1\n");
  EXPECT_EQ(getOrders("timeline { every -1 as i { fwd p.stage(0) @ i at 0 } }", 1, 3),
            "0F2,0F1,0F0\n");
}

TEST(Timelines, GroupsStayTogether) {
  EXPECT_EQ(getOrders("timeline { fwd p.stage(0) @ 0 at 0; fwd p.stage(0) @ 2 at 5\n"
                      "fused { fwd p.stage(0) @ 1; bwd p.stage(0) @ 0 } at 5\n"
                      "bwd p.stage(0) @ 1 at 5 }",
                      1),
            "0F0,0F2,(0F1;0B0)OVERLAP_F_B,0B1\n");
}

TEST(Timelines, WeightHalvesFillTheGapsOfTheStatedTimes) {
  const std::string ops = "for i in 0..3 { fwd p.stage(0) @ i at i; bwd_weight p.stage(0) @ i in "
                          "gaps }\nbwd_input p.stage(0) @ 0 at 3\nbwd_input p.stage(0) @ 1 at 6\n"
                          "bwd_input p.stage(0) @ 2 at 7";
  // Two units are free after the first input half, for the one weight half that is there.
  EXPECT_EQ(getOrders("timeline { " + ops + " }", 1, 3), "0F0,0F1,0F2,0I0,0W0,0I1,0I2,0W1,0W2\n");
  // One that is longer than the gap goes to the end.
  EXPECT_EQ(getOrders("cost { bwd_weight 2.5 }\ntimeline { " + ops + " }", 1, 3),
            "0F0,0F1,0F2,0I0,0I1,0I2,0W0,0W1,0W2\n");
  // Longer ops leave no gap.
  EXPECT_EQ(getOrders("cost { bwd_input 3 }\ntimeline { " + ops + " }", 1, 3),
            "0F0,0F1,0F2,0I0,0I1,0I2,0W0,0W1,0W2\n");
}

TEST(Timelines, OfTheHalvesThatFitAGapTheOldestIsTaken) {
  Outcome run =
      compile("pipe 1\nschedule s(ranks P, microbatches M) {\n"
              "pipeline v { stages 2; microbatches M; place s -> 0 }\n"
              "cost { bwd_weight s -> 2 - s }\ntimeline { for i in 0..M { for s in 0..2 {\n"
              "fwd v.stage(s) @ i at 2 * i + s; bwd_weight v.stage(s) @ i in gaps } }\n"
              "bwd_input v.stage(1) @ 1 at 10; bwd_input v.stage(0) @ 1 at 11\n"
              "bwd_input v.stage(1) @ 0 at 12; bwd_input v.stage(0) @ 0 at 14 } }\n",
              sized(1, 2));
  ASSERT_TRUE(run.ok) << run.findings;
  // The gap of one unit is too short for the half of stage 0, which is older than none.
  EXPECT_EQ(formatOrders(run.schedule), "0F0,1F0,0F1,1F1,1I1,0I1,1I0,1W1,0I0,0W1,1W0,0W0\n");
}

TEST(Timelines, AHalfThatIsStatedTwiceIsFound) {
  Outcome run = compileItems("timeline { fwd p.stage(0) @ 0 at 0; bwd_input p.stage(0) @ 0 at 1\n"
                             "repeat 2 { bwd_weight p.stage(0) @ 0 in gaps } }",
                             1, 1);
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(formatOrders(run.schedule), "0F0,0I0,0W0,0W0\n");
}

TEST(Timelines, KeepToTheCostsThatTheyWereStatedFor) {
  Options options = sized(2, 6);
  std::string text = scheduleOf("cost { bwd_weight 2 }\ntimeline { every 6 as i { for s in 0..P {\n"
                                "fwd p.stage(s) @ i at s; bwd_input p.stage(s) @ i at 2 * P - s\n"
                                "bwd_weight p.stage(s) @ i in gaps } } }");
  std::string planned = formatOrders(compile(text, options).schedule);
  EXPECT_NE(planned, "");
  options.planCosts.of(OpKind::Forward).common = 18'500'000;
  options.planCosts.of(OpKind::BackwardWeight).common = 9'300'000;
  EXPECT_EQ(formatOrders(compile(text, options).schedule), planned);
}

TEST(Timelines, Faults) {
  auto expectFault = [](const std::string &body, const std::string &message) {
    expectError("timeline { " + body + " }", message);
  };
  expectFault("fwd p.stage(0) @ 0", "an op of a timeline needs its time: 'at' and an integer");
  expectFault("fused { fwd p.stage(0) @ 0; fwd p.stage(0) @ 1 }",
              "an op of a timeline needs its time: 'at' and an integer");
  expectFault("fwd p.stage(0) at 0", "an op of a timeline names its micro-batch: '@' and an "
                                     "integer");
  expectFault("fwd p @ 0 at 0", "a timeline is of all ranks, so its ops name their stage, as in "
                                "'p.stage(s)'");
  expectFault("bwd_weight", "an op of a timeline names its stage, as in 'p.stage(s)'");
  expectFault("fwd p[0] @ 0 at 0", "'p[k]' is a chunk of a rank, and there is no rank here; use "
                                   "'p.stage(s)'");
  expectFault("fwd 3 @ 0 at 0", "expected a pipeline or chunk after the op, got an integer");
  expectFault("fwd p.stage(0) @ 4 at 0", "micro-batch 4 is outside 0 to 3 of pipeline 'p'");
  expectFault("fwd p.stage(0) @ 0 at true", "expected an integer as a time, got a boolean");
  expectFault("fwd p.stage(0) @ 0 at 1099511627777",
              "the time is out of range; the largest is 1099511627776");
  expectFault("fused { fwd p.stage(0) @ 0 at 1; fwd p.stage(0) @ 1 } at 1",
              "the time of a fused op is that of its group: write it after the '}' of 'fused'");
  expectFault("fused { fused { fwd p.stage(0) @ 0 } at 1 } at 1",
              "'fused' must not stand inside 'fused'");
  expectFault("fused { fwd p.stage(0) @ 0 } at 1", "'fused' takes 2 to 64 ops, got 1");
  expectFault("fused { fwd p.stage(0) @ 0; fwd p.stage(1) @ 1 } at 1",
              "ops of 'fused' run on one rank, got rank 0 and rank 1");
  expectFault("send fwd p.stage(0) @ 0",
              "transfers are placed in the program of a rank; a timeline derives them");
  expectFault("every 1 as i in 3..2 { }", "the range 3..2 of 'every' has a negative length");
  expectFault("every 9223372036854775807 as i { }",
              "the time of this block does not fit in 64 bits");
  expectFault("every 1 as i in 0..1000 { fwd p.stage(0) @ 0 at 0 }",
              "the timeline has more than 88 ops, far more than its stages have micro-batches");
  expectFault("repeat 1000000000000 { }",
              "the program takes more than 33554432 steps; is a count too large?");
}

TEST(Timelines, Syntax) {
  auto expectFault = [](const std::string &body, const std::string &message) {
    expectError("timeline { " + body + " }", message);
  };
  expectFault("every 2 i { }", "expected 'as' after the period, got 'i'");
  expectFault("every 2 as 3 { }", "expected a name after 'as', got '3'");
  expectFault("every 2 as i in 0 { }", "expected '..' after the first value, got '{'");
  expectFault("bwd_weight p.stage(0) @ 0 in 3", "expected 'gaps' after 'in', got '3'");
  expectFault("fwd p.stage(0) @ 0 in gaps",
              "only 'bwd_weight' can go in gaps: nothing waits for it");
}

TEST(Timelines, TimesMeanNothingInAProgram) {
  const std::string text =
      " has a meaning in a timeline only; the ops of a rank run in the order of the text";
  expectError("rank r { fwd p at 3 }", "'at'" + text);
  expectError("rank r { fused { fwd p; fwd p } at 3 }", "'at'" + text);
  expectError("rank r { bwd_weight p @ 0 in gaps }", "'in gaps'" + text);
  expectError("rank r { every 3 as i { } }",
              "'every' has a meaning in a timeline only; use 'repeat' or 'for'");
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

TEST(Rules, OneForwardOneBackward) {
  EXPECT_EQ(getOrders("greedy { prefer bwd, fwd; limit fwd..bwd of p on r <= P - r }", 2, 3),
            "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
}

TEST(Rules, NameChunksForEachRank) {
  Outcome run =
      compile("pipe 1\nschedule s(ranks P, microbatches M) {\n"
              "pipeline v { stages 4; microbatches M; place s -> if s < 2 then s else 3 - "
              "s }\ngreedy { prefer fwd of v[1], bwd of v[0] + v[1], fwd on r }\n}\n",
              sized(2, 2));
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(formatOrders(run.schedule), "0F0,0F1,3F0,3B0,3F1,3B1,0B0,0B1\n"
                                        "1F0,2F0,1F1,2F1,2B0,1B0,2B1,1B1\n");
}

TEST(Rules, RepeatLines) {
  Outcome run = compile("pipe 1\nschedule s(ranks P, microbatches M) {\n"
                        "pipeline f(i in 0..2) { stages P; microbatches M / 2; place s -> s }\n"
                        "greedy { prefer fwd, bwd\n"
                        "for i in 0..2 { limit fwd..bwd of f(i) on r <= i + 1 + r - r } }\n}\n",
                        sized(1, 6));
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(formatOrders(run.schedule), "0F0,1F3,1F4,0B0,0F1,1B3,1F5,0B1,0F2,1B4,0B2,1B5\n");
}

TEST(Rules, AreInNoPhase) {
  Outcome run =
      compileItems("rank r { phase \"warm-up\" { fwd p } }\ngreedy { prefer fwd, bwd }", 1, 2);
  ASSERT_TRUE(run.ok) << run.findings;
  const RankOrder &order = run.schedule.ranks[0];
  ASSERT_EQ(order.phases.size(), 2u);
  EXPECT_EQ(order.phases[1].begin, 1u);
  EXPECT_EQ(run.schedule.phaseNames[order.phases[1].name], "");
}

TEST(Rules, AreNotBlamedForWhatStandsBefore) {
  Outcome run = compileItems("rank r { bwd p; fwd p }\ngreedy { prefer fwd, bwd }", 1, 2);
  EXPECT_NE(run.findings.find("error: what earlier sections state cannot finish under these rules"),
            std::string::npos)
      << run.findings;
}

TEST(Rules, FuseWhatIsReady) {
  EXPECT_EQ(
      getOrders("greedy { prefer fused(fwd of p, bwd), fwd, bwd; limit fwd..bwd <= 2 }", 1, 3),
      "0F0,(0F1;0B0)OVERLAP_F_B,(0F2;0B1)OVERLAP_F_B,0B2\n");
}

TEST(Rules, TellWhyTheyAreStuck) {
  const std::string stuck = "greedy { prefer fwd; limit fwd..bwd <= 2 }";
  EXPECT_EQ(compileItems("greedy { prefer fwd; until fwd >= 1 }\n" + stuck, 1)
                .findings.find("main.pipe:5:1: error: the rules of 'greedy' get stuck"),
            0u);
  Outcome run = compileItems("greedy { prefer fwd, bwd_input\nlimit fwd..bwd_weight <= 2 }", 1);
  EXPECT_EQ(run.numErrors, 1u);
  EXPECT_NE(run.findings.find("the rules of 'greedy' get stuck: no rank can go on"),
            std::string::npos)
      << run.findings;
}

TEST(Rules, Syntax) {
  auto expectFault = [](const std::string &body, const std::string &message) {
    expectError("greedy { prefer fwd\n" + body + " }", message);
  };
  expectError("greedy { limit fwd..bwd <= 2 }",
              "'greedy' has no 'prefer', so no rank would do anything");
  expectError("greedy prefer", "expected '{' after 'greedy', got 'prefer'");
  expectFault("avoid bwd", "expected 'prefer', 'limit' or 'until', got 'avoid'");
  expectFault("prefr bwd", "expected 'prefer', 'limit' or 'until', got 'prefr'; did you mean "
                           "'prefer'?");
  expectFault("prefer p", "expected 'fwd', 'bwd', 'bwd_input' or 'bwd_weight', got 'p'");
  expectFault("prefer fused fwd", "expected '(' after 'fused', got 'fwd'");
  expectFault("prefer fused(fwd)", "'fused' takes 2 to 64 ops, got 1");
  std::string many = "prefer fused(fwd";
  for (int i = 0; i != 64; ++i)
    many += ", fwd";
  expectFault(many + ")", "'fused' takes 2 to 64 ops, got 65");
  expectFault("limit fwd..bwd <= 3 on r",
              "'on' stands before '<=', as in 'limit fwd..bwd on r <= P - r'");
  expectFault("limit fwd..bwd <= r", "unknown name 'r'; a line of 'greedy' names its rank with "
                                     "'on', as in 'on r <= P - r'");
  expectFault("for i in 0 { }", "expected '..' after the first value, got '{'");
  expectFault("prefer fused(fwd bwd)", "expected ',' or ')' in 'fused', got 'bwd'");
  expectFault("prefer fwd on 3", "expected a name for the rank after 'on', got '3'");
  expectFault("prefer fwd bwd", "expected ';' or a new line after the line, got 'bwd'");
  expectFault("limit fwd <= 3", "expected '..' after the first op, got '<='");
  expectFault("limit fwd..bwd >= 3", "expected '<=' before the most in flight, got '>='");
  expectFault("until fwd == 3", "expected '>=' before the count, got '=='");
}

TEST(Rules, Faults) {
  auto expectFault = [](const std::string &body, const std::string &message) {
    expectError("greedy { prefer fwd, bwd\n" + body + " }", message);
  };
  expectFault("prefer fwd of 3", "expected a pipeline or chunk after 'of', got an integer");
  expectFault("prefer fwd of p.stage(1)", "stage 1 of pipeline 'p' is on rank 1, not on rank 0");
  expectFault("limit fwd..bwd of p + p <= 3", "a chunk of rank 0 stands twice after 'of'");
  expectFault("limit fwd..bwd on r <= r - 1", "rank 0: the bound of 'limit' is negative: -1");
  expectFault("until fwd on r >= r - 1", "rank 0: the bound of 'until' is negative: -1");
  expectFault("limit fwd..bwd <= true", "expected an integer as the most in flight, got a boolean");
  expectFault("for i in 3..2 { }", "the range 3..2 of 'for' has a negative length");
  expectFault("for i in 0..2000 { limit fwd..bwd <= 1 }",
              "rank 0: 'greedy' has more than 1024 rules");
  expectFault("until fwd >= true", "expected an integer as a count of ops, got a boolean");
}

//===----------------------------------------------------------------------===//
// Families
//===----------------------------------------------------------------------===//

std::string familyOf(const std::string &range, const std::string &rest) {
  return "pipe 1\nschedule s(ranks P, microbatches M) {\npipeline f(i in " + range +
         ") { stages P; microbatches 1; place s -> (s + i) mod P }\n" + rest + "\n}\n";
}

TEST(Families, AreSeveralPipelines) {
  Outcome run = compile(familyOf("2..4", "share f\nrank r { fwd f(2); fwd f(r + 2 - r + 1)\n"
                                         "bwd f(3); bwd f(2) }"),
                        sized(2, 2));
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(formatOrders(run.schedule), "0F0,1F1,1B1,0B0\n1F0,0F1,0B1,1B0\n");
  ASSERT_EQ(run.schedule.pipelines.size(), 2u);
  EXPECT_EQ(run.schedule.pipelines[0].name, "f(2)");
  EXPECT_EQ(run.schedule.pipelines[1].name, "f(3)");
  EXPECT_EQ(run.schedule.pipelines[1].placement, (std::vector<uint32_t>{1, 0}));
  EXPECT_EQ(run.schedule.numStages, 2u);
}

TEST(Families, Faults) {
  auto expectFault = [](const std::string &range, const std::string &rest,
                        const std::string &message) {
    Outcome run = compile(familyOf(range, rest), sized(2, 2));
    EXPECT_EQ(run.numErrors, 1u) << run.findings;
    EXPECT_NE(run.findings.find("error: " + message + "\n"), std::string::npos) << run.findings;
  };
  const std::string nothing = "rank r { }";
  expectFault("0..0", nothing, "family 'f' takes 1 to 1024 pipelines, got the range 0..0");
  expectFault("0..2000", nothing, "family 'f' takes 1 to 1024 pipelines, got the range 0..2000");
  expectFault("true..2", nothing,
              "expected an integer as the first number of a family, got a boolean");
  expectFault("0..true", nothing, "expected an integer as the end of a family, got a boolean");
  expectFault("0..2", "rank r { fwd f(r + 2) }", "family 'f' has the pipelines 0 to 1, got 2");
  expectFault("0..2", "rank r { fwd f(0, 1) }", "a pipeline of the family 'f' has 1 number, got 2");
  expectFault("0..2", "rank r { fwd f }",
              "expected a pipeline or chunk after the op, got a family of pipelines");
  expectFault("0..1", "share f\nrank r { }", "'share' takes 2 or more pipelines, got 1");
  expectFault("0", nothing, "expected '..' after the first number, got ')'");
  expectFault("0..2 { }", nothing, "expected ')' after the range, got '{'");
  EXPECT_NE(
      compile("pipe 1\nschedule s(ranks P, microbatches M) { pipeline p(3) { } }", sized(1, 1))
          .findings.find("expected a name for the members of the family, got '3'"),
      std::string::npos);
}

//===----------------------------------------------------------------------===//
// Costs and memory
//===----------------------------------------------------------------------===//

TEST(Plans, CostsAreThoseOfTheCommandLineThenOfTheSchedule) {
  const std::string text = scheduleOf("cost { fwd s -> if s == 1 then 2.5 else 3\n"
                                      "bwd_input 1; transfer 0.125; fused 4 }\nrank r { }");
  Options options = sized(2, 4);
  Outcome run = compile(text, options);
  ASSERT_TRUE(run.ok) << run.findings;
  const Costs &costs = run.schedule.planCosts;
  EXPECT_EQ(costs.get(OpKind::Forward, 0), 3'000'000);
  EXPECT_EQ(costs.get(OpKind::Forward, 1), 2'500'000);
  EXPECT_EQ(costs.get(OpKind::Backward, 1), 2'000'000);
  EXPECT_EQ(costs.getTransfer(), 125'000);
  EXPECT_EQ(costs.fused, 4'000'000);

  options.planCosts.of(OpKind::Forward).common = 7;
  Outcome overridden = compile(text, options);
  EXPECT_EQ(overridden.schedule.planCosts.get(OpKind::Forward, 1), 7);
  EXPECT_EQ(overridden.schedule.planCosts.getTransfer(), 125'000);
}

TEST(Plans, MemoryIsByStageAndRank) {
  Outcome run = compileItems("memory { activation s -> s + 3; context 2; limit r -> 9 - r }\n"
                             "rank r { }");
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(run.schedule.memory.activation, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(run.schedule.memory.context, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(run.schedule.memory.limit, (std::vector<std::optional<int64_t>>{9, 8}));
}

TEST(Plans, RulesKeepToTheMemory) {
  EXPECT_EQ(getOrders("memory { limit 2 }\ngreedy { prefer fwd, bwd }", 1),
            "0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n");
}

TEST(Plans, StandOnce) {
  expectError("cost { fwd 1 }\ncost { bwd 1 }\nrank r { }", "a schedule has one 'cost', got two");
  expectError("memory { limit 9 }\nmemory { limit 1 }\nrank r { }",
              "a schedule has one 'memory', got two");
  std::string sections;
  for (int i = 0; i != 257; ++i)
    sections += "rank r" + std::to_string(i) + " { }\n";
  expectError(sections, "a schedule has at most 256 sections");
}

TEST(Plans, Faults) {
  auto expectFault = [](const std::string &item, const std::string &message) {
    expectError(item + "\nrank r { }", message);
  };
  expectFault("cost { forward 1 }", "expected one of 'fwd', 'bwd', 'bwd_input', 'bwd_weight', "
                                    "'fused', 'transfer' in 'cost', got 'forward'");
  expectFault("cost { fwd 1; fwd 2 }", "'fwd' stands twice in 'cost'");
  expectFault("cost { fwd 3 -> 1 }", "expected a name before '->'");
  expectFault("cost fwd 1", "expected '{' after 'cost', got 'fwd'");
  expectFault("cost { fwd true }", "expected a number as the cost 'fwd', got a boolean");
  expectFault("cost { fwd 0 }", "cost 'fwd' is 0, expected more than 0 and less than 1000000000");
  expectFault("cost { fwd 1000000000 }",
              "cost 'fwd' is 1000000000, expected more than 0 and less than 1000000000");
  expectFault("cost { transfer -1 }",
              "cost 'transfer' is -1, expected 0 or more and less than 1000000000");
  expectFault("cost { transfer s -> 1 }",
              "cost 'transfer' is the same for all stages; expected a value");
  expectFault("cost { fwd 1.5x }", "expected a number, got '1.5x'");
  expectFault("cost { fwd 1.1234567 }", "decimal number '1.1234567' has more than 9 digits before "
                                        "the point or 6 after it");
  expectFault("cost { fwd 1.5 + 1 }",
              "expected an integer as an operand of '+', got a decimal number");
  expectFault("memory { room 1 }",
              "expected one of 'activation', 'context', 'limit' in 'memory', got 'room'");
  expectFault("memory { limit true }", "expected an integer as the memory 'limit', got a boolean");
  expectFault("memory { limit -1 }", "memory 'limit' is -1, expected 0 to 4294967296");
}

//===----------------------------------------------------------------------===//
// Model
//===----------------------------------------------------------------------===//

TEST(Model, IsTheUsualOneIfNothingIsSaid) {
  Outcome run = compileItems("rank r { repeat M { fwd p }; repeat M { bwd p } }", 2, 1);
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(run.schedule.model, program::Contract());
  // One size group is none.
  run = compileItems("model { group 0; bwd_weight reads context, saved }\n"
                     "rank r { repeat M { fwd p }; repeat M { bwd p } }",
                     2, 1);
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(run.schedule.model, program::Contract());
}

TEST(Model, SaysWhatEachHalfReadsAndHowStagesAreGrouped) {
  using enum program::SlotKind;
  using program::bit;
  Outcome run = compileItems("model {\n"
                             "  group s -> if s == 0 then 0 else 1\n"
                             "  bwd        reads input, output, grad_output, labels\n"
                             "  bwd_weight reads input, grad_output; bwd_input reads saved,\n"
                             "    grad_output\n"
                             "}\n"
                             "rank r { repeat M { fwd p }; repeat M { bwd p } }",
                             3, 1);
  ASSERT_TRUE(run.ok) << run.findings;
  const program::Contract &model = run.schedule.model;
  EXPECT_EQ(model.backwardReads, bit(Input) | bit(Output) | bit(GradOutput) | bit(Labels));
  EXPECT_EQ(model.backwardInputReads, bit(Saved) | bit(GradOutput));
  EXPECT_EQ(model.backwardWeightReads, bit(Input) | bit(GradOutput));
  EXPECT_EQ(model.numSizeGroups, 2u);
  EXPECT_EQ(model.sizeGroup, (std::vector<uint32_t>{0, 1, 1}));
}

/// The words of a model are names elsewhere.
TEST(Model, WordsAreNamesElsewhere) {
  Outcome run = compileItems("let model = 1\nlet group = 0\nlet saved = model + group\n"
                             "model { group s -> group; bwd_weight reads saved, context }\n"
                             "rank r { repeat saved { fwd p }; repeat M { bwd p } }",
                             2, 1);
  EXPECT_TRUE(run.ok) << run.findings;
}

TEST(Model, FaultsAreReported) {
  auto expectFault = [](const std::string &item, const std::string &message) {
    expectError(item + "\nrank r { }", message);
  };
  expectFault("model { fwd reads input }",
              "expected 'group', 'bwd', 'bwd_input' or 'bwd_weight' in 'model', got 'fwd'");
  expectFault("model { bwd read saved }", "expected 'reads' after 'bwd', got 'read'");
  expectFault("model { bwd reads context, grad_output }",
              "expected one of input, output, grad_output, saved, labels as what 'bwd' reads, got "
              "'context'");
  expectFault("model { bwd_weight reads }",
              "expected one of input, output, grad_output, saved, context, labels as what "
              "'bwd_weight' reads, got '}'");
  expectFault("model { bwd reads saved, grad_output, saved }", "'saved' stands twice");
  expectFault("model { bwd reads saved, grad_output; bwd reads input, grad_output }",
              "'bwd' stands twice in 'model'");
  expectFault("model { bwd_input reads saved }",
              "expected 'bwd_input' to read 'grad_output', through which the gradient comes in");
  expectFault("model { bwd reads grad_output, output }",
              "expected 'bwd' to read 'saved' or 'input': nothing else tells it of its forward in "
              "the last stage");
  expectFault("model { bwd_weight reads grad_output, labels }",
              "expected 'bwd_weight' to read 'saved', 'input' or 'context': nothing else tells it "
              "of its forward in the last stage");
  expectFault("model { group 0 }\nmodel { group 0 }", "a schedule has one 'model', got two");
  expectFault("model { group 0; group 0 }", "'group' stands twice in 'model'");
  expectFault("model { group true }", "expected an integer as the size group, got a boolean");
  expectFault("model { group s -> s - 1 }", "the size group is -1, expected 0 to 1");
  expectFault("model { group 2 }", "the size group is 2, expected 0 to 1");
  expectFault("model { group 1 }", "no stage is of size group 0, but one is of group 1; expected "
                                   "numbers without gaps from 0");
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

TEST(Transfers, StandBetweenTheOps) {
  Outcome run = compileItems("rank r { if r == 0 { fwd p; send fwd p; recv bwd p @ 0; bwd p }\n"
                             "else { recv fwd p; fwd p; bwd p; send bwd p } }",
                             2, 1);
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_TRUE(run.schedule.ownsTransfers);
  ASSERT_EQ(run.schedule.ranks[1].transfers.size(), 2u);
  const RankOrder::Transfer &recv = run.schedule.ranks[1].transfers[0];
  EXPECT_FALSE(recv.isSend);
  EXPECT_FALSE(recv.isGrad);
  EXPECT_EQ(recv.stage, 1u);
  EXPECT_EQ(recv.microbatch, 0u);
  EXPECT_EQ(recv.before, 0u);
  const RankOrder::Transfer &send = run.schedule.ranks[1].transfers[1];
  EXPECT_TRUE(send.isSend);
  EXPECT_TRUE(send.isGrad);
  EXPECT_EQ(send.before, 2u);
  DiagnosticSink sink;
  checkSchedule(run.schedule, sink);
  EXPECT_FALSE(sink.hasErrors());
}

TEST(Transfers, GoOnInALaterSection) {
  Outcome run = compileItems(
      "rank r { if r == 0 { fwd p; send fwd p } else { recv fwd p; fwd p } }\n"
      "rank r { if r == 0 { recv bwd p; bwd p; fwd p; send fwd p; recv bwd p; bwd p }\n"
      "else { bwd p; send bwd p; recv fwd p; fwd p; bwd p; send bwd p } }",
      2, 2);
  ASSERT_TRUE(run.ok) << run.findings;
  DiagnosticSink sink;
  checkSchedule(run.schedule, sink);
  EXPECT_FALSE(sink.hasErrors());
}

TEST(Transfers, Faults) {
  auto expectFault = [](const std::string &body, const std::string &message) {
    expectError("rank r { " + body + " }", message);
  };
  expectFault("send p", "expected 'fwd' or 'bwd' after 'send', got 'p'");
  expectFault("recv bwd", "expected a pipeline or chunk after 'recv bwd', got '}'");
  expectFault("fused { fwd p; bwd p; send fwd p }", "a transfer must not stand inside 'fused'");
  expectFault("send fwd p @ 4", "rank 0: micro-batch 4 is outside 0 to 3 of pipeline 'p'");
  expectFault("repeat M + 2 { send fwd p }",
              "rank 0: no micro-batch is left for this transfer; all 4 of pipeline 'p' have had "
              "theirs in stage 0");
  expectFault("repeat 1000 { send fwd p @ 0 }", "rank 0 has more than 80 transfers, far more than "
                                                "its stages have micro-batches");
}

TEST(Params, TypesAreKnown) {
  EXPECT_NE(compile("pipe 1\nschedule s(ranks P, microbatches M, param k: real) { }", sized(1, 1))
                .findings.find("expected the type 'int' or 'bool' after ':', got 'real'"),
            std::string::npos);
}

} // namespace
