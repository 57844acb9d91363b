//===- Writer.h - writing `.dpx` files --------------------------------------===//

#ifndef DUALPIPE_PROGRAM_WRITER_H
#define DUALPIPE_PROGRAM_WRITER_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Support/Status.h"

#include <string>
#include <vector>

namespace dualpipe::program {

/// A rank's program as the bytes of its section. Ranks are serialised
/// independently, in parallel, so that a rank's lists can be freed early.
std::vector<uint8_t> serializeRank(const RankProgram &rank);

/// A section with the rank that it belongs to.
struct RankSection {
  uint32_t rank;
  std::vector<uint8_t> bytes;
};

/// Writes the container: shared section first, then one section per rank.
/// Nothing is left behind at `path` on failure: the file is written beside it
/// and renamed. The same input gives the same bytes.
Status writeProgramFile(const std::string &path, const SharedInfo &shared,
                        const std::vector<RankSection> &ranks);

/// The bytes that `writeProgramFile` writes.
std::vector<uint8_t> serializeProgram(const SharedInfo &shared,
                                      const std::vector<RankSection> &ranks);

} // namespace dualpipe::program

#endif // DUALPIPE_PROGRAM_WRITER_H
