//===- Digest.cpp - which program a rank's part belongs to ------------------===//

#include "dualpipe/Program/Digest.h"
#include "dualpipe/Program/Writer.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dualpipe::program {

uint64_t computeDigest(const SharedInfo &shared, const RankProgram &rank) {
  const std::vector<uint8_t> bytes = serializeProgram(shared, {{rank.rank, serializeRank(rank)}});
  return XXH3_64bits(bytes.data(), bytes.size());
}

} // namespace dualpipe::program
