//===- Mutation.cpp - correct programs, broken in many ways -----------------===//

#include "Mutation.h"
#include "Mutator.h"

#include <sstream>

namespace dualpipe::test {

bool Mutation::mayBeReportedBy(const std::string &invariant) const {
  std::istringstream names(invariants);
  for (std::string name; names >> name;)
    if (name == invariant)
      return true;
  return false;
}

const std::vector<Mutation> &getMutations() {
  static const std::vector<Mutation> mutations = [] {
    std::vector<Mutation> all;
    for (auto *list : {listCommandMutations, listOrderMutations, listFieldMutations,
                       listTableMutations, listNameMutations})
      for (const Mutation &mutation : list())
        all.push_back(mutation);
    return all;
  }();
  return mutations;
}

std::optional<Mutant> makeMutant(const program::Program &original, const Mutation &mutation,
                                 uint64_t seed) {
  Mutator mutator(original, seed);
  if (!mutation.apply(mutator))
    return std::nullopt;
  return Mutant{std::move(mutator.program), std::move(mutator.description)};
}

} // namespace dualpipe::test
