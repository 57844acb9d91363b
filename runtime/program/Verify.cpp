//===- Verify.cpp - which checks run, in which order ------------------------===//

#include "Facts.h"

#include <fmt/format.h>

namespace dualpipe::program {

Verdict verifyRank(const SharedInfo &shared, const RankProgram &rank) {
  for (auto *check : {verifyRanges, verifyEvents, verifySlots, verifyChannelEnds})
    if (Verdict verdict = check(shared, rank))
      return verdict;
  return {};
}

Verdict verifyAcrossRanks(const SharedInfo &shared, const std::vector<const RankProgram *> &ranks) {
  if (Verdict verdict = verifyMatching(shared, ranks))
    return verdict;
  return verifyProgress(shared, ranks);
}

Verdict verifyProgram(const Program &program) {
  if (Verdict verdict = verifyShared(program.shared))
    return verdict;
  std::vector<const RankProgram *> ranks;
  for (const RankProgram &rank : program.ranks) {
    if (!ranks.empty() && rank.rank <= ranks.back()->rank)
      return violation("P3", rank.rank, kNone, "the ranks are not in ascending order");
    if (Verdict verdict = verifyRank(program.shared, rank))
      return verdict;
    ranks.push_back(&rank);
  }
  if (ranks.size() == program.shared.numRanks)
    return verifyAcrossRanks(program.shared, ranks);
  return {};
}

} // namespace dualpipe::program
