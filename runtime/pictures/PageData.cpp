//===- PageData.cpp - a program as a page's script reads it -----------------===//

#include "PageData.h"
#include "Chart.h"
#include "Palette.h"

#include "dualpipe/Program/Memory.h"
#include "dualpipe/Support/Quote.h"

#include <fmt/format.h>

#ifdef DUALPIPE_HAS_ZLIB
#include <zlib.h>
#endif

#include <map>

namespace dualpipe::runtime {

using program::Command;
using program::CommandOp;
using program::RankProgram;
using program::SharedInfo;
using program::SlotKind;

//===----------------------------------------------------------------------===//
// Facts
//===----------------------------------------------------------------------===//

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

static std::string printCosts(const SimulationCosts &costs) {
  std::string text;
  for (OpKind kind :
       {OpKind::Forward, OpKind::Backward, OpKind::BackwardInput, OpKind::BackwardWeight})
    text += fmt::format("\"{}\":{},", getKeyword(kind), printCost(costs.ops.of(kind)));
  return fmt::format(
      "{{{}\"fused\":{},\"transfer\":{},\"occupancy\":{},\"reduce\":{},\"step\":{},"
      "\"separate\":{}}}",
      text, costs.ops.fused ? fmt::format("{}", *costs.ops.fused) : "null", costs.ops.getTransfer(),
      costs.occupancy, costs.reduce, costs.step, costs.pairStart == PairStart::Separate);
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
    kinds += fmt::format("{}{{\"name\":\"{}\",\"dark\":{},\"colours\":[{}]}}",
                         kind == 0 ? "" : ",", getName(BarKind(kind)), isDark(BarKind(kind)),
                         colours);
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

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

namespace {

/// Small numbers in few bytes.
class Bytes {
public:
  void add(uint64_t number) {
    for (; number >= 0x80; number >>= 7)
      bytes.push_back(char(0x80 | (number & 0x7f)));
    bytes.push_back(char(number));
  }
  /// The difference to what was last added for `what`, of either sign.
  void addDifference(uint32_t number, int64_t &last) {
    const int64_t difference = int64_t(number) - last;
    last = number;
    add(difference < 0 ? uint64_t(-difference) * 2 - 1 : uint64_t(difference) * 2);
  }
  std::string take() { return std::move(bytes); }

private:
  std::string bytes;
};

/// What the commands of one code on one stream had last.
struct Last {
  int64_t stage = 0, microbatch = 0, number = 0, loc = 0;
};

class ProgramWriter {
public:
  explicit ProgramWriter(const program::Program &program) : program(program) {}
  std::string write();

private:
  void addPlaces();
  void addRank(const RankProgram &rank);
  void addCommands(const RankProgram &rank);
  void addCommand(const RankProgram &rank, const Command &command, Last &last);
  void addSlots(const RankProgram &rank);

  const program::Program &program;
  Bytes bytes;
};

} // namespace

/// A launch has the code of its function, behind those of the other commands.
static uint32_t getCode(const RankProgram &rank, const Command &command) {
  if (command.op != CommandOp::Launch)
    return uint32_t(command.op);
  return program::kNumCommandOps + uint32_t(rank.launches[command.arg].function);
}

void ProgramWriter::addPlaces() {
  Last last;
  bytes.add(program.shared.locations.size());
  for (const program::Location &place : program.shared.locations) {
    bytes.addDifference(place.file, last.stage);
    bytes.addDifference(place.line, last.number);
    bytes.addDifference(place.column, last.loc);
  }
}

void ProgramWriter::addCommand(const RankProgram &rank, const Command &command, Last &last) {
  const auto addTask = [&](uint32_t stage, uint32_t microbatch) {
    bytes.addDifference(stage, last.stage);
    bytes.addDifference(microbatch, last.microbatch);
  };
  switch (command.op) {
  case CommandOp::Launch: {
    const program::Launch &launch = rank.launches[command.arg];
    return addTask(launch.stage, launch.microbatch);
  }
  case CommandOp::Send:
  case CommandOp::Recv: {
    const program::Transfer &transfer = rank.transfers[command.arg];
    bytes.addDifference(transfer.channel, last.number);
    return addTask(transfer.stage, transfer.microbatch);
  }
  case CommandOp::Reduce:
    bytes.addDifference(rank.reductions[command.arg].group, last.number);
    return bytes.addDifference(rank.reductions[command.arg].stage, last.stage);
  case CommandOp::Pair:
  case CommandOp::Group:
  case CommandOp::Record:
  case CommandOp::Wait:
  case CommandOp::Step:
    return bytes.addDifference(command.arg, last.number);
  }
}

void ProgramWriter::addCommands(const RankProgram &rank) {
  std::map<uint64_t, Last> last;
  const uint64_t numStreams = rank.streams.size();
  bytes.add(rank.commands.size());
  for (const Command &command : rank.commands) {
    const uint64_t head = getCode(rank, command) * numStreams + command.stream;
    Last &own = last[head];
    bytes.add(head);
    bytes.addDifference(command.loc, own.loc);
    addCommand(rank, command, own);
  }
}

/// When the values of the slots begin and end, in the order in which they begin.
void ProgramWriter::addSlots(const RankProgram &rank) {
  std::vector<uint32_t> kindOf;
  for (const program::SlotClass &slotClass : rank.slotClasses)
    kindOf.insert(kindOf.end(), slotClass.count, uint32_t(slotClass.kind));
  const std::vector<program::Lifetime> lifetimes = program::findLifetimes(rank, program.shared);
  bytes.add(lifetimes.size());
  int64_t begin = 0;
  for (const program::Lifetime &life : lifetimes) {
    bytes.add(kindOf[life.slot]);
    bytes.addDifference(life.begin, begin);
    bytes.add(life.end - life.begin);
  }
}

void ProgramWriter::addRank(const RankProgram &rank) {
  bytes.add(rank.streams.size());
  for (const program::Stream &stream : rank.streams) {
    bytes.add(uint64_t(stream.kind));
    bytes.add(stream.target);
  }
  bytes.add(rank.numEvents);
  addCommands(rank);
  addSlots(rank);
  bytes.add(rank.phases.size());
  for (const program::PhaseMark &mark : rank.phases) {
    bytes.add(mark.name);
    bytes.add(mark.command);
  }
}

std::string ProgramWriter::write() {
  addPlaces();
  for (const RankProgram &rank : program.ranks)
    addRank(rank);
  return bytes.take();
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

#ifdef DUALPIPE_HAS_ZLIB
bool isPageProgramCompressed() { return true; }

/// Cannot fail: the output has room for what zlib says it can need.
static std::string compress(const std::string &bytes) {
  uLongf size = compressBound(uLong(bytes.size()));
  std::string compressed(size, 0);
  compress2(reinterpret_cast<Bytef *>(compressed.data()), &size,
            reinterpret_cast<const Bytef *>(bytes.data()), uLong(bytes.size()),
            Z_BEST_COMPRESSION);
  compressed.resize(size);
  return compressed;
}
#else
bool isPageProgramCompressed() { return false; }
static std::string compress(const std::string &bytes) { return bytes; }
#endif

/// RFC 4648.
static std::string encodeBase64(const std::string &bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto get = [&](size_t at) {
      return at < bytes.size() ? uint32_t(static_cast<unsigned char>(bytes[at])) : 0u;
    };
    const uint32_t bits = get(i) << 16 | get(i + 1) << 8 | get(i + 2);
    const size_t left = bytes.size() - i;
    text += kDigits[bits >> 18];
    text += kDigits[bits >> 12 & 63];
    text += left > 1 ? kDigits[bits >> 6 & 63] : '=';
    text += left > 2 ? kDigits[bits & 63] : '=';
  }
  return text;
}

std::string printPageProgram(const program::Program &program) {
  return encodeBase64(compress(ProgramWriter(program).write()));
}

} // namespace dualpipe::runtime
