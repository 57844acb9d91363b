//===- Names.h - what the parts of a rank are called in emitted code --------===//

#ifndef DUALPIPE_RUNTIME_EMIT_NAMES_H
#define DUALPIPE_RUNTIME_EMIT_NAMES_H

#include "dualpipe/Program/Program.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dualpipe::runtime::emit {

/// Text of a user with '_' for all that no identifier has; never empty.
std::string toIdentifier(std::string_view text);
/// Text of a user as part of a comment of one line.
std::string toComment(std::string_view text);

/// Gives each name once: a second "x" is "x_2".
class UniqueNames {
public:
  std::string add(const std::string &wanted);

private:
  std::unordered_map<std::string, uint32_t> counts;
};

/// Commands that become one function.
struct Part {
  std::string name;
  std::string phase; ///< as the schedule calls it; empty before the first
  uint32_t begin, end;
};

/// Of one rank, told from what they do.
struct Names {
  Names(const program::SharedInfo &shared, const program::RankProgram &rank);

  /// "input[3]".
  std::string describeSlot(uint32_t slot) const;

  std::vector<std::string> streams; ///< "compute", "act_to_1", "grad_from_0", "sum_0_7"
  std::vector<std::string> classes; ///< of slots: "input", "saved"
  std::vector<std::string> events;  ///< "forward_s0_m2_done", "act_s1_m0_here"
  std::vector<Part> parts;

private:
  void nameStreams();
  void nameClasses();
  void nameEvents();
  void listParts();
  uint32_t splitPhase(const std::string &phase, uint32_t begin, uint32_t end);
  std::string describeStream(const program::Stream &stream) const;
  std::string describeLaunch(const program::Launch &launch) const;
  std::string describePair(uint32_t first, uint32_t count) const;
  std::string describeResult(uint32_t command) const;

  const program::SharedInfo &shared;
  const program::RankProgram &rank;
  UniqueNames unique;
  std::vector<uint32_t> firstSlots; ///< by class
};

} // namespace dualpipe::runtime::emit

#endif // DUALPIPE_RUNTIME_EMIT_NAMES_H
