//===- SharedTables.cpp - numbers of what ranks share -----------------------===//

#include "dualpipe/Target/Program.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace dualpipe;
using namespace mlir;
using program::CommandOp;
using program::SharedInfo;

static std::pair<uint64_t, unsigned> getChannelKey(uint32_t source, uint32_t destination,
                                                   TransferKind kind) {
  return {(static_cast<uint64_t>(source) << 32) | destination, static_cast<unsigned>(kind)};
}

SharedTables::SharedTables(SharedInfo sharedInfo, MLIRContext *context)
    : info(std::move(sharedInfo)) {
  indexTables(context);
}

/// The first of equal entries counts.
void SharedTables::indexTables(MLIRContext *context) {
  for (auto [index, channel] : llvm::enumerate(info.channels))
    channels.try_emplace(
        getChannelKey(channel.source, channel.destination, getTransferKind(channel.kind)), index);
  for (auto [index, group] : llvm::enumerate(info.reduceGroups))
    groups.emplace_back(group.ranks, static_cast<uint32_t>(index));
  llvm::sort(groups);
  for (auto [index, name] : llvm::enumerate(info.phaseNames))
    phases.try_emplace(name, index);
  std::vector<StringAttr> files;
  for (const std::string &file : info.files)
    files.push_back(StringAttr::get(context, file));
  for (auto [index, loc] : llvm::enumerate(info.locations))
    if (loc.file < files.size())
      locations.try_emplace(FileLineColLoc::get(files[loc.file], loc.line, loc.column), index);
}

std::optional<uint32_t> SharedTables::findChannel(uint32_t source, uint32_t destination,
                                                  TransferKind kind) const {
  auto found = channels.find(getChannelKey(source, destination, kind));
  if (found == channels.end())
    return std::nullopt;
  return found->second;
}

std::optional<uint32_t> SharedTables::findReduceGroup(ArrayRef<uint32_t> ranks) const {
  auto found = llvm::partition_point(
      groups, [&](const auto &entry) { return ArrayRef<uint32_t>(entry.first) < ranks; });
  if (found == groups.end() || ArrayRef<uint32_t>(found->first) != ranks)
    return std::nullopt;
  return found->second;
}

std::optional<uint32_t> SharedTables::findPhase(StringRef name) const {
  auto found = phases.find(name);
  if (found == phases.end())
    return std::nullopt;
  return found->second;
}

std::optional<uint32_t> SharedTables::findLocation(Location loc) const {
  auto found = locations.find(loc);
  if (found != locations.end())
    return found->second;
  auto place = loc->findInstanceOf<FileLineColLoc>();
  if (!place)
    return 0;
  found = locations.find(place);
  if (found == locations.end())
    return std::nullopt;
  return found->second;
}

//===----------------------------------------------------------------------===//
// Digests
//===----------------------------------------------------------------------===//

void SharedTables::sumChannels(ArrayRef<program::RankProgram> ranks) {
  for (program::Channel &channel : info.channels) {
    channel.numTransfers = 0;
    channel.digest = program::kDigestSeed;
  }
  llvm::DenseSet<uint32_t> present;
  for (const program::RankProgram &rank : ranks)
    present.insert(rank.rank);
  for (const program::RankProgram &rank : ranks)
    for (const program::Command &command : rank.commands) {
      if (command.op != CommandOp::Send && command.op != CommandOp::Recv)
        continue;
      const program::Transfer &transfer = rank.transfers[command.arg];
      program::Channel &channel = info.channels[transfer.channel];
      if (command.op == CommandOp::Recv && present.contains(channel.source))
        continue;
      ++channel.numTransfers;
      channel.digest = program::extendDigest(channel.digest, transfer.stage, transfer.microbatch);
    }
}
