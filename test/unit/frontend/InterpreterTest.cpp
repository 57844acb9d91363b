//===- InterpreterTest.cpp - setting up and running schedules --------------===//

#include "Harness.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::frontend;

namespace {

/// Expects the orders of both ranks of a program of 2 ranks and 4 micro-batches.
void expectOrder(const std::string &body, const std::string &orders) {
  Outcome run = compileProgram(body);
  ASSERT_TRUE(run.ok) << body << "\n" << run.findings;
  EXPECT_EQ(formatOrders(run.schedule), orders) << body;
}

void expectFindings(const std::string &body, const std::string &findings) {
  Outcome run = compileProgram(body);
  EXPECT_EQ(run.findings, findings) << body;
}

/// A schedule with the given declarations before an empty rank program.
Outcome compileItems(const std::string &items, const Options &options = sized(4, 8)) {
  return compile("pipe 1\nschedule s(ranks P, microbatches M) {\n" + items + "\n  rank r { }\n}\n",
                 options);
}

void expectItemFindings(const std::string &items, const std::string &findings) {
  EXPECT_EQ(compileItems(items).findings, findings) << items;
}

//===----------------------------------------------------------------------===//
// Statements and ops
//===----------------------------------------------------------------------===//

TEST(Interpreter, OpsTakeTheNextMicrobatch) {
  expectOrder("repeat 2 { fwd p }; bwd p; bwd_input p; bwd_weight",
              "0F0,0F1,0B0,0I1,0W1\n1F0,1F1,1B0,1I1,1W1\n");
}

TEST(Interpreter, AtNamesAMicrobatchAndDoesNotCount) {
  expectOrder("fwd p @ 3; fwd p; fwd p @ r + 1; fwd p", "0F3,0F0,0F1,0F1\n1F3,1F0,1F2,1F1\n");
  expectOrder("bwd_input p @ 2; bwd p", "0I2,0B0\n1I2,1B0\n");
}

TEST(Interpreter, WeightHalvesGoOldestFirst) {
  const char *schedule = "pipe 1\nschedule s(ranks P, microbatches M) {\n"
                         "  pipeline a { stages P; microbatches M / 2; place s -> s }\n"
                         "  pipeline b { stages P; microbatches M / 2; place s -> s }\n"
                         "  rank r { bwd_input b; bwd_input a; bwd_input b\n BODY }\n}\n";
  auto order = [&](const std::string &body) {
    std::string text = schedule;
    text.replace(text.find("BODY"), 4, body);
    Outcome run = compile(text, sized(1, 4));
    return run.ok ? formatOrder(run.schedule, 0) : run.findings;
  };
  // The second pipeline has stage 1 and micro-batches 2 and 3.
  EXPECT_EQ(order("repeat 3 { bwd_weight }"), "1I2,0I0,1I3,1W2,0W0,1W3");
  EXPECT_EQ(order("bwd_weight a; repeat 2 { bwd_weight }"), "1I2,0I0,1I3,0W0,1W2,1W3");
  EXPECT_EQ(order("bwd_weight b; bwd_weight b; bwd_weight"), "1I2,0I0,1I3,1W2,1W3,0W0");
  EXPECT_EQ(order("bwd_weight b @ 1; bwd_weight; bwd_weight"), "1I2,0I0,1I3,1W3,1W2,0W0");
  EXPECT_EQ(order("bwd_weight b @ 1; bwd_weight b; bwd_weight a"), "1I2,0I0,1I3,1W3,1W2,0W0");
}

TEST(Interpreter, SplitIsDecidedByItsCondition) {
  expectOrder("repeat 4 as i { bwd p split (i >= 2) }\nrepeat 2 { bwd_weight }",
              "0B0,0B1,0I2,0I3,0W2,0W3\n1B0,1B1,1I2,1I3,1W2,1W3\n");
}

TEST(Interpreter, FusedGroups) {
  Outcome run = compileProgram("fused { fwd p; bwd p @ 1 }\nfwd p\nfused { fwd p\n bwd p }");
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(formatOrder(run.schedule, 0), "(0F0;0B1)OVERLAP_F_B,0F1,(0F2;0B0)OVERLAP_F_B");
  EXPECT_EQ(run.schedule.ranks[0].group, (std::vector<uint32_t>{0, 0, RankOrder::kAlone, 1, 1}));
}

TEST(Interpreter, ControlFlow) {
  expectOrder("if r == 0 { fwd p } else if r == 1 { fwd p @ 3 } else { fwd p @ 9 }", "0F0\n1F3\n");
  expectOrder("for i in r..3 { fwd p @ i }", "0F0,0F1,0F2\n1F1,1F2\n");
  expectOrder("repeat 0 { fwd p }\nfor i in 2..2 { fwd p }\nfwd p", "0F0\n1F0\n");
  expectOrder("let (a, i) = if r == 0 then (p, 1) else (p[0], 2)\nfwd a @ i", "0F1\n1F2\n");
  expectOrder("fwd p.stage(r) @ 2", "0F2\n1F2\n");
}

TEST(Interpreter, DefinitionsRunInTheirOwnFrame) {
  Outcome run = compile("pipe 1\n"
                        "def twice(c, n) { let m = 2 * n; repeat m { fwd c } }\n"
                        "schedule s(ranks P, microbatches M) {\n"
                        "  pipeline p { stages P; microbatches M; place s -> s }\n"
                        "  let k = 1\n"
                        "  def more(c) { twice(c, k); bwd c }\n"
                        "  rank r { let m = 7; more(p); if m == 7 { twice(p, r) } }\n}\n",
                        sized(2, 4));
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(formatOrders(run.schedule), "0F0,0F1,0B0\n1F0,1F1,1B0,1F2,1F3\n");
}

TEST(Interpreter, ForwardOnlyDropsBackwards) {
  Options options = sized(1, 4);
  options.forwardOnly = true;
  Outcome run = compile(programOf("fused { fwd p; bwd p }\nbwd_input p; bwd_weight\n"
                                  "fused { fwd p; fwd p; bwd p }\nfused { bwd p @ 0; bwd p @ 1 }\n"
                                  "if training { fwd p @ 9 }"),
                        options);
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_FALSE(run.schedule.training);
  EXPECT_EQ(formatOrder(run.schedule, 0), "0F0,(0F1;0F2)OVERLAP_F_B");
  EXPECT_EQ(run.schedule.ranks[0].group, (std::vector<uint32_t>{RankOrder::kAlone, 0, 0}));
}

TEST(Interpreter, PhasesNestAndEnd) {
  Outcome run = compileProgram("phase \"a\" { fwd p\n phase \"b\" { fwd p }\n fwd p }\nfwd p\n"
                               "phase \"empty\" { }");
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(run.schedule.phaseNames, (std::vector<std::string>{"a", "b", ""}));
  std::vector<std::pair<uint32_t, uint32_t>> phases;
  for (const RankOrder::Phase &phase : run.schedule.ranks[0].phases)
    phases.emplace_back(phase.name, phase.begin);
  EXPECT_EQ(phases, (std::vector<std::pair<uint32_t, uint32_t>>{{0, 0}, {1, 1}, {0, 2}, {2, 3}}));
}

//===----------------------------------------------------------------------===//
// Faults of rank programs
//===----------------------------------------------------------------------===//

TEST(InterpreterFaults, MicrobatchesRunOut) {
  expectFindings("repeat 6 as i { fwd p }\nfwd p\nrepeat 5 { bwd p }",
                 "main.pipe:5:17: error: rank 0: no micro-batch is left for this op; all 4 of "
                 "pipeline 'p' have had their forward in stage 0\n"
                 "  main.pipe:5:1: note: in iteration 5 of 6 of this 'repeat', where i is 4\n"
                 "  main.pipe:3:12: note: 'p' is declared here\n"
                 "  main.pipe:5:17: note: also on 1 other rank\n"
                 "main.pipe:7:12: error: rank 0: no micro-batch is left for this op; all 4 of "
                 "pipeline 'p' have had their backward in stage 0\n"
                 "  main.pipe:7:1: note: in iteration 5 of 5 of this 'repeat'\n"
                 "  main.pipe:3:12: note: 'p' is declared here\n"
                 "  main.pipe:7:12: note: also on 1 other rank\n");
}

TEST(InterpreterFaults, MicrobatchOutOfRange) {
  expectFindings("for i in 3..5 { fwd p @ i + r }",
                 "main.pipe:5:27: error: rank 0: micro-batch 4 is outside 0 to 3 of pipeline 'p'\n"
                 "  main.pipe:5:1: note: in this 'for', where i is 4\n"
                 "  main.pipe:3:12: note: 'p' is declared here\n"
                 "  main.pipe:5:27: note: also on 1 other rank\n");
  Outcome run = compileProgram("fwd p @ -1");
  EXPECT_NE(run.findings.find("micro-batch -1 is outside 0 to 3"), std::string::npos);
}

TEST(InterpreterFaults, NothingPending) {
  expectFindings("bwd p; bwd_weight",
                 "main.pipe:5:8: error: rank 0: no weight half is pending; a 'bwd_input' or a "
                 "split 'bwd' must come before it\n"
                 "  main.pipe:5:8: note: also on 1 other rank\n");
  expectFindings("if r == 1 { bwd_weight p }",
                 "main.pipe:5:13: error: rank 1: no weight half of pipeline 'p', stage 1, is "
                 "pending; a 'bwd_input' or a split 'bwd' must come before it\n");
  expectFindings("bwd_input p; if r == 0 { bwd_weight p @ 1 }",
                 "main.pipe:5:26: error: rank 0: no weight half of pipeline 'p', stage 0, with "
                 "this micro-batch is pending; a 'bwd_input' or a split 'bwd' must come before "
                 "it\n");
  // Silent after a fault that may be why.
  expectFindings("if r == 0 { bwd_input p @ 9; bwd_weight }",
                 "main.pipe:5:27: error: rank 0: micro-batch 9 is outside 0 to 3 of pipeline 'p'\n"
                 "  main.pipe:3:12: note: 'p' is declared here\n");
}

TEST(InterpreterFaults, FusedNeedsTwoOps) {
  expectFindings("if r == 0 { fused { fwd p } }",
                 "main.pipe:5:13: error: rank 0: 'fused' takes 2 or more ops, got 1\n");
  expectFindings("if r == 0 { fused { } }",
                 "main.pipe:5:13: error: rank 0: 'fused' takes 2 or more ops, got 0\n");
  expectFindings("if r == 0 { fused { fused { fwd p; bwd p } } }",
                 "main.pipe:5:21: error: 'fused' must not stand inside 'fused'\n");
  expectFindings("if r == 0 { fused { fwd p; phase \"x\" { bwd p } } }",
                 "main.pipe:5:28: error: 'phase' must not stand inside 'fused'\n");
  // A member with a fault of its own is not missed twice.
  expectFindings("if r == 0 { fused { fwd p; fwd p @ 8 } }",
                 "main.pipe:5:36: error: rank 0: micro-batch 8 is outside 0 to 3 of pipeline 'p'\n"
                 "  main.pipe:3:12: note: 'p' is declared here\n");
}

TEST(InterpreterFaults, Counts) {
  expectFindings("repeat r - 1 { fwd p }",
                 "main.pipe:5:10: error: rank 0: the count of 'repeat' is negative: -1\n");
  expectFindings("for i in 1..r { fwd p }",
                 "main.pipe:5:10: error: rank 0: the range 1..0 of 'for' has a negative length\n");
  expectFindings("if r == 0 { repeat true { fwd p } }",
                 "main.pipe:5:20: error: expected an integer as the count of 'repeat', got a "
                 "boolean\n");
  expectFindings("if r == 0 { for i in p..2 { } }", "main.pipe:5:22: error: expected an integer as "
                                                    "the first value of 'for', got a pipeline\n");
  expectFindings("if r == 0 { for i in 0..p { } }", "main.pipe:5:25: error: expected an integer as "
                                                    "the end of 'for', got a pipeline\n");
  expectFindings("if r { }", "main.pipe:5:4: error: expected a boolean as the condition of 'if', "
                             "got an integer\n"
                             "  main.pipe:5:4: note: also on 1 other rank\n");
}

TEST(InterpreterFaults, Operands) {
  expectFindings("if r == 0 { fwd r }", "main.pipe:5:17: error: expected a pipeline or chunk after "
                                        "the op, got an integer\n");
  expectFindings("if r == 0 { fwd p @ p }",
                 "main.pipe:5:21: error: expected an integer as a micro-batch, got a pipeline\n");
  expectFindings("if r == 0 { bwd p split (1) }", "main.pipe:5:26: error: expected a boolean as "
                                                  "the condition of 'split', got an integer\n");
  expectFindings("if r == 0 { fwd p.stage(1) }",
                 "main.pipe:5:18: error: stage 1 of pipeline 'p' is on rank 1, not on rank 0\n"
                 "  main.pipe:3:12: note: 'p' is declared here\n"
                 "  main.pipe:3:53: note: 'place s -> P - 1 - s' would put stage 1 on rank 0\n");
  expectFindings("if r == 0 { fwd p[1] }",
                 "main.pipe:5:18: error: rank 0 has no chunk 1 of pipeline 'p'; it holds 1 stage "
                 "of it\n"
                 "  main.pipe:3:12: note: 'p' is declared here\n");
}

TEST(InterpreterFaults, TellWhichPlacementWouldDo) {
  auto getFindings = [](const std::string &stages, const std::string &stage) {
    return compile("pipe 1\nschedule s(ranks N, microbatches M) {\n"
                   "  pipeline p { stages " +
                       stages +
                       "; microbatches M; place s -> 1 }\n  rank r { if r == 0 { fwd p.stage(" +
                       stage + ") } }\n}\n",
                   sized(3, 2))
        .findings;
  };
  auto expectHint = [&](const std::string &stages, const std::string &stage,
                        const std::string &hint) {
    std::string findings = getFindings(stages, stage);
    EXPECT_NE(findings.find("note: '" + hint + "' would put stage " + stage + " on rank 0\n"),
              std::string::npos)
        << findings;
  };
  expectHint("N", "0", "place s -> s");
  expectHint("N", "2", "place s -> N - 1 - s");
  expectHint("2 * N", "3", "place s -> s mod N");
  expectHint("2 * N", "5", "place s -> if s < N then s else 2 * N - 1 - s");
  EXPECT_EQ(getFindings("N", "1").find("would put"), std::string::npos);
}

TEST(InterpreterFaults, ManyRanksMakeOneFinding) {
  auto getFindings = [](uint32_t ranks) {
    return compile(programOf("fwd p @ 9"), sized(ranks, 2)).findings;
  };
  EXPECT_NE(getFindings(64).find("note: also on 63 other ranks\n"), std::string::npos);
  // The ranks after the first ones do not run any more.
  EXPECT_NE(getFindings(200).find("note: also on at least 63 other ranks\n"), std::string::npos);
}

TEST(InterpreterFaults, BareNamesMeanTheOnlyChunk) {
  auto compilePlaced = [](const std::string &place) {
    return compile("pipe 1\nschedule s(ranks P, microbatches M) {\n"
                   "  pipeline p { stages 4; microbatches M; place s -> " +
                       place + " }\n  rank r { if r == 2 { fwd p } }\n}\n",
                   sized(3, 2))
        .findings;
  };
  EXPECT_EQ(compilePlaced("s mod 2"),
            "main.pipe:4:28: error: rank 2 holds no stage of pipeline 'p', which is placed on "
            "ranks 0, 1\n"
            "  main.pipe:3:12: note: 'p' is declared here\n");
  EXPECT_EQ(compilePlaced("0"), "main.pipe:4:28: error: rank 2 holds no stage of pipeline 'p', "
                                "which is placed on rank 0\n"
                                "  main.pipe:3:12: note: 'p' is declared here\n");
  EXPECT_EQ(compilePlaced("2"), "main.pipe:4:28: error: rank 2 holds 4 stages of pipeline 'p' (0, "
                                "1, 2, 3); name one of them, as in 'p[0]'\n"
                                "  main.pipe:3:12: note: 'p' is declared here\n");
  Outcome run = compile("pipe 1\nschedule s(ranks P, microbatches M) {\n"
                        "  pipeline p { stages 12; microbatches M; place s -> s mod 11 }\n"
                        "  rank r { if r == 11 { fwd p } }\n}\n",
                        sized(12, 2));
  EXPECT_NE(run.findings.find("placed on ranks 0, 1, 2, 3, 4, 5, 6, 7 and 3 more\n"),
            std::string::npos)
      << run.findings;
}

TEST(InterpreterFaults, NotesTellTheWayThroughLoopsAndCalls) {
  Outcome run = compile("pipe 1\n"
                        "def inner(c, k) { fwd c @ k }\n"
                        "schedule s(ranks P, microbatches M) {\n"
                        "  pipeline p { stages P; microbatches M; place s -> s }\n"
                        "  rank r { repeat 2 as i { for j in 0..3 { inner(p, i + j) } } }\n}\n",
                        sized(1, 2));
  EXPECT_EQ(run.findings,
            "main.pipe:2:27: error: rank 0: micro-batch 2 is outside 0 to 1 of pipeline 'p'\n"
            "  main.pipe:5:44: note: in this call of 'inner'\n"
            "  main.pipe:5:28: note: in this 'for', where j is 2\n"
            "  main.pipe:5:12: note: in iteration 1 of 2 of this 'repeat', where i is 0\n"
            "  main.pipe:4:12: note: 'p' is declared here\n");
}

TEST(InterpreterFaults, DeepNotesAreCut) {
  Outcome run = compileProgram("repeat 1 { repeat 1 { repeat 1 { repeat 1 { repeat 1 { repeat 1 { "
                               "repeat 1 { fwd p @ 7 } } } } } } }");
  EXPECT_NE(run.findings.find("main.pipe:5:1: note: and further out\n"), std::string::npos)
      << run.findings;
}

//===----------------------------------------------------------------------===//
// Setting up
//===----------------------------------------------------------------------===//

TEST(SetUp, NumbersFollowTheDeclarations) {
  Outcome run = compileItems("  pipeline a { stages P; microbatches 2; place s -> s }\n"
                             "  pipeline b { stages 3; microbatches 1; place s -> 0 }\n"
                             "  pipeline c { stages P; microbatches 5; place s -> P - 1 - s }\n"
                             "  share c, a\n");
  ASSERT_TRUE(run.ok) << run.findings;
  const std::vector<Pipeline> &p = run.schedule.pipelines;
  EXPECT_EQ(p[0].firstStage, 0u);
  EXPECT_EQ(p[1].firstStage, 4u);
  EXPECT_EQ(p[2].firstStage, 0u);
  EXPECT_EQ(p[0].firstMicrobatch, 0u);
  EXPECT_EQ(p[1].firstMicrobatch, 2u);
  EXPECT_EQ(p[2].firstMicrobatch, 3u);
  EXPECT_EQ(run.schedule.numStages, 7u);
  EXPECT_EQ(run.schedule.numMicrobatches, 8u);
}

TEST(SetUp, PipelineFaults) {
  expectItemFindings("  pipeline p { stages P - 4; microbatches M; place s -> s }",
                     "main.pipe:3:25: error: pipeline 'p' needs at least 1 stage, got 0\n");
  expectItemFindings("  pipeline p { stages P; microbatches -1; place s -> s }",
                     "main.pipe:3:39: error: pipeline 'p' needs at least 1 micro-batch, got -1\n");
  expectItemFindings("  pipeline p { stages true; microbatches q; place s -> s }",
                     "main.pipe:3:42: error: unknown name 'q'\n");
  expectItemFindings("  pipeline p { stages true; microbatches \"a\"; place s -> s }",
                     "main.pipe:3:23: error: expected an integer as the number of stages, got a "
                     "boolean\n"
                     "main.pipe:3:42: error: expected an integer as the number of micro-batches, "
                     "got a string\n");
  expectItemFindings("  pipeline p { stages P; microbatches M; place s -> s + 1 }",
                     "main.pipe:3:55: error: stage 3 of pipeline 'p' is placed on rank 4; expected "
                     "0 to 3\n");
  expectItemFindings("  pipeline p { stages P; microbatches M; place s -> true }",
                     "main.pipe:3:53: error: expected an integer as a rank, got a boolean\n");
  expectItemFindings("  pipeline p { stages P; microbatches M - 1; place s -> s }",
                     "main.pipe:2:10: error: the pipelines of schedule 's' have 7 micro-batches "
                     "together, expected 8\n"
                     "  main.pipe:3:12: note: 'p' has 7 of them\n");
}

TEST(SetUp, ShareFaults) {
  const std::string pipelines = "  pipeline a { stages 2; microbatches 4; place s -> s }\n"
                                "  pipeline b { stages 4; microbatches 4; place s -> s }\n";
  expectItemFindings(pipelines + "  share a, b",
                     "main.pipe:5:12: error: pipelines that share weights need the same number of "
                     "stages; 'a' has 2, 'b' has 4\n"
                     "  main.pipe:4:12: note: 'b' is declared here\n");
  expectItemFindings(pipelines + "  share a, a",
                     "main.pipe:5:12: error: pipelines 'a' and 'a' already share their weights\n");
  expectItemFindings(pipelines + "  share a, P",
                     "main.pipe:5:12: error: expected a pipeline in 'share', got an integer\n");
  expectItemFindings(pipelines + "  share a, c", "main.pipe:5:12: error: unknown name 'c'\n");
}

TEST(SetUp, RequirementsAreAllReported) {
  Outcome run = compileItems("  require P > 4 and P mod 3 == 0 \"needs more ranks than {P}\"\n"
                             "  require M >= 2 * P \"fine\"\n"
                             "  require M > 20 \"needs more micro-batches than {M}\"\n"
                             "  let half = P / 3\n"
                             "  pipeline p { stages half; microbatches M; place s -> s - 8 }");
  EXPECT_EQ(run.findings,
            "main.pipe:3:3: error: schedule 's' needs more ranks than 4\n"
            "  main.pipe:2:12: note: nearest legal sizes: 6 ranks with 21 micro-batches\n"
            "main.pipe:5:3: error: schedule 's' needs more micro-batches than 8\n");
  expectItemFindings("  require P \"x\"\n  pipeline p { stages P; microbatches M; place s -> s }",
                     "main.pipe:3:11: error: expected a boolean as the condition of 'require', got "
                     "an integer\n");
}

TEST(SetUp, RequirementsSuggestTheNearestSizes) {
  const std::string rest = "\n  pipeline p { stages P; microbatches M; place s -> s }";
  expectItemFindings("  require M mod 3 == 0 \"x\"" + rest,
                     "main.pipe:3:3: error: schedule 's' x\n"
                     "  main.pipe:2:21: note: nearest legal number of micro-batches: 6 or 9 (with "
                     "4 ranks)\n");
  expectItemFindings("  require M == 2 * P + 2 \"x\"" + rest,
                     "main.pipe:3:3: error: schedule 's' x\n"
                     "  main.pipe:2:12: note: nearest legal number of ranks: 3 (with 8 "
                     "micro-batches)\n"
                     "  main.pipe:2:21: note: nearest legal number of micro-batches: 10 (with 4 "
                     "ranks)\n");
  // Nothing helps where the sizes do not matter.
  expectItemFindings("  require not training \"is for inference\"" + rest,
                     "main.pipe:3:3: error: schedule 's' is for inference\n");
  Options options = sized(4, 8);
  options.forwardOnly = true;
  EXPECT_TRUE(compileItems("  require not training \"is for inference\"" + rest, options).ok);
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

Outcome compileParams(const std::string &params, const Options &options) {
  return compile("pipe 1\nschedule s(ranks P, microbatches M" + params +
                     ") {\n  pipeline p { stages P; microbatches M; place s -> s }\n  rank r { "
                     "}\n}\n",
                 options);
}

TEST(OptionsTest, Sizes) {
  EXPECT_EQ(compileParams("", {}).findings,
            "main.pipe:2:12: error: the number of ranks is not given; pass --ranks=N\n"
            "main.pipe:2:21: error: the number of micro-batches is not given; pass "
            "--microbatches=N\n");
  EXPECT_EQ(compileParams("", sized(0, 1)).findings,
            "main.pipe:2:12: error: the number of ranks must be at least 1, got 0\n");
  EXPECT_EQ(compileParams("", sized(1, 0)).findings,
            "main.pipe:2:21: error: the number of micro-batches must be at least 1, got 0\n");
  EXPECT_EQ(compileParams("", sized(70000, 1)).findings,
            "main.pipe:2:12: error: the number of ranks must be at most 65536, got 70000\n");
  EXPECT_EQ(compileParams("", sized(1, 4000000000)).findings,
            "main.pipe:2:21: error: the number of micro-batches must be at most 67108864, got "
            "4000000000\n");
}

TEST(OptionsTest, Params) {
  Options options = sized(2, 4);
  options.params = {{"K", 3}};
  Outcome run = compileParams(", param K, param L = K * P", options);
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(run.schedule.params,
            (std::vector<std::pair<std::string, int64_t>>{{"K", 3}, {"L", 6}}));

  EXPECT_EQ(compileParams(", param K", sized(2, 4)).findings,
            "main.pipe:2:37: error: parameter 'K' has no default and is not given; pass --param "
            "K=VALUE\n");
  EXPECT_EQ(compileParams(", param K: int = true", sized(2, 4)).findings,
            "main.pipe:2:52: error: expected an integer as the default of a parameter, got a "
            "boolean\n");
  EXPECT_EQ(compileParams(", param K: bool = P", sized(2, 4)).findings,
            "main.pipe:2:53: error: expected a boolean as the default of a parameter, got an "
            "integer\n");
  options.params = {{"window", 3}, {"window", 4}, {"windw", 3}, {"P", 3}, {"M", 2}};
  EXPECT_EQ(compileParams(", param window = 1", options).findings,
            "main.pipe:2:10: error: parameter 'window' is given twice: 3 and 4\n"
            "main.pipe:2:10: error: schedule 's' has no 'param' named 'windw'; did you mean "
            "'window'?\n"
            "main.pipe:2:10: error: schedule 's' has no 'param' named 'P'; pass it with "
            "--ranks=N\n"
            "main.pipe:2:10: error: schedule 's' has no 'param' named 'M'; pass it with "
            "--microbatches=N\n");
}

TEST(OptionsTest, BooleanParams) {
  Options options = sized(2, 4);
  options.params = {{"K", true}};
  Outcome run = compileParams(", param K: bool, param L = false, param N: bool = K or L", options);
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(run.schedule.params,
            (std::vector<std::pair<std::string, int64_t>>{{"K", 1}, {"L", 0}, {"N", 1}}));

  EXPECT_EQ(compileParams(", param K = 3", options).findings,
            "main.pipe:2:37: error: parameter 'K' is an integer, got a boolean\n");
  options.params = {{"K", 1}};
  EXPECT_EQ(compileParams(", param K = true", options).findings,
            "main.pipe:2:37: error: parameter 'K' is a boolean, expected true or false, got an "
            "integer\n");
  options.params = {{"K", true}, {"K", false}};
  EXPECT_EQ(compileParams(", param K: bool", options).findings,
            "main.pipe:2:10: error: parameter 'K' is given twice: true and false\n");
}

TEST(OptionsTest, NearestLegalParameters) {
  Options options = sized(1, 4);
  options.params = {{"K", 7}};
  std::string text =
      "pipe 1\nschedule s(ranks P, microbatches M, param K = 2, param L: bool = true) {"
      "\n  require K >= 1 and K <= 4 \"needs 1 to 4, got {K}\"\n"
      "  pipeline p { stages P; microbatches M; place s -> s }\n  rank r { }\n}\n";
  EXPECT_EQ(compile(text, options).findings,
            "main.pipe:3:3: error: schedule 's' needs 1 to 4, got 7\n"
            "  main.pipe:2:37: note: nearest legal value of 'K': 4\n");
}

TEST(OptionsTest, ScheduleNames) {
  const std::string body = "(ranks P, microbatches M) { pipeline p { stages P; microbatches M; "
                           "place s -> s }\n rank r { fwd p } }\n";
  const std::string text = "pipe 1\nschedule gpipe" + body + "schedule zero" + body;
  EXPECT_EQ(
      compile(text, sized(1, 1)).findings,
      "main.pipe:1:1: error: 'main.pipe' declares 2 schedules; choose one with --schedule=NAME\n"
      "  main.pipe:2:10: note: 'gpipe' is declared here\n"
      "  main.pipe:4:10: note: 'zero' is declared here\n");
  Options options = sized(1, 1);
  options.schedule = "gppe";
  EXPECT_EQ(compile(text, options).findings,
            "main.pipe:1:1: error: 'main.pipe' declares no schedule 'gppe'; did you mean 'gpipe'?\n"
            "  main.pipe:2:10: note: 'gpipe' is declared here\n"
            "  main.pipe:4:10: note: 'zero' is declared here\n");
  options.schedule = "zero";
  Outcome run = compile(text, options);
  ASSERT_TRUE(run.ok) << run.findings;
  EXPECT_EQ(run.schedule.name, "zero");
  // Only the places of its own ops, after that of the schedule.
  ASSERT_EQ(run.schedule.locations.size(), 2u);
  EXPECT_EQ(run.schedule.locations[0].line, 4u);
  EXPECT_EQ(run.schedule.locations[1].line, 5u);
  EXPECT_EQ(compile("pipe 1\ndef f() = 1\n", sized(1, 1)).findings,
            "main.pipe:1:1: error: 'main.pipe' declares no schedule\n");
}

} // namespace
