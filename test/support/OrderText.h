//===- OrderText.h - order tables from a line of text per rank --------------===//
//
// Tests state orders in the grammar of the published schedules, blanks between
// the cells: "0F0 0F1 (0F2;3B0) 3I1 3W1". The column of an op is its place in
// the line and its line the rank plus one, so locations can be checked.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_TEST_SUPPORT_ORDERTEXT_H
#define DUALPIPE_TEST_SUPPORT_ORDERTEXT_H

#include "dualpipe/Schedule/Schedule.h"

#include <string>
#include <vector>

namespace dualpipe::test {

/// A chain of stages over the ranks of `placement`, numbered from 0.
inline Pipeline makePipeline(std::string name, std::vector<uint32_t> placement,
                             uint32_t firstMicrobatch, uint32_t numMicrobatches) {
  Pipeline pipeline;
  pipeline.name = std::move(name);
  pipeline.numStages = uint32_t(placement.size());
  pipeline.firstMicrobatch = firstMicrobatch;
  pipeline.numMicrobatches = numMicrobatches;
  pipeline.placement = std::move(placement);
  return pipeline;
}

/// A schedule of the pipelines, with one line of text per rank. All pipelines
/// share their stages. Aborts the test on text that it cannot read.
inline Schedule makeSchedule(std::vector<Pipeline> pipelines,
                             const std::vector<std::string> &lines) {
  Schedule schedule;
  schedule.name = "test";
  schedule.numRanks = uint32_t(lines.size());
  schedule.files = {"test.csv"};
  schedule.locations = {SourceLoc{0, 1, 1}};
  schedule.loc = {0, 1, 1};
  for (const Pipeline &pipeline : pipelines) {
    schedule.numStages = std::max(schedule.numStages, pipeline.firstStage + pipeline.numStages);
    schedule.numMicrobatches += pipeline.numMicrobatches;
  }
  schedule.pipelines = std::move(pipelines);

  for (size_t rank = 0; rank != lines.size(); ++rank) {
    const std::string &text = lines[rank];
    RankOrder order;
    uint32_t group = RankOrder::kAlone, nextGroup = 0;
    for (size_t i = 0; i < text.size();) {
      if (text[i] == '(')
        group = nextGroup++;
      if (text[i] == ')')
        group = RankOrder::kAlone;
      if (!isdigit(text[i])) {
        ++i;
        continue;
      }
      size_t begin = i, used = 0;
      uint32_t stage = std::stoul(text.substr(i), &used);
      char letter = text[i += used];
      uint32_t mb = std::stoul(text.substr(++i), &used);
      i += used;
      OpKind kind = letter == 'F'   ? OpKind::Forward
                    : letter == 'B' ? OpKind::Backward
                    : letter == 'I' ? OpKind::BackwardInput
                                    : OpKind::BackwardWeight;
      schedule.locations.push_back({0, uint32_t(rank + 1), uint32_t(begin + 1)});
      order.push(kind, stage, mb, group, uint32_t(schedule.locations.size() - 1));
    }
    schedule.ranks.push_back(std::move(order));
  }
  return schedule;
}

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_SUPPORT_ORDERTEXT_H
