//===- Chart.cpp - a step as rows of bars -----------------------------------===//

#include "Chart.h"
#include "Occupancy.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace dualpipe::runtime {

using program::Command;
using program::CommandOp;
using program::Function;
using program::kNone;
using program::PipelineInfo;
using program::RankProgram;

const char *getName(BarKind kind) {
  switch (kind) {
  case BarKind::Fwd:
    return "forward";
  case BarKind::Bwd:
    return "backward";
  case BarKind::BwdInput:
    return "input half";
  case BarKind::BwdWeight:
    return "weight half";
  case BarKind::Step:
    return "step";
  case BarKind::Reduce:
    return "reduction";
  }
  return "";
}

/// The k-th stage of a pipeline on its rank is chunk k.
static std::vector<uint32_t> numberChunks(const PipelineInfo &pipeline) {
  std::map<uint32_t, uint32_t> seen;
  std::vector<uint32_t> chunks;
  for (uint32_t rank : pipeline.placement)
    chunks.push_back(seen[rank]++);
  return chunks;
}

Variants findVariants(const program::SharedInfo &shared) {
  Variants variants;
  for (const PipelineInfo &pipeline : shared.pipelines) {
    variants.first.push_back(uint32_t(variants.names.size()));
    variants.chunk.push_back(numberChunks(pipeline));
    const std::vector<uint32_t> &chunks = variants.chunk.back();
    const uint32_t last = chunks.empty() ? 0 : *std::max_element(chunks.begin(), chunks.end());
    for (uint32_t chunk = 0; chunk <= last; ++chunk)
      variants.names.push_back(last == 0 ? pipeline.name
                                         : fmt::format("{}[{}]", pipeline.name, chunk));
  }
  return variants;
}

namespace {

class ChartMaker {
public:
  ChartMaker(const program::Program &program, const std::vector<std::vector<CommandTime>> &times);
  Chart make();

private:
  void addRow(size_t index);
  void addCommand(size_t index, uint32_t command, Row &row);
  void addPair(size_t index, uint32_t command, Row &row);
  void addLaunch(size_t index, uint32_t command, Row &row, uint8_t part, uint8_t parts);
  void addBar(size_t index, Bar bar, Row &row);
  void addPhases(size_t index, Row &row);
  uint32_t getVariant(const program::Launch &launch) const;

  const program::Program &program;
  const std::vector<std::vector<CommandTime>> &times;
  const Variants variants;
  std::vector<uint32_t> pipelineOf; ///< by micro-batch
  Chart chart;
};

} // namespace

ChartMaker::ChartMaker(const program::Program &program,
                       const std::vector<std::vector<CommandTime>> &times)
    : program(program), times(times), variants(findVariants(program.shared)),
      pipelineOf(program.shared.numMicrobatches) {
  for (uint32_t i = 0; i != program.shared.pipelines.size(); ++i) {
    const PipelineInfo &pipeline = program.shared.pipelines[i];
    std::fill_n(pipelineOf.begin() + pipeline.firstMicrobatch, pipeline.numMicrobatches, i);
  }
}

uint32_t ChartMaker::getVariant(const program::Launch &launch) const {
  const uint32_t pipeline = pipelineOf[launch.microbatch];
  const uint32_t first = program.shared.pipelines[pipeline].firstStage;
  return variants.first[pipeline] + variants.chunk[pipeline][launch.stage - first];
}

void ChartMaker::addBar(size_t index, Bar bar, Row &row) {
  const CommandTime &time = times[index][bar.command];
  bar.start = time.start;
  bar.end = time.end;
  if (bar.start == bar.end)
    return;
  const Ticks length = bar.end - bar.start;
  chart.has[unsigned(bar.kind)] = true;
  if (bar.kind <= BarKind::BwdWeight && (chart.shortest == 0 || length < chart.shortest))
    chart.shortest = length;
  ++chart.numBars;
  row.bars.push_back(bar);
}

void ChartMaker::addLaunch(size_t index, uint32_t command, Row &row, uint8_t part, uint8_t parts) {
  const RankProgram &rank = program.ranks[index];
  const program::Launch &launch = rank.launches[rank.commands[command].arg];
  const auto add = [&](BarKind kind) {
    addBar(index,
           {kind, part, parts, getVariant(launch), launch.microbatch, launch.stage, command, 0, 0},
           row);
  };
  switch (launch.function) {
  case Function::LoadInput:
  case Function::LoadLabels:
    return;
  case Function::Forward:
    return add(BarKind::Fwd);
  case Function::Backward:
    return add(BarKind::Bwd);
  case Function::BackwardInput:
    return add(BarKind::BwdInput);
  case Function::BackwardWeight:
    return add(BarKind::BwdWeight);
  }
}

void ChartMaker::addPair(size_t index, uint32_t command, Row &row) {
  const RankProgram &rank = program.ranks[index];
  const uint32_t count = rank.commands[command].arg;
  for (uint32_t i = 0; i != count; ++i)
    addLaunch(index, command + 1 + i, row, uint8_t(i), uint8_t(count));
  const CommandTime time = getUnitTime(rank, times[index], command);
  if (time.start != time.end)
    row.frames.push_back({time.start, time.end});
}

void ChartMaker::addCommand(size_t index, uint32_t command, Row &row) {
  const RankProgram &rank = program.ranks[index];
  const Command &what = rank.commands[command];
  if (what.op == CommandOp::Launch)
    addLaunch(index, command, row, 0, 1);
  else if (what.op == CommandOp::Pair)
    addPair(index, command, row);
  else if (what.op == CommandOp::Step)
    addBar(index, {BarKind::Step, 0, 1, 0, kNone, what.arg, command, 0, 0}, row);
  else if (what.op == CommandOp::Reduce)
    addBar(index, {BarKind::Reduce, 0, 1, 0, kNone, rank.reductions[what.arg].stage, command, 0, 0},
           row);
}

/// A phase begins with the first compute from its mark on.
void ChartMaker::addPhases(size_t index, Row &row) {
  const RankProgram &rank = program.ranks[index];
  auto bar = row.bars.begin();
  for (const program::PhaseMark &mark : rank.phases) {
    while (bar != row.bars.end() && (bar->command < mark.command || bar->kind == BarKind::Reduce))
      ++bar;
    if (bar != row.bars.end())
      row.phases.push_back({bar->start, mark.name});
  }
}

void ChartMaker::addRow(size_t index) {
  const RankProgram &rank = program.ranks[index];
  Row row{rank.rank, {}, {}, {}};
  for (uint32_t i = 0; i != rank.commands.size(); ++i) {
    addCommand(index, i, row);
    if (rank.commands[i].op == CommandOp::Pair)
      i += rank.commands[i].arg;
  }
  addPhases(index, row);
  chart.rows.push_back(std::move(row));
}

Chart ChartMaker::make() {
  chart.variants = variants.names;
  for (size_t index = 0; index != program.ranks.size(); ++index)
    addRow(index);
  return std::move(chart);
}

Chart makeChart(const program::Program &program,
                const std::vector<std::vector<CommandTime>> &times) {
  return ChartMaker(program, times).make();
}

} // namespace dualpipe::runtime
