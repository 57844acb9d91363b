//===- ExpressionTest.cpp - values, operators and their faults -------------===//

#include "Harness.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::frontend;

namespace {

/// Evaluates `expr` at schedule level and returns it as it stands in a message,
/// or the first error.
std::string evaluate(const std::string &expr, const std::string &declarations = "") {
  Outcome run = compile("pipe 1\n"
                        "def double(x) = 2 * x\n"
                        "def sum(n) = if n == 0 then 0 else n + sum(n - 1)\n"
                        "schedule s(ranks P, microbatches M) {\n"
                        "  pipeline p { stages P; microbatches M; place s -> s }\n" +
                            declarations + "\n  let value = " + expr +
                            "\n  require false \"<{value}>\"\n  rank r { }\n}\n",
                        sized(4, 8));
  size_t begin = run.findings.find('<'), end = run.findings.find('>');
  if (begin != std::string::npos && end != std::string::npos && run.numErrors == 1)
    return run.findings.substr(begin + 1, end - begin - 1);
  size_t error = run.findings.find("error: ");
  return run.findings.substr(error, run.findings.find('\n') - error);
}

TEST(Expression, Arithmetic) {
  EXPECT_EQ(evaluate("1 + 2 * 3"), "7");
  EXPECT_EQ(evaluate("(1 + 2) * 3"), "9");
  EXPECT_EQ(evaluate("10 - 3 - 2"), "5");
  EXPECT_EQ(evaluate("2 * P - 1"), "7");
  EXPECT_EQ(evaluate("M / 2"), "4");
  EXPECT_EQ(evaluate("7 div 2"), "3");
  EXPECT_EQ(evaluate("-7 div 2"), "-4");
  EXPECT_EQ(evaluate("7 div -2"), "-4");
  EXPECT_EQ(evaluate("-7 mod 2"), "1");
  EXPECT_EQ(evaluate("7 mod -2"), "-1");
  EXPECT_EQ(evaluate("- - 3"), "3");
  EXPECT_EQ(evaluate("-6 / 3"), "-2");
  EXPECT_EQ(evaluate("min(3, 1, 2)"), "1");
  EXPECT_EQ(evaluate("max(3, 1, P)"), "4");
  EXPECT_EQ(evaluate("1 +\n 2"), "3");
  EXPECT_EQ(evaluate("(1\n + 2)"), "3");
}

TEST(Expression, ArithmeticFaults) {
  EXPECT_EQ(evaluate("9223372036854775807 + 1"),
            "error: '9223372036854775807 + 1' does not fit in 64 bits");
  EXPECT_EQ(evaluate("-9223372036854775807 - 2"),
            "error: '-9223372036854775807 - 2' does not fit in 64 bits");
  EXPECT_EQ(evaluate("9223372036854775807 * P"),
            "error: '9223372036854775807 * 4' does not fit in 64 bits");
  EXPECT_EQ(evaluate("-(-9223372036854775807 - 1)"),
            "error: '-(-9223372036854775808)' does not fit in 64 bits");
  EXPECT_EQ(evaluate("(-9223372036854775807 - 1) div -1"),
            "error: '-9223372036854775808 div -1' does not fit in 64 bits");
  EXPECT_EQ(evaluate("(-9223372036854775807 - 1) mod -1"), "0");
  EXPECT_EQ(evaluate("1 / 0"), "error: '1 / 0' divides by zero");
  EXPECT_EQ(evaluate("1 div 0"), "error: '1 div 0' divides by zero");
  EXPECT_EQ(evaluate("1 mod (P - 4)"), "error: '1 mod 0' divides by zero");
  EXPECT_EQ(evaluate("7 / 2"), "error: '7 / 2' is not exact; use 'div' to round down, or a "
                               "'require' to rule it out");
  EXPECT_EQ(evaluate("99999999999999999999"),
            "error: integer '99999999999999999999' does not fit in 64 bits; the largest is "
            "9223372036854775807");
}

TEST(Expression, Logic) {
  EXPECT_EQ(evaluate("1 < 2"), "true");
  EXPECT_EQ(evaluate("2 <= 1"), "false");
  EXPECT_EQ(evaluate("2 > 1"), "true");
  EXPECT_EQ(evaluate("1 >= 2"), "false");
  EXPECT_EQ(evaluate("1 == 1 and 1 != 2"), "true");
  EXPECT_EQ(evaluate("false and 1 / 0 == 1"), "false");
  EXPECT_EQ(evaluate("true or 1 / 0 == 1"), "true");
  EXPECT_EQ(evaluate("not 1 == 2"), "true");
  EXPECT_EQ(evaluate("not false and false"), "false");
  EXPECT_EQ(evaluate("training"), "true");
  EXPECT_EQ(evaluate("true or true and false"), "true");
  EXPECT_EQ(evaluate("\"a\" == \"a\""), "true");
  EXPECT_EQ(evaluate("(1, true) == (1, true)"), "true");
  EXPECT_EQ(evaluate("(1, 2) == (1, 3)"), "false");
  EXPECT_EQ(evaluate("(1, 2) == (1, 2, 3)"), "false");
  EXPECT_EQ(evaluate("p == p"), "true");
  EXPECT_EQ(evaluate("p.stage(1) == p.stage(2)"), "false");
}

TEST(Expression, ConditionalsTuplesAndCalls) {
  EXPECT_EQ(evaluate("if P < 8 then 1 else 2"), "1");
  EXPECT_EQ(evaluate("if P > 8 then 1\n else 2"), "2");
  EXPECT_EQ(evaluate("1 + if true then 1 else 2"), "2");
  EXPECT_EQ(evaluate("(1, (true, \"x\"), p)"), "(1, (true, x), p)");
  EXPECT_EQ(evaluate("(5, 6, 7)[1]"), "6");
  EXPECT_EQ(evaluate("p.stage(2)"), "p.stage(2)");
  EXPECT_EQ(evaluate("double(P) + 1"), "9");
  EXPECT_EQ(evaluate("sum(1000)"), "500500");
  EXPECT_EQ(evaluate("a * b", "let (a, b) = (2, 3)"), "6");
  EXPECT_EQ(evaluate("f(1)", "let k = 5\n def f(x) = x + k"), "6");
  EXPECT_EQ(evaluate("\"{P} of {M}{{}}\\\"\\\\\""), "4 of 8{}\"\\");
}

TEST(Expression, KindFaults) {
  EXPECT_EQ(evaluate("1 + true"), "error: expected an integer as an operand of '+', got a boolean");
  EXPECT_EQ(evaluate("1 and true"),
            "error: expected a boolean as an operand of 'and', got an integer");
  EXPECT_EQ(evaluate("1 < \"a\""), "error: expected an integer as an operand of '<', got a string");
  EXPECT_EQ(evaluate("not 1"), "error: expected a boolean as the operand of 'not', got an integer");
  EXPECT_EQ(evaluate("-true"), "error: expected an integer as the operand of '-', got a boolean");
  EXPECT_EQ(evaluate("min(1, p)"),
            "error: expected an integer as an argument of 'min', got a pipeline");
  EXPECT_EQ(evaluate("max(true, 1)"),
            "error: expected an integer as an argument of 'max', got a boolean");
  EXPECT_EQ(evaluate("if 1 then 2 else 3"),
            "error: expected a boolean as the condition of 'if', got an integer");
  EXPECT_EQ(evaluate("1 == true"), "error: cannot compare an integer with a boolean");
  EXPECT_EQ(evaluate("1[0]"), "error: expected a pipeline or a tuple before '[', got an integer");
  EXPECT_EQ(evaluate("(1, 2)[true]"), "error: expected an integer as an index, got a boolean");
  EXPECT_EQ(evaluate("(1, 2)[2]"), "error: index 2 is outside a tuple of 2 values");
  EXPECT_EQ(evaluate("(1, 2)[-1]"), "error: index -1 is outside a tuple of 2 values");
  EXPECT_EQ(evaluate("P.stage(0)"), "error: expected a pipeline before '.stage', got an integer");
  EXPECT_EQ(evaluate("p.stage(p)"), "error: expected an integer as a stage, got a pipeline");
  EXPECT_EQ(evaluate("p.stage(4)"), "error: stage 4 is outside 0 to 3 of pipeline 'p'");
  EXPECT_EQ(evaluate("p[0]"), "error: 'p[k]' is a chunk of a rank, and there is no rank here; use "
                              "'p.stage(s)'");
  EXPECT_EQ(evaluate("a", "let (a, b) = 1"),
            "error: expected a tuple for the names in brackets, got an integer");
  EXPECT_EQ(evaluate("a", "let (a, b) = (1, 2, 3)"), "error: expected a tuple of 2 values, got 3");
}

/// A faulty value says nothing more, however far it travels.
TEST(Expression, FaultsDoNotCascade) {
  Outcome run = compile("pipe 1\n"
                        "def f(x) = x + 1\n"
                        "schedule s(ranks P, microbatches M) {\n"
                        "  let bad = 1 / 0\n"
                        "  let (a, b) = (bad, f(bad))\n"
                        "  require a < 1 and not (b == 2) \"no\"\n"
                        "  pipeline p { stages max(a, 1); microbatches -b; place s -> s }\n"
                        "  rank r { repeat a { fwd p @ b } }\n"
                        "}\n",
                        sized(2, 2));
  EXPECT_EQ(run.findings, "main.pipe:4:15: error: '1 / 0' divides by zero\n");
}

} // namespace
