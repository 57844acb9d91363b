//===- RobustnessTest.cpp - no input crashes the front end -----------------===//
//
// Each text is compiled; whether it succeeds does not matter here, only that
// there is an answer, and that failure comes with a finding (which the harness
// checks).
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include <gtest/gtest.h>

#include <random>

using namespace dualpipe;
using namespace dualpipe::frontend;

namespace {

const char *const kExamples[] = {"dualpipe.pipe", "dualpipev.pipe", "1f1b.pipe"};

/// The examples without their leading comments, which only repeat one case.
Files loadExamples() {
  Files files;
  for (const char *name : kExamples) {
    std::string text = readFile(std::string(DUALPIPE_SOURCE_DIR) + "/examples/" + name);
    files[name] = text.substr(text.find("pipe 1\n"));
  }
  return files;
}

Outcome compileAs(Files files, const std::string &text) {
  files["main.pipe"] = text;
  Options options = sized(4, 8);
  // A mutation may ask for a lot of work; an answer is all that is wanted.
  options.limits.maxSteps = 20000;
  return compileFiles(files, options);
}

TEST(Robustness, TheExamplesCompile) {
  Files files = loadExamples();
  for (const char *name : kExamples)
    EXPECT_TRUE(compileAs(files, files[name]).ok) << name;
}

TEST(Robustness, EveryTruncationHasAnAnswer) {
  Files files = loadExamples();
  for (const char *name : kExamples) {
    const std::string text = files[name];
    for (size_t length = 0; length < text.size(); ++length) {
      Outcome run = compileAs(files, text.substr(0, length));
      // Only what stands after the last brace may be missing.
      bool complete = text.find_first_not_of(" \n", length) == std::string::npos;
      EXPECT_EQ(run.ok, complete) << name << " cut to " << length;
    }
  }
}

TEST(Robustness, EveryTokenMayBeMissingOrDoubled) {
  Files files = loadExamples();
  for (const char *name : kExamples) {
    const std::string text = files[name];
    for (size_t begin = 0; begin < text.size();) {
      size_t end = begin + 1;
      while (end < text.size() && isalnum(text[begin]) && isalnum(text[end]))
        ++end;
      std::string token = text.substr(begin, end - begin);
      compileAs(files, text.substr(0, begin) + text.substr(end));
      compileAs(files, text.substr(0, begin) + token + " " + text.substr(begin));
      begin = end;
    }
  }
}

TEST(Robustness, RandomMutations) {
  Files files = loadExamples();
  const std::string pieces[] = {"{",  "}",   "(",     ")",    "\"", "{r}",       "0",
                                "-1", "if ", "else ", ";",    "\n", "fwd",       "v[0]",
                                "@",  "..",  "as",    "\xFF", "/ ", "9999999999"};
  std::mt19937 random(20240611);
  for (const char *name : kExamples) {
    for (int i = 0; i < 1500; ++i) {
      std::string text = files[name];
      for (unsigned k = 0, n = 1 + random() % 4; k < n; ++k) {
        size_t at = random() % text.size();
        const std::string &piece = pieces[random() % std::size(pieces)];
        text.replace(at, random() % 6, piece);
      }
      compileAs(files, text);
    }
  }
}

} // namespace
