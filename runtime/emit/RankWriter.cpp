//===- RankWriter.cpp - the commands of a rank as calls ---------------------===//

#include "RankWriter.h"

#include "dualpipe/Program/Verify.h"

namespace dualpipe::runtime::emit {

using program::Command;
using program::CommandOp;
using program::kNone;
using program::Launch;
using program::StreamKind;

/// Where lines are broken, once.
static constexpr size_t kColumns = 100;

std::string RankWriter::run() {
  writeBanner();
  to("#include \"dualpipe/emitted.h\"\n\nnamespace {{\n\nusing namespace dualpipe::emitted;\n\n");
  writeClass();
  for (const Part &part : names.parts)
    writePart(part);
  writeIssue();
  return std::move(text);
}

void RankWriter::writeBanner() {
  to("// Rank {} of {} of the schedule {}: {} commands on {} stream{}.\n", rank.rank,
     shared.numRanks, toComment(shared.schedule), rank.commands.size(), rank.streams.size(),
     rank.streams.size() == 1 ? "" : "s");
  std::string params;
  for (const auto &[name, value] : shared.params)
    params += fmt::format("{}{} = {}", params.empty() ? "" : ", ", name, value);
  to("// Emitted from a program of {}{}{}.\n//\n", toComment(shared.producer),
     params.empty() ? "" : " with ", toComment(params));
  to("//   DP_AT(n, call)        command n of the program file, as launcher --dump numbers them;\n"
     "//                         returns where the call fails\n"
     "//   // x.pipe:12:7        where the calls that follow come from\n"
     "//   stage(s), mb(m)       stage and micro-batch\n"
     "//   input[k], saved[k]    slots: buffers that are used again and again\n"
     "//   act_to_1, compute     streams; those of transfers also name the communicator\n"
     "//   ..._here, ..._done    events: what comes before them on their stream is done\n\n");
}

//===--- Names --------------------------------------------------------------===//

static const char *getType(StreamKind kind) {
  switch (kind) {
  case StreamKind::Compute:
    return "Stream";
  case StreamKind::Send:
  case StreamKind::Recv:
    return "Link";
  case StreamKind::Reduce:
    return "Sum";
  }
  return "Stream";
}

void RankWriter::writeStreams() {
  for (size_t i = 0; i != rank.streams.size(); ++i)
    to("  static constexpr {} {}{{{}}};\n", getType(rank.streams[i].kind), names.streams[i], i);
}

void RankWriter::writeSlots() {
  uint32_t firstSlot = 0;
  for (size_t i = 0; i != rank.slotClasses.size(); ++i) {
    to("  static constexpr Slots {}{{{}, {}}};\n", names.classes[i], firstSlot,
       rank.slotClasses[i].count);
    firstSlot += rank.slotClasses[i].count;
  }
}

void RankWriter::writeEvents() {
  for (size_t i = 0; i != names.events.size(); ++i)
    if (!names.events[i].empty()) // that are recorded
      to("  static constexpr Event {}{{{}}};\n", names.events[i], i);
  if (!names.events.empty())
    to("\n");
}

void RankWriter::writeClass() {
  to("class {} : Step {{\npublic:\n  using Step::Step;\n  int issue();\n\nprivate:\n", className);
  writeStreams();
  to("\n");
  writeSlots();
  to("\n");
  writeEvents();
  for (const Part &part : names.parts)
    to("  int {}();\n", part.name);
  to("}};\n\n");
}

//===--- Functions ----------------------------------------------------------===//

void RankWriter::writePart(const Part &part) {
  if (part.phase.empty())
    to("/// Commands {} to {}.\n", part.begin, part.end - 1);
  else
    to("/// Phase \"{}\": commands {} to {}.\n", toComment(part.phase), part.begin, part.end - 1);
  to("int {}::{}() {{\n", className, part.name);
  lastPlace = kNone;
  for (uint32_t i = part.begin; i != part.end; ++i) {
    writePlace(rank.commands[i].loc);
    writeCommand(i);
    if (rank.commands[i].op == CommandOp::Pair || rank.commands[i].op == CommandOp::Group)
      i += rank.commands[i].arg;
  }
  to("  return 0;\n}}\n\n");
}

void RankWriter::writeIssue() {
  const std::string function = fmt::format("dualpipe_issue_rank{}", rank.rank);
  to("int {}::issue() {{\n", className);
  for (const Part &part : names.parts)
    to("  if ({}() != 0)\n    return 1;\n", part.name);
  to("  return 0;\n}}\n\n}} // namespace\n\n/// Listed in step.cpp.\nint {0}(dp_step *step);\n"
     "int {0}(dp_step *step) {{ return {1}(*step).issue(); }}\n",
     function, className);
}

/// Where it changes.
void RankWriter::writePlace(uint32_t loc) {
  if (loc == lastPlace)
    return;
  lastPlace = loc;
  to("{}// {}\n", indent, toComment(program::describeLocation(shared, loc)));
}

//===--- Calls --------------------------------------------------------------===//

/// `line` and the pieces behind it, below each other where they are longer than a line. What stands
/// in braces stays together if it can.
void RankWriter::writePieces(std::string line, const Pieces &pieces) {
  size_t column = line.size();
  bool isFirst = true;
  for (size_t i = 0; i != pieces.size(); ++i) {
    const bool opens = pieces[i].starts_with('{');
    size_t needed = pieces[i].size();
    for (size_t rest = i + 1; opens && rest != pieces.size(); ++rest)
      needed += 1 + pieces[rest].size();
    if (!isFirst && line.size() + 1 + needed > kColumns) {
      to("{}\n", line);
      line.assign(column, ' ');
      isFirst = true;
    }
    line += (isFirst ? "" : " ") + pieces[i];
    isFirst = false;
    if (opens)
      column = line.size() - pieces[i].size() + 1;
  }
  to("{}\n", line);
}

/// Separates arguments, and ends the last one.
static void punctuate(std::vector<std::string> &arguments, std::string_view end) {
  for (std::string &argument : arguments)
    argument += &argument == &arguments.back() ? end : ",";
}

void RankWriter::writeCall(uint32_t index, const std::string &function, const Pieces &arguments) {
  Pieces pieces = arguments;
  punctuate(pieces, "));");
  if (pieces.empty())
    pieces.push_back("));");
  writePieces(fmt::format("{}DP_AT({}, {}(", indent, index, function), pieces);
}

static std::string describeFlags(uint8_t flags) {
  std::string text;
  const std::pair<uint8_t, const char *> known[] = {{program::kAccumulate, "accumulate"},
                                                    {program::kFirstStage, "first"},
                                                    {program::kLastStage, "last"}};
  for (const auto &[flag, name] : known)
    if (flags & flag)
      text += fmt::format("{}{}", text.empty() ? "" : " | ", name);
  return text;
}

/// "{.input = input[0]", ".saved = saved[1]}".
void RankWriter::addTensors(const Launch &launch, Pieces &pieces) const {
  const size_t begin = pieces.size();
  if (launch.component != 0)
    pieces.push_back(fmt::format(".component = {}", launch.component));
  for (unsigned kind = 0; kind != program::kNumSlotKinds; ++kind)
    if (launch.slots[kind] != kNone)
      pieces.push_back(fmt::format(".{} = {}", program::getName(program::SlotKind(kind)),
                                   names.describeSlot(launch.slots[kind])));
  if (const std::string flags = describeFlags(launch.flags); !flags.empty())
    pieces.push_back(".flags = " + flags);
  if (pieces.size() == begin)
    pieces.push_back("");
  pieces[begin].insert(0, "{");
  pieces.back() += '}';
}

void RankWriter::writeCommand(uint32_t index) {
  const Command &command = rank.commands[index];
  const std::string &stream = names.streams[command.stream];
  switch (command.op) {
  case CommandOp::Launch:
    return writeLaunch(index);
  case CommandOp::Pair:
    return writePair(index);
  case CommandOp::Send:
  case CommandOp::Recv:
    return writeTransfer(index);
  case CommandOp::Group:
    return writeGroup(index);
  case CommandOp::Record:
    return writeCall(index, "cuEventRecord", {names.events[command.arg], stream});
  case CommandOp::Wait:
    return writeCall(index, "cuStreamWaitEvent", {stream, names.events[command.arg], "0"});
  case CommandOp::Reduce:
    return writeCall(index, "sum_gradients",
                     {fmt::format("stage({})", rank.reductions[command.arg].stage), stream});
  case CommandOp::Step:
    return writeCall(index, "optimizer_step", {fmt::format("stage({})", command.arg), stream});
  }
}

void RankWriter::writeLaunch(uint32_t index) {
  const Command &command = rank.commands[index];
  const Launch &launch = rank.launches[command.arg];
  Pieces arguments = {fmt::format("stage({})", launch.stage),
                      fmt::format("mb({})", launch.microbatch), names.streams[command.stream]};
  addTensors(launch, arguments);
  writeCall(index, program::getName(launch.function), arguments);
}

/// Members below each other.
void RankWriter::writePair(uint32_t index) {
  const Command &command = rank.commands[index];
  const std::string begin =
      fmt::format("{}DP_AT({}, fused({}, {{", indent, index, names.streams[command.stream]);
  for (uint32_t i = 0; i != command.arg; ++i) {
    const Launch &launch = rank.launches[rank.commands[index + 1 + i].arg];
    Pieces arguments = {fmt::format("stage({})", launch.stage),
                        fmt::format("mb({})", launch.microbatch)};
    addTensors(launch, arguments);
    punctuate(arguments, i + 1 == command.arg ? ")}));" : "),");
    const std::string line = i == 0 ? begin : std::string(begin.size(), ' ');
    writePieces(fmt::format("{}{}(", line, program::getName(launch.function)), arguments);
  }
}

void RankWriter::writeGroup(uint32_t index) {
  to("{}{{\n", indent);
  indent += "  ";
  to("{}Group group(*this);\n", indent);
  writeCall(index, "group.ncclGroupStart", {});
  for (uint32_t i = 0; i != rank.commands[index].arg; ++i) {
    writePlace(rank.commands[index + 1 + i].loc);
    writeTransfer(index + 1 + i);
  }
  writeCall(index, "group.ncclGroupEnd", {});
  indent.resize(indent.size() - 2);
  to("{}}}\n", indent);
}

void RankWriter::writeTransfer(uint32_t index) {
  const Command &command = rank.commands[index];
  const program::Transfer &transfer = rank.transfers[command.arg];
  const bool isActivation = shared.channels[transfer.channel].kind == program::SlotKind::Output;
  const std::string &link = names.streams[command.stream];
  writeCall(index, command.op == CommandOp::Send ? "ncclSend" : "ncclRecv",
            {names.describeSlot(transfer.slot),
             fmt::format("{}_bytes({})", isActivation ? "input" : "grad_output", transfer.stage),
             "ncclInt8", fmt::format("peer({0}), comm({0}), {0}", link)});
}

} // namespace dualpipe::runtime::emit
