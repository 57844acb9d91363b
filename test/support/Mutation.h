//===- Mutation.h - correct programs, broken in many ways -------------------===//
//
// The checks of Verify.h are tested with programs that somebody broke on purpose:
// each kind of mutation makes one small change to a compiled program, the same for
// the same seed. Some changes make no difference; most make a program that hangs,
// computes something else, or is no program at all.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_TEST_SUPPORT_MUTATION_H
#define DUALPIPE_TEST_SUPPORT_MUTATION_H

#include "dualpipe/Program/Program.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dualpipe::test {

class Mutator;

/// A kind of mutation.
struct Mutation {
  const char *name; ///< "drop-wait"
  const char *what; ///< one line for the table
  /// The invariants that may report it, separated by blanks. None: it makes no difference.
  const char *invariants;
  /// Changes the program; false where it has nothing to change.
  bool (*apply)(Mutator &mutator);

  bool mayBeReportedBy(const std::string &invariant) const;
};

/// All kinds, in the order of the table.
const std::vector<Mutation> &getMutations();

/// The kinds by what they change, as one list each.
std::vector<Mutation> listCommandMutations();
std::vector<Mutation> listOrderMutations();
std::vector<Mutation> listFieldMutations();
std::vector<Mutation> listTableMutations();
std::vector<Mutation> listNameMutations();

struct Mutant {
  program::Program program;
  std::string description; ///< what was changed, where
};

/// Breaks a copy of a program, of which all ranks must be there. Nothing where the program has
/// nothing that the kind could change.
std::optional<Mutant> makeMutant(const program::Program &original, const Mutation &mutation,
                                 uint64_t seed);

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_SUPPORT_MUTATION_H
