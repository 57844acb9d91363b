//===- RankMemory.cpp - the memory that a program takes with a model --------===//

#include "dualpipe/Runtime/RankMemory.h"

#include <fmt/format.h>

#include <algorithm>

namespace dualpipe::runtime {

using program::Command;
using program::CommandOp;
using program::RankProgram;
using program::SharedInfo;
using program::SlotClass;

std::vector<std::pair<uint32_t, uint32_t>> listCopies(const SharedInfo &shared) {
  std::vector<std::pair<uint32_t, uint32_t>> copies;
  for (const program::PipelineInfo &pipeline : shared.pipelines)
    for (uint32_t i = 0; i < pipeline.numStages; ++i)
      copies.emplace_back(pipeline.placement[i], pipeline.firstStage + i);
  std::sort(copies.begin(), copies.end());
  copies.erase(std::unique(copies.begin(), copies.end()), copies.end());
  return copies;
}

/// Adds `count` times `bytes`. False where that is more than memory can be.
static bool addBytes(uint64_t &sum, uint64_t count, uint64_t bytes) {
  uint64_t product = 0;
  return !__builtin_mul_overflow(count, bytes, &product) &&
         !__builtin_add_overflow(sum, product, &sum);
}

/// How many calls of stage functions stand side by side.
static uint64_t countCalls(const RankProgram &rank, const ModelSizes &sizes) {
  uint64_t calls = 1;
  if (sizes.fused)
    for (const Command &command : rank.commands)
      if (command.op == CommandOp::Pair)
        calls = std::max<uint64_t>(calls, command.arg);
  return calls;
}

/// Nothing that measureSlots adds up may overflow.
static bool fitsMemory(const RankProgram &rank, const SharedInfo &shared, const ModelSizes &sizes) {
  uint64_t sum = 0;
  for (const SlotClass &entry : rank.slotClasses)
    if (!addBytes(sum, entry.count,
                  sizes.getSlotBytes(shared.contract, entry.kind, entry.sizeGroup)))
      return false;
  return addBytes(sum, countCalls(rank, sizes), sizes.getWorkspace());
}

static void addCopy(const StageSizes &stage, bool training, RankMemory &memory) {
  memory.weights += stage.weights;
  if (!training)
    return;
  memory.gradients += stage.gradients;
  memory.optimizerState += stage.optimizerState;
}

static RankMemory measureRank(const RankProgram &rank, const SharedInfo &shared,
                              const ModelSizes &sizes) {
  RankMemory memory;
  memory.rank = rank.rank;
  memory.workspace = countCalls(rank, sizes) * sizes.getWorkspace();
  memory.slots =
      program::measureSlots(rank, shared, [&](program::SlotKind kind, uint32_t sizeGroup) {
        return sizes.getSlotBytes(shared.contract, kind, sizeGroup);
      });
  return memory;
}

Result<std::vector<RankMemory>> measureMemory(const program::Program &program,
                                              const ModelSizes &sizes) {
  const SharedInfo &shared = program.shared;
  if (sizes.stages.size() != shared.numStages)
    return Status::failure(fmt::format("the sizes are those of a model with {} stages, the program "
                                       "has {}; cut the model into as many",
                                       sizes.stages.size(), shared.numStages));
  std::vector<RankMemory> memory;
  for (const RankProgram &rank : program.ranks) {
    if (!fitsMemory(rank, shared, sizes))
      return Status::failure(
          fmt::format("rank {} needs more than memory can be: its slots and workspaces have more "
                      "than {} bytes",
                      rank.rank, UINT64_MAX));
    memory.push_back(measureRank(rank, shared, sizes));
  }
  for (const auto &[rank, stage] : listCopies(shared)) {
    const auto found = std::lower_bound(
        memory.begin(), memory.end(), rank,
        [](const RankMemory &entry, uint32_t wanted) { return entry.rank < wanted; });
    if (found != memory.end() && found->rank == rank)
      addCopy(sizes.stages[stage], shared.training, *found);
  }
  return memory;
}

} // namespace dualpipe::runtime
