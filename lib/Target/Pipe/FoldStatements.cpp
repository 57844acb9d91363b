//===- FoldStatements.cpp - runs of equal structure as loops ------------------===//

#include "FoldStatements.h"

#include <algorithm>

using namespace dualpipe::pipe_text;

/// Longer bodies are not looked for: the search takes as many steps at each place.
static constexpr size_t kMaxBody = 16;

bool Statement::looksLike(const Statement &other) const {
  return phase == other.phase && actions.size() == other.actions.size() &&
         std::equal(actions.begin(), actions.end(), other.actions.begin(),
                    [](const Action &x, const Action &y) { return x.looksLike(y); });
}

/// Whether `next` follows `last` as `last` follows `first`: the same actions, the
/// micro-batch of each moved on by the same step.
static bool continues(const Statement &first, const Statement &last, const Statement &next) {
  if (!first.looksLike(last) || !last.looksLike(next))
    return false;
  auto getMicrobatch = [](const Statement &statement, size_t i) {
    return statement.actions[i].microbatch;
  };
  for (size_t i = 0; i != next.actions.size(); ++i)
    if (getMicrobatch(last, i) - getMicrobatch(first, i) !=
        getMicrobatch(next, i) - getMicrobatch(last, i))
      return false;
  return true;
}

/// How often the `length` statements at `begin` stand one after the other.
static size_t countRepetitions(const std::vector<Statement> &statements, size_t begin, size_t end,
                               size_t length) {
  size_t at = begin + length;
  for (; at < end; ++at) {
    bool isSecond = at - begin < 2 * length;
    if (isSecond ? !statements[at - length].looksLike(statements[at])
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
    size_t bestGain = 0;
    for (size_t length = 1; length <= std::min(kMaxBody, (end - begin) / 2); ++length) {
      size_t count = countRepetitions(statements, begin, end, length);
      size_t gain = count < 2 ? 0 : length * (count - 2);
      if (gain <= bestGain)
        continue;
      best = {begin, length, count};
      bestGain = gain;
    }
    folds.push_back(best);
    begin += best.length * best.count;
  }
  return folds;
}
