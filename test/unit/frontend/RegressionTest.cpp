//===- RegressionTest.cpp - truncated files, and what fuzzing has found ----===//
//
// Only that there is an answer counts, and that failure comes with a finding
// (which the harness checks).
//
//===----------------------------------------------------------------------===//

#include "Examples.h"
#include "Harness.h"
#include "dualpipe/Frontend/Format.h"

#include <gtest/gtest.h>

using namespace dualpipe;
using namespace dualpipe::frontend;

namespace {

Outcome compileAs(Files &files, const std::string &text) {
  files["main.pipe"] = text;
  Options options = sized(2, 4);
  options.limits.maxSteps = 20000;
  return compileFiles(files, options);
}

/// A text has a layout or findings, and a layout is its own layout.
void layOut(const std::string &text) {
  DiagnosticSink sink;
  llvm::FailureOr<std::string> once = formatText(text, sink);
  EXPECT_EQ(llvm::succeeded(once), !sink.hasErrors());
  if (llvm::failed(once))
    return;
  llvm::FailureOr<std::string> twice = formatText(*once, sink);
  EXPECT_EQ(llvm::succeeded(twice) ? *twice : "", *once);
}

TEST(Regression, EveryTruncationOfEveryExampleHasAnAnswer) {
  Files files = readExamples();
  for (const auto &[name, text] : readExamples()) {
    // Inside of the comment in front, all lengths are one case.
    size_t begin = text.find("\npipe 1\n");
    ASSERT_NE(begin, text.npos) << name;
    for (size_t length = begin; length < text.size(); ++length) {
      SCOPED_TRACE(name + " up to byte " + std::to_string(length));
      Outcome outcome = compileAs(files, text.substr(0, length));
      EXPECT_EQ(outcome.ok, outcome.numErrors == 0) << outcome.findings;
      layOut(text.substr(0, length));
    }
  }
}

/// Every file here has crashed, hung or tripped a sanitizer once.
TEST(Regression, WhatFuzzingFoundHasAnAnswer) {
  Files files = readExamples();
  for (const auto &[name, text] : readPipeFiles("test/Frontend/fuzz-regressions")) {
    SCOPED_TRACE(name);
    compileAs(files, text);
    layOut(text);
  }
}

} // namespace
