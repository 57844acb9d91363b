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

Verdict verifyResults(const SharedInfo &shared, const RankProgram &rank) {
  if (Verdict verdict = verifyValues(shared, rank))
    return verdict;
  return verifyGradients(shared, rank);
}

/// P1 to P3 and the channel ends of all ranks at hand, which stand in `ranks` afterwards.
static Verdict verifyRanks(const Program &program, std::vector<const RankProgram *> &ranks) {
  if (Verdict verdict = verifyShared(program.shared))
    return verdict;
  for (const RankProgram &rank : program.ranks) {
    if (!ranks.empty() && rank.rank <= ranks.back()->rank)
      return violation("P3", rank.rank, kNone, "the ranks are not in ascending order");
    if (Verdict verdict = verifyRank(program.shared, rank))
      return verdict;
    ranks.push_back(&rank);
  }
  return {};
}

/// What a rank computes is asked last: the answer holds where the checks before it do.
static Verdict verifyEach(const Program &program,
                          Verdict (*check)(const SharedInfo &, const RankProgram &)) {
  for (const RankProgram &rank : program.ranks)
    if (Verdict verdict = check(program.shared, rank))
      return verdict;
  return {};
}

Verdict verifyProgram(const Program &program) {
  std::vector<const RankProgram *> ranks;
  if (Verdict verdict = verifyRanks(program, ranks))
    return verdict;
  if (ranks.size() == program.shared.numRanks)
    if (Verdict verdict = verifyAcrossRanks(program.shared, ranks))
      return verdict;
  return verifyEach(program, verifyResults);
}

Verdict verifyWholeProgram(const Program &program, const WholeOptions &options) {
  std::vector<const RankProgram *> ranks;
  if (Verdict verdict = verifyRanks(program, ranks))
    return verdict;
  if (ranks.size() != program.shared.numRanks)
    return violation("D1", kNone, kNone,
                     fmt::format("the programs of {} of {} ranks, expected all: what holds between "
                                 "ranks needs both ends",
                                 ranks.size(), program.shared.numRanks));
  if (Verdict verdict = verifyMatching(program.shared, ranks))
    return verdict;
  if (Verdict verdict = options.numQueues ? verifyQueues(program.shared, ranks, *options.numQueues)
                                          : verifyProgress(program.shared, ranks))
    return verdict;
  for (const RankProgram &rank : program.ranks)
    if (Verdict verdict = verifyGroups(program.shared, rank, options.groupLimit))
      return verdict;
  if (Verdict verdict = verifyEach(program, verifyResults))
    return verdict;
  return verifyEach(program, verifyMemory);
}

} // namespace dualpipe::program
