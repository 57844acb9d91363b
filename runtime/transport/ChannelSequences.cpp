//===- ChannelSequences.cpp - whether both ends of a channel agree -------------===//

#include "runtime/transport/ChannelSequences.h"

#include <fmt/format.h>

#include <algorithm>

namespace dualpipe::runtime {

using program::CommandOp;

Status ChannelSequences::agree(uint32_t channel, const Sequence &sequence) {
  std::optional<Sequence> &other = known[channel];
  if (!other)
    other = sequence;
  if (*other == sequence)
    return Status::success();
  return Status::failure(fmt::format(
      "the two ends of the channel from rank {} to rank {} have different sequences: {} transfers "
      "with digest {:016x}, and {} with {:016x}; compile all ranks together",
      shared.channels[channel].source, shared.channels[channel].destination, other->numTransfers,
      other->digest, sequence.numTransfers, sequence.digest));
}

Status ChannelSequences::add(const program::RankProgram &rank) {
  std::vector<Sequence> own(shared.channels.size());
  for (const program::Command &command : rank.commands) {
    if (command.op != CommandOp::Send && command.op != CommandOp::Recv)
      continue;
    const program::Transfer &transfer = rank.transfers[command.arg];
    Sequence &sequence = own[transfer.channel];
    ++sequence.numTransfers;
    sequence.digest = program::extendDigest(sequence.digest, transfer.stage, transfer.microbatch);
  }
  for (uint32_t i = 0; i != own.size(); ++i) {
    const program::Channel &channel = shared.channels[i];
    if (channel.source != rank.rank && channel.destination != rank.rank)
      continue;
    if (Status status = agree(i, own[i]); !status.ok())
      return status;
  }
  return Status::success();
}

uint32_t findMember(const program::ReduceGroup &group, uint32_t rank) {
  const auto member = std::lower_bound(group.ranks.begin(), group.ranks.end(), rank); // ascending
  return member != group.ranks.end() && *member == rank ? uint32_t(member - group.ranks.begin())
                                                        : program::kNone;
}

} // namespace dualpipe::runtime
