//===- PrintPipeTest.cpp - printed programs give the same schedule ------------===//

#include "dualpipe/Target/PrintPipe.h"
#include "Harness.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <map>

using namespace dualpipe;
using namespace dualpipe::frontend;

namespace {

/// All that a schedule says but for places, as text: one line a fact.
std::string describe(const Schedule &schedule) {
  std::string text = schedule.name + " P=" + std::to_string(schedule.numRanks) +
                     " M=" + std::to_string(schedule.numMicrobatches) +
                     " stages=" + std::to_string(schedule.numStages) +
                     (schedule.training ? " training" : " forward only") +
                     (schedule.ownsTransfers ? " own transfers" : "");
  for (const auto &[name, value] : schedule.params)
    text += "\nparam " + name + "=" + std::to_string(value);
  for (const Pipeline &p : schedule.pipelines) {
    text += "\npipeline " + p.name + " from stage " + std::to_string(p.firstStage) +
            ", micro-batch " + std::to_string(p.firstMicrobatch) + " x " +
            std::to_string(p.numMicrobatches) + ":";
    for (uint32_t rank : p.placement)
      text += " " + std::to_string(rank);
  }
  text += "\ncosts";
  for (const auto &[name, value] : schedule.planCosts.print())
    text += " " + name + "=" + value;
  text += "\nmemory";
  for (int64_t units : schedule.memory.activation)
    text += " a" + std::to_string(units);
  for (int64_t units : schedule.memory.context)
    text += " c" + std::to_string(units);
  for (std::optional<int64_t> units : schedule.memory.limit)
    text += " l" + (units ? std::to_string(*units) : "none");
  const program::Contract &model = schedule.model;
  text += "\nmodel " + std::to_string(model.backwardReads) + " " +
          std::to_string(model.backwardInputReads) + " " +
          std::to_string(model.backwardWeightReads) + ":";
  for (uint32_t group : model.sizeGroup)
    text += " " + std::to_string(group);
  text += "\nphases";
  for (const std::string &name : schedule.phaseNames)
    text += " '" + name + "'";
  for (uint32_t rank = 0; rank != schedule.ranks.size(); ++rank) {
    const RankOrder &order = schedule.ranks[rank];
    text += "\n" + formatOrder(schedule, rank) + "\n ";
    for (RankOrder::Phase phase : order.phases)
      text += " " + std::to_string(phase.name) + "@" + std::to_string(phase.begin);
    for (const RankOrder::Transfer &end : order.transfers)
      text += std::string(end.isSend ? " send" : " recv") + (end.isGrad ? "B" : "F") +
              std::to_string(end.stage) + "/" + std::to_string(end.microbatch) + "@" +
              std::to_string(end.before);
  }
  return text;
}

/// The printed program of a schedule that has one.
std::string print(const Schedule &schedule) {
  Result<std::string> text = printPipe(schedule);
  EXPECT_TRUE(text) << text.message();
  return text ? *text : "";
}

/// Prints the schedule and compiles the text.
void expectRoundTrip(const Outcome &original, const Options &options) {
  ASSERT_TRUE(original.ok) << original.findings;
  std::string text = print(original.schedule);
  Options plain;
  plain.ranks = options.ranks;
  plain.microbatches = options.microbatches;
  plain.forwardOnly = options.forwardOnly;
  Outcome again = compile(text, plain);
  ASSERT_TRUE(again.ok) << again.findings << text;
  EXPECT_EQ(describe(again.schedule), describe(original.schedule)) << text;
  EXPECT_EQ(print(again.schedule), text) << "printing is not stable";
}

std::string wrap(const std::string &items) {
  return "pipe 1\nschedule s(ranks P, microbatches M) {\n" + items + "\n}\n";
}

void expectRoundTrip(const std::string &items, uint32_t ranks, uint32_t microbatches) {
  SCOPED_TRACE(items);
  for (bool forwardOnly : {false, true}) {
    Options options = sized(ranks, microbatches);
    options.forwardOnly = forwardOnly;
    expectRoundTrip(compile(wrap(items), options), options);
  }
}

/// The printed program of a schedule, from its first declaration on.
std::string printed(const std::string &items, uint32_t ranks, uint32_t microbatches) {
  Outcome run = compile(wrap(items), sized(ranks, microbatches));
  EXPECT_TRUE(run.ok) << run.findings;
  std::string text = print(run.schedule);
  return text.substr(text.find("\n\n  pipeline") + 2);
}

//===----------------------------------------------------------------------===//
// Round trips
//===----------------------------------------------------------------------===//

TEST(PrintPipe, EveryExampleRoundTrips) {
  std::error_code error;
  unsigned numExamples = 0;
  std::map<std::string, unsigned> numSizes;
  for (llvm::sys::fs::directory_iterator it(DUALPIPE_SOURCE_DIR "/examples", error), end;
       it != end && !error; it.increment(error)) {
    if (llvm::sys::path::extension(it->path()) != ".pipe")
      continue;
    SCOPED_TRACE(it->path());
    unsigned numLegal = 0;
    for (uint32_t ranks : {1, 2, 4, 8})
      for (uint32_t microbatches : {1, 4, 8, 16, 20, 24})
        for (bool forwardOnly : {false, true}) {
          Options options = sized(ranks, microbatches);
          options.forwardOnly = forwardOnly;
          Outcome original = compilePath(it->path(), options);
          if (!original.ok)
            continue; // not a size of this schedule, or a file of definitions
          ++numLegal;
          expectRoundTrip(original, options);
        }
    numExamples += numLegal != 0;
    EXPECT_NE(numLegal, 1u);
  }
  EXPECT_GE(numExamples, 3u);
}

TEST(PrintPipe, PhasesKeepTheirOrder) {
  // The second phase stands on the first rank alone, the first on the second.
  expectRoundTrip("pipeline p { stages P; microbatches M; place s -> s }\n"
                  "rank r {\n"
                  "  phase \"b\" { if r == 1 { fwd p } }\n"
                  "  phase \"a \\\"{{x}}\\\" \\\\\" { if r == 0 { fwd p } }\n"
                  "  repeat M - 1 { fwd p }\n"
                  "  phase \"a \\\"{{x}}\\\" \\\\\" { repeat M { bwd p } }\n"
                  "}",
                  2, 3);
}

TEST(PrintPipe, PlacementsAndSharedStagesRoundTrip) {
  const char *body = "rank r { for m in 0..2 { for s in 0..4 { if at(s) == r { fwd p.stage(s) @ m "
                     "} } } }";
  for (const char *at :
       {"s", "P - 1 - s", "s mod P", "if s < P then s else 2 * P - 1 - s", "(3, 1, 0, 1)[s]", "0"})
    expectRoundTrip(std::string("def at(s) = ") + at +
                        "\npipeline p { stages 4; microbatches M; place s -> at(s) }\n" + body,
                    4, 2);
  expectRoundTrip("pipeline a { stages P; microbatches 1; place s -> s }\n"
                  "pipeline x { stages 2 * P; microbatches 1; place s -> s mod P }\n"
                  "pipeline b { stages P; microbatches M - 2; place s -> P - 1 - s }\n"
                  "share a, b\n"
                  "rank r { fwd a; repeat M - 2 { fwd b }; fwd x[0]; fwd x[1] }",
                  3, 5);
}

TEST(PrintPipe, FamiliesRoundTrip) {
  expectRoundTrip("pipeline p(i in 1..4) { stages P; microbatches i; place s -> if i == 2 then P - "
                  "1 - s else s }\n"
                  "pipeline q { stages P; microbatches M - 6; place s -> s }\n"
                  "share p, q\n"
                  "rank r { for i in 1..4 { repeat i { fwd p(i) } }; repeat M - 6 { fwd q } }",
                  3, 8);
  expectRoundTrip(
      "pipeline p(i in 0..2) { stages P + i; microbatches 1; place s -> if i == 0 then s "
      "else if s < P then s else 2 * P - 1 - s }\n"
      "rank r { fwd p(0); fwd p(1).stage(r); if r == P - 1 { fwd p(1)[1] } }",
      2, 2);
}

TEST(PrintPipe, WavesAreInClosedForm) {
  std::string items = "pipeline p { stages 4 * P; microbatches M; place s -> if s div P mod 2 == 0 "
                      "then s mod P else P - 1 - s mod P }\n"
                      "rank r { for k in 0..4 { fwd p[k] } }";
  EXPECT_THAT(printed(items, 3, 1),
              testing::StartsWith("  pipeline p { stages 12; microbatches 1; place s -> if s div P "
                                  "mod 2 == 0 then s mod P else P - 1 - s mod P }\n"));
  expectRoundTrip(items, 3, 1);
}

/// An `if` for each member would be nested more deeply than the language takes.
TEST(PrintPipe, LargeFamiliesOfManyPlacementsRoundTrip) {
  std::string rank = "rank r { for i in 1..501 { for s in 0..7 { if at(i, s) == r { fwd "
                     "p(i).stage(s) } } } }";
  for (const char *at : {"(s * i + i) mod P", "if i mod 2 == 0 then s else P - 1 - s"})
    expectRoundTrip(
        std::string("def at(i, s) = ") + at +
            "\npipeline p(i in 1..501) { stages P; microbatches 1 + i mod 2; place s -> "
            "at(i, s) }\nshare p\n" +
            rank,
        7, 750);
}

/// With one rank, all members of one stage and of two stand on the same: the rows of a table must
/// be tuples nevertheless, and so must a table of one row.
TEST(PrintPipe, LargeFamiliesOfFewStagesRoundTrip) {
  expectRoundTrip("pipeline p(i in 0..20) { stages 1 + i mod 2; microbatches 1; place s -> 0 }\n"
                  "rank r { for i in 0..20 { for s in 0..1 + i mod 2 { fwd p(i).stage(s) } } }",
                  1, 20);
  expectRoundTrip("pipeline p(i in 0..20) { stages 1; microbatches 1; place s -> i mod P }\n"
                  "rank r { for i in 0..20 { if i mod P == r { fwd p(i) } } }",
                  3, 20);
}

/// Tables that were made anew for each stage would take a step for each pair of stages.
TEST(PrintPipe, ManyStagesRoundTrip) {
  expectRoundTrip(
      "def at(s) = (s * s div 7 + s div 3) mod P\n"
      "pipeline p { stages 8192; microbatches 1; place s -> at(s) }\n"
      "cost { fwd s -> 1 + s mod 3; bwd s -> 2 + s mod 5 }\n"
      "memory { activation s -> 1 + s mod 7; context s -> s mod 2; limit r -> 20000 + r "
      "}\n"
      "rank r { for s in 0..8192 { if at(s) == r { fwd p.stage(s) } } }",
      64, 1);
}

TEST(PrintPipe, StagesMustBeNumberedInTheOrderOfTheMicrobatches) {
  Outcome run = compile(wrap("pipeline a { stages 2; microbatches 1; place s -> s }\n"
                             "pipeline b { stages 1; microbatches 1; place s -> s }\n"
                             "rank r { fwd a; if r == 0 { fwd b } }"),
                        sized(2, 2));
  ASSERT_TRUE(run.ok) << run.findings;
  run.schedule.pipelines[0].firstStage = 1;
  run.schedule.pipelines[1].firstStage = 0;
  EXPECT_EQ(printPipe(run.schedule).message(),
            "the schedule is no explicit program: pipeline 'a', of the micro-batches from 0 on, "
            "begins with stage 1, expected 0: a program numbers stages in the order of its "
            "micro-batches; number them so in the input");
  std::swap(run.schedule.pipelines[0], run.schedule.pipelines[1]);
  EXPECT_EQ(printPipe(run.schedule).message(),
            "the schedule is no explicit program: pipeline 'b' begins with micro-batch 1, expected "
            "0: a program numbers micro-batches in the order of its pipelines");
}

TEST(PrintPipe, PlansRoundTrip) {
  expectRoundTrip(
      "pipeline p { stages P; microbatches M; place s -> s }\n"
      "cost { fwd s -> if s == 0 then 2.5 else 1; bwd 3; bwd_weight s -> 1; fused 4.000001; "
      "transfer 0.5 }\n"
      "memory { activation s -> 3 - s; context s -> 1; limit r -> 40 - r }\n"
      "rank r { repeat M { fwd p }; repeat M { bwd p } }",
      3, 4);
  // The costs of single stages from the command line take their place.
  Options options = sized(2, 2);
  options.planCosts = *Costs::parse("fwd[1]=7,bwd[0]=3,bwd_weight=2");
  std::string text = wrap("pipeline p { stages P; microbatches M; place s -> s }\n"
                          "cost { fwd 2; transfer 1 }\n"
                          "rank r { repeat M { fwd p }; repeat M { bwd p } }");
  expectRoundTrip(compile(text, options), options);
}

TEST(PrintPipe, ModelsRoundTrip) {
  const std::string pipeline = "pipeline p { stages P; microbatches M; place s -> s }\n";
  const std::string order = "rank r { repeat M { fwd p }; repeat M { bwd p } }";
  expectRoundTrip(
      pipeline + "model { group s -> min(s, 1); bwd reads input, grad_output }\n" + order, 3, 4);
  expectRoundTrip(pipeline +
                      "model { bwd_input reads output, saved, grad_output; bwd_weight reads "
                      "saved, context, labels }\n" +
                      order,
                  3, 4);
}

TEST(PrintPipe, GroupsHalvesAndTransfersRoundTrip) {
  expectRoundTrip("pipeline p { stages P; microbatches M; place s -> s }\n"
                  "rank r {\n"
                  "  repeat 3 { fwd p }\n"
                  "  repeat M - 3 { fused { fwd p; bwd_input p }; bwd_weight }\n"
                  "  repeat 3 { bwd p split (r == 0) }\n"
                  "  if r == 0 { repeat 3 { bwd_weight } }\n"
                  "}",
                  2, 12);
  expectRoundTrip(
      "pipeline p { stages P; microbatches M; place s -> s }\n"
      "rank r {\n"
      "  for m in 0..M { if r == 0 { fwd p @ m; send fwd p @ m } else { recv fwd p @ m; fwd "
      "p @ m } }\n"
      "  for m in 0..M { if r == 0 { recv bwd p @ m; bwd p @ m } else { bwd p @ m; send bwd "
      "p @ m } }\n"
      "}",
      2, 3);
}

TEST(PrintPipe, ParametersKeepTheirValues) {
  Options options = sized(2, 4);
  options.params = {{"group", 2}};
  Outcome run =
      compile("pipe 1\nschedule s(ranks n, microbatches count, param group, param M: bool = "
              "true) {\n"
              "pipeline P { stages n; microbatches count; place r -> r }\n"
              "rank s { repeat count { fwd P; bwd P } } }\n",
              options);
  expectRoundTrip(run, options);
  std::string text = print(run.schedule);
  options.params = {{"group", 3}};
  EXPECT_THAT(compile(text, options).findings,
              testing::HasSubstr("schedule 's' is written for group = 2, got 3"));

  // The least integer has no literal.
  options.params = {{"group", std::numeric_limits<int64_t>::min()}};
  expectRoundTrip(compile("pipe 1\nschedule s(ranks P, microbatches M, param group) {\n"
                          "pipeline p { stages P; microbatches M; place r -> r }\n"
                          "rank r { repeat M { fwd p; bwd p } } }\n",
                          options),
                  options);
}

//===----------------------------------------------------------------------===//
// The text
//===----------------------------------------------------------------------===//

TEST(PrintPipe, FoldsRunsIntoLoops) {
  EXPECT_EQ(printed("pipeline main { stages P; microbatches M; place s -> s }\n"
                    "rank r { let n = P - 1 - r\n"
                    "  phase \"warm-up\" { repeat n { fwd main } }\n"
                    "  phase \"steady\" { repeat M - n { fwd main; bwd main } }\n"
                    "  phase \"drain\" { repeat n { bwd main } } }",
                    2, 6),
            "  pipeline main { stages 2; microbatches 6; place s -> s }\n"
            "\n"
            "  rank r {\n"
            "    if r == 0 {\n"
            "      phase \"warm-up\" {\n"
            "        fwd main.stage(0) @ 0\n"
            "      }\n"
            "      phase \"steady\" {\n"
            "        for i in 1..6 { fwd main.stage(0) @ i; bwd main.stage(0) @ i - 1 }\n"
            "      }\n"
            "      phase \"drain\" {\n"
            "        bwd main.stage(0) @ 5\n"
            "      }\n"
            "    }\n"
            "    if r == 1 {\n"
            "      phase \"steady\" {\n"
            "        for i in 0..6 { fwd main.stage(1) @ i; bwd main.stage(1) @ i }\n"
            "      }\n"
            "    }\n"
            "  }\n"
            "}\n");
}

TEST(PrintPipe, LoopsMayHoldPhases) {
  std::string items = "pipeline p { stages 1; microbatches M; place s -> s }\n"
                      "rank r {\n"
                      "  phase \"a\" { fwd p }\n"
                      "  repeat 4 { phase \"a\" { fwd p }; phase \"b\" { bwd p }; bwd p }\n"
                      "  repeat 4 { fwd p }\n"
                      "  bwd p\n"
                      "}";
  EXPECT_THAT(printed(items, 1, 9), testing::HasSubstr("      for i in 1..5 {\n"
                                                       "        phase \"a\" {\n"
                                                       "          fwd p.stage(0) @ i\n"
                                                       "        }\n"
                                                       "        phase \"b\" {\n"
                                                       "          bwd p.stage(0) @ 2 * i - 2\n"
                                                       "        }\n"
                                                       "        bwd p.stage(0) @ 2 * i - 1\n"
                                                       "      }\n"));
}

TEST(PrintPipe, LoopsOfPhasesRoundTrip) {
  std::string pipeline = "pipeline p { stages 1; microbatches M; place s -> s }\n";
  for (const char *body :
       {"repeat M { phase \"a\" { fwd p }; phase \"b\" { bwd p } }",
        "repeat M { phase \"a\" { fwd p }; bwd p }", "repeat M { fwd p; phase \"b\" { bwd p } }",
        "phase \"a\" { fwd p }; repeat M - 1 { phase \"a\" { fwd p }; phase \"b\" { bwd p } }; bwd "
        "p",
        "repeat M div 2 { phase \"a\" { fwd p }; phase \"b\" { bwd p; fwd p }; phase \"a\" { bwd p "
        "} "
        "}"})
    expectRoundTrip(pipeline + "rank r { " + body + " }", 1, 8);
}

TEST(PrintPipe, WhatStandsTwiceIsNoLoop) {
  EXPECT_THAT(printed("pipeline p { stages 1; microbatches M; place s -> s }\n"
                      "rank r { repeat 2 { fwd p }; repeat 2 { bwd p } }",
                      1, 2),
              testing::HasSubstr("    if r == 0 {\n"
                                 "      fwd p.stage(0) @ 0\n"
                                 "      fwd p.stage(0) @ 1\n"
                                 "      bwd p.stage(0) @ 0\n"
                                 "      bwd p.stage(0) @ 1\n"
                                 "    }\n"));
}

TEST(PrintPipe, LoopsMayRunInStepsAndBackwards) {
  std::string items = "pipeline p { stages 1; microbatches M; place s -> s }\n"
                      "rank r {\n"
                      "  for i in 0..3 { fwd p @ 2 * i; fwd p @ 2 * i + 1; fwd p @ M - 1 - i }\n"
                      "  for i in 0..4 { bwd p @ M - 1 - 2 * i }\n"
                      "  for i in 0..4 { bwd p @ M - 2 - 2 * i }\n"
                      "  bwd p @ 0\n"
                      "}";
  EXPECT_THAT(printed(items, 1, 9),
              testing::HasSubstr(
                  "      for i in 0..3 { fwd p.stage(0) @ 2 * i; fwd p.stage(0) @ 2 * i + 1; fwd "
                  "p.stage(0) @ 8 - i }\n"
                  "      for i in 0..4 { bwd p.stage(0) @ 8 - 2 * i }\n"
                  "      for i in 0..4 { bwd p.stage(0) @ 7 - 2 * i }\n"
                  "      bwd p.stage(0) @ 0\n"));
  expectRoundTrip(items, 1, 9);
}

TEST(PrintPipe, ChangesNamesThatTheLanguageCannotSpell) {
  Outcome run = compile(wrap("pipeline a { stages 1; microbatches 1; place s -> s }\n"
                             "pipeline b { stages 1; microbatches 1; place s -> s }\n"
                             "pipeline c { stages 1; microbatches 1; place s -> s }\n"
                             "rank r { fwd a; fwd b; fwd c; bwd a; bwd b; bwd c }"),
                        sized(1, 3));
  ASSERT_TRUE(run.ok) << run.findings;
  run.schedule.name = "zb-1p";
  run.schedule.pipelines[0].name = "0 to 3";
  run.schedule.pipelines[1].name = "fwd";
  run.schedule.pipelines[2].name = "fwd_";
  std::string text = print(run.schedule);
  EXPECT_THAT(text, testing::HasSubstr("schedule zb_1p(ranks P, microbatches M) {"));
  EXPECT_THAT(text, testing::HasSubstr("pipeline _0_to_3 {"));
  EXPECT_THAT(text, testing::HasSubstr("pipeline fwd_ {"));
  EXPECT_THAT(text, testing::HasSubstr("pipeline fwd__ {"));
  EXPECT_TRUE(compile(text, sized(1, 3)).ok);
}

TEST(PrintPipe, OtherSizesAreRefused) {
  Outcome run = compile(wrap("pipeline p { stages P; microbatches M; place s -> s }\n"
                             "rank r { repeat M { fwd p; bwd p } }"),
                        sized(1, 2));
  std::string text = print(run.schedule);
  EXPECT_THAT(compile(text, sized(2, 2)).findings,
              testing::HasSubstr("schedule 's' is written for 1 ranks, got 2"));
  EXPECT_THAT(compile(text, sized(1, 3)).findings,
              testing::HasSubstr("schedule 's' is written for 2 micro-batches, got 3"));
  Options forwardOnly = sized(1, 2);
  forwardOnly.forwardOnly = true;
  Outcome inference = compile(wrap("pipeline p { stages P; microbatches M; place s -> s }\n"
                                   "rank r { repeat M { fwd p; bwd p } }"),
                              forwardOnly);
  EXPECT_THAT(compile(print(inference.schedule), sized(1, 2)).findings,
              testing::HasSubstr("schedule 's' runs forward only: compile it with --forward-only"));
}

} // namespace
