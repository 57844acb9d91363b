//===- CostsOfSchedule.cpp - what the ops of order tables cost --------------===//

#include "dualpipe/Schedule/Costs.h"
#include "dualpipe/Schedule/Schedule.h"

#include <fmt/format.h>

using namespace dualpipe;

Ticks Costs::getGroup(const RankOrder &order, size_t begin, size_t end) const {
  if (fused && end - begin > 1)
    return *fused;
  Ticks sum = 0;
  for (size_t op = begin; op != end; ++op)
    sum += get(order.kind[op], order.stage[op]);
  return sum;
}

Status Costs::checkRange(const Schedule &schedule) const {
  for (OpKind kind :
       {OpKind::Forward, OpKind::Backward, OpKind::BackwardInput, OpKind::BackwardWeight}) {
    const std::map<uint32_t, Ticks> &ofStage = of(kind).ofStage;
    if (!ofStage.empty() && ofStage.rbegin()->first >= schedule.numStages)
      return Status::failure(fmt::format("cost '{}[{}]' names no stage, expected one below {}",
                                         getKeyword(kind), ofStage.rbegin()->first,
                                         schedule.numStages));
  }
  return checkRange(schedule.getNumOps());
}
