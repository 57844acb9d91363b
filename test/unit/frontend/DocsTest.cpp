//===- DocsTest.cpp - the examples of the pages compile --------------------===//
//
// Every block of a page that is marked `pipe` is a whole file. A comment
// `// compiled for 4 ranks, 8 micro-batches` on its first line after the version
// gives the sizes; a comment `// error: text` the error that it must give.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "dualpipe/Schedule/Checker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

using namespace dualpipe;
using namespace dualpipe::frontend;

namespace {

struct Example {
  std::string text;
  size_t line;
};

std::vector<Example> extract(const std::string &page) {
  std::vector<Example> examples;
  const std::string open = "\n```pipe\n";
  for (size_t at = page.find(open); at != std::string::npos; at = page.find(open, at)) {
    at += open.size();
    size_t end = page.find("\n```", at);
    EXPECT_NE(end, std::string::npos) << "an example of the page is not closed";
    if (end == std::string::npos)
      break;
    examples.push_back({page.substr(at, end - at + 1),
                        size_t(1 + std::count(page.begin(), page.begin() + at, '\n'))});
  }
  return examples;
}

Options getSizes(const std::string &text) {
  uint32_t ranks = 4, microbatches = 8;
  size_t at = text.find("// compiled for ");
  if (at != std::string::npos) {
    EXPECT_EQ(std::sscanf(text.c_str() + at, "// compiled for %u ranks, %u micro-batches", &ranks,
                          &microbatches),
              2);
  }
  return sized(ranks, microbatches);
}

/// What is found in the order as a whole goes to the findings of the front end.
void check(Outcome &run) {
  if (!run.ok)
    return;
  DiagnosticSink sink;
  checkSchedule(run.schedule, sink);
  for (const Diagnostic &finding : sink.diagnostics())
    run.findings += "main.pipe: error: " + finding.message + "\n";
  run.ok = !sink.hasErrors();
  run.numErrors = sink.numErrors();
}

/// Compiles every example of a page of the project.
void expectExamplesToCompile(const std::string &page, size_t least) {
  const std::string root = std::string(DUALPIPE_SOURCE_DIR) + "/";
  const std::string examples = root + "examples/";
  std::vector<Example> found = extract(readFile(root + page));
  EXPECT_GE(found.size(), least);
  for (const Example &example : found) {
    SCOPED_TRACE(page + ", line " + std::to_string(example.line));
    Outcome run = compileFiles(
        {{"main.pipe", example.text}, {"dualpipe.pipe", readFile(examples + "dualpipe.pipe")}},
        getSizes(example.text));
    check(run);
    size_t error = example.text.find("// error: ");
    if (error == std::string::npos) {
      EXPECT_TRUE(run.ok) << run.findings;
      continue;
    }
    std::string message = example.text.substr(error + 3);
    message = message.substr(0, message.find('\n'));
    EXPECT_NE(run.findings.find(message), std::string::npos) << run.findings;
    EXPECT_EQ(run.numErrors, 1u) << run.findings;
  }
}

TEST(Docs, EveryExampleCompiles) { expectExamplesToCompile("docs/language.md", 10); }

TEST(Docs, TheExampleOfTheToolsCompiles) { expectExamplesToCompile("docs/tools.md", 1); }

TEST(Docs, TheExamplesOfTheRulesCompile) { expectExamplesToCompile("docs/rules.md", 2); }

TEST(Docs, TheExampleOfTheReadmeCompiles) { expectExamplesToCompile("README.md", 1); }

} // namespace
