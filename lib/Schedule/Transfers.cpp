//===- Transfers.cpp - transfers that a schedule places itself --------------===//

#include "dualpipe/Schedule/Transfers.h"

using namespace dualpipe;

TransferOps dualpipe::findOps(const OpIndex &index, const RankOrder::Transfer &end) {
  Product product = end.isGrad ? Product::InputGrad : Product::Output;
  const OpRef *here = index.find(product, end.stage, end.microbatch);
  if (!here || !here->isValid())
    return {};
  if (end.isSend)
    return {*here, index.getConsumer(here->rank, here->op)};
  return {index.getProducer(here->rank, here->op), *here};
}

TransferIndex::TransferIndex(const Schedule &schedule) {
  for (const RankOrder &order : schedule.ranks)
    sends.emplace_back(order.size(), kNowhere);
  recvs = sends;
}
