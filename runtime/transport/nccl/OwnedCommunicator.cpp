//===- OwnedCommunicator.cpp - a communicator that ends by itself ------------------===//

#include "runtime/transport/nccl/OwnedCommunicator.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

namespace dualpipe::runtime::cuda {

using Clock = std::chrono::steady_clock;

/// NCCL takes a call in microseconds; only the creation takes long.
static constexpr uint32_t kSpins = 1000;
static constexpr std::chrono::microseconds kPause{50};

Result<OwnedCommunicator> OwnedCommunicator::create(const NcclApi &nccl, int numRanks,
                                                    const UniqueId &id, int rank, int maxBlocks,
                                                    std::string name) {
  NcclConfig config;
  config.blocking = 0;
  config.maxCTAs = maxBlocks;
  Communicator communicator = nullptr;
  const NcclStatus status = nccl.commInitRankConfig(&communicator, numRanks, id, rank, &config);
  if (status != NcclStatus::Success && status != NcclStatus::InProgress)
    return check(nccl, status, fmt::format("creating the communicator {}", name));
  return OwnedCommunicator(nccl, communicator, std::move(name));
}

Result<bool> OwnedCommunicator::isInProgress() const {
  NcclStatus state = NcclStatus::Success;
  if (Status status = check(*nccl, nccl->commGetAsyncError(communicator, &state),
                            fmt::format("ncclCommGetAsyncError of the communicator {}", name));
      !status.ok())
    return status;
  if (state == NcclStatus::InProgress)
    return true;
  if (Status status = check(*nccl, state, fmt::format("the communicator {}", name), communicator);
      !status.ok())
    return status;
  return false;
}

Status OwnedCommunicator::settle(const std::function<bool()> &poll, double timeoutSeconds) const {
  const Clock::time_point start = Clock::now();
  for (uint32_t looks = 0;; ++looks) {
    const Result<bool> inProgress = isInProgress();
    if (!inProgress.ok())
      return inProgress.getStatus();
    if (!*inProgress)
      return Status::success();
    if (looks < kSpins)
      continue;
    if (!poll())
      return Status::failure(
          fmt::format("the run was stopped while NCCL was at the communicator {}", name));
    if (Clock::now() - start > std::chrono::duration<double>(timeoutSeconds))
      return Status::failure(fmt::format("the communicator {} is still in progress after {} s: are "
                                         "all its ranks running, and can they reach each other?",
                                         name, timeoutSeconds));
    std::this_thread::sleep_for(kPause);
  }
}

} // namespace dualpipe::runtime::cuda
