//===- Identity.cpp - whether two processes run the same program --------------------===//

#include "dualpipe/Runtime/Processes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dualpipe::runtime {

namespace {

/// Folds what it is given, with the sizes of what has a size, so that no two lists look alike.
class Digest {
public:
  template <typename... T> void add(const T &...values) { (addOne(uint64_t(values)), ...); }
  void add(const std::string &text) {
    add(text.size());
    digest = XXH3_64bits_withSeed(text.data(), text.size(), digest);
  }
  void add(const std::vector<uint32_t> &numbers) {
    add(numbers.size());
    digest = XXH3_64bits_withSeed(numbers.data(), numbers.size() * sizeof(uint32_t), digest);
  }
  uint64_t get() const { return digest; }

private:
  void addOne(uint64_t value) { digest = XXH3_64bits_withSeed(&value, sizeof value, digest); }

  uint64_t digest = 0;
};

} // namespace

/// Names of phases, files and locations are left out: a file of one rank has those of its own.
uint64_t digestShared(const program::SharedInfo &shared) {
  Digest digest;
  digest.add(shared.schedule);
  digest.add(shared.numRanks, shared.numStages, shared.numMicrobatches, shared.training);
  for (const program::PipelineInfo &pipeline : shared.pipelines) {
    digest.add(pipeline.name);
    digest.add(pipeline.firstStage, pipeline.firstMicrobatch, pipeline.numMicrobatches);
    digest.add(pipeline.placement);
  }
  for (const program::Channel &channel : shared.channels)
    digest.add(channel.source, channel.destination, uint32_t(channel.kind), channel.numTransfers,
               channel.digest);
  for (const program::ReduceGroup &group : shared.reduceGroups)
    digest.add(group.ranks);
  const program::Contract &contract = shared.contract;
  digest.add(contract.numComponents, contract.numSizeGroups, contract.backwardReads,
             contract.backwardInputReads, contract.backwardWeightReads);
  digest.add(std::vector<uint32_t>(contract.sizeGroup.begin(), contract.sizeGroup.end()));
  return digest.get();
}

std::map<uint32_t, uint64_t> digestReductions(const program::RankProgram &rank) {
  std::map<uint32_t, Digest> digests;
  for (const program::Command &command : rank.commands)
    if (command.op == program::CommandOp::Reduce) {
      const program::Reduction &reduction = rank.reductions[command.arg];
      digests[reduction.group].add(reduction.stage);
    }
  std::map<uint32_t, uint64_t> numbers;
  for (const auto &[group, digest] : digests)
    numbers[group] = digest.get();
  return numbers;
}

} // namespace dualpipe::runtime
