//===- MutationTest.cpp - no broken program passes the checks ---------------===//
//
// Every mutant is either reported by the checks on whole programs, with an
// invariant that its kind can break, or makes no difference: run in several random
// orders it neither hangs nor computes anything else than the program it was made
// from. DUALPIPE_MUTANTS=N takes N mutants of every kind instead of the default, and
// then leaves the table in the docs alone.
//
//===----------------------------------------------------------------------===//

#include "Tally.h"

#include "dualpipe/Program/Verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

using namespace dualpipe;
using namespace dualpipe::test;

namespace {

constexpr unsigned kMutantsOfKind = 50;

const std::vector<std::unique_ptr<Subject>> &getSubjects() {
  static const std::vector<std::unique_ptr<Subject>> subjects = [] {
    std::vector<std::unique_ptr<Subject>> made;
    for (const Source &source : getSources())
      made.push_back(std::make_unique<Subject>(source));
    return made;
  }();
  return subjects;
}

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
    SCOPED_TRACE(subject->source.describe());
    EXPECT_TRUE(toStatus(subject->program, verifyProgram(subject->program)).ok());
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
    const Tally tally = judge(mutation, getSubjects(), count, ++seed);
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
