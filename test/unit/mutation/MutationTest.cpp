//===- MutationTest.cpp - no broken program passes the checks ---------------===//
//
// Every mutant is either reported by the checks on whole programs, with an
// invariant that its kind can break, or makes no difference: run in several random
// orders it neither hangs nor computes anything else than the program it was made
// from. DUALPIPE_MUTANTS=N takes N mutants of every kind instead of the default, and
// then leaves the table in the docs alone.
//
//===----------------------------------------------------------------------===//

#include "test/support/CompileExample.h"
#include "test/support/Tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

using namespace dualpipe;
using namespace dualpipe::program;
using namespace dualpipe::test;

namespace {

constexpr unsigned kMutantsOfKind = 50;

/// Where a program comes from.
struct Source {
  const char *example;
  uint32_t ranks, microbatches;
  bool forwardOnly = false;

  /// "dualpipe, 4 ranks, 8 micro-batches".
  std::string describe() const {
    return std::string(example) + ", " + std::to_string(ranks) + " ranks, " +
           std::to_string(microbatches) + " micro-batches" + (forwardOnly ? ", forward only" : "");
  }
};

constexpr Source kSources[] = {{"1f1b", 2, 4},
                               {"1f1b", 4, 6},
                               {"1f1b-rules", 3, 5},
                               {"chimera", 2, 4},
                               {"chimera", 4, 6},
                               {"dualpipe", 2, 4},
                               {"dualpipe", 4, 8},
                               {"dualpipe", 6, 12},
                               {"dualpipev", 2, 4},
                               {"dualpipev", 3, 6},
                               {"eager-1f1b", 3, 6},
                               {"gpipe", 3, 4},
                               {"hanayo", 3, 4},
                               {"interleaved", 2, 4},
                               {"interleaved", 3, 6},
                               {"looped-bfs", 3, 4},
                               {"seq1f1b", 3, 4},
                               {"v-half", 3, 5},
                               {"v-min", 3, 5},
                               {"zb-h1", 3, 5},
                               {"zb-h1-rules", 4, 5},
                               {"zb-h2", 3, 6},
                               {"zbv", 3, 6},
                               {"dualpipe", 4, 8, true},
                               {"interleaved", 2, 4, true}};

const Subjects &getSubjects() {
  static const Subjects subjects = [] {
    Subjects made;
    for (const Source &source : kSources) {
      CompiledExample compiled(source.example, source.ranks, source.microbatches, {},
                               source.forwardOnly);
      made.push_back(std::make_unique<Subject>(source.describe(), std::move(compiled.program)));
    }
    return made;
  }();
  return subjects;
}

Verdict check(const program::Program &program) { return verifyWholeProgram(program); }

std::optional<unsigned> getAskedMutants() {
  const char *text = std::getenv("DUALPIPE_MUTANTS");
  return text ? std::optional(unsigned(std::strtoul(text, nullptr, 10))) : std::nullopt;
}

/// What stands between the two marks in the page, line by line.
std::string readTable() {
  std::ifstream file(DUALPIPE_SOURCE_DIR "/docs/mutation.md");
  std::string table;
  bool isInside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("| kind |", 0) == 0)
      isInside = true;
    if (isInside && line.empty())
      break;
    if (isInside)
      table += line + "\n";
  }
  return table;
}

TEST(Mutation, CorrectProgramsRunInAnyOrder) {
  for (const auto &subject : getSubjects()) {
    SCOPED_TRACE(subject->name);
    EXPECT_TRUE(toStatus(subject->program, check(subject->program)).ok());
    for (uint64_t seed = 0; seed != 24; ++seed)
      EXPECT_EQ(subject->run(subject->program, seed), "") << "shuffle seed " << seed;
  }
}

TEST(Mutation, SameSeedSameMutant) {
  const Subject &subject = *getSubjects().front();
  for (const Mutation &mutation : getMutations()) {
    const auto one = makeMutant(subject.program, mutation, 5);
    const auto two = makeMutant(subject.program, mutation, 5);
    ASSERT_EQ(one.has_value(), two.has_value());
    if (one) {
      EXPECT_EQ(one->description, two->description);
    }
  }
}

TEST(Mutation, KindsHaveDifferentNames) {
  std::set<std::string> names;
  for (const Mutation &mutation : getMutations())
    EXPECT_TRUE(names.insert(mutation.name).second) << mutation.name;
}

TEST(Mutation, MutantsAreReportedOrMakeNoDifference) {
  const unsigned count = getAskedMutants().value_or(kMutantsOfKind);
  std::string table = getTableHead();
  Tally sum;
  uint64_t seed = 0;
  for (const Mutation &mutation : getMutations()) {
    const Tally tally = judge(mutation, getSubjects(), check, count, ++seed);
    EXPECT_EQ(tally.numMutants, count) << mutation.name << " finds nothing to change";
    table += tally.getRow("`" + std::string(mutation.name) + "`", mutation.what);
    sum.add(tally);
  }
  table += sum.getRow("all", "");
  std::cout << table;
  for (const std::string &finding : sum.findings)
    ADD_FAILURE() << finding;
  if (!getAskedMutants()) {
    EXPECT_EQ(readTable(), table) << "docs/mutation.md is out of date; expected the table above";
  }
}

} // namespace
