//===- Plan.cpp - which communicators a program needs ------------------------------===//

#include "dualpipe/Runtime/Cuda/NcclTransport.h"

#include <numeric>

namespace dualpipe::runtime::cuda {

std::vector<CommunicatorPlan> planCommunicators(const program::SharedInfo &shared, bool fold) {
  std::vector<CommunicatorPlan> plan;
  if (fold && !shared.channels.empty()) {
    CommunicatorPlan &all = plan.emplace_back();
    all.ranks.resize(shared.numRanks);
    std::iota(all.ranks.begin(), all.ranks.end(), 0u);
  }
  for (uint32_t i = 0; i != shared.channels.size(); ++i) {
    const program::Channel &channel = shared.channels[i];
    if (fold)
      plan.front().channels.push_back(i);
    else
      plan.push_back({{channel.source, channel.destination}, {i}, {}});
  }
  for (uint32_t i = 0; i != shared.reduceGroups.size(); ++i)
    if (shared.reduceGroups[i].ranks.size() > 1)
      plan.push_back({shared.reduceGroups[i].ranks, {}, {i}});
  return plan;
}

Result<std::vector<UniqueId>> makeUniqueIds(const NcclApi &nccl, size_t count) {
  std::vector<UniqueId> ids(count);
  for (UniqueId &id : ids)
    if (Status status = check(nccl, nccl.getUniqueId(&id), "ncclGetUniqueId"); !status.ok())
      return status;
  return ids;
}

} // namespace dualpipe::runtime::cuda
