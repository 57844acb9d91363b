//===- Chart.h - a step as rows of bars -------------------------------------===//
//
// What a Gantt chart shows, before anything is laid out: a row for each rank, in it the ops as the
// author of the schedule knows them. Loads, transfers, records and waits are no bars.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_PICTURES_CHART_H
#define DUALPIPE_RUNTIME_PICTURES_CHART_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Simulation.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dualpipe::runtime {

/// What a bar stands for; the order is that of legends.
enum class BarKind : uint8_t { Fwd, Bwd, BwdInput, BwdWeight, Step, Reduce };
inline constexpr unsigned kNumBarKinds = 6;
/// "forward", "backward", "input half", "weight half", "step", "reduction".
const char *getName(BarKind kind);

/// One op of a rank.
struct Bar {
  BarKind kind;
  uint8_t part = 0;  ///< which member of a fused group it is, from the top
  uint8_t parts = 1; ///< how many there are
  uint32_t variant;  ///< which chunk of which pipeline: index into `Chart::variants`
  uint32_t microbatch;
  uint32_t stage;
  uint32_t command;
  Ticks start, end;
};

/// Where a phase of the schedule begins.
struct PhaseStart {
  Ticks start;
  uint32_t name; ///< index into `SharedInfo::phaseNames`
};

/// A fused group as a whole.
struct Frame {
  Ticks start, end;
};

struct Row {
  uint32_t rank;
  std::vector<Bar> bars; ///< in issue order
  std::vector<Frame> frames;
  std::vector<PhaseStart> phases;
};

struct Chart {
  std::vector<Row> rows;
  /// Names of what a micro-batch can flow through on a rank: "down", "up"; "main[0]", "main[1]".
  std::vector<std::string> variants;
  bool has[kNumBarKinds] = {}; ///< whether any bar is of the kind
  Ticks shortest = 0;          ///< bar of a compute that takes time
  uint64_t numBars = 0;
};

/// Bars that take no time are left out. `times` are those of all commands of all ranks.
Chart makeChart(const program::Program &program,
                const std::vector<std::vector<CommandTime>> &times);

/// By pipeline, the number of its first variant; then by stage of it, the number to add.
struct Variants {
  std::vector<std::string> names;
  std::vector<uint32_t> first;
  std::vector<std::vector<uint32_t>> chunk;
};
Variants findVariants(const program::SharedInfo &shared);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_PICTURES_CHART_H
