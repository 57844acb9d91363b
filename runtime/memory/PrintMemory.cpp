//===- PrintMemory.cpp - memory for people and for programs -----------------===//

#include "dualpipe/Runtime/RankMemory.h"

#include "dualpipe/Program/Verify.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace dualpipe::runtime {

using nlohmann::ordered_json;
using program::ClassUse;
using program::SlotKind;

std::string describeBytes(uint64_t bytes) {
  if (bytes < 1024)
    return fmt::format("{} B", bytes);
  const char *units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = double(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 != std::size(units); ++unit)
    value /= 1024;
  return fmt::format("{:.1f} {}", value, units[unit]);
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static const program::RankProgram &findRank(const program::Program &program, uint32_t rank) {
  return *std::lower_bound(
      program.ranks.begin(), program.ranks.end(), rank,
      [](const program::RankProgram &entry, uint32_t wanted) { return entry.rank < wanted; });
}

/// Where a peak is first reached; null where nothing is ever in use.
static ordered_json placeToJson(const program::Program &program, uint32_t rank, uint32_t command) {
  if (command == program::kNone)
    return nullptr;
  return {{"command", command},
          {"what", program::describeCommand(program.shared, findRank(program, rank), command)}};
}

static ordered_json classToJson(const ClassUse &use, const program::Program &program,
                                uint32_t rank) {
  return {{"kind", program::getName(use.slotClass.kind)},
          {"size_group", use.slotClass.sizeGroup},
          {"slot_bytes", use.slotBytes},
          {"slots", use.slotClass.count},
          {"spares", use.slotClass.spares},
          {"bytes", use.allocatedBytes},
          {"peak_slots", use.peak},
          {"peak_bytes", use.peakBytes},
          {"peak_at", placeToJson(program, rank, use.peakCommand)}};
}

static ordered_json rankToJson(const RankMemory &memory, const program::Program &program) {
  ordered_json classes = ordered_json::array();
  for (const ClassUse &use : memory.slots.classes)
    classes.push_back(classToJson(use, program, memory.rank));
  return {{"rank", memory.rank},
          {"total", memory.getTotal()},
          {"weights", memory.weights},
          {"gradients", memory.gradients},
          {"optimizer_state", memory.optimizerState},
          {"workspace", memory.workspace},
          {"slots", memory.slots.arenaBytes},
          {"slots_peak", memory.slots.liveBytes},
          {"slots_peak_at", placeToJson(program, memory.rank, memory.slots.liveCommand)},
          {"classes", std::move(classes)}};
}

ordered_json toJson(const std::vector<RankMemory> &memory, const program::Program &program) {
  ordered_json ranks = ordered_json::array();
  for (const RankMemory &entry : memory)
    ranks.push_back(rankToJson(entry, program));
  return ranks;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// The bytes of all classes of a kind.
static uint64_t getKindBytes(const RankMemory &memory, SlotKind kind) {
  uint64_t bytes = 0;
  for (const ClassUse &use : memory.slots.classes)
    if (use.slotClass.kind == kind)
      bytes += use.allocatedBytes;
  return bytes;
}

/// "saved 20.0 KiB, input 4.0 KiB": the kinds that take anything.
static std::string describeKinds(const RankMemory &memory) {
  std::string text;
  for (unsigned kind = 0; kind != program::kNumSlotKinds; ++kind)
    if (const uint64_t bytes = getKindBytes(memory, SlotKind(kind)))
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", program::getName(SlotKind(kind)),
                          describeBytes(bytes));
  return text;
}

/// Everything but the number of the rank and the commands.
std::string summarizeRank(const RankMemory &memory) {
  std::string text = fmt::format("{}: weights {}", describeBytes(memory.getTotal()),
                                 describeBytes(memory.weights));
  const auto add = [&](const char *name, uint64_t bytes) {
    if (bytes != 0)
      text += fmt::format(", {} {}", name, describeBytes(bytes));
  };
  add("gradients", memory.gradients);
  add("optimizer state", memory.optimizerState);
  add("workspace", memory.workspace);
  add("slots", memory.slots.arenaBytes);
  const std::string kinds = describeKinds(memory);
  return kinds.empty() ? text : text + " (" + kinds + ")";
}

std::string joinRanks(const std::string &what,
                      const std::vector<std::pair<uint32_t, std::string>> &ranks) {
  std::string text;
  for (size_t first = 0; first != ranks.size();) {
    size_t end = first + 1;
    while (end != ranks.size() && ranks[end].second == ranks[first].second)
      ++end;
    const std::string names =
        end - first == 1 ? fmt::format("rank {}", ranks[first].first)
                         : fmt::format("ranks {} to {}", ranks[first].first, ranks[end - 1].first);
    text += fmt::format("  {} of {}: {}\n", what, names, ranks[first].second);
    first = end;
  }
  return text;
}

/// A line of the table; the last column is text.
static std::vector<std::string> makeRow(const RankMemory &memory, const program::Program &program) {
  std::vector<std::string> row = {fmt::format("{}", memory.rank)};
  for (const uint64_t bytes : {memory.getTotal(), memory.weights, memory.gradients,
                               memory.optimizerState, memory.workspace, memory.slots.arenaBytes})
    row.push_back(describeBytes(bytes));
  for (unsigned kind = 0; kind != program::kNumSlotKinds; ++kind)
    row.push_back(describeBytes(getKindBytes(memory, SlotKind(kind))));
  const uint32_t peak = memory.slots.liveCommand;
  const program::RankProgram &rank = findRank(program, memory.rank);
  row.push_back(
      peak == program::kNone
          ? ""
          : fmt::format("{} at command {}, {}", describeBytes(memory.slots.liveBytes), peak,
                        program::describeLocation(program.shared, rank.commands[peak].loc)));
  return row;
}

std::vector<std::vector<std::string>> tabulateMemory(const std::vector<RankMemory> &memory,
                                                     const program::Program &program) {
  std::vector<std::vector<std::string>> rows = {
      {"rank", "memory", "weights", "gradients", "optimizer", "workspace", "slots"}};
  for (unsigned kind = 0; kind != program::kNumSlotKinds; ++kind)
    rows.front().push_back(program::getName(SlotKind(kind)));
  rows.front().push_back("most that hold values, in the order of the list");
  for (const RankMemory &entry : memory)
    rows.push_back(makeRow(entry, program));
  return rows;
}

} // namespace dualpipe::runtime
