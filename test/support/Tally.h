//===- Tally.h - mutants by kind and verdict --------------------------------===//

#ifndef DUALPIPE_TEST_SUPPORT_TALLY_H
#define DUALPIPE_TEST_SUPPORT_TALLY_H

#include "Mutation.h"
#include "Subject.h"

#include "dualpipe/Program/Verify.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace dualpipe::test {

/// The invariants of programs, in the order of the columns.
inline constexpr std::array<const char *, 9> kInvariants = {"P3", "P1", "P2", "D1", "D2",
                                                            "D3", "D5", "D4", "P4"};

/// Mutants of one kind.
struct Tally {
  unsigned numMutants = 0;
  std::array<unsigned, kInvariants.size()> reported = {}; ///< by invariant
  unsigned numEquivalent = 0; ///< passed all checks and made no difference in any run
  unsigned numHoles = 0;      ///< passed all checks, and hung or differed
  unsigned numConfirmed = 0;  ///< reported, and hung or differed when run all the same
  unsigned numHarmless = 0;   ///< reported, and made no difference in the runs
  /// Findings that fail the test: holes, and mutants reported with an invariant that the kind does
  /// not name.
  std::vector<std::string> findings;

  void add(const Tally &other);
  /// "| drop-wait | a wait is missing | 31 | ... |".
  std::string getRow(const std::string &name, const std::string &what) const;
};

/// The first two lines of the table.
std::string getTableHead();

/// The check that is tested: verifyProgram or verifyWholeProgram.
using Check = program::Verdict (*)(const program::Program &);
using Subjects = std::vector<std::unique_ptr<Subject>>;

/// Judges up to `count` mutants of a kind, spread over the subjects; fewer where the kind finds
/// little to change.
Tally judge(const Mutation &mutation, const Subjects &subjects, Check check, unsigned count,
            uint64_t seed);

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_SUPPORT_TALLY_H
