//===- SyntaxTest.cpp - what the lexer, the parser and the resolver report -===//

#include "Harness.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::frontend;

namespace {

/// Expects the findings of a text.
void expectFindings(const std::string &text, const std::string &findings) {
  Outcome run = compile(text, sized(2, 4));
  EXPECT_EQ(run.findings, findings) << "in:\n" << text;
}

/// Expects one error, without its place, for a rank program.
void expectError(const std::string &body, const std::string &message) {
  Outcome run = compileProgram(body);
  EXPECT_EQ(run.numErrors, 1u) << body << "\n" << run.findings;
  EXPECT_NE(run.findings.find("error: " + message + "\n"), std::string::npos) << body << "\n"
                                                                              << run.findings;
}

/// The same for what stands in a schedule before its rank program.
void expectItemError(const std::string &item, const std::string &message) {
  Outcome run = compile("pipe 1\nschedule s(ranks P, microbatches M) {\n" + item +
                            "\n  pipeline q { stages P; microbatches M; place s -> s }\n"
                            "  rank r { }\n}\n",
                        sized(2, 4));
  EXPECT_EQ(run.numErrors, 1u) << item << "\n" << run.findings;
  EXPECT_NE(run.findings.find("error: " + message + "\n"), std::string::npos) << item << "\n"
                                                                              << run.findings;
}

TEST(Syntax, Version) {
  expectFindings("", "main.pipe:1:1: error: expected the language version, 'pipe 1', at the "
                     "beginning of the file, got end of file\n");
  expectFindings("schedule", "main.pipe:1:1: error: expected the language version, 'pipe 1', at "
                             "the beginning of the file, got 'schedule'\n");
  expectFindings("pipe 2\n",
                 "main.pipe:1:6: error: language version 2 is not known; expected 'pipe 1'\n");
  expectFindings("pipe\n1", "main.pipe:2:1: error: expected a version number after 'pipe', got "
                            "'1'\n");
  expectFindings("pipe 1 def f() = 1", "main.pipe:1:8: error: expected ';' or a new line after "
                                       "the language version, got 'def'\n");
}

TEST(Syntax, Characters) {
  expectError("fwd p $", "unexpected character '$'");
  expectError("fwd p §", "unexpected character '§'");
  expectError("repeat 2x { }", "expected an integer, got '2x'");
  expectError("phase \"a { }", "string is not closed on its line; expected '\"'");
  Outcome run = compileProgram("fwd p\x01");
  EXPECT_NE(run.findings.find("error: unexpected character '\\x01'"), std::string::npos);
  expectFindings(std::string("pipe 1\n\0", 8),
                 "main.pipe:2:1: error: byte 0 in the text; is this a binary file?\n");
  expectFindings("pipe 1\n// \xC3\x28", "main.pipe:2:4: error: the text is not valid UTF-8\n");
  EXPECT_TRUE(compile("\xEF\xBB\xBF" + programOf("fwd p"), sized(2, 4)).ok);
  EXPECT_TRUE(compile(programOf("fwd p\r\n bwd p\r"), sized(2, 4)).ok);
}

TEST(Syntax, TopLevel) {
  expectFindings("pipe 1\nrank r { fwd p\n bwd p }\n",
                 "main.pipe:2:1: error: expected 'import', 'def' or 'schedule', got 'rank'\n");
  expectFindings("pipe 1\n}\n",
                 "main.pipe:2:1: error: expected 'import', 'def' or 'schedule', got '}'\n");
  expectFindings("pipe 1\nimport 3\n",
                 "main.pipe:2:8: error: expected the path of a file, got '3'\n");
  expectFindings("pipe 1\nimport \"\"\n", "main.pipe:2:8: error: the path of an import is empty\n");
  expectFindings("pipe 1\nimport \"{1}\"\n", "main.pipe:2:8: error: the path of a file must not "
                                             "contain values in braces\n");
  expectFindings("pipe 1\ndef f(xyz) 1\n",
                 "main.pipe:2:12: error: expected '=' or '{' after the parameters, got '1'\n");
  expectFindings("pipe 1\ndef rank() = 1\n", "main.pipe:2:5: error: expected a name after 'def', "
                                             "got 'rank', which is a keyword\n");
  expectFindings("pipe 1\ndef f = 1\n",
                 "main.pipe:2:7: error: expected '(' after the name, got '='\n");
  expectFindings("pipe 1\ndef f(1) = 1\n",
                 "main.pipe:2:7: error: expected the name of a parameter, got '1'\n");
  expectFindings("pipe 1\ndef f(x y) = 1\n",
                 "main.pipe:2:9: error: expected ')' after the parameters, got 'y'\n");
  expectFindings("pipe 1\ndef f() = 1 def g() = 2\n", "main.pipe:2:13: error: expected ';' or a "
                                                      "new line after the declaration, got "
                                                      "'def'\n");
}

TEST(Syntax, ScheduleParameters) {
  auto expect = [](const std::string &header, const std::string &findings) {
    expectFindings("pipe 1\nschedule s" + header +
                       " { pipeline p { stages 2; microbatches 4; place s -> s }\n rank r { } }\n",
                   findings);
  };
  expect("(microbatches M)", "main.pipe:2:10: error: schedule 's' needs the parameter 'ranks P'\n");
  expect("(ranks P)", "main.pipe:2:10: error: schedule 's' needs the parameter 'microbatches M'\n");
  expect("(ranks P, microbatches M, ranks Q)",
         "main.pipe:2:37: error: a schedule has one 'ranks' parameter, got two\n"
         "  main.pipe:2:12: note: the first is here\n");
  expect("(ranks P, microbatches M, microbatches Q)",
         "main.pipe:2:37: error: a schedule has one 'microbatches' parameter, got two\n"
         "  main.pipe:2:21: note: the first is here\n");
  expect("(ranks P = 3, microbatches M)", "main.pipe:2:20: error: 'ranks' has no default; it is "
                                          "given when the schedule is compiled\n");
  expect("(P, M)", "main.pipe:2:12: error: expected 'ranks', 'microbatches' or 'param', got 'P'\n");
  expect("(ranks P, microbatches M, param 3)",
         "main.pipe:2:43: error: expected a name after 'param', got '3'\n");
  expect(" { }", "main.pipe:2:12: error: expected '(' after the name, got '{'\n");
  expect("(ranks P microbatches M)",
         "main.pipe:2:20: error: expected ')' after the parameters, got 'microbatches'\n");
}

TEST(Syntax, ScheduleItems) {
  expectItemError("fwd q", "expected a declaration of a schedule, such as 'require', 'pipeline' or "
                           "'rank', got 'fwd'");
  expectItemError("pipline p { stages 3 }", "expected a declaration of a schedule, got 'pipline'; "
                                            "did you mean 'pipeline'?");
  expectItemError("zzzzzzz p", "expected a declaration of a schedule, got 'zzzzzzz'");
  expectItemError("require P > 1", "expected a message after the condition, got 'pipeline'");
  expectItemError("require P > 1 \"a}\"", "'}' without '{' in a string; write '}}' for a brace");
  expectItemError("require P > 1 \"a{\"", "'{' without '}' in a string; write '{{' for a brace");
  expectItemError("require P > 1 \"a{}\"", "expected an expression, got '}'");
  expectItemError("require P > 1 \"a{P M}\"", "expected '}' after the value in the string, got "
                                              "'M'");
  expectItemError("require P > 1 \"a\\n\"",
                  "unknown escape in a string; '\\\"' and '\\\\' are known");
  expectItemError("pipeline p { stages P; stages P }",
                  "a pipeline has one 'stages' clause, got two");
  expectItemError("pipeline p { stages P; microbatches M }", "pipeline 'p' has no 'place' clause");
  expectItemError("pipeline p { stages P }", "pipeline 'p' has no 'microbatches' clause");
  expectItemError("pipeline p { }", "pipeline 'p' has no 'stages' clause");
  expectItemError("pipeline p { fwd }", "expected 'stages', 'microbatches' or 'place', got 'fwd'");
  expectItemError("pipeline p { place s = s }", "expected '->' after the name, got '='");
  expectItemError("pipeline p { place 3 }", "expected a name for the stage after 'place', got '3'");
  expectItemError("pipeline p { stages 1 microbatches 2 }",
                  "expected ';' or a new line after the clause, got 'microbatches'");
  expectItemError("pipeline 3 { }", "expected a name after 'pipeline', got '3'");
  expectItemError("share q, 3", "expected the name of a pipeline, got '3'");
  expectItemError("let x = 1 let y = 2", "expected ';' or a new line after the declaration, got "
                                         "'let'");
}

TEST(Syntax, Statements) {
  expectError("fwd", "expected a pipeline or chunk after 'fwd', got '}'");
  expectError("fwd p bwd p", "expected ';' or a new line after the statement, got 'bwd'");
  expectError("share a, b", "expected a statement, got 'share'");
  expectError("bwd_wieght", "expected a statement, got 'bwd_wieght'; did you mean 'bwd_weight'?");
  expectError("frobnicate", "expected a statement, got 'frobnicate'");
  expectError("x = 3", "there is no assignment; a 'let' gives a new name a value");
  expectError("if r = 0 { fwd p }", "'=' does not compare; use '=='");
  expectError("fwd p split (true)", "only 'bwd' can be split, not 'fwd'");
  expectError("bwd p split true", "expected '(' after 'split', got 'true'");
  expectError("bwd p @ ", "expected an expression, got '}'");
  expectError("if true then fwd p", "expected '{' after the condition, got 'then'; 'if … then … "
                                    "else' is a value, not a statement");
  expectError("repeat { fwd p }", "expected an expression, got '{'");
  expectError("repeat 2 as { fwd p }", "expected a name after 'as', got '{'");
  expectError("repeat 2 fwd p", "expected '{', got 'fwd'");
  expectError("for in 0..2 { }", "expected a name after 'for', got 'in', which is a keyword");
  expectError("for i 0..2 { }", "expected 'in' after the name, got '0'");
  expectError("for i in 0 { }", "expected '..' after the first value, got '{'");
  expectError("phase warm { }", "expected the name of a phase, got 'warm'");
  expectError("phase \"{r}\" { }", "the name of a phase must not contain values in braces");
  expectError("fused fwd p", "expected '{', got 'fwd'");
  expectError("let = 1", "expected a name after 'let', got '='");
  expectError("let x 1", "expected '=' after the name, got '1'");
  expectError("let (x) = 1", "expected 2 or more names in brackets, got 1");
  expectError("let (x, 1) = 1", "expected a name, got '1'");
  expectError("let (x, y = 1", "expected ')' after the names, got '='");
  expectError("f(1", "expected ',' or ')', got '}'");
  expectError("f(1, )", "expected an expression, got ')'");
}

TEST(Syntax, Expressions) {
  expectError("let x = ", "expected an expression, got '}'");
  expectError("let x = ()", "expected an expression between '(' and ')'");
  expectError("let x = 1 < 2 < 3", "comparisons do not chain; join them with 'and'");
  expectError("let x = if true then 1", "expected 'else' in an 'if' that is a value, got '}'");
  expectError("let x = if true 1 else 2", "expected 'then' after the condition, got '1'");
  expectError("let x = min(1)", "'min' takes 2 or more arguments, got 1");
  expectError("let x = max", "expected '(' after 'max', got '}'");
  expectError("let x = p[1", "expected ']' after the index, got '}'");
  expectError("let x = p.stages(1)", "expected 'stage' after '.', got 'stages'");
  expectError("let x = p.stage[1]", "expected '(' after 'stage', got '['");
  expectError("let x = p.stage(1, 2)", "'stage' takes 1 argument, got 2");
}

TEST(Syntax, UnclosedBlocksPointToTheirBrace) {
  expectFindings("pipe 1\nschedule s(ranks P, microbatches M) {\n  rank r {\n    fwd p\n",
                 "main.pipe:5:1: error: expected '}', got end of file\n"
                 "  main.pipe:3:10: note: to match this '{'\n"
                 "main.pipe:5:1: error: expected '}', got end of file\n"
                 "  main.pipe:2:37: note: to match this '{'\n");
  expectFindings("pipe 1\nschedule s(ranks P, microbatches M) {\n  pipeline p { stages (\n",
                 "main.pipe:4:1: error: expected an expression, got end of file\n"
                 "main.pipe:4:1: error: expected '}', got end of file\n"
                 "  main.pipe:3:14: note: to match this '{'\n"
                 "main.pipe:4:1: error: expected '}', got end of file\n"
                 "  main.pipe:2:37: note: to match this '{'\n");
}

TEST(Syntax, SeveralErrorsInOneRun) {
  expectFindings("pipe 1\n"
                 "schedule s(ranks P, microbatches M) {\n"
                 "  require P > > 1 \"a\"\n"
                 "  pipeline p { stages P; microbatches M; place s - s }\n"
                 "  rank r {\n"
                 "    repeat 2 * { fwd p; bwd p }\n"
                 "    let 3 = 4\n"
                 "    phase \"x\" { fwd p p; bwd p }\n"
                 "    repeat 1 { fwd p\n"
                 "    bwd p }\n"
                 "  }\n"
                 "}\n",
                 "main.pipe:3:15: error: expected an expression, got '>'\n"
                 "main.pipe:4:50: error: expected '->' after the name, got '-'\n"
                 "main.pipe:6:16: error: expected an expression, got '{'\n"
                 "main.pipe:7:9: error: expected a name after 'let', got '3'\n"
                 "main.pipe:8:23: error: expected ';' or a new line after the statement, got "
                 "'p'\n");
}

TEST(Syntax, UnknownNames) {
  expectFindings(programOf("let depth = 1\nrepeat dpth { fwd q }\nrepeat dpth { fwd p }"),
                 "main.pipe:6:8: error: unknown name 'dpth'; did you mean 'depth'?\n"
                 "  main.pipe:5:5: note: 'depth' is declared here\n"
                 "main.pipe:6:19: error: unknown name 'q'\n");
  expectError("if trainig { }", "unknown name 'trainig'; did you mean 'training'?");
  expectError("repeat 1 { let x = 1 }\nrepeat x { }", "unknown name 'x'");
  expectError("let x = mn(1, 2)", "unknown definition 'mn'; did you mean 'min'?");
  expectError("body()", "unknown definition 'body'");
  expectError("let x = r(1)", "'r' is a value and cannot be called");
}

TEST(Syntax, Definitions) {
  const std::string rest = "schedule s(ranks P, microbatches M) {\n"
                           "  pipeline p { stages P; microbatches M; place s -> s }\n"
                           "  rank r { BODY }\n}\n";
  auto expect = [&](const std::string &body, const std::string &findings) {
    std::string text = "pipe 1\ndef f(x) = x\ndef g(c) { fwd c }\n" + rest;
    text.replace(text.find("BODY"), 4, body);
    expectFindings(text, findings);
  };
  expect("let y = f(1); g(p)", "");
  expect("f(1)", "main.pipe:6:12: error: 'f' is a value; expected a definition with a block "
                 "'{ … }'\n"
                 "  main.pipe:2:5: note: it is defined here\n");
  expect("let y = g(p)", "main.pipe:6:20: error: 'g' is a block of statements; expected a "
                         "definition with a value\n"
                         "  main.pipe:3:5: note: it is defined here\n");
  expect("let y = f", "main.pipe:6:20: error: 'f' is a definition, not a value; call it as "
                      "'f(…)'\n"
                      "  main.pipe:2:5: note: it is defined here\n");
  expect("let y = f(1, 2)", "main.pipe:6:20: error: 'f' takes 1 argument, got 2\n"
                            "  main.pipe:2:5: note: it is defined here\n");
  expect("g()", "main.pipe:6:12: error: 'g' takes 1 argument, got 0\n"
                "  main.pipe:3:5: note: it is defined here\n");
  expect("let y = fa(1)", "main.pipe:6:20: error: unknown definition 'fa'\n");
  std::string near = "pipe 1\ndef depth(x) = x\n" + rest;
  near.replace(near.find("BODY"), 4, "let y = dpth(1)");
  expectFindings(near, "main.pipe:5:20: error: unknown definition 'dpth'; did you mean 'depth'?\n"
                       "  main.pipe:2:5: note: 'depth' is defined here\n");
  expectFindings(programOf("let x = (1\nfwd p"),
                 "main.pipe:6:1: error: expected ',' or ')', got 'fwd'\n"
                 "  main.pipe:5:9: note: to match this '('\n");
}

TEST(Syntax, NamesAreDeclaredOnce) {
  expectFindings(programOf("let x = 1\nrepeat 2 { let x = x + 1 }"),
                 "main.pipe:6:16: error: 'x' is already declared; a name keeps its value, so take "
                 "another\n"
                 "  main.pipe:5:5: note: it is declared here\n");
  expectError("let p = 1", "'p' is already declared; a name keeps its value, so take another");
  expectError("for r in 0..2 { }",
              "'r' is already declared; a name keeps its value, so take another");
  EXPECT_TRUE(compileProgram("repeat 1 { let x = 1 }\nrepeat 1 as x { fwd p }").ok);
  expectFindings("pipe 1\ndef f(x, x) = 1\n",
                 "main.pipe:2:10: error: 'x' is already declared; a name keeps its value, so take "
                 "another\n"
                 "  main.pipe:2:7: note: it is declared here\n");
  expectFindings("pipe 1\ndef f() = 1\ndef f() = 2\n",
                 "main.pipe:3:5: error: 'f' is already defined\n"
                 "  main.pipe:2:5: note: it is defined here\n");
  const std::string schedule = "schedule s(ranks P, microbatches M) { pipeline p { stages P; "
                               "microbatches M; place s -> s }\n rank r { } }\n";
  Outcome run = compile("pipe 1\n" + schedule + schedule, sized(2, 2));
  EXPECT_EQ(run.findings, "main.pipe:4:10: error: schedule 's' is already declared\n"
                          "  main.pipe:2:10: note: it is declared here\n");
}

TEST(Syntax, SchedulesHaveAProgramAndAPipeline) {
  expectFindings("pipe 1\nschedule s(ranks P, microbatches M) {\n  pipeline p { stages P; "
                 "microbatches M; place s -> s }\n}\n",
                 "main.pipe:2:10: error: schedule 's' has no 'rank r { … }', 'timeline { … }' or "
                 "'greedy { … }', so no rank "
                 "does anything\n");
  expectFindings("pipe 1\nschedule s(ranks P, microbatches M) { rank r { } }\n",
                 "main.pipe:2:10: error: schedule 's' has no pipeline\n");
}

TEST(Syntax, NewLinesEndStatements) {
  // After an operator and inside brackets a new line means nothing.
  EXPECT_TRUE(compileProgram("let x = 1 +\n 2 *\n 3\nlet y = min(1,\n 2\n)\nfwd p").ok);
  // Before an operator it ends the statement.
  expectError("let x = 1\n + 2", "expected a statement, got '+'");
  // `bwd_weight` on its own does not take the next line for its chunk.
  Outcome run = compileProgram("repeat 2 { fwd p; bwd_input p; bwd_weight\n }\nrepeat 2 { fwd p }");
  EXPECT_TRUE(run.ok) << run.findings;
  EXPECT_TRUE(compileProgram("if r == 0\n {\n fwd p\n }\n else\n {\n fwd p\n }").ok);
  EXPECT_TRUE(compileProgram(";;fwd p;;\n;bwd p;").ok);
}

TEST(Syntax, TreePrinting) {
  Outcome run =
      compile("pipe 1\n"
              "import \"other.pipe\"\n"
              "def f(x) = x + 1\n"
              "schedule s(ranks P, microbatches M, param K = 2) {\n"
              "  require P > 1 \"needs {P}{{\"\n"
              "  pipeline p { stages P; microbatches M; place s -> if s < 1 then s else 0 }\n"
              "  rank r {\n"
              "    let (a, b) = (p, p[0])\n"
              "    if not r == 0 { fwd a @ 1 + 2 * 3 } else if true { bwd_weight }\n"
              "    repeat 2 as i { phase \"x\" { fused { fwd a; bwd p.stage(0) split (i < 1) } "
              "} }\n"
              "    for j in 0..-1 { g(min(1, 2), training) }\n"
              "  }\n"
              "}\n",
              sized(2, 2));
  EXPECT_EQ(run.tree, "import \"other.pipe\"  @2:1\n"
                      "def f(x) = (x + 1)  @3:5\n"
                      "schedule s  @4:1\n"
                      "  ranks P  @4:12\n"
                      "  microbatches M  @4:21\n"
                      "  param K = 2  @4:37\n"
                      "  require (P > 1) \"needs {P}{{\"  @5:3\n"
                      "  pipeline p  @6:3\n"
                      "    stages P  @6:23\n"
                      "    microbatches M  @6:39\n"
                      "    place s -> (if (s < 1) then s else 0)  @6:48\n"
                      "  rank r  @7:3\n"
                      "    let (a, b) = (p, p[0])  @8:5\n"
                      "    if (not (r == 0))  @9:5\n"
                      "      fwd a @ (1 + (2 * 3))  @9:21\n"
                      "    else\n"
                      "      if true  @9:46\n"
                      "        bwd_weight  @9:56\n"
                      "    repeat 2 as i  @10:5\n"
                      "      phase \"x\"  @10:21\n"
                      "        fused  @10:33\n"
                      "          fwd a  @10:41\n"
                      "          bwd p.stage(0) split ((i < 1))  @10:48\n"
                      "    for j in 0..(-1)  @11:5\n"
                      "      g(min(1, 2), training)  @11:22\n");
}

} // namespace
