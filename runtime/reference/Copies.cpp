//===- Copies.cpp - what a training needs: copies of stages, room for losses -===//

#include "runtime/reference/Copies.h"

#include "dualpipe/Runtime/RankMemory.h"
#include "dualpipe/Runtime/Reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace dualpipe::runtime {

Result<std::vector<double>> createLosses(uint32_t numSteps, uint32_t numMicrobatches) {
  const uint64_t count = uint64_t(numSteps) * numMicrobatches;
  if (count > kMaxLosses)
    return Status::failure(
        fmt::format("{} steps of {} micro-batches have {} losses, expected at most {}; run fewer "
                    "steps",
                    numSteps, numMicrobatches, count, kMaxLosses));
  try {
    return std::vector<double>(count, 0.0);
  } catch (const std::bad_alloc &) {
    return Status::failure(fmt::format("not enough memory for {} losses", count));
  }
}

Result<std::vector<StageCopy>> createCopies(const Model &model, const Optimizer &optimizer,
                                            const program::SharedInfo &shared, uint64_t seed,
                                            std::optional<uint32_t> onlyRank) {
  std::vector<StageCopy> copies;
  for (auto [rank, stage] : listCopies(shared)) {
    if (onlyRank && rank != *onlyRank)
      continue;
    Result<StageCopy> copy =
        StageCopy::create(model, rank, stage, shared.training, optimizer.getStateFactor());
    if (!copy)
      return copy.getStatus();
    if (model.getDevice() == kDLCPU)
      if (Status status = copy->initialize(model, seed); !status)
        return status;
    copies.push_back(std::move(*copy));
  }
  return copies;
}

uint32_t findCopy(const std::vector<StageCopy> &copies, uint32_t rank, uint32_t stage) {
  auto key = std::make_pair(rank, stage);
  auto found = std::lower_bound(copies.begin(), copies.end(), key,
                                [](const StageCopy &copy, const auto &wanted) {
                                  return std::make_pair(copy.getRank(), copy.getStage()) < wanted;
                                });
  if (found == copies.end() || found->getRank() != rank || found->getStage() != stage)
    return program::kNone;
  return uint32_t(found - copies.begin());
}

} // namespace dualpipe::runtime
