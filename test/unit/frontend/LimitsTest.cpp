//===- LimitsTest.cpp - input that would hang or exhaust the compiler ------===//

#include "Harness.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::frontend;

namespace {

std::string repeated(const std::string &text, size_t count) {
  std::string result;
  for (size_t i = 0; i < count; ++i)
    result += text;
  return result;
}

void expectMessage(const Outcome &run, const std::string &message) {
  EXPECT_FALSE(run.ok);
  EXPECT_NE(run.findings.find("error: " + message + "\n"), std::string::npos) << run.findings;
}

TEST(LimitsTest, HugeCounts) {
  expectMessage(compileProgram("repeat 1000000000000 { }"),
                "the program takes more than 33554432 steps on rank 0; is a count too large?");
  expectMessage(compileProgram("for i in 0..1000000000000 { let t = (i, i) }"),
                "the program takes more than 33554432 steps on rank 0; is a count too large?");
  expectMessage(compileProgram("repeat 1000000000000 { fwd p @ 0 }"),
                "rank 0 has more than 76 ops, far more than its stages have micro-batches");
  // One fault a place, however often it is met.
  Outcome run = compileProgram("repeat 1000 { fwd p @ 9 }");
  EXPECT_EQ(run.numErrors, 1u) << run.findings;
}

TEST(LimitsTest, HugePipelines) {
  auto compilePipeline = [](const std::string &stages, const std::string &microbatches) {
    return compile("pipe 1\nschedule s(ranks P, microbatches M) { pipeline p { stages " + stages +
                       "; microbatches " + microbatches + "; place s -> 0 }\n rank r { } }\n",
                   sized(2, 4));
  };
  expectMessage(compilePipeline("1000000000000", "1"), "pipeline 'p' has 1000000000000 stages, "
                                                       "more than the limit of 67108864");
  expectMessage(compilePipeline("1", "1000000000000"),
                "pipeline 'p' has 1000000000000 micro-batches, more than the limit of 67108864");
  expectMessage(compilePipeline("100000", "100000"),
                "pipeline 'p' has 100000 stages and 100000 micro-batches; the limit is 67108864 "
                "forwards in a schedule");
  std::string text = "pipe 1\nschedule s(ranks P, microbatches M) {\n";
  for (int i = 0; i < 1025; ++i)
    text += "pipeline p" + std::to_string(i) + " { stages 1; microbatches 1; place s -> 0 }\n";
  expectMessage(compile(text + "rank r { } }\n", sized(1, 1025)),
                "the schedule has more than the limit of 1024 pipelines");
}

TEST(LimitsTest, DeepNesting) {
  const std::string deep = "nested more than 400 levels deep";
  expectMessage(compileProgram("let x = " + repeated("(", 100000)), deep);
  expectMessage(compileProgram("let x = " + repeated("-", 100000) + "1"), deep);
  expectMessage(compileProgram("let x = " + repeated("not ", 100000) + "true"), deep);
  expectMessage(compileProgram(repeated("repeat 1 {", 100000)), deep);
  expectMessage(compileProgram("if true { }" + repeated(" else if true { }", 100000)), deep);
  expectMessage(compileProgram("let x = " + repeated("if true then ", 100000)), deep);
  expectMessage(compileProgram("let x = 1" + repeated(" + 1", 100000)),
                "expression is nested more than 400 levels deep; name parts of it with 'let'");
  expectMessage(compileProgram("let x = p" + repeated("[0]", 100000)),
                "expression is nested more than 400 levels deep; name parts of it with 'let'");
  // Long is not deep.
  EXPECT_TRUE(compileProgram(repeated("fwd p @ 1; ", 30)).ok);
  EXPECT_TRUE(compileProgram("let x = min(0" + repeated(", 1", 10000) + ")").ok);
}

TEST(LimitsTest, EndlessRecursion) {
  auto compileDef = [](const std::string &def, const std::string &body) {
    return compile("pipe 1\n" + def + "\n" + programOf(body).substr(7), sized(1, 1));
  };
  expectMessage(compileDef("def f(n) = f(n + 1)", "let x = f(0)"),
                "calls of 'f' are nested too deeply; does it end?");
  expectMessage(compileDef("def f(n) { f(n + 1) }", "f(0)"),
                "calls of 'f' are nested too deeply; does it end?");
  expectMessage(
      compileDef("def f(n) = if n == 0 then 0 else f(n - 1) + f(n - 1)", "let x = f(1000)"),
      "the program takes more than 33554432 steps on rank 0; is a count too large?");
  expectMessage(
      compileDef("def f(n, t) = if n == 0 then t == t else f(n - 1, (t, t))", "let x = f(40, 1)"),
      "the program takes more than 33554432 steps on rank 0; is a count too large?");
  expectMessage(compileDef("def f(n, t) = if n == 0 then t else f(n - 1, \"{t}{t}\")",
                           "let x = f(40, \"a\")"),
                "the string is longer than 65536 bytes");
  Outcome run =
      compile("pipe 1\ndef f(n) = f(n)\nschedule s(ranks P, microbatches M) {\n"
              "  require f(P) == 1 \"x\"\n"
              "  pipeline p { stages P; microbatches M; place s -> s }\n  rank r { }\n}\n",
              sized(1, 1));
  expectMessage(run, "calls of 'f' are nested too deeply; does it end?");
  EXPECT_EQ(run.numErrors, 1u) << run.findings;
}

TEST(LimitsTest, ManyErrors) {
  EXPECT_EQ(compileProgram(repeated("let 1\n", 1000)).numErrors, 30u);
  std::string names, faults;
  for (int i = 0; i < 1000; ++i) {
    names += "fwd unknown" + std::to_string(i) + "\n";
    faults += "fwd p @ 9\n";
  }
  EXPECT_EQ(compileProgram(names).numErrors, 30u);
  EXPECT_EQ(compileProgram(faults).numErrors, 30u);
}

TEST(LimitsTest, LargeFusedGroups) {
  auto fuse = [](unsigned ops) {
    return compile(programOf("fused { repeat " + std::to_string(ops) + " { fwd p } }"),
                   sized(1, 100));
  };
  EXPECT_TRUE(fuse(64).ok) << fuse(64).findings;
  expectMessage(fuse(65), "rank 0: 'fused' takes at most 64 ops, got 65");
}

TEST(LimitsTest, LargeFiles) {
  Options options = sized(1, 1);
  options.limits.maxFileBytes = 100;
  expectMessage(compile("pipe 1\n" + repeated(" ", 200), options),
                "cannot read 'main.pipe': it has 207 bytes, more than the limit of 100");
}

TEST(LimitsTest, StepsOfTheSetUp) {
  expectMessage(
      compile("pipe 1\ndef f(n) = if n == 0 then 0 else f(n - 1) + f(n - 1)\n"
              "schedule s(ranks P, microbatches M) {\n  let x = f(100)\n"
              "  pipeline p { stages P; microbatches M; place s -> s }\n  rank r { }\n}\n",
              sized(1, 1)),
      "the program takes more than 33554432 steps; is a count too large?");
}

} // namespace
