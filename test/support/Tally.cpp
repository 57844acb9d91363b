//===- Tally.cpp - mutants by kind and verdict ------------------------------===//

#include "Tally.h"

#include <algorithm>

namespace dualpipe::test {

using namespace program;

/// In how many random orders a mutant runs that the checks let pass, and one that they report.
static constexpr unsigned kRunsOfPassed = 12, kRunsOfReported = 6;

void Tally::add(const Tally &other) {
  numMutants += other.numMutants;
  for (size_t i = 0; i != reported.size(); ++i)
    reported[i] += other.reported[i];
  numEquivalent += other.numEquivalent;
  numHoles += other.numHoles;
  numConfirmed += other.numConfirmed;
  numHarmless += other.numHarmless;
  findings.insert(findings.end(), other.findings.begin(), other.findings.end());
}

std::string getTableHead() {
  std::string head = "| kind | what is changed | mutants |", line = "|---|---|--:|";
  for (const char *invariant : kInvariants) {
    head += std::string(" ") + invariant + " |";
    line += "--:|";
  }
  return head + " no difference | holes | fails when run | runs well |\n" + line +
         "--:|--:|--:|--:|\n";
}

static std::string getCell(unsigned count) {
  return " " + (count == 0 ? std::string() : std::to_string(count)) + " |";
}

std::string Tally::getRow(const std::string &name, const std::string &what) const {
  std::string row = "| " + name + " | " + what + " |" + getCell(numMutants);
  for (unsigned count : reported)
    row += getCell(count);
  return row + getCell(numEquivalent) + getCell(numHoles) + getCell(numConfirmed) +
         getCell(numHarmless) + "\n";
}

/// Whether it can be run without reading beside its tables.
static bool isRunnable(const Program &program) {
  if (verifyShared(program.shared))
    return false;
  return std::none_of(program.ranks.begin(), program.ranks.end(),
                      [&](const RankProgram &rank) { return verifyRanges(program.shared, rank); });
}

/// What goes wrong in up to `count` random orders; empty where nothing does.
static std::string findFailure(const Subject &subject, const Program &program, unsigned count) {
  for (uint64_t seed = 0; seed != count; ++seed)
    if (std::string failure = subject.run(program, seed); !failure.empty())
      return failure + " (shuffle seed " + std::to_string(seed) + ")";
  return "";
}

static void judgeReported(const Mutation &mutation, const Subject &subject, const Mutant &mutant,
                          const Verdict &verdict, Tally &tally) {
  const auto known = std::find(kInvariants.begin(), kInvariants.end(), std::string(verdict->id));
  if (known != kInvariants.end())
    ++tally.reported[size_t(known - kInvariants.begin())];
  if (!mutation.mayBeReportedBy(verdict->id))
    tally.findings.push_back(std::string(mutation.name) + " in " + subject.name + ": " +
                             mutant.description + ": reported, but not by [" + mutation.invariants +
                             "]: " + toStatus(mutant.program, verdict).message());
  if (isRunnable(mutant.program))
    ++(findFailure(subject, mutant.program, kRunsOfReported).empty() ? tally.numHarmless
                                                                     : tally.numConfirmed);
}

static void judgeOne(const Mutation &mutation, const Subject &subject, const Mutant &mutant,
                     Check check, Tally &tally) {
  ++tally.numMutants;
  if (const Verdict verdict = check(mutant.program))
    return judgeReported(mutation, subject, mutant, verdict, tally);
  const std::string failure = findFailure(subject, mutant.program, kRunsOfPassed);
  if (failure.empty()) {
    ++tally.numEquivalent;
    return;
  }
  ++tally.numHoles;
  tally.findings.push_back(std::string(mutation.name) + " in " + subject.name + ": " +
                           mutant.description + ": passes all checks, but: " + failure);
}

Tally judge(const Mutation &mutation, const Subjects &subjects, Check check, unsigned count,
            uint64_t seed) {
  Tally tally;
  size_t next = seed % subjects.size();
  for (size_t tried = 0; tally.numMutants != count && tried != size_t(count) * subjects.size();
       ++tried) {
    const Subject &subject = *subjects[next++ % subjects.size()];
    if (const auto mutant = makeMutant(subject.program, mutation, seed * 1000 + tried))
      judgeOne(mutation, subject, *mutant, check, tally);
  }
  return tally;
}

} // namespace dualpipe::test
