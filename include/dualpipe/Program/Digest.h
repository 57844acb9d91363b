//===- Digest.h - which program a rank's part belongs to --------------------===//

#ifndef DUALPIPE_PROGRAM_DIGEST_H
#define DUALPIPE_PROGRAM_DIGEST_H

#include "dualpipe/Program/Program.h"

#include <cstdint>

namespace dualpipe::program {

/// XXH3 of the shared section and of the rank's own, as a program file has them: the same for a
/// file of all ranks and for one of this rank alone.
uint64_t computeDigest(const SharedInfo &shared, const RankProgram &rank);

} // namespace dualpipe::program

#endif // DUALPIPE_PROGRAM_DIGEST_H
