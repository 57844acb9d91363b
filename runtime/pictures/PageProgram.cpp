//===- PageProgram.cpp - a program's commands for a page -------------------===//

#include "PageData.h"

#include "dualpipe/Program/Memory.h"

#ifdef DUALPIPE_HAS_ZLIB
#include <zlib.h>
#endif

#include <map>
#include <utility>

namespace dualpipe::runtime {

using program::Command;
using program::CommandOp;
using program::RankProgram;

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
    bytes.addDifference(launch.component, last.number);
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
            reinterpret_cast<const Bytef *>(bytes.data()), uLong(bytes.size()), Z_BEST_COMPRESSION);
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
