//===- OpIndex.cpp - where the op of a stage and micro-batch stands ---------===//

#include "dualpipe/Schedule/OpIndex.h"

using namespace dualpipe;

OpIndex::OpIndex(const Schedule &schedule) : schedule(schedule) {
  size_t size = 0;
  for (const Pipeline &pipeline : schedule.pipelines) {
    base.push_back(size);
    size += size_t(pipeline.numStages) * pipeline.numMicrobatches;
  }
  for (std::vector<OpRef> &table : places)
    table.resize(size);
}

OpRef *OpIndex::find(Product product, uint32_t stage, uint32_t microbatch) {
  size_t p = schedule.findPipeline(microbatch);
  if (p == schedule.pipelines.size() || !schedule.pipelines[p].holdsStage(stage))
    return nullptr;
  const Pipeline &pipeline = schedule.pipelines[p];
  size_t row = size_t(stage - pipeline.firstStage) * pipeline.numMicrobatches;
  return &places[size_t(product)][base[p] + row + (microbatch - pipeline.firstMicrobatch)];
}

OpRef OpIndex::getNeighbour(Product product, uint32_t stage, uint32_t mb, int step) const {
  const Pipeline &pipeline = schedule.pipelines[schedule.findPipeline(mb)];
  if (stage == (step < 0 ? pipeline.firstStage : pipeline.getLastStage()))
    return OpRef();
  return *find(product, stage + step, mb);
}

OpRef OpIndex::getProducer(uint32_t rank, size_t op) const {
  const RankOrder &order = schedule.ranks[rank];
  switch (order.kind[op]) {
  case OpKind::Forward:
    return getNeighbour(Product::Output, order.stage[op], order.microbatch[op], -1);
  case OpKind::Backward:
  case OpKind::BackwardInput:
    return getNeighbour(Product::InputGrad, order.stage[op], order.microbatch[op], +1);
  case OpKind::BackwardWeight:
    return OpRef();
  }
  return OpRef();
}

OpRef OpIndex::getConsumer(uint32_t rank, size_t op) const {
  const RankOrder &order = schedule.ranks[rank];
  switch (order.kind[op]) {
  case OpKind::Forward:
    return getNeighbour(Product::Output, order.stage[op], order.microbatch[op], +1);
  case OpKind::Backward:
  case OpKind::BackwardInput:
    return getNeighbour(Product::InputGrad, order.stage[op], order.microbatch[op], -1);
  case OpKind::BackwardWeight:
    return OpRef();
  }
  return OpRef();
}
