//===- FoldStatements.cpp - runs of equal structure as loops ------------------===//

#include "FoldStatements.h"

#include <algorithm>

using namespace dualpipe::pipe_text;

/// Longer bodies are not looked for: the search takes as many steps at each place.
static constexpr size_t kMaxBody = 16;

/// Whether `next` follows `last` as `last` follows `first`: the same actions, the
/// micro-batch of each moved on by the same step.
static bool continues(const Statement &first, const Statement &last, const Statement &next) {
  if (first.size() != last.size() || last.size() != next.size())
    return false;
  for (size_t i = 0; i != next.size(); ++i)
    if (!first[i].looksLike(last[i]) || !last[i].looksLike(next[i]) ||
        last[i].microbatch - first[i].microbatch != next[i].microbatch - last[i].microbatch)
      return false;
  return true;
}

static bool looksLike(const Statement &a, const Statement &b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [](const Action &x, const Action &y) { return x.looksLike(y); });
}

/// How often the `length` statements at `begin` stand one after the other.
static size_t countRepetitions(const std::vector<Statement> &statements, size_t begin, size_t end,
                               size_t length) {
  size_t at = begin + length;
  for (; at < end; ++at) {
    bool isSecond = at - begin < 2 * length;
    if (isSecond ? !looksLike(statements[at - length], statements[at])
                 : !continues(statements[at - 2 * length], statements[at - length], statements[at]))
      break;
  }
  return (at - begin) / length;
}

std::vector<Fold> dualpipe::pipe_text::foldStatements(const std::vector<Statement> &statements,
                                                      size_t begin, size_t end) {
  std::vector<Fold> folds;
  while (begin != end) {
    // Long bodies are hard to read: one that is repeated twice gains nothing, and every
    // further repetition its length. Of equals the shortest.
    Fold best{begin, 1, 1};
    auto getGain = [](size_t length, size_t count) {
      return int64_t(length) * (int64_t(count) - 2);
    };
    for (size_t length = 1; length <= std::min(kMaxBody, (end - begin) / 2); ++length) {
      size_t count = countRepetitions(statements, begin, end, length);
      if (getGain(length, count) > getGain(best.length, best.count))
        best = {begin, length, count};
    }
    folds.push_back(best);
    begin += best.length * best.count;
  }
  return folds;
}
