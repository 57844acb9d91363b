//===- Suggest.h - "did you mean" ------------------------------------------===//

#ifndef DUALPIPE_LIB_FRONTEND_SUGGEST_H
#define DUALPIPE_LIB_FRONTEND_SUGGEST_H

#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <string>

namespace dualpipe::frontend {

/// Finds the candidate nearest in spelling to a name that is not known. Ties go
/// to the first in the alphabet, so the order of the offers does not matter.
class Suggestion {
public:
  explicit Suggestion(llvm::StringRef wanted)
      : wanted(wanted), distance(std::max<size_t>(1, wanted.size() / 3) + 1) {}

  void offer(llvm::StringRef candidate) {
    // A one-letter name is near to every other: only case tells.
    if (wanted.size() < 2 || candidate.size() < 2) {
      if (wanted.equals_insensitive(candidate))
        take(candidate, 1);
      return;
    }
    // The commonest slip, which an edit distance counts twice.
    if (isSwapped(candidate))
      return take(candidate, 1);
    if (wanted.size() > candidate.size() + distance || candidate.size() > wanted.size() + distance)
      return;
    take(candidate, wanted.edit_distance(candidate, /*AllowReplacements=*/true, distance));
  }

  /// The nearest candidate, or an empty string where none is near.
  llvm::StringRef get() const { return best; }
  /// `; did you mean 'x'?`, or an empty string.
  std::string getHint() const {
    return best.empty() ? std::string() : "; did you mean '" + best.str() + "'?";
  }

private:
  /// Whether two neighbouring letters have changed places.
  bool isSwapped(llvm::StringRef candidate) const {
    if (wanted.size() != candidate.size())
      return false;
    size_t i = 0;
    while (i != wanted.size() && wanted[i] == candidate[i])
      ++i;
    return i + 1 < wanted.size() && wanted[i] == candidate[i + 1] &&
           wanted[i + 1] == candidate[i] && wanted.substr(i + 2) == candidate.substr(i + 2);
  }

  void take(llvm::StringRef candidate, size_t d) {
    if (d < distance || (d == distance && !best.empty() && candidate < best)) {
      distance = d;
      best = candidate;
    }
  }

  llvm::StringRef wanted;
  llvm::StringRef best;
  size_t distance;
};

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_SUGGEST_H
