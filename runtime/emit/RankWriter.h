//===- RankWriter.h - the commands of a rank as calls ------------------------===//

#ifndef DUALPIPE_RUNTIME_EMIT_RANKWRITER_H
#define DUALPIPE_RUNTIME_EMIT_RANKWRITER_H

#include "Names.h"

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace dualpipe::runtime::emit {

/// Writes the file of one rank.
class RankWriter {
public:
  RankWriter(const program::SharedInfo &shared, const program::RankProgram &rank)
      : shared(shared), rank(rank), names(shared, rank),
        className(fmt::format("Rank{}", rank.rank)) {}
  std::string run();

private:
  template <typename... Args> void to(fmt::format_string<Args...> format, Args &&...args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
  }

  void writeBanner();
  void writeClass();
  void writeStreams();
  void writeSlots();
  void writeEvents();
  void writePart(const Part &part);
  void writeIssue();
  void writePlace(uint32_t loc);
  void writeCommand(uint32_t index);
  using Pieces = std::vector<std::string>;
  void writePieces(std::string line, const Pieces &pieces);
  void writeCall(uint32_t index, const std::string &function, const Pieces &arguments);
  void writeLaunch(uint32_t index);
  void writePair(uint32_t index);
  void writeGroup(uint32_t index);
  void writeTransfer(uint32_t index);
  void addTensors(const program::Launch &launch, Pieces &pieces) const;

  const program::SharedInfo &shared;
  const program::RankProgram &rank;
  const Names names;
  const std::string className;
  std::string indent = "  ";
  uint32_t lastPlace = program::kNone;
  std::string text;
};

} // namespace dualpipe::runtime::emit

#endif // DUALPIPE_RUNTIME_EMIT_RANKWRITER_H
