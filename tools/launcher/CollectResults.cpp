//===- CollectResults.cpp - what ranks in other processes have to show ---------===//

#include "Together.h"

#include "dualpipe/Runtime/RankMemory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace dualpipe::launcher {

using runtime::Bytes;
using runtime::Processes;

namespace {

/// What rank 0 asks for.
enum class Item : uint64_t { CpuSeconds, Digest, Copy };

/// A copy is named by its place among those of its rank.
uint64_t makeItem(Item item, size_t copy) { return uint64_t(copy) << 2 | uint64_t(item); }

} // namespace

static void append(Bytes &bytes, const void *data, size_t size) {
  const auto *first = static_cast<const uint8_t *>(data);
  bytes.insert(bytes.end(), first, first + size);
}

static Result<Bytes> findItem(const runtime::RunReport &run, uint64_t number) {
  Bytes bytes;
  const Item item = Item(number & 3);
  const size_t index = number >> 2;
  if (item == Item::CpuSeconds) {
    append(bytes, &run.cpuSeconds, sizeof run.cpuSeconds);
    return bytes;
  }
  if (index >= run.result.copies.size())
    return Status::failure(fmt::format("rank 0 asks for copy {} of a stage, of {} on this rank",
                                       index, run.result.copies.size()));
  const runtime::StageCopy &copy = run.result.copies[index];
  if (item == Item::Digest) {
    const uint64_t digest = digestWeights(copy);
    append(bytes, &digest, sizeof digest);
    return bytes;
  }
  bytes.reserve(copy.getParamBuffer().size() + copy.getGradBuffer().size());
  append(bytes, copy.getParamBuffer().data(), copy.getParamBuffer().size());
  append(bytes, copy.getGradBuffer().data(), copy.getGradBuffer().size());
  return bytes;
}

static Result<Bytes> fetch(Processes &processes, uint32_t rank, uint64_t item, size_t size) {
  Result<Bytes> bytes = processes.fetch(rank, item);
  if (bytes.ok() && bytes->size() != size)
    return Status::failure(fmt::format("rank {} has sent {} bytes of its results, expected {}",
                                       rank, bytes->size(), size));
  return bytes;
}

static Result<uint64_t> fetchNumber(Processes &processes, uint32_t rank, uint64_t item) {
  uint64_t number = 0;
  Result<Bytes> bytes = fetch(processes, rank, item, sizeof number);
  if (!bytes.ok())
    return bytes.getStatus();
  std::memcpy(&number, bytes->data(), sizeof number);
  return number;
}

static Result<runtime::StageCopy> fetchCopy(const runtime::Model &model, bool training,
                                            Processes &processes, uint32_t rank, uint32_t stage,
                                            size_t index) {
  Result<runtime::StageCopy> copy = runtime::StageCopy::create(model, rank, stage, training);
  if (!copy.ok())
    return copy;
  runtime::AlignedBuffer &params = copy->getParamBuffer(), &grads = copy->getGradBuffer();
  Result<Bytes> bytes =
      fetch(processes, rank, makeItem(Item::Copy, index), params.size() + grads.size());
  if (!bytes.ok())
    return bytes.getStatus();
  std::copy_n(bytes->data(), params.size(), static_cast<uint8_t *>(params.data()));
  std::copy_n(bytes->data() + params.size(), grads.size(), static_cast<uint8_t *>(grads.data()));
  return copy;
}

/// One after the other, so that rank 0 never holds more than one twice.
static Status fetchAll(const Options &options, const program::SharedInfo &shared,
                       const runtime::Model &model, Processes &processes, runtime::RunReport &run,
                       std::vector<uint64_t> &digests) {
  size_t index = 0;
  uint32_t last = 0;
  for (const auto &[rank, stage] : runtime::listCopies(shared)) {
    index = rank == last ? index : 0;
    last = rank;
    const size_t number = index++;
    if (rank == 0) {
      digests.push_back(digestWeights(run.result.copies[number]));
    } else if (options.check) {
      Result<runtime::StageCopy> copy =
          fetchCopy(model, shared.training, processes, rank, stage, number);
      if (!copy.ok())
        return copy.getStatus();
      digests.push_back(digestWeights(*copy));
      run.result.copies.push_back(std::move(*copy));
    } else if (options.json) {
      Result<uint64_t> digest = fetchNumber(processes, rank, makeItem(Item::Digest, number));
      if (!digest.ok())
        return digest.getStatus();
      digests.push_back(*digest);
    }
  }
  return Status::success();
}

static Status fetchSeconds(Processes &processes, runtime::RunReport &run) {
  for (uint32_t rank = 1; rank != processes.getPlace().worldSize; ++rank) {
    Result<uint64_t> bits = fetchNumber(processes, rank, makeItem(Item::CpuSeconds, 0));
    if (!bits.ok())
      return bits.getStatus();
    double seconds = 0;
    std::memcpy(&seconds, &*bits, sizeof seconds);
    run.cpuSeconds += seconds;
  }
  return Status::success();
}

Status collectResults(const Options &options, const program::SharedInfo &shared,
                      const runtime::Model &model, Processes &processes, runtime::RunReport &run,
                      std::vector<uint64_t> &digests) {
  if (!processes.collects())
    return processes.answer([&](uint64_t item) { return findItem(run, item); });
  Status status = fetchSeconds(processes, run);
  if (status.ok())
    status = fetchAll(options, shared, model, processes, run, digests);
  if (status.ok())
    processes.finish();
  return status;
}

} // namespace dualpipe::launcher
