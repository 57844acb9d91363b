//===- VerifyMatching.cpp - D1 and D2: both ends of every transfer ----------===//

#include "Facts.h"

#include <fmt/format.h>

#include <map>

namespace dualpipe::program {

namespace {

/// One transfer at one end of a channel, where it stands.
struct End {
  uint32_t stage;
  uint32_t microbatch;
  CommandRef where;

  bool operator==(const End &other) const {
    return stage == other.stage && microbatch == other.microbatch;
  }
  std::string describe() const {
    return fmt::format("stage {}, micro-batch {}", stage, microbatch);
  }
};

/// What passes through the ends of a channel, in issue order.
struct Ends {
  std::vector<End> sends;
  std::vector<End> recvs;
};

} // namespace

/// The ends on the given ranks, by channel; channels that nothing passes there are left out.
static std::map<uint32_t, Ends> collectEnds(const std::vector<const RankProgram *> &ranks) {
  std::map<uint32_t, Ends> channels;
  for (const RankProgram *rank : ranks)
    for (uint32_t i = 0; i != rank->commands.size(); ++i) {
      const Command &command = rank->commands[i];
      if (command.op != CommandOp::Send && command.op != CommandOp::Recv)
        continue;
      const Transfer &transfer = rank->transfers[command.arg];
      Ends &ends = channels[transfer.channel];
      (command.op == CommandOp::Send ? ends.sends : ends.recvs)
          .push_back({transfer.stage, transfer.microbatch, {rank->rank, i}});
    }
  return channels;
}

static Verdict verifyEnd(const SharedInfo &shared, const RankProgram &rank, uint32_t number,
                         const std::vector<End> &ends, const char *what) {
  const Channel &channel = shared.channels[number];
  const std::string name = fmt::format("channel {} from rank {} to rank {}", number, channel.source,
                                       channel.destination);
  if (ends.size() != channel.numTransfers)
    return violation("D1", rank.rank, kNone,
                     fmt::format("{} has {} {}s here, expected {}", name, ends.size(), what,
                                 channel.numTransfers));
  uint64_t digest = kDigestSeed;
  for (const End &end : ends)
    digest = extendDigest(digest, end.stage, end.microbatch);
  if (digest != channel.digest)
    return violation("D2", rank.rank, kNone,
                     fmt::format("the {}s on {} are not in the order that both ends agreed on "
                                 "(digest {:016x}, expected {:016x})",
                                 what, name, digest, channel.digest));
  return {};
}

Verdict verifyChannelEnds(const SharedInfo &shared, const RankProgram &rank) {
  std::map<uint32_t, Ends> channels = collectEnds({&rank});
  for (uint32_t number = 0; number != shared.channels.size(); ++number) {
    const Channel &channel = shared.channels[number];
    if (channel.source != rank.rank && channel.destination != rank.rank)
      continue;
    if (channel.source == rank.rank)
      if (Verdict verdict = verifyEnd(shared, rank, number, channels[number].sends, "send"))
        return verdict;
    if (channel.destination == rank.rank)
      if (Verdict verdict = verifyEnd(shared, rank, number, channels[number].recvs, "receive"))
        return verdict;
  }
  return {};
}

/// One end has nothing at the other: D1 at that end.
static Violation unmatched(const End &end, const char *other) {
  return violation("D1", end.where.rank, end.where.command, fmt::format("no {} matches it", other));
}

static bool contains(const std::vector<End> &ends, const End &end) {
  return std::find(ends.begin(), ends.end(), end) != ends.end();
}

static Verdict verifyOnce(std::vector<End> ends, const char *what) {
  const auto key = [](const End &end) {
    return std::pair((uint64_t(end.stage) << 32) | end.microbatch, end.where.command);
  };
  std::sort(ends.begin(), ends.end(), [&](const End &a, const End &b) { return key(a) < key(b); });
  const auto twice = std::adjacent_find(ends.begin(), ends.end());
  if (twice == ends.end())
    return {};
  const End &second = *(twice + 1);
  Violation found =
      violation("D1", second.where.rank, second.where.command,
                fmt::format("the second {} of {} on its channel", what, second.describe()));
  found.notes.push_back({twice->where, "the first is here"});
  return found;
}

static Verdict verifyChannel(const Ends &ends) {
  const size_t common = std::min(ends.sends.size(), ends.recvs.size());
  for (size_t i = 0; i != common; ++i) {
    const End &send = ends.sends[i], &recv = ends.recvs[i];
    if (send == recv)
      continue;
    if (!contains(ends.recvs, send))
      return unmatched(send, "receive");
    if (!contains(ends.sends, recv))
      return unmatched(recv, "send");
    Violation found = violation("D2", recv.where.rank, recv.where.command,
                                fmt::format("receives {} as number {} of its channel, expected {} "
                                            "in the order of the sends",
                                            recv.describe(), i, send.describe()));
    found.notes.push_back({send.where, "sent here"});
    return found;
  }
  if (ends.sends.size() > common)
    return unmatched(ends.sends[common], "receive");
  if (ends.recvs.size() > common)
    return unmatched(ends.recvs[common], "send");
  if (Verdict verdict = verifyOnce(ends.sends, "send"))
    return verdict;
  return {};
}

namespace {
/// One reduction of one member, where it stands.
struct Member {
  uint32_t stage;
  CommandRef where;
};
} // namespace

/// By group and member of the group, the reductions in issue order.
static std::vector<std::vector<std::vector<Member>>>
collectMembers(const SharedInfo &shared, const std::vector<const RankProgram *> &ranks) {
  std::vector<std::vector<std::vector<Member>>> groups;
  for (const ReduceGroup &group : shared.reduceGroups)
    groups.emplace_back(group.ranks.size());
  for (const RankProgram *rank : ranks)
    for (uint32_t i = 0; i != rank->commands.size(); ++i) {
      if (rank->commands[i].op != CommandOp::Reduce)
        continue;
      const Reduction &reduction = rank->reductions[rank->commands[i].arg];
      const std::vector<uint32_t> &members = shared.reduceGroups[reduction.group].ranks;
      const auto place = std::lower_bound(members.begin(), members.end(), rank->rank);
      groups[reduction.group][size_t(place - members.begin())].push_back(
          {reduction.stage, {rank->rank, i}});
    }
  return groups;
}

/// Every member reduces what the first one does, in the same order.
static Verdict verifyGroup(const ReduceGroup &group, uint32_t number,
                           const std::vector<std::vector<Member>> &members) {
  const std::vector<Member> &first = members.front();
  for (size_t m = 1; m != members.size(); ++m) {
    const std::vector<Member> &other = members[m];
    for (size_t i = 0; i != std::min(first.size(), other.size()); ++i) {
      if (first[i].stage == other[i].stage)
        continue;
      Violation found =
          violation("D1", other[i].where.rank, other[i].where.command,
                    fmt::format("reduction {} of group {}, expected stage {} as on rank {}", i,
                                number, first[i].stage, group.ranks.front()));
      found.notes.push_back({first[i].where, "the other member's is here"});
      return found;
    }
    if (first.size() != other.size())
      return violation("D1", group.ranks[m], kNone,
                       fmt::format("{} reductions of group {}, expected {} as on rank {}",
                                   other.size(), number, first.size(), group.ranks.front()));
  }
  return {};
}

Verdict verifyMatching(const SharedInfo &shared, const std::vector<const RankProgram *> &ranks) {
  for (const auto &[channel, ends] : collectEnds(ranks))
    if (Verdict verdict = verifyChannel(ends))
      return verdict;
  const auto groups = collectMembers(shared, ranks);
  for (uint32_t number = 0; number != groups.size(); ++number)
    if (Verdict verdict = verifyGroup(shared.reduceGroups[number], number, groups[number]))
      return verdict;
  return {};
}

} // namespace dualpipe::program
