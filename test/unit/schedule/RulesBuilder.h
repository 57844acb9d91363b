//===- RulesBuilder.h - rules for the tests of `greedy` ----------------------===//

#ifndef DUALPIPE_TEST_UNIT_SCHEDULE_RULESBUILDER_H
#define DUALPIPE_TEST_UNIT_SCHEDULE_RULESBUILDER_H

#include "dualpipe/Schedule/Greedy.h"
#include "test/support/OrderText.h"

#include <numeric>

namespace dualpipe::test {

/// Every chunk of a rank, by pipeline and stage.
inline std::vector<ChunkRef> chunksOf(const Schedule &schedule, uint32_t rank) {
  std::vector<ChunkRef> chunks;
  for (uint32_t p = 0; p != schedule.pipelines.size(); ++p)
    for (uint32_t s = 0; s != schedule.pipelines[p].numStages; ++s)
      if (schedule.pipelines[p].placement[s] == rank)
        chunks.push_back({p, schedule.pipelines[p].firstStage + s});
  return chunks;
}

/// Ranks in a line, without orders. Place 0 is the schedule, place 1 an op.
inline Schedule makeLine(uint32_t numRanks, uint32_t numMicrobatches) {
  std::vector<uint32_t> placement(numRanks);
  std::iota(placement.begin(), placement.end(), 0);
  Schedule schedule = makeSchedule({makePipeline("main", placement, 0, numMicrobatches)},
                                   std::vector<std::string>(numRanks));
  schedule.locations.push_back({0, 2, 3});
  return schedule;
}

/// Rules without limits: `kinds` of every chunk, the best first.
inline GreedyRules prefer(const Schedule &schedule, const std::vector<OpKind> &kinds) {
  GreedyRules rules;
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank) {
    RankRules &mine = rules.ranks.emplace_back();
    for (OpKind kind : kinds)
      mine.choices.push_back({{{kind, chunksOf(schedule, rank)}}, 1});
  }
  return rules;
}

template <typename Most>
void limit(const Schedule &schedule, GreedyRules &rules, OpKind from, OpKind to, Most most) {
  for (uint32_t rank = 0; rank != schedule.numRanks; ++rank)
    rules.ranks[rank].limits.push_back(
        {from, to, chunksOf(schedule, rank), int64_t(most(rank)), SourceLoc{0, 3, 5}});
}

/// The order of a rank: "0F0 (0F1;3B0) …".
inline std::string orderText(const Schedule &schedule, uint32_t rank) {
  const RankOrder &order = schedule.ranks[rank];
  std::string text;
  for (size_t begin = 0, end; begin != order.size(); begin = end) {
    end = order.groupEnd(begin);
    text += (begin == 0 ? "" : " ") + std::string(end - begin > 1 ? "(" : "");
    for (size_t op = begin; op != end; ++op)
      text += (op == begin ? "" : ";") + std::to_string(order.stage[op]) +
              getLetter(order.kind[op]) + std::to_string(order.microbatch[op]);
    text += end - begin > 1 ? ")" : "";
  }
  return text;
}

/// The finding as the driver would print it, notes indented.
inline std::string print(const DiagnosticSink &sink) {
  std::string text;
  auto at = [](SourceLoc loc) {
    return std::to_string(loc.line) + ":" + std::to_string(loc.column) + ": ";
  };
  for (const Diagnostic &diagnostic : sink.diagnostics()) {
    text += at(diagnostic.loc) + diagnostic.message + "\n";
    for (const Diagnostic::Note &note : diagnostic.notes)
      text += "  " + at(note.loc) + note.message + "\n";
  }
  return text;
}

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_UNIT_SCHEDULE_RULESBUILDER_H
