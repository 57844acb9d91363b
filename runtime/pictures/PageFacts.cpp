//===- PageFacts.cpp - names, sizes, colours and costs for a page ----------===//

#include "Chart.h"
#include "PageData.h"
#include "Palette.h"

#include "dualpipe/Support/Quote.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

namespace dualpipe::runtime {

using program::SharedInfo;
using program::SlotKind;

template <typename Range, typename Print>
static std::string list(const Range &range, Print printItem) {
  std::string text;
  for (const auto &item : range)
    text += (text.empty() ? "" : ",") + printItem(item);
  return "[" + text + "]";
}

static std::string printNumber(uint32_t number) { return fmt::format("{}", number); }
static std::string printNumbers(const std::vector<uint32_t> &numbers) {
  return list(numbers, printNumber);
}

/// Those of every stage, and the latter where they differ.
static std::string printCost(const OpCost &cost) {
  std::string stages;
  for (const auto &[stage, ticks] : cost.ofStage)
    stages += fmt::format("{}\"{}\":{}", stages.empty() ? "" : ",", stage, ticks);
  return fmt::format("{{\"common\":{},\"stages\":{{{}}}}}",
                     cost.common ? fmt::format("{}", *cost.common) : "null", stages);
}

static std::string printTicks(std::optional<Ticks> ticks) {
  return ticks ? fmt::format("{}", *ticks) : "null";
}
static std::string printRate(double bytesPerUnit) { return fmt::format("{}", bytesPerUnit); }
static std::string printSizes(const std::vector<uint64_t> &bytes) {
  return list(bytes, [](uint64_t size) { return fmt::format("{}", size); });
}

static std::string printKey(const FunctionKey &key) {
  return fmt::format("[{},{},{}]", unsigned(key.function), key.stage, key.component);
}

/// Members in order, and their time as a whole; null where it is the sum of the members' times.
static std::string printPairs(const SimulationCosts &costs) {
  return list(costs.pairs, [](const auto &pair) {
    return fmt::format("[{},{}]", list(pair.first, printKey), printTicks(pair.second.time));
  });
}

static std::string printComponents(const SimulationCosts &costs) {
  std::string text;
  for (const auto &[key, cost] : costs.components)
    if (cost.time)
      text += fmt::format("{}[{},{}]", text.empty() ? "" : ",", printKey(key), *cost.time);
  return "[" + text + "]";
}

/// What the page has no control for, as `--cost` takes it.
static std::string printOtherCosts(const SimulationCosts &costs) {
  static constexpr std::string_view kControls[] = {"fwd",   "bwd",      "bwd_input", "bwd_weight",
                                                   "fused", "transfer", "occupancy", "reduce",
                                                   "step",  "start"};
  std::vector<std::string> others;
  for (const auto &[name, value] : costs.print()) {
    const bool isComponent = name.find('.') != name.npos;
    const std::string_view base = std::string_view(name).substr(0, name.find('['));
    if (isComponent ||
        std::find(std::begin(kControls), std::end(kControls), base) == std::end(kControls))
      others.push_back(name + "=" + value);
  }
  return list(others, quoteJson);
}

/// As the page's model takes them: page/model.js lays them out as CostTables does.
static std::string printCosts(const SimulationCosts &costs) {
  std::string text = "{";
  const auto add = [&](const char *name, const std::string &value) {
    text += fmt::format("{}\"{}\":{}", text.size() == 1 ? "" : ",", name, value);
  };
  for (OpKind kind :
       {OpKind::Forward, OpKind::Backward, OpKind::BackwardInput, OpKind::BackwardWeight})
    add(getKeyword(kind), printCost(costs.ops.of(kind)));
  add("load_input", printCost(costs.loadInput));
  add("load_labels", printCost(costs.loadLabels));
  add("reduce", printCost(costs.reduce));
  add("step", printCost(costs.step));
  add("components", printComponents(costs));
  add("pairs", printPairs(costs));
  add("fused", printTicks(costs.ops.fused));
  add("forwardDone", printTicks(costs.forwardDone));
  add("backwardDone", printTicks(costs.backwardDone));
  add("transfer", printTicks(costs.ops.getTransfer()));
  add("occupancy", printTicks(costs.occupancy));
  add("bandwidth", printRate(costs.bandwidth));
  add("farTransfer", printTicks(costs.farLatency));
  add("farOccupancy", printTicks(costs.farOccupancy));
  add("farBandwidth", costs.farBandwidth ? printRate(*costs.farBandwidth) : "null");
  add("ranksPerNode", fmt::format("{}", costs.ranksPerNode));
  add("bytes", fmt::format("{}", costs.bytes));
  add("reduceBytes", fmt::format("{}", costs.reduceBytes));
  add("activationSizes", printSizes(costs.sizes.activations));
  add("gradientSizes", printSizes(costs.sizes.gradients));
  add("parameterSizes", printSizes(costs.sizes.parameters));
  add("separate", costs.pairStart == PairStart::Separate ? "true" : "false");
  add("others", printOtherCosts(costs));
  add("option", costs.profileOption.empty() ? "null" : quoteJson(costs.profileOption));
  return text + "}";
}

static std::string printPipelines(const SharedInfo &shared) {
  const Variants variants = findVariants(shared);
  size_t index = 0;
  return list(shared.pipelines, [&](const program::PipelineInfo &pipeline) {
    const size_t own = index++;
    return fmt::format("{{\"name\":{},\"firstStage\":{},\"firstMicrobatch\":{},\"microbatches\":{},"
                       "\"placement\":{},\"firstVariant\":{},\"chunks\":{}}}",
                       quoteJson(pipeline.name), pipeline.firstStage, pipeline.firstMicrobatch,
                       pipeline.numMicrobatches, printNumbers(pipeline.placement),
                       variants.first[own], printNumbers(variants.chunk[own]));
  });
}

/// By kind of bar and variant.
static std::string printColours(const SharedInfo &shared) {
  const uint32_t count = uint32_t(findVariants(shared).names.size());
  std::string kinds;
  for (unsigned kind = 0; kind != kNumBarKinds; ++kind) {
    std::string colours;
    for (uint32_t variant = 0; variant != count; ++variant)
      colours += fmt::format("{}\"{}\"", variant == 0 ? "" : ",",
                             getColour(BarKind(kind), variant, count));
    kinds += fmt::format("{}{{\"name\":\"{}\",\"dark\":{},\"colours\":[{}]}}", kind == 0 ? "" : ",",
                         getName(BarKind(kind)), isDark(BarKind(kind)), colours);
  }
  return "[" + kinds + "]";
}

static bool readsActivations(const program::Contract &contract) {
  const uint32_t reads =
      contract.backwardReads | contract.backwardInputReads | contract.backwardWeightReads;
  return (reads & (program::bit(SlotKind::Input) | program::bit(SlotKind::Output))) != 0;
}

static std::string printSlotKinds() {
  std::string names;
  for (unsigned kind = 0; kind != program::kNumSlotKinds; ++kind)
    names += fmt::format("{}\"{}\"", kind == 0 ? "" : ",", program::getName(SlotKind(kind)));
  return "[" + names + "]";
}

std::string printPageFacts(const program::Program &program, const SimulationCosts &costs) {
  const SharedInfo &shared = program.shared;
  std::string text = "{";
  const auto add = [&](const char *name, const std::string &value) {
    text += fmt::format("{}\"{}\":{}", text.size() == 1 ? "" : ",\n", name, value);
  };
  add("schedule", quoteJson(shared.schedule));
  add("producer", quoteJson(shared.producer));
  add("ranks", printNumber(shared.numRanks));
  add("stages", printNumber(shared.numStages));
  add("microbatches", printNumber(shared.numMicrobatches));
  add("components", printNumber(shared.contract.numComponents));
  add("training", shared.training ? "true" : "false");
  add("ticksPerUnit", fmt::format("{}", Costs::kTicksPerUnit));
  add("compressed", isPageProgramCompressed() ? "true" : "false");
  add("backwardReadsActivations", readsActivations(shared.contract) ? "true" : "false");
  add("pipelines", printPipelines(shared));
  add("variants", list(findVariants(shared).names, quoteJson));
  add("kinds", printColours(shared));
  add("slotKinds", printSlotKinds());
  add("channels", list(shared.channels, [](const program::Channel &channel) {
        return fmt::format("[{},{},{}]", channel.source, channel.destination,
                           channel.kind == SlotKind::Output ? 0 : 1);
      }));
  add("groups", list(shared.reduceGroups,
                     [](const program::ReduceGroup &group) { return printNumbers(group.ranks); }));
  add("phases", list(shared.phaseNames, quoteJson));
  add("files", list(shared.files, quoteJson));
  add("costs", printCosts(costs));
  return text + "}";
}

} // namespace dualpipe::runtime
