//===- Names.h - commands and streams as the author of a schedule knows them ===//

#ifndef DUALPIPE_RUNTIME_PICTURES_NAMES_H
#define DUALPIPE_RUNTIME_PICTURES_NAMES_H

#include "dualpipe/Program/Program.h"

#include <string>

namespace dualpipe::runtime {

/// "compute", "send act to 1", "recv grad from 3", "reduce [0, 7]".
std::string describeStream(const program::SharedInfo &shared, const program::Stream &stream);

/// What a command works on; program::kNone where it has none.
struct Subject {
  std::string name; ///< "fwd", "fused", "send act"
  uint32_t stage = program::kNone;
  uint32_t microbatch = program::kNone;
};
/// Of a pair, that of its first member.
Subject getSubject(const program::SharedInfo &shared, const program::RankProgram &rank,
                   uint32_t command);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_PICTURES_NAMES_H
